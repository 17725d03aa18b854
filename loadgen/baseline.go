package main

// Baselines: counts for the operations of Go benchmarks, stored in the repository. A count, unlike a time, is the same on
// every machine, loaded or not, so a regression can fail the build.

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// baseline is a file of counts, with the tolerated differences.
type baseline struct {
	path string
	unit string // what is counted: "allocations"
	// conditions is the file's first line if counts depend on things outside the repository, else empty.
	conditions string
	// moreMax is by what share a benchmark may exceed its count; differences up to slack are never reported.
	moreMax float64
	slack   int
	// anew is the command that writes the file again.
	anew string
}

// comparison is the result of comparing.
type comparison struct {
	compared int
	worse    []string // the names of benchmarks that exceed their limit
	failures []string // sentences
	notes    []string // sentences
}

// write writes the counts.
func (b *baseline) write(got map[string]int) error {
	var text strings.Builder
	if b.conditions != "" {
		fmt.Fprintf(&text, "# %s\n", b.conditions)
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		fmt.Fprintf(&text, "%s %d\n", name, got[name])
	}
	return os.WriteFile(b.path, []byte(text.String()), 0o644)
}

// compare compares counts with the file's text. A new or missing benchmark is a failure too: otherwise a check could silently
// stop.
func (b *baseline) compare(text string, got map[string]int) (v comparison, err error) {
	was, conditions := map[string]int{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			conditions = rest
			continue
		}
		name, number, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return v, fmt.Errorf("%s: not a benchmark and a number: %q", b.path, line)
		}
		was[name] = n
	}
	if conditions != b.conditions {
		v.notes = append(v.notes, fmt.Sprintf("the baseline is of %q, this is %q: a difference may come from that", conditions, b.conditions))
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		n := got[name]
		old, ok := was[name]
		switch {
		case !ok:
			v.failures = append(v.failures, fmt.Sprintf("%s: %d %s, and the baseline does not have it", name, n, b.unit))
			continue
		case float64(n) > float64(old)*(1+b.moreMax) && (old == 0 || n > old+b.slack):
			v.worse = append(v.worse, name)
			v.failures = append(v.failures, fmt.Sprintf("%s: %d %s, was %d%s", name, n, b.unit, old, percent(old, n)))
		case float64(old) > float64(n)*(1+b.moreMax) && old > n+b.slack:
			v.notes = append(v.notes, fmt.Sprintf("%s: %d %s, was %d%s: better, to be kept by a new baseline", name, n, b.unit, old, percent(old, n)))
		}
		v.compared++
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, ok := got[name]; !ok {
			v.failures = append(v.failures, fmt.Sprintf("%s: in the baseline, and no benchmark any more", name))
		}
	}
	return v, nil
}

func percent(was, is int) string {
	if was == 0 {
		return ""
	}
	return fmt.Sprintf(" (%+.0f %%)", 100*(float64(is)/float64(was)-1))
}

// judge prints a comparison, and fails if there are failures.
func (b *baseline) judge(v comparison) error {
	fmt.Printf("%s of %d benchmarks compared with %s\n", b.unit, v.compared, b.path)
	for _, note := range v.notes {
		fmt.Println("note:", note)
	}
	switch {
	case len(v.failures) > 0:
		return fmt.Errorf("more than %.0f %% above %s, new or gone; if that is meant, %s:\n%s", b.moreMax*100, b.path, b.anew, strings.Join(v.failures, "\n"))
	case v.compared == 0:
		return fmt.Errorf("no benchmark is in %s", b.path)
	}
	return nil
}

// check compares counts with the file.
func (b *baseline) check(got map[string]int) (comparison, error) {
	text, err := os.ReadFile(b.path)
	if err != nil {
		return comparison{}, err
	}
	return b.compare(string(text), got)
}

// benchmarkName matches the start of a result line of go test -bench: the name, with the number of processors.
var benchmarkName = regexp.MustCompile(`^(Benchmark\S+?)(?:-\d+)?\s+\d+\s`)
