package files

// limitkv export: what redis-server loads of data that has types which it does not have.

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// mixed is data of all types, in two databases.
const mixed = `SET text hello
SET volatile v PX 100000000
SADD set a b 17
ZADD zset 1 a 2.5 b
RPUSH list a b c
HSET hash f v g w
HPEXPIRE hash 100000000 FIELDS 1 f
XADD stream 1-1 a 1
XGROUP CREATE stream group 0
PFADD hll a b c
RL.ACQUIRE limit 1 FIXED 10 100000000
DQ.ADD queue ID 1 payload
SELECT 9
SET nine 9
DQ.ADD queue ID 1 payload
DQ.ADD queue:2 ID 1 payload
SELECT 0`

// TestExport writes files from an append-only file and from a snapshot, and has Redis load them: all keys of Redis's types
// are there, and the others are counted.
func TestExport(t *testing.T) {
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := peer.LimitKV(t, "--dir", dir, "--appendonly", "yes", "--appendfsync", "always")
	c := s.Dial(t)
	for _, line := range strings.Split(mixed, "\n") {
		if got := do(t, c, line); strings.HasPrefix(got, "-") {
			t.Fatalf("%s: %s", line, got)
		}
	}
	if v, err := c.Do("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 7 end)"); err != nil || v.IsError() {
		t.Fatal(v, err)
	}
	export := func(args ...string) (string, error) {
		out, err := exec.Command(bin, append([]string{"export"}, args...)...).CombinedOutput()
		return string(out), err
	}
	target := filepath.Join(t.TempDir(), "dump.rdb")
	if out, err := export("--plain", dir, target); err == nil || !strings.Contains(out, "in use by another process") {
		t.Errorf("of a server that runs: %v, %s", err, out)
	}
	if got := do(t, c, "SAVE"); got != "+OK" {
		t.Fatal(got)
	}
	end(t, c)
	for deadline := time.Now().Add(60 * time.Second); s.Alive() && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	before := contents(t, dir)
	for _, from := range []string{dir, filepath.Join(dir, "appendonlydir"), filepath.Join(dir, "dump.rdb")} {
		to := t.TempDir()
		target := filepath.Join(to, "dump.rdb")
		out, err := export("--plain", from, target)
		if err != nil || !strings.Contains(out, ": 9 keys") ||
			!strings.Contains(out, "1 of type ratelimit") || !strings.Contains(out, "3 of type delayqueue") {
			t.Fatalf("%v\n%s", err, out)
		}
		if out, err := export("--plain", from, target); err == nil || !strings.Contains(out, "exists") {
			t.Errorf("over a file that is there: %v, %s", err, out)
		}
		r := peer.Redis(t, required, "--dir", to)
		rc := r.Dial(t)
		for deadline := time.Now().Add(60 * time.Second); do(t, rc, "PING") != "+PONG" && time.Now().Before(deadline); {
			time.Sleep(5 * time.Millisecond)
		}
		again := peer.LimitKV(t, "--dir", to, "--save", "3600 1").Dial(t)
		what, want, got, err := peer.CompareKeyspaces(rc, again)
		if err != nil || what != "" {
			t.Errorf("%s: %s here, %s there, %v", what, got, want, err)
		}
		for _, q := range [][2]string{{"DBSIZE", ":8"}, {"FCALL f 0", ":7"}, {"GET text", `"hello"`}, {"SELECT 9", "+OK"}, {"DBSIZE", ":1"}, {"GET nine", `"9"`}} {
			if got := do(t, rc, q[0]); got != q[1] {
				t.Errorf("%s: %s, not %s", q[0], got, q[1])
			}
		}
		r.Stop()
	}
	if contents(t, dir) != before {
		t.Error("what was exported was changed")
	}
	for _, args := range [][]string{{dir, "x.rdb"}, {"--plain", dir}, {"--plain", filepath.Join(dir, "nothing"), target}, {"--plain", t.TempDir(), target}} {
		if out, err := export(args...); err == nil || !strings.Contains(out, "limitkv: ") {
			t.Errorf("%v: %v, %s", args, err, out)
		}
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("there is a file though nothing could be read")
	}
	// Damage is refused, and leaves no file.
	snapshot := filepath.Join(dir, "dump.rdb")
	b, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(snapshot, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := export("--plain", snapshot, target); err == nil || !strings.Contains(out, "offset") || !strings.Contains(out, "limitkv check") {
		t.Errorf("%v\n%s", err, out)
	}
	if left, _ := filepath.Glob(target + "*"); len(left) > 0 {
		t.Errorf("there is %v", left)
	}
}

// contents is what a directory and those in it hold.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		b.WriteString(path + " " + string(text) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
