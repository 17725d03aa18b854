// What a server says while it loads, and what it writes unless it is told otherwise.
package files

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// whileLoading are commands and what belongs to them, all of which are sent while servers load: each gets the reply
// that Redis gives.
var whileLoading = []string{
	"PING", "GET a", "SET a 1", "SET a", "NOSUCH", "EXISTS a", "DBSIZE", "KEYS *", "SCAN 0", "FLUSHALL", "FLUSHDB",
	"EVAL return(1) 0", "SCRIPT EXISTS a", "FUNCTION LIST", "BGSAVE", "SAVE", "BGREWRITEAOF", "DEBUG POPULATE 3", "DEBUG JMAP",
	"SELECT 1", "SELECT 0", "ECHO a", "TIME", "WAIT 0 0", "WAITAOF 0 0 0", "BLPOP a 1", "XREAD BLOCK 1 STREAMS a $",
	"HELLO 2", "CLIENT GETNAME", "CLIENT SETNAME loads", "CLIENT ID", "COMMAND COUNT", "CONFIG GET hz", "CONFIG SET dir /", "CONFIG SET hz 10",
	"ACL WHOAMI", "AUTH a b", "MULTI", "GET a", "EXEC", "MULTI", "PUBLISH a b", "EXEC", "MULTI", "DISCARD", "WATCH a", "UNWATCH",
	"SUBSCRIBE a", "UNSUBSCRIBE", "PUBLISH a b", "PUBSUB CHANNELS", "SLOWLOG LEN", "LATENCY LATEST", "MEMORY USAGE a", "OBJECT FREQ a",
	"REPLICAOF NO ONE", "ROLE", "READONLY", "SHUTDOWN ABORT", "LASTSAVE 1", "MONITOR 1", "RESET",
}

// TestLoading: while a snapshot or a log is read, both servers answer alike, tell in INFO how far they are, and end at
// once where they are told to.
func TestLoading(t *testing.T) {
	var want []string
	var fields string
	for _, log := range []string{"no", "yes"} {
		t.Run("appendonly "+log, func(t *testing.T) {
			dir := t.TempDir()
			s := peer.LimitKV(t, "--dir", dir, "--save", "3600 1", "--appendonly", log, "--appendfsync", "no", "--enable-debug-command", "yes")
			c := s.Dial(t)
			const keys = 4000
			for i := 0; i < keys; i += 1000 {
				for j := range 1000 {
					if err := c.Send("SET", "key:"+strconv.Itoa(i+j), value(i+j)); err != nil {
						t.Fatal(err)
					}
				}
				for range 1000 {
					if _, err := c.Receive(); err != nil {
						t.Fatal(err)
					}
				}
			}
			end(t, c)
			gone(t, s)
			slow := []string{"--dir", dir, "--appendonly", log, "--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"}
			tested := peer.LimitKV(t, slow...)
			if log == "no" { // of a log Redis looks at its clients after 1,024 commands each
				want, fields = answers(t, peer.Redis(t, required, append(slow, "--save", "3600 1000000")...))
			}
			if want == nil {
				t.Skip("there is no Redis to compare with")
			}
			got, has := answers(t, tested)
			for i, line := range whileLoading {
				if slices.Contains([]string{"TIME", "CLIENT ID", "COMMAND COUNT", "HELLO 2", "ROLE"}, line) {
					got[i] = got[i][:1] + want[i][1:] // of its own time and number
				}
				if want[i] != got[i] {
					t.Errorf("%s while loading\n  want %s\n  got  %s", line, want[i], got[i])
				}
			}
			if has != fields {
				t.Errorf("INFO has\n  %s\nand Redis\n  %s", has, fields)
			}
			// Nothing is written by a server that ends while it loads.
			before := listing(t, dir)
			end(t, tested.Dial(t))
			gone(t, tested)
			if after := listing(t, dir); after != before {
				t.Errorf("ending while loading changed the files\n  from %s\n  to   %s", before, after)
			}
			tested = peer.LimitKV(t, slow...)
			if err := tested.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			gone(t, tested)
			// In the end all is there, and the log tells so in Redis's words.
			tested = peer.LimitKV(t, "--dir", dir, "--appendonly", log, "--key-load-delay", "5")
			c = tested.Dial(t)
			for deadline := time.Now().Add(30 * time.Second); do(t, c, "PING") != "+PONG" && time.Now().Before(deadline); {
				time.Sleep(5 * time.Millisecond)
			}
			if n := do(t, c, "DBSIZE"); n != ":"+strconv.Itoa(keys) {
				t.Errorf("%s keys were loaded", n)
			}
			lines := []string{"Server initialized", "DB loaded from disk: ", "Ready to accept connections tcp"}
			if log == "yes" {
				lines[1] = "DB loaded from append only file: "
			}
			tested.Says(t, lines[2])
			rest := tested.Output()
			for _, line := range lines {
				_, after, found := strings.Cut(rest, line)
				if !found {
					t.Errorf("%q is not in the log, or not in its place:\n%s", line, tested.Output())
				}
				rest = after
			}
		})
	}
}

// value is some bytes that hardly compress.
func value(n int) string {
	sum := sha512.Sum512([]byte(strconv.Itoa(n)))
	return hex.EncodeToString(sum[:]) + base64.StdEncoding.EncodeToString(sum[:])
}

// answers are a loading server's replies, and the fields of INFO that are there while it loads, of which one has to
// grow.
func answers(t *testing.T, s *peer.Server) (replies []string, fields string) {
	t.Helper()
	c := s.Dial(t)
	var began int64
	for i, line := range append(whileLoading, "INFO persistence") {
		reply := do(t, c, line)
		replies = append(replies, reply)
		if i > 0 && i < len(whileLoading) {
			continue
		}
		fields = ""
		for _, line := range strings.Split(do(t, s.Dial(t), "INFO persistence"), "\\r\\n") {
			name, value, _ := strings.Cut(line, ":")
			if strings.HasPrefix(name, "loading") {
				fields += name + " "
			}
			if n, _ := strconv.ParseInt(value, 10, 64); name == "loading_loaded_bytes" {
				for deadline := time.Now().Add(60 * time.Second); i > 0 && n <= began; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Errorf("%s tells no progress in loading: %d bytes", s.Name, n)
						break
					}
					_, after, loads := strings.Cut(do(t, s.Dial(t), "INFO persistence"), "loading_loaded_bytes:")
					if !loads {
						break // it is through
					}
					after, _, _ = strings.Cut(after, "\\r\\n")
					n, _ = strconv.ParseInt(after, 10, 64)
				}
				began = n
			}
		}
	}
	return replies[:len(whileLoading)], fields
}

// gone waits for the end of a server that was told to end.
func gone(t *testing.T, s *peer.Server) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); s.Alive(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not end", s.Name)
		}
	}
}

// listing is what a directory has: names, sizes and times of change.
func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			b.WriteString(path + " " + strconv.FormatInt(info.Size(), 10) + " " + info.ModTime().String() + "\n")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDefaultFiles: without any parameter a server keeps a snapshot in its directory as Redis does, and none with --test
// or without save points.
func TestDefaultFiles(t *testing.T) {
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	for args, kept := range map[string]bool{"": true, "--test": false, "--save ": false, "--test --save 60 1": true} {
		dir := t.TempDir()
		run := func(read bool) string {
			words := strings.Split(args, " ")
			if args == "" {
				words = nil
			} else if args == "--test --save 60 1" {
				words = []string{"--test", "--save", "60 1"}
			}
			port, err := peer.FreePort()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(bin, append([]string{"--port", port}, words...)...)
			cmd.Dir = dir
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var c *peer.Conn
			for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(2 * time.Millisecond) {
				if c, err = peer.Dial("127.0.0.1:" + port); err == nil {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal(err)
				}
			}
			reply := do(t, c, "GET a")
			if !read {
				if v := do(t, c, "CONFIG GET save"); args == "" && !strings.Contains(v, "3600 1 300 100 60 10000") {
					t.Errorf("save is %s", v)
				}
				do(t, c, "SET a 1")
			}
			c.Close()
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			return reply
		}
		run(false)
		found, _ := filepath.Glob(filepath.Join(dir, "*"))
		want := ""
		if kept {
			want = filepath.Join(dir, "dump.rdb")
		}
		if strings.Join(found, " ") != want {
			t.Errorf("limitkv %s leaves %q", args, found)
		}
		if reply := run(true); (reply == `"1"`) != kept {
			t.Errorf("limitkv %s, started again, has %s", args, reply)
		}
	}
}
