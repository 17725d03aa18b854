// Package files tests that the files of limitkv's log and of Redis's are one form: each reads what the other wrote, goes
// on with it, and redis-check-aof finds nothing to say.
package files

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/vfs"
)

func TestMain(m *testing.M) { peer.Main(m) }

// required: where CI is set a missing Redis is a failure.
var required = os.Getenv("CI") != ""

// redis starts the real one on a directory's log.
func redis(t *testing.T, dir string, args ...string) *peer.Conn {
	t.Helper()
	s := peer.Redis(t, required, append([]string{"--dir", dir, "--appendonly", "yes", "--appendfsync", "always",
		"--aof-use-rdb-preamble", "no", "--auto-aof-rewrite-percentage", "0"}, args...)...)
	t.Cleanup(s.Stop)
	c := s.Dial(t)
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if v, err := c.Do("PING"); err == nil && !v.IsError() {
			return c
		}
		if time.Now().After(deadline) {
			t.Fatal("Redis goes on loading: " + s.Output())
		}
	}
}

// end ends a server in order.
func end(t *testing.T, c *peer.Conn) {
	t.Helper()
	if err := c.Send("SHUTDOWN"); err != nil {
		t.Fatal(err)
	}
	if !c.Closed(60 * time.Second) {
		t.Fatal("Redis did not shut down")
	}
}

func do(t *testing.T, c *peer.Conn, line string) string {
	t.Helper()
	return mustDo(t, c, line).String()
}

// ours is limitkv's log in a directory.
type ours struct {
	t      *testing.T
	files  *journal.Files
	log    *journal.Log
	loaded *journal.Loaded
	// lines are the commands that were loaded, "database: words".
	lines []string
}

func open(t *testing.T, dir string, w journal.WriterOptions) *ours {
	t.Helper()
	start := time.Now()
	o := &ours{t: t}
	f, err := journal.Open(journal.Options{FS: vfs.OS, Dir: dir, Dirname: "appendonlydir", Filename: "appendonly.aof",
		Monotonic: func() int64 { return time.Since(start).Microseconds() }, Log: func(_ journal.Level, line string) { t.Log(line) }})
	if err != nil {
		t.Fatal(err)
	}
	o.files = f
	o.loaded, err = f.Load(journal.LoadOptions{Truncated: true, Apply: func(u *journal.Unit) error {
		for _, c := range u.Commands {
			o.lines = append(o.lines, fmt.Sprintf("%d: %s", c.DB, bytes.Join(c.Args, []byte(" "))))
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	o.log = journal.NewAt(o.loaded.End)
	if err = f.Start(o.log, w); err != nil {
		t.Fatal(err)
	}
	return o
}

// add appends a batch: lines "database: words".
func (o *ours) add(lines ...string) {
	b := &journal.Batch{NowMicros: time.Now().UnixMicro()}
	for _, line := range lines {
		var db int
		head, words, _ := strings.Cut(line, ": ")
		if _, err := fmt.Sscan(head, &db); err != nil {
			o.t.Fatal(err)
		}
		b.RESP = peer.AppendCommand(b.RESP, strings.Fields(words)...)
		b.Effects = append(b.Effects, journal.Effect{DB: db, End: len(b.RESP)})
	}
	o.log.Append(b)
}

func (o *ours) close() {
	o.t.Helper()
	if err := o.files.Close(); err != nil {
		o.t.Fatal(err)
	}
}

// rewrite puts lines in the place of all that is there.
func (o *ours) rewrite(marks bool, lines ...string) {
	o.t.Helper()
	cut, err := o.files.Rotate()
	if err != nil {
		o.t.Fatal(err)
	}
	file, err := cut.Create()
	if err != nil {
		o.t.Fatal(err)
	}
	w, err := journal.NewCommandWriter(file, cut.LSN, time.Now().UnixMicro(), marks, true)
	if err != nil {
		o.t.Fatal(err)
	}
	for _, line := range lines {
		if err := w.Append(peer.AppendCommand(nil, strings.Fields(line)...)); err != nil {
			o.t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		o.t.Fatal(err)
	}
	if err := cut.Commit(file, false); err != nil {
		o.t.Fatal(err)
	}
}

// checkAOF runs redis-check-aof on a directory's log.
func checkAOF(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	tool := peer.Tool(t, "redis-check-aof", required)
	cmd := exec.Command(tool, append(args, filepath.Join(dir, "appendonlydir", "appendonly.aof.manifest"))...)
	cmd.Stdin = strings.NewReader("y\n")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func valid(t *testing.T, dir string) {
	t.Helper()
	out, err := checkAOF(t, dir)
	if err != nil || !strings.Contains(out, "All AOF files and manifest are valid") {
		t.Fatalf("%v\n%s", err, out)
	}
}

var forms = map[string]journal.WriterOptions{
	"marks":            {Policy: journal.Always, Checksums: true},
	"marks and stamps": {Policy: journal.EverySecond, Checksums: true, Timestamps: true},
	"neither":          {Policy: journal.Always},
}

// TestRedisReadsOurs has Redis check and load what limitkv writes: while it is open, rewritten, and closed.
func TestRedisReadsOurs(t *testing.T) {
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := open(t, dir, form)
			o.add("0: SET a 1")
			o.add("3: RPUSH list x y z", "3: SET b 2", "0: INCR a")
			o.add("3: LPOP list")
			if err := o.files.Sync(); err != nil {
				t.Fatal(err)
			}
			valid(t, dir)
			o.rewrite(form.Checksums, "SET a 2", "SELECT 3", "RPUSH list y z", "SET b 2")
			o.add("3: APPEND b 3")
			valid(t, dir)
			o.close()
			valid(t, dir)
			c := redis(t, dir)
			for _, q := range [][2]string{{"GET a", `"2"`}, {"SELECT 3", "+OK"}, {"LRANGE list 0 -1", `["y", "z"]`}, {"GET b", `"23"`}} {
				if got := do(t, c, q[0]); got != q[1] {
					t.Errorf("%s: %s", q[0], got)
				}
			}
			end(t, c)
		})
	}
}

// TestOursReadsRedis loads what Redis writes, goes on with it, and gives it back.
func TestOursReadsRedis(t *testing.T) {
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c := redis(t, dir, "--aof-timestamp-enabled", "yes")
			do(t, c, "SET a 1")
			do(t, c, "BGREWRITEAOF")
			for deadline := time.Now().Add(60 * time.Second); strings.Contains(do(t, c, "INFO persistence"), "aof_rewrite_in_progress:1"); {
				if time.Now().After(deadline) {
					t.Fatal("Redis goes on rewriting")
				}
				time.Sleep(5 * time.Millisecond)
			}
			do(t, c, "SELECT 5")
			do(t, c, "MULTI")
			do(t, c, "SET b 2")
			do(t, c, "INCR b")
			do(t, c, "EXEC")
			end(t, c)

			o := open(t, dir, form)
			want := []string{"0: SET a 1", "5: SET b 2", "5: INCR b"}
			if strings.Join(o.lines, "\n") != strings.Join(want, "\n") {
				t.Errorf("loaded %q", o.lines)
			}
			o.add("5: INCR b")
			o.close()
			valid(t, dir)

			c = redis(t, dir)
			do(t, c, "SELECT 5")
			if got := do(t, c, "INCR b"); got != ":5" {
				t.Errorf("Redis counts on to %s", got)
			}
			end(t, c)

			o = open(t, dir, form)
			want = append(want, "5: INCR b", "5: INCR b")
			if strings.Join(o.lines, "\n") != strings.Join(want, "\n") {
				t.Errorf("loaded %q", o.lines)
			}
			o.close()
			valid(t, dir)
		})
	}
}

// TestTornBoth tears the end of limitkv's file: Redis takes it, with its commands up to there or without, and what Redis
// goes on with is not lost when limitkv comes back.
func TestTornBoth(t *testing.T) {
	dir := t.TempDir()
	o := open(t, dir, journal.WriterOptions{Policy: journal.Always, Checksums: true})
	for i := range 5 {
		o.add(fmt.Sprintf("0: RPUSH list %d", i), "0: INCR n")
		if err := o.files.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	o.close()
	path := filepath.Join(dir, "appendonlydir", "appendonly.aof.1.incr.aof")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tail := len(text) - 85 // the mark that says that it was closed
	for cut := tail; cut > tail-150; cut -= 7 {
		torn := t.TempDir()
		if err := os.CopyFS(torn, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(torn, "appendonlydir", "appendonly.aof.1.incr.aof"), text[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		o := open(t, torn, journal.WriterOptions{Policy: journal.Always, Checksums: true})
		whole := 4
		if cut == tail {
			whole = 5
		}
		if len(o.lines) != 2*whole {
			t.Fatalf("cut at %d of %d: %q", cut, tail, o.lines)
		}
		o.add("0: DEL list")
		o.close()
		valid(t, torn)
	}
	c := redis(t, dir)
	if got := do(t, c, "GET n"); got != `"5"` {
		t.Errorf("n is %s", got)
	}
	end(t, c)
}
