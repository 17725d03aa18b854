package files

// limitkv export --rdb-version: what is written for each version loads in limitkv, and in those peers that read it.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// fillAllForms enters each of Redis's types in all its encodings, without what a version cannot hold.
func fillAllForms(t *testing.T, c *peer.Conn) {
	t.Helper()
	for _, line := range []string{
		"SET text hello", "SET number 12345", "SET volatile v PX 100000000", "SET long " + strings.Repeat("x", 5000),
		"RPUSH list a b 1", "RPUSH plain " + strings.Repeat("y", 20000) + " z", "SADD ints 1 2 3", "SADD set a b 17",
		"ZADD zset 1 a 2.5 b -inf c inf d", "HSET hash f v n 5", "PFADD hll a b c d e f g h i j k l m n o p q r s t",
		"XADD stream 1-1 a 1", "XADD stream 2-1 a 2", "XADD stream 3-1 b 3", "XDEL stream 2-1", "XGROUP CREATE stream group 0",
		"XREADGROUP GROUP group one COUNT 1 STREAMS stream >", "SELECT 9", "SET nine 9", "SELECT 0",
	} {
		if got := do(t, c, line); strings.HasPrefix(got, "-") {
			t.Fatalf("%.80s: %s", line, got)
		}
	}
	words := map[string]*strings.Builder{"RPUSH quicklist": {}, "SADD hashtable": {}, "ZADD skiplist": {}, "HSET large": {}}
	for i := range 600 {
		fmt.Fprintf(words["RPUSH quicklist"], " element-%d", i)
		fmt.Fprintf(words["SADD hashtable"], " member-%d", i)
		fmt.Fprintf(words["ZADD skiplist"], " %d.5 member-%d", i, i)
		fmt.Fprintf(words["HSET large"], " field-%d %d", i, i)
	}
	for head, rest := range words {
		if got := do(t, c, head+rest.String()); strings.HasPrefix(got, "-") {
			t.Fatalf("%s: %s", head, got)
		}
	}
}

// TestExportVersions exports each version and loads it: in limitkv, and in Redis where its version is not above Redis's.
func TestExportVersions(t *testing.T) {
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := peer.LimitKV(t, "--dir", dir)
	c := s.Dial(t)
	fillAllForms(t, c)
	if got := do(t, c, "SAVE"); got != "+OK" {
		t.Fatal(got)
	}
	source := filepath.Join(dir, "dump.rdb")
	export := func(args ...string) (target, out string, err error) {
		target = filepath.Join(t.TempDir(), "dump.rdb")
		b, err := exec.Command(bin, append(append([]string{"export", "--plain"}, args...), source, target)...).CombinedOutput()
		return target, string(b), err
	}
	for version := 9; version <= 15; version++ {
		target, out, err := export("--rdb-version", fmt.Sprint(version))
		if err != nil {
			t.Fatalf("version %d: %v, %s", version, err, out)
		}
		head := make([]byte, 9)
		if b, err := os.ReadFile(target); err != nil || copy(head, b) != len(head) || string(head) != fmt.Sprintf("REDIS%04d", version) {
			t.Errorf("version %d begins with %q, %v", version, head, err)
		}
		again := peer.LimitKV(t, "--dir", filepath.Dir(target), "--save", "3600 1")
		sameKeyspace(t, fmt.Sprintf("limitkv, version %d", version), c, again.Dial(t))
		again.Stop()
		if version <= 12 && os.Getenv("REDIS_SERVER") != "" {
			r := peer.Redis(t, required, "--dir", filepath.Dir(target))
			sameKeyspace(t, fmt.Sprintf("redis, version %d", version), r.Dial(t), c)
			r.Stop()
		}
	}
	for _, wrong := range []string{"8", "16", "0", "-1", "x", ""} {
		if target, out, err := export("--rdb-version", wrong); err == nil || !strings.Contains(out, "limitkv: --rdb-version") {
			t.Errorf("version %q: %v, %s", wrong, err, out)
		} else if _, err := os.Stat(target); err == nil {
			t.Errorf("version %q wrote a file", wrong)
		}
	}
	// What a version cannot hold.
	if v, err := c.Do("FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 7 end)"); err != nil || v.IsError() {
		t.Fatal(v, err)
	}
	for _, line := range []string{"SELECT 9", "HSET due f v g w", "HPEXPIRE due 100000000 FIELDS 1 f", "SAVE"} {
		if got := do(t, c, line); strings.HasPrefix(got, "-") {
			t.Fatalf("%s: %s", line, got)
		}
	}
	for version := 9; version <= 12; version++ {
		number := fmt.Sprint(version)
		target, out, err := export("--rdb-version", number)
		if _, e := os.Stat(target); version < 12 && (err == nil || e == nil || !strings.Contains(out, `deadlines of fields of hashes (1: 9/"due")`) || strings.Contains(out, "name=lib") != (version < 10)) {
			t.Errorf("version %d: %v, %v, %s", version, err, e, out)
		} else if version == 12 && err != nil {
			t.Errorf("version %d: %v, %s", version, err, out)
		}
		if version == 12 {
			continue
		}
		target, out, err = export("--rdb-version", number, "--lossy")
		if err != nil || !strings.Contains(out, `lost, since version `+number) || !strings.Contains(out, `9/"due"`) {
			t.Errorf("version %d: %v, %s", version, err, out)
			continue
		}
		again := peer.LimitKV(t, "--dir", filepath.Dir(target), "--save", "3600 1")
		ac := again.Dial(t)
		for _, q := range [][2]string{{"SELECT 9", "+OK"}, {"HGET due f", `"v"`}, {"HLEN due", ":2"}, {"HPTTL due FIELDS 1 f", "[:-1]"}} {
			if got := do(t, ac, q[0]); got != q[1] {
				t.Errorf("version %d, %s: %s, not %s", version, q[0], got, q[1])
			}
		}
		again.Stop()
	}
}

func sameKeyspace(t *testing.T, who string, a, b *peer.Conn) {
	t.Helper()
	what, want, got, err := peer.CompareKeyspaces(a, b)
	if err != nil || what != "" {
		t.Errorf("%s: %s: %.200s and %.200s, %v", who, what, want, got, err)
	}
}
