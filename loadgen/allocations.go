package main

// The allocations run: it compares what the Go benchmarks allocate with a baseline, and fails where one allocates more.
// `make bench-check` makes the runs.

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

// allocationsMore is by how much a benchmark may allocate more than the baseline has it. Where it allocates at all it may be
// one more: what is counted is the average of some runs, without its fraction.
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

// allocationsPart is what go test prints of one operation's allocations.
var allocationsPart = regexp.MustCompile(`\s(\d+) allocs/op`)

// allocations reads the output of go test. Of several runs the least counts: the collector may have emptied a pool.
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
