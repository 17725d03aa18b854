package main

// Comparing counts with a baseline.

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestBaseline(t *testing.T) {
	b := baseline{path: "file", unit: "allocations", moreMax: 0.15, slack: 1, anew: "write it"}
	for _, test := range []struct {
		was, is        int
		failure, noted string
	}{
		{0, 0, "", ""},
		{0, 1, "x: 1 allocations, was 0", ""},
		{3, 4, "", ""}, // one more
		{2, 4, "x: 4 allocations, was 2 (+100 %)", ""},
		{20, 23, "", ""},
		{20, 24, "x: 24 allocations, was 20 (+20 %)", ""},
		{24, 22, "", ""},
		{24, 20, "", "x: 20 allocations, was 24 (-17 %): better, to be kept by a new baseline"},
	} {
		c, err := b.compare(fmt.Sprintf("x %d\n", test.was), map[string]int{"x": test.is})
		if err != nil || c.compared != 1 || strings.Join(c.failures, "|") != test.failure || strings.Join(c.notes, "|") != test.noted || (len(c.worse) > 0) != (test.failure != "") {
			t.Errorf("%d, was %d: %+v %v", test.is, test.was, c, err)
		}
	}
}

func TestBaselineNewAndGone(t *testing.T) {
	b := baseline{path: "file", unit: "instructions", conditions: "go2 GOAMD64=v3", moreMax: 0.30, anew: "write it"}
	c, err := b.compare("# go1 GOAMD64=v1\nold 7\nstays 8\n", map[string]int{"new": 6, "stays": 8})
	if err != nil || c.compared != 1 || len(c.worse) != 0 ||
		!slices.Equal(c.failures, []string{"new: 6 instructions, and the baseline does not have it", "old: in the baseline, and no benchmark any more"}) ||
		len(c.notes) != 1 || !strings.Contains(c.notes[0], `"go1 GOAMD64=v1", this is "go2 GOAMD64=v3"`) {
		t.Errorf("%+v %v", c, err)
	}
	if err := b.judge(c); err == nil || !strings.Contains(err.Error(), "write it") || !strings.Contains(err.Error(), "old: in the baseline") {
		t.Error(err)
	}
	if err := b.judge(comparison{}); err == nil {
		t.Error("nothing was compared, and that is well")
	}
	if _, err := b.compare("x\n", nil); err == nil {
		t.Error("a line without a number is taken")
	}
}

// A baseline that was written equals the counts.
func TestBaselineWrite(t *testing.T) {
	b := baseline{path: filepath.Join(t.TempDir(), "b"), unit: "instructions", conditions: "go1 GOAMD64=v1", moreMax: 0.30, anew: "write it"}
	got := map[string]int{"b": 2, "a/1e-30": 1}
	if err := b.write(got); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(b.path); err != nil || string(text) != "# go1 GOAMD64=v1\na/1e-30 1\nb 2\n" {
		t.Errorf("%q %v", text, err)
	}
	c, err := b.check(got)
	if err != nil || c.compared != 2 || len(c.failures)+len(c.notes) != 0 || b.judge(c) != nil {
		t.Errorf("%+v %v", c, err)
	}
}
