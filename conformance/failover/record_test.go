package main

// The judge itself: what must not be is found.

import (
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

func TestMain(m *testing.M) { peer.Main(m) }

// TestRecord has the record find what must not be: a client that stands still, a fence that falls, and what was lost while
// nothing may be.
func TestRecord(t *testing.T) {
	primary := peer.LimitKV(t)
	c := primary.Dial(t)
	for _, args := range [][]string{{"RPUSH", "ledger:x", "1", "2", "4"}} {
		if _, err := c.Do(args...); err != nil {
			t.Fatal(err)
		}
	}
	at := &node{addr: primary.Addr}
	play := func(lines ...string) *record {
		r := newRecord()
		for _, l := range lines {
			r.line("go", strings.ReplaceAll(l, " ", "\t"))
		}
		return r
	}
	good := []string{"told x 1", "told x 2", "told x 4", "fence x holds 7", "fence x waits 8", "fence x holds 9", "added x 1", "done x 1", "error x SET reset", "got x DQ.POP"}
	if err := play(good...).settle(at); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"fence x holds 8", "fence x waits 1", "told x", "what x 1", "told x one"} {
		if r := play(append(good, bad)...); len(r.wrong) == 0 {
			t.Errorf("%q is not found", bad)
		}
	}
	for _, bad := range []string{"told x 3", "added x 3"} {
		r := play(append(good, bad)...)
		lost, err := r.lost("x", at)
		if err != nil || len(lost) != 1 || r.mayBeLost(lost[3]) {
			t.Errorf("%q: %v is lost, %v", bad, lost, err)
		}
		r.lossy = append(r.lossy, [2]time.Time{time.Now().Add(-time.Minute), time.Now()})
		if err := r.settle(at); err != nil {
			t.Errorf("%q during a fault: %v", bad, err)
		}
	}
	// Who asks again for what it holds gets the fence that it has: it had released it, and that was lost.
	r := play(append(good, "fence x holds 9")...)
	if err := r.settle(at); err == nil {
		t.Error("a fence that is granted again is not found")
	}
	r = play(append(good, "fence x holds 9")...)
	r.lossy = append(r.lossy, [2]time.Time{time.Now().Add(-time.Minute), time.Now()})
	if err := r.settle(at); err != nil {
		t.Errorf("a fence that is granted again during a fault: %v", err)
	}
	r = play(good...)
	r.inputs = []*program{{folder: "python"}}
	if lacks := r.lacking(time.Time{}); lacks != "line of redis-py" {
		t.Errorf("it lacks %q", lacks)
	}
	for _, kind := range own {
		switch who, fence := strings.CutPrefix(kind, "fence of who "); {
		case kind == "told":
			r.line("python", "told\tredis-py\t1")
		case fence:
			r.line("python", "fence\tredis-py\t"+who+"\t1")
		default:
			r.line("python", "got\tredis-py\t"+kind)
		}
	}
	if lacks := r.lacking(time.Time{}); lacks != "" {
		t.Errorf("it lacks %q", lacks)
	}
	if lacks := r.lacking(time.Now()); strings.Count(lacks, " of redis-py") != len(own) {
		t.Errorf("later it lacks %q", lacks)
	}
}
