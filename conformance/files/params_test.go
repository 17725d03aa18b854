package files

// Bad values of the parameters about files, and commands that come at a bad time, beside Redis.

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// words are the parameters about files that Redis has.
var words = strings.Fields(`appendonly appendfsync appenddirname appendfilename aof-use-rdb-preamble aof-load-truncated
	aof-timestamp-enabled auto-aof-rewrite-percentage auto-aof-rewrite-min-size no-appendfsync-on-rewrite save dir dbfilename
	rdbcompression rdbchecksum sanitize-dump-payload stop-writes-on-bgsave-error shutdown-on-sigterm shutdown-on-sigint
	shutdown-timeout`)

// TestSettings sets every parameter to values good and bad. What is answered, and what is set then, are as from Redis.
func TestSettings(t *testing.T) {
	values := []string{"maybe", "", "-1", "1.5", "99999999999999999999", "YES", "No", "always ", "60", "60 1 x", "60 -1", "0 1", "-1 1",
		"/nonexistent", "a/b", "1gb", "1xb", "save nosave", "now force", "SAVE FORCE", "clients", "default"}
	args := []string{"--enable-protected-configs", "yes"}
	r := peer.Redis(t, required, append(args, "--dir", t.TempDir())...).Dial(t)
	l := peer.LimitKV(t, append(args, "--dir", t.TempDir())...).Dial(t)
	asked := 0
	for _, name := range words {
		for _, value := range values {
			if name == "appendonly" && strings.EqualFold(value, "yes") {
				continue // what follows is as with others
			}
			for _, q := range [][]string{{"CONFIG", "SET", name, value}, {"CONFIG", "SET", "maxclients", "9000", name, value}, {"CONFIG", "GET", name}} {
				if name == "dir" && q[1] == "GET" {
					continue
				}
				want, err := r.Do(q...)
				if err != nil {
					t.Fatal(err)
				}
				got, err := l.Do(q...)
				if err != nil {
					t.Fatal(err)
				}
				if asked++; !want.Equal(got) {
					t.Errorf("%q: %v, of Redis %v", q, got, want)
				}
			}
		}
	}
	if asked < 1000 {
		t.Errorf("only %d questions", asked)
	}
}

// TestBadStart starts servers with what they refuse: they end, and say why in Redis's words.
func TestBadStart(t *testing.T) {
	redis := peer.Redis(t, required) // or there is nothing to compare with
	redis.Stop()
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	run := func(bin string, args ...string) string {
		cmd := exec.Command(bin, append(args, "--port", "0", "--dir", t.TempDir())...)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(60*time.Second, func() { _ = cmd.Process.Kill() })
		if err := cmd.Wait(); !timer.Stop() || err == nil {
			t.Errorf("%s %q starts: %v", filepath.Base(bin), args, err)
		}
		return strings.TrimSpace(out.String())
	}
	for _, bad := range [][2]string{
		{"appendonly", "maybe"}, {"appendfsync", "sometimes"}, {"appenddirname", "a/b"}, {"appenddirname", ""}, {"appendfilename", "a/b"},
		{"appendfilename", ""}, {"aof-use-rdb-preamble", "1"}, {"aof-load-truncated", "x"}, {"aof-timestamp-enabled", "x"},
		{"auto-aof-rewrite-percentage", "-1"}, {"auto-aof-rewrite-min-size", "1xb"}, {"no-appendfsync-on-rewrite", "x"}, {"save", "60"},
		{"save", "0 1"}, {"save", "60 x"}, {"dbfilename", "a/b"}, {"rdbcompression", "x"}, {"rdbchecksum", "x"},
		{"sanitize-dump-payload", "x"}, {"stop-writes-on-bgsave-error", "x"}, {"shutdown-on-sigterm", "x"},
		{"shutdown-on-sigterm", "save nosave"}, {"shutdown-on-sigint", "never"}, {"shutdown-timeout", "-1"},
	} {
		args := append([]string{"--" + bad[0]}, strings.Fields(bad[1])...)
		if len(args) == 1 {
			args = append(args, "")
		}
		want := run(redisBinary(t), args...)
		want = want[strings.LastIndexByte(want, '\n')+1:]
		if got := run(bin, args...); !strings.Contains(got, want) {
			t.Errorf("%q: %q, of Redis %q", args, got, want)
		}
	}
}

// TestNoSnapshotName: a server whose dbfilename is empty starts and cannot save, as Redis.
func TestNoSnapshotName(t *testing.T) {
	args := []string{"--dbfilename", "", "--dir"}
	for _, s := range []*peer.Server{peer.LimitKV(t, append(args, t.TempDir())...), peer.Redis(t, required, append(args, t.TempDir())...)} {
		if v := do(t, s.Dial(t), "SAVE"); v != "-ERR" {
			t.Errorf("SAVE: %s", v)
		}
	}
}

// TestRewritten: what CONFIG REWRITE writes of values with blanks, the other server reads, and a file says whom its server
// follows, in the words that tools look for, or nothing.
func TestRewritten(t *testing.T) {
	peer.Redis(t, required).Stop() // or there is nothing to compare with
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "with blanks")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	values := [][2]string{
		{"dir", dir}, {"save", "3600 2 300 200"}, {"client-output-buffer-limit", "normal 0 0 0 slave 4096 2048 60 pubsub 1024 512 30"},
		{"oom-score-adj-values", "1 2 3"}, {"latency-tracking-info-percentiles", "1 2.5"}, {"shutdown-on-sigterm", "save now"},
		{"requirepass", ""}, {"proc-title-template", "{title} of ours"},
	}
	binaries := []string{bin, redisBinary(t)}
	for i, writer := range binaries {
		file := filepath.Join(t.TempDir(), "its.conf")
		text := func() string {
			t.Helper()
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		run := func(bin string, fn func(c *peer.Conn)) {
			t.Helper()
			s, err := peer.Start(filepath.Base(bin), bin, file, "--enable-protected-configs", "yes")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			fn(s.Dial(t))
		}
		if err := os.WriteFile(file, []byte("# a file\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		run(writer, func(c *peer.Conn) {
			for _, v := range values {
				if got, err := c.Do("CONFIG", "SET", v[0], v[1]); err != nil || got.IsError() {
					t.Errorf("%s: CONFIG SET %s %q: %v %v", writer, v[0], v[1], got, err)
				}
			}
			do(t, c, "REPLICAOF 127.0.0.1 9")
			do(t, c, "CONFIG REWRITE")
			if !strings.Contains(text(), "\nreplicaof 127.0.0.1 9\n") {
				t.Errorf("%s has not written whom it follows: %s", writer, text())
			}
			do(t, c, "REPLICAOF NO ONE")
			do(t, c, "CONFIG REWRITE")
			if strings.Contains(text(), "replicaof") {
				t.Errorf("%s has written that it follows nobody: %s", writer, text())
			}
		})
		for _, reader := range []string{binaries[1-i], writer} {
			run(reader, func(c *peer.Conn) {
				for _, v := range values {
					if got := do(t, c, "CONFIG GET "+v[0]); !strings.Contains(got, strconv.Quote(v[1])) {
						t.Errorf("%s reads %s as %s, %s wrote %q", reader, v[0], got, writer, v[1])
					}
				}
			})
		}
	}
}

// redisBinary is where redis-server is.
func redisBinary(t *testing.T) string {
	t.Helper()
	return peer.Tool(t, "redis-server", required)
}

// TestRefusingWrites: what is refused while snapshots fail, and what is not.
func TestRefusingWrites(t *testing.T) {
	lines := strings.Split(`SET a 1
PING
PING x
ECHO x
PUBLISH ch x
GET a
DEL a
SPOP s
PFCOUNT h
XREADGROUP GROUP g c STREAMS x >
SORT a STORE b
WAIT 0 0
EVAL return(1) 0
EVAL return(redis.call('GET','a')) 0
EVAL return(redis.call('SET','a',1)) 0
EVAL return(redis.pcall('SET','a',1)) 0
EVAL return(redis.call('PUBLISH','a',1)) 0
EVAL_RO return(redis.call('GET','a')) 0
EVALSHA_RO ffffffffffffffffffffffffffffffffffffffff 0
MULTI
SET a 1
EXEC
MULTI
PING
GET a
EXEC
MULTI
GET a
EXEC
FLUSHALL
CONFIG SET stop-writes-on-bgsave-error no
SET a 1
PING
CONFIG SET stop-writes-on-bgsave-error yes
SET a 1
CONFIG SET save 
SET a 1
CONFIG SET save 3600-1
SAVE
BGSAVE x
BGREWRITEAOF x
SHUTDOWN x
SHUTDOWN SAVE NOSAVE
SHUTDOWN ABORT
SHUTDOWN ABORT NOW
WAITAOF 1 0 0
WAITAOF 2 0 0
WAITAOF 0 0 -1`, "\n")
	replies := func(s *peer.Server) (all []string) {
		c := s.Dial(t)
		do(t, c, "SET a 1")
		do(t, c, "BGSAVE") // a directory has the name of its file
		until(t, c, "rdb_last_bgsave_status:err")
		for _, line := range lines {
			args := strings.Split(line, " ")
			if args[len(args)-1] == "3600-1" {
				args[len(args)-1] = "3600 1"
			}
			v, err := c.Do(args...)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			all = append(all, line+" -> "+v.String())
		}
		return all
	}
	blocked := func() []string {
		dir := t.TempDir()
		return []string{"--dir", dir, "--dbfilename", "taken", "--save", "3600 1"}
	}
	r := peer.Redis(t, required, blocked()...)
	l := peer.LimitKV(t, blocked()...)
	for _, s := range []*peer.Server{r, l} {
		dir := s.Dial(t)
		v, err := dir.Do("CONFIG", "GET", "dir")
		if err != nil || len(v.Items) != 2 {
			t.Fatal(v, err)
		}
		takeName(t, filepath.Join(v.Items[1].Text, "taken"))
	}
	want, got := replies(r), replies(l)
	refused := 0
	for i := range want {
		if want[i] != got[i] {
			t.Errorf("%s\nof Redis %s", got[i], want[i])
		}
		if strings.Contains(got[i], "MISCONF") {
			refused++
		}
	}
	if refused < 10 {
		t.Errorf("only %d are refused", refused)
	}
}

// takeName makes a directory that is not empty, so that no file takes its place.
func takeName(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(path, "inside"), 0o755); err != nil {
		t.Fatal(err)
	}
}
