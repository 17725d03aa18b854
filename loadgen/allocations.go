package main

// The allocations run compares the allocations of Go benchmarks with a baseline, and fails if one allocates more. `make
// bench-check` runs it.

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// allocationsMore is how much more than the baseline a benchmark may allocate. One allocation more is always allowed if it
// allocates at all: the count is the average of several runs, without its fraction.
const allocationsMore = 0.15

func runAllocations(args []string) error {
	flags := flag.NewFlagSet("limitkv-benchmark allocations", flag.ExitOnError)
	b := baseline{unit: "allocations", moreMax: allocationsMore, slack: 1, anew: "make bench-check WRITE=1"}
	flags.StringVar(&b.path, "baseline", "loadgen/baselines/allocations.txt", "file with what benchmarks allocated")
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
		return b.write(got)
	}
	v, err := b.check(got)
	if err != nil {
		return err
	}
	return b.judge(v)
}

// allocationsPart matches the allocations of one operation in the output of go test.
var allocationsPart = regexp.MustCompile(`\s(\d+) allocs/op`)

// allocations parses the output of go test. The lowest of several runs counts, since the collector may have emptied a pool.
func allocations(from io.Reader) (map[string]int, error) {
	got := map[string]int{}
	pkg := ""
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "pkg: "); ok {
			pkg = rest[strings.LastIndex(rest, "limitkv/limitkv")+len("limitkv/limitkv"):]
		}
		name, number := benchmarkName.FindStringSubmatch(lines.Text()), allocationsPart.FindStringSubmatch(lines.Text())
		if name == nil || number == nil {
			continue
		}
		full := strings.TrimPrefix(pkg, "/") + "." + name[1]
		n, err := strconv.Atoi(number[1])
		if err != nil {
			return nil, err
		}
		if old, ok := got[full]; !ok || n < old {
			got[full] = n
		}
	}
	return got, lines.Err()
}
