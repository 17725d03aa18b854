// Append-only files go both ways: limitkv starts on those of redis-server 8.0.6, of an older one and of Valkey, also as the
// one file that they were before Redis 7, and those servers start on limitkv's.
package conformance

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// later is what comes behind a log's BASE.
const later = `
APPEND text " again"
DEL empty
RPUSH list more
LPOP list
ZINCRBY zset 1.5 f
HSET hash new 1
XADD stream 7-0 later on
XACK stream group 1-1
SELECT 9
INCR counter
SELECT 0
PEXPIREAT notint 4102444800777
`

// logging are the settings of a server that keeps a log.
func logging(dir, preamble string) []string {
	return []string{"--dir", dir, "--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble", preamble,
		"--auto-aof-rewrite-percentage", "0"}
}

// fillLog gives a server data, and a log with a BASE and an INCR file of it.
func fillLog(t *testing.T, c *peer.Conn, deadlines bool) {
	t.Helper()
	say(t, c, saved)
	if deadlines {
		say(t, c, savedDeadlines)
	}
	say(t, c, "BGREWRITEAOF")
	settled(t, c, "aof_rewrite_in_progress:0")
	if info := c.Must(t, "INFO", "persistence").Text; !strings.Contains(info, "aof_last_bgrewrite_status:ok") {
		t.Fatal(info)
	}
	say(t, c, later)
}

// settled waits until INFO has a line.
func settled(t *testing.T, c *peer.Conn, line string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if v, err := c.Do("INFO", "persistence"); err != nil {
			t.Fatal(err)
		} else if strings.Contains(v.Text, line+"\r\n") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not become " + line)
		}
	}
}

// copied copies a directory's log, as it is or as the one file that it was before Redis 7.
func copied(t *testing.T, dir string, one bool) string {
	t.Helper()
	to := t.TempDir()
	if !one {
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		return to
	}
	var all []byte
	for _, pattern := range []string{"*.base.*", "*.incr.*"} {
		parts, err := filepath.Glob(filepath.Join(dir, "appendonlydir", pattern))
		if err != nil || len(parts) != 1 {
			t.Fatalf("%s: %v, %v", pattern, parts, err)
		}
		b, err := os.ReadFile(parts[0])
		if err != nil {
			t.Fatal(err)
		}
		if len(b) < 100 {
			t.Fatalf("%s has %d bytes", parts[0], len(b))
		}
		all = append(all, b...)
	}
	if err := os.WriteFile(filepath.Join(to, "appendonly.aof"), all, 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// starting has the BASE file begin as asked for.
func starting(t *testing.T, dir, preamble string) {
	t.Helper()
	parts, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.base.*"))
	if err != nil || len(parts) != 1 {
		t.Fatalf("the BASE files are %v, %v", parts, err)
	}
	b, err := os.ReadFile(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	rdb := bytes.HasPrefix(b, []byte("REDIS")) || bytes.HasPrefix(b, []byte("VALKEY"))
	if rdb != (preamble == "yes") || rdb != strings.HasSuffix(parts[0], ".rdb") {
		t.Fatalf("%s begins with %.10q", parts[0], b)
	}
}

func TestLogsOfServers(t *testing.T) {
	redis(t) // or there is nothing to compare with
	for name, start := range fileSources(t) {
		for _, preamble := range []string{"yes", "no"} {
			t.Run(name+", preamble "+preamble, func(t *testing.T) {
				dir := t.TempDir()
				a := start(logging(dir, preamble)...).Dial(t)
				fillLog(t, a, name != "redis 7")
				starting(t, dir, preamble)
				for _, one := range []bool{false, true} {
					b := peer.LimitKV(t, "--dir", copied(t, dir, one), "--appendonly", "yes").Dial(t)
					settled(t, b, "loading:0")
					compareLoaded(t, name, a, b)
					if want, got := a.Must(t, "FUNCTION", "LIST", "WITHCODE"), b.Must(t, "FUNCTION", "LIST", "WITHCODE"); !want.Equal(got) {
						t.Errorf("functions %v\n of %s %v", got, name, want)
					}
				}
			})
		}
	}
}

func TestOwnLogsElsewhere(t *testing.T) {
	redis(t)
	for _, preamble := range []string{"yes", "no"} {
		for _, deadlines := range []bool{true, false} {
			dir := t.TempDir()
			a := peer.LimitKV(t, logging(dir, preamble)...).Dial(t)
			fillLog(t, a, deadlines)
			starting(t, dir, preamble)
			for name, start := range fileSources(t) {
				if deadlines == (name == "redis 7") || preamble == "yes" && name != "redis" {
					continue // Redis 7 has no deadlines of fields; an RDB of version 12 only Redis 8 reads
				}
				t.Run(name+", preamble "+preamble, func(t *testing.T) {
					to := copied(t, dir, false)
					if name == "redis" {
						checked(t, to)
					}
					b := start(logging(to, preamble)...).Dial(t)
					settled(t, b, "loading:0")
					compareLoaded(t, name, a, b)
				})
			}
		}
	}
}

// checked has redis-check-aof find nothing in a directory's log.
func checked(t *testing.T, dir string) {
	t.Helper()
	server := os.Getenv("REDIS_SERVER")
	tool := filepath.Join(filepath.Dir(server), "redis-check-aof")
	if server == "" {
		tool = "redis-check-aof"
	}
	out, err := exec.Command(tool, filepath.Join(dir, "appendonlydir", "appendonly.aof.manifest")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "All AOF files and manifest are valid") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestTurnsOn turns the log on again and again: each time all that there is is written in the background, while the file
// that goes on is synced beside it.
func TestTurnsOn(t *testing.T) {
	c := peer.LimitKV(t, "--dir", t.TempDir()).Dial(t)
	for range 5 {
		say(t, c, "CONFIG SET appendonly yes\nSET key value")
		settled(t, c, "aof_rewrite_in_progress:0")
		say(t, c, "CONFIG SET appendonly no")
	}
}
