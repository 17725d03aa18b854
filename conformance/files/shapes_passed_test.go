package files

// What was put right goes on as it is then: to replicas, to logs and to what is written anew.

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// servedShapes are the shapes that are served, by key.
func servedShapes() map[string]shape {
	keys := map[string]shape{}
	for i, s := range allShapes() {
		if s.outcome == served {
			keys["k"+strconv.Itoa(i)] = s
		}
	}
	return keys
}

// TestShapesReplicated: Redis that serves them is followed by limitkv, and that by another Redis.
func TestShapesReplicated(t *testing.T) {
	keys := servedShapes()
	first := peer.Redis(t, required, "--dir", fileOf(t, keys), "--repl-diskless-sync-delay", "0")
	second, third := peer.LimitKV(t, "--repl-diskless-sync-delay", "0"), peer.Redis(t, required)
	peer.Join(t, second.Dial(t), first)
	peer.Join(t, third.Dial(t), second)
	r, o, last := first.Dial(t), second.Dial(t), third.Dial(t)
	for key, s := range keys {
		want := s.mustRead(t, r, key, s.unasked)
		got := s.mustRead(t, o, key, "")
		if s.kind != 15 && s.kind != 10 { // Redis passes them on in newer forms, which say how many entries there ever were
			s.compare(t, "replicated", want, got)
		}
		if theirs, err := read(t, last, key, ""); err != nil || !equalMaps(theirs, got) {
			t.Errorf("%s: Redis that follows has %q, %v, not %q", s.name, theirs, err, got)
		}
	}
	// By the stream of commands.
	mustDo(t, r, "FLUSHALL")
	for key, s := range keys {
		if v, err := r.Do("RESTORE", key, "0", s.payload()); err != nil || v.String() != "+OK" {
			t.Fatal(s.name, v, err)
		}
	}
	if v := mustDo(t, r, "WAIT 1 30000"); v.String() != ":1" {
		t.Fatal(v)
	}
	for key, s := range keys {
		if got, err := read(t, o, key, ""); err != nil || len(got) == 0 {
			t.Errorf("%s: %q, %v", s.name, got, err)
		}
	}
	if out := second.Output(); strings.Contains(out, "CRITICAL") {
		t.Error(out)
	}
}

// TestShapesLogged: a log has them as they were put right, so that whoever reads it has nothing to put right; and so has one
// of commands that is written anew.
func TestShapesLogged(t *testing.T) {
	dir := t.TempDir()
	args := []string{"--dir", dir, "--appendonly", "yes", "--aof-use-rdb-preamble", "no"}
	s := peer.LimitKV(t, args...)
	c := s.Dial(t)
	keys := servedShapes()
	for key, shape := range keys {
		if v, err := c.Do("RESTORE", key, "0", shape.payload()); err != nil || v.String() != "+OK" {
			t.Fatal(shape.name, v, err)
		}
	}
	before := map[string]map[string]string{}
	for key, shape := range keys {
		before[key] = shape.mustRead(t, c, key, "")
	}
	if repairsOf(t, c) == 0 {
		t.Error("nothing was put right")
	}
	for _, how := range []string{"as logged", "written anew"} {
		s.Stop()
		s = peer.LimitKV(t, args...)
		c = s.Dial(t)
		if n := repairsOf(t, c); n != 0 {
			t.Errorf("%s: %d are put right again", how, n)
		}
		for key, shape := range keys {
			got, err := read(t, c, key, "")
			for command, want := range before[key] {
				if how == "written anew" && !byCommands(shape, command) {
					continue
				}
				if err != nil || got[command] != want {
					t.Errorf("%s, %s: %s\n here %s\n want %s, %v", shape.name, how, command, got[command], want, err)
				}
			}
		}
		if how == "as logged" {
			mustDo(t, c, "BGREWRITEAOF")
			for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
				info := mustDo(t, c, "INFO persistence").Text
				if peer.Field(info, "aof_rewrites") != "0" && peer.Field(info, "aof_rewrite_in_progress") == "0" {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the log is not written anew")
				}
			}
		}
	}
}

// byCommands tells whether commands make again what a command reads: not the encodings and blocks, no score of -0, and nothing
// pending of entries that are gone.
func byCommands(s shape, command string) bool {
	switch {
	case strings.HasPrefix(command, "radix-tree"), strings.HasPrefix(command, "OBJECT"):
		return false
	case strings.HasPrefix(command, "XPENDING"), strings.HasPrefix(command, "XINFO"):
		return !strings.HasSuffix(s.name, "that is gone") && !strings.HasSuffix(s.name, "that overlap")
	}
	return !strings.Contains(s.name, " -0")
}

// TestShapesElsewhere: what limitkv saved of them, Valkey loads, which is more particular than Redis 8.0.
func TestShapesElsewhere(t *testing.T) {
	valkey := os.Getenv("VALKEY_SERVER")
	if valkey == "" {
		t.Skip("VALKEY_SERVER is not set")
	}
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]shape{}
	for key, s := range servedShapes() {
		if s.kind <= 21 { // no deadlines of fields
			keys[key] = s
		}
	}
	dir, to := fileOf(t, keys), t.TempDir()
	mustDo(t, peer.LimitKV(t, "--dir", dir).Dial(t), "SAVE")
	if out, err := exec.Command(bin, "export", "--plain", "--rdb-version", "11", filepath.Join(dir, "dump.rdb"), filepath.Join(to, "dump.rdb")).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if n := mustDo(t, peer.Like(t, "valkey", valkey, "--dir", to).Dial(t), "DBSIZE").Text; n != strconv.Itoa(len(keys)) || len(keys) < 50 {
		t.Errorf("Valkey has %s keys of %d", n, len(keys))
	}
}
