package main

// The allocations run: it compares what the Go benchmarks allocate with a baseline that is kept in the repository, and
// fails where one allocates more. The number of allocations is the same on every machine, loaded or not, which a time is
// not. `make bench-check` makes the runs.

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// allocationsMore is by how much a benchmark may allocate more than the baseline has it. Where it allocates at all it may be
// one more: what is counted is the average of some runs, without its fraction.
const allocationsMore = 0.15

func runAllocations(args []string) error {
	flags := flag.NewFlagSet("limitkv-benchmark allocations", flag.ExitOnError)
	baseline := flags.String("baseline", "docs/bench-allocations.txt", "file with what benchmarks allocated")
	write := flags.Bool("write", false, "write the baseline in place of comparing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	got, err := allocations(os.Stdin)
	if err != nil {
		return err
	}
	if len(got) == 0 {
		return fmt.Errorf("there are no benchmarks in what go test -bench -benchmem printed")
	}
	if *write {
		var b strings.Builder
		for _, name := range slices.Sorted(maps.Keys(got)) {
			fmt.Fprintf(&b, "%s %d\n", name, got[name])
		}
		return os.WriteFile(*baseline, []byte(b.String()), 0o644)
	}
	text, err := os.ReadFile(*baseline)
	if err != nil {
		return err
	}
	worse, compared := moreAllocations(string(text), got)
	fmt.Printf("%d benchmarks compared\n", compared)
	switch {
	case len(worse) > 0:
		return fmt.Errorf("benchmarks allocate more than %s has it; if that is meant, make bench-check WRITE=1:\n%s", *baseline, strings.Join(worse, "\n"))
	case compared == 0:
		return fmt.Errorf("no benchmark is in %s", *baseline)
	}
	return nil
}

// benchmarkLine is what go test prints: the name, with the number of processors, and the allocations of one operation.
var benchmarkLine = regexp.MustCompile(`^(Benchmark\S+?)(?:-\d+)?\s.*\s(\d+) allocs/op`)

// allocations reads the output of go test. Of several runs the least counts: the collector may have emptied a pool.
func allocations(from io.Reader) (map[string]int, error) {
	got := map[string]int{}
	pkg := ""
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "pkg: "); ok {
			pkg = rest[strings.LastIndex(rest, "limitkv/limitkv")+len("limitkv/limitkv"):]
		}
		m := benchmarkLine.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		name := strings.TrimPrefix(pkg, "/") + "." + m[1]
		n, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, err
		}
		if old, ok := got[name]; !ok || n < old {
			got[name] = n
		}
	}
	return got, lines.Err()
}

// moreAllocations tells which benchmarks are worse than the baseline, and how many are in it.
func moreAllocations(baseline string, got map[string]int) (worse []string, compared int) {
	for line := range strings.Lines(baseline) {
		name, number, _ := strings.Cut(strings.TrimSpace(line), " ")
		was, err := strconv.Atoi(number)
		n, ok := got[name]
		if err != nil || !ok {
			continue
		}
		compared++
		if float64(n) > float64(was)*(1+allocationsMore) && (was == 0 || n > was+1) {
			worse = append(worse, fmt.Sprintf("%s: %d, was %d", name, n, was))
		}
	}
	return worse, compared
}
