package main

// The instructions run counts the instructions of one operation of Go benchmarks under valgrind, compares them with a
// baseline, and fails if one takes more. A time would not do: on a shared machine it varies by more than the regressions to
// find. Hardware counters would be faster, but virtual machines often have none.
//
// Valgrind counts the whole process, from its start. So each benchmark runs twice, with few operations and with many; the
// difference belongs to the operations alone. The Go runtime gets one thread and no collections: threads that look for work
// would be counted, and the time of collections is random. The allocations run covers the cost of garbage.

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// instructionsMore is how many more instructions than the baseline a benchmark may take. Of 139 benchmarks counted twice, the
// median differed by 0.2 %, nine in ten by at most 1 %, and none by more than 5.3 %.
const instructionsMore = 0.30

// countedTries is how often a benchmark is counted if it seems to exceed its limit. The lowest count is used.
const countedTries = 3

// countedBenchmarks are the benchmarks of hot paths that do not depend on time, chance or sockets. runs is the number of
// operations. They take about ten million instructions: enough against the noise of a start, which is a hundred thousand, and
// few enough for a total of a minute or two.
var countedBenchmarks = []struct {
	pkg, pattern string
	runs         int
}{
	{"commands", `^BenchmarkServe$`, 16_000},
	{"commands", `^BenchmarkJournal$/^(SET|LPUSH|RL.ACQUIRE|DQ)$/^P16$`, 16_000},
	{"engine", `^Benchmark(GetLimiter|Lock|Tx)$`, 40_000},
	{"engine", `^BenchmarkTable$/^(insert|find)$/^1000$`, 100},
	{"engine/delayqueue", `^BenchmarkAddPop$/^(0|1000)$`, 10_000},
	{"engine/delayqueue", `^BenchmarkLeaseAck$`, 10_000},
	{"engine/hash", `^BenchmarkGet$/^(10|100|500|10000)$`, 40_000},
	{"engine/hash", `^BenchmarkSet$/^(10|100|10000)$`, 40_000},
	{"engine/journal", `^BenchmarkAppend$/^1-goroutines$`, 20_000},
	{"engine/limiter", `^Benchmark(Take|New|Calendar)$`, 40_000},
	{"engine/list", `^BenchmarkQueue$/^(1|100)$`, 40_000},
	{"engine/rdb", `^Benchmark(DumpHash|LoadHash)$`, 4000},
	{"engine/set", `^BenchmarkContains$/^(integers|strings)$/^(10|100|500)$`, 40_000},
	{"engine/stream", `^Benchmark(Add|Range)$`, 10_000},
	{"engine/table", `^Benchmark(Get|AddDelete)$/^1000$`, 40_000},
	{"luavm", `^BenchmarkRun$/^[a-z]+$`, 10_000},
	{"luavm", `^BenchmarkRun$/^[a-z]+\d+$`, 300},
	{"luavm", `^BenchmarkCallFunction$`, 10_000},
	{"luavm", `^BenchmarkCompile$`, 100},
	{"luavm/analysis", `^BenchmarkChunk$/^20_lines$`, 100},
	{"luavm/arg", `^Benchmark(Format|Parse)Number$`, 40_000},
	{"luavm/cjson", `^Benchmark(De|En)code$`, 10_000},
	{"luavm/cmsgpack", `^Benchmark(Unp|P)ack$`, 10_000},
	{"luavm/tables", `^Benchmark(Pairs|Append)$/^(64|1000)$`, 1000},
	{"resp", `^BenchmarkTurn$`, 20_000},
	{"resp", `^BenchmarkParser$/.*/^resp$`, 20_000},
	{"resp", `^Benchmark(ReaderArray|WriterBulk)$`, 20_000},
	{"resp/number", `^Benchmark(AppendDouble|ParseDouble|IncrByFloat)$`, 40_000},
	{"zset", `^BenchmarkPacked$`, 20_000},
	{"zset/wyhash", `^BenchmarkSum$`, 100_000},
}

func runInstructions(args []string) error {
	flags := flag.NewFlagSet("limitkv-benchmark instructions", flag.ExitOnError)
	b := baseline{unit: "instructions", moreMax: instructionsMore, slack: 2, anew: "make bench-check WRITE=1"}
	flags.StringVar(&b.path, "baseline", "loadgen/baselines/instructions.txt", "file with what benchmarks took")
	write := flags.Bool("write", false, "write the baseline in place of comparing")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if _, err := exec.LookPath("valgrind"); err != nil {
		if os.Getenv("CI") != "" {
			return fmt.Errorf("instructions are not counted without valgrind (Debian's package has that name)")
		}
		fmt.Println("skipped: instructions are not counted without valgrind (Debian's package has that name)")
		return nil
	}
	if runtime.GOARCH != "amd64" {
		fmt.Println("skipped: the baseline's instructions are those of amd64, this is", runtime.GOARCH)
		return nil
	}
	began := time.Now()
	dir, err := os.MkdirTemp("", "limitkv-instructions-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if b.conditions, err = conditions(); err != nil {
		return err
	}
	benchmarks, err := findCounted(dir)
	if err != nil {
		return err
	}
	got, err := countAll(benchmarks)
	if err != nil {
		return err
	}
	if *write {
		return b.write(got)
	}
	v, err := b.check(got)
	for range countedTries - 1 {
		if err != nil || len(v.worse) == 0 {
			break
		}
		worse := slices.DeleteFunc(slices.Clone(benchmarks), func(c counted) bool { return !slices.Contains(v.worse, c.name) })
		var again map[string]int
		if again, err = countAll(worse); err != nil {
			break
		}
		for name, n := range again {
			got[name] = min(n, got[name])
		}
		v, err = b.check(got)
	}
	if err != nil {
		return err
	}
	fmt.Printf("counted in %.0f s\n", time.Since(began).Seconds())
	return b.judge(v)
}

// conditions returns the facts outside the repository on which counts depend. If they differ from the baseline's, the run
// still compares and reports it: a compiler's changes are far below the limit, and a failure then names a possible reason.
func conditions() (string, error) {
	out, err := exec.Command("go", "env", "GOVERSION", "GOAMD64").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	return strings.Join(strings.Fields(string(out)), " GOAMD64="), nil
}

// counted is a benchmark to count: its binary, its directory, and the number of operations.
type counted struct {
	name      string // with the package: luavm.BenchmarkRun/incr
	bin, dir  string
	benchmark string // as in the output of go test
	runs      int
}

// findCounted builds the binaries, and finds their benchmarks by running each once.
func findCounted(dir string) (all []counted, err error) {
	built := map[string]string{}
	for _, c := range countedBenchmarks {
		bin := built[c.pkg]
		if bin == "" {
			bin = filepath.Join(dir, strings.ReplaceAll(c.pkg, "/", "_")+".test")
			build := exec.Command("go", "test", "-c", "-o", bin, "./"+c.pkg)
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := build.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%s: %v\n%s", c.pkg, err, out)
			}
			built[c.pkg] = bin
		}
		// With two processors a name ends with -2. With one it has no such end, and a name that itself ends with a number
		// would be cut.
		run := exec.Command(bin, "-test.short", "-test.cpu", "2", "-test.run", "^$", "-test.bench", c.pattern, "-test.benchtime", "1x")
		run.Dir = c.pkg
		out, err := run.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%s: %v\n%s", c.pkg, err, out)
		}
		n := 0
		for line := range strings.Lines(string(out)) {
			if m := benchmarkName.FindStringSubmatch(line); m != nil {
				all = append(all, counted{c.pkg + "." + m[1], bin, c.pkg, m[1], c.runs})
				n++
			}
		}
		if n == 0 {
			return nil, fmt.Errorf("%s has no benchmark %s", c.pkg, c.pattern)
		}
	}
	return all, nil
}

// countAll counts benchmarks, one per processor at a time.
func countAll(benchmarks []counted) (map[string]int, error) {
	got := map[string]int{}
	var mu sync.Mutex
	var failed error
	var workers sync.WaitGroup
	todo := make(chan counted)
	for range runtime.NumCPU() {
		workers.Go(func() {
			for c := range todo {
				n, err := c.count()
				mu.Lock()
				if err == nil {
					got[c.name] = n
				} else {
					failed = errors.Join(failed, fmt.Errorf("%s: %w", c.name, err))
				}
				mu.Unlock()
			}
		})
	}
	for _, c := range benchmarks {
		todo <- c
	}
	close(todo)
	workers.Wait()
	return got, failed
}

// count returns the instructions of one operation.
func (c counted) count() (int, error) {
	few, err := c.instructions(c.runs / 10)
	if err != nil {
		return 0, err
	}
	many, err := c.instructions(c.runs/10 + c.runs)
	return max(0, (many-few+c.runs/2)/c.runs), err
}

// instructions returns the instructions of a process that runs the benchmark for so many operations.
func (c counted) instructions(operations int) (int, error) {
	var levels []string
	for _, level := range strings.Split(c.benchmark, "/") {
		levels = append(levels, "^"+regexp.QuoteMeta(level)+"$")
	}
	run := exec.Command("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", c.bin,
		"-test.short", "-test.run", "^$", "-test.bench", strings.Join(levels, "/"), "-test.benchtime", fmt.Sprint(operations, "x"))
	run.Dir = c.dir
	run.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=off")
	out, err := run.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%v: %s", err, out[:min(len(out), 2000)])
	}
	return instructionsOf(out, c.benchmark)
}

// instructionRefs matches the instructions of a process in valgrind's output: ==123== I refs: 8,895,836
var instructionRefs = regexp.MustCompile(`==\d+== I\s+refs:\s+([\d,]+)`)

// instructionsOf finds them in the output of a process that must have run the benchmark.
func instructionsOf(output []byte, benchmark string) (int, error) {
	ran, total := false, 0
	for line := range strings.Lines(string(output)) {
		ran = ran || strings.HasPrefix(line, benchmark) && strings.Contains(line, " ns/op")
		if m := instructionRefs.FindStringSubmatch(line); m != nil {
			total, _ = strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
		}
	}
	if !ran || total == 0 {
		return 0, fmt.Errorf("there is no result, or valgrind told no instructions: %s", output)
	}
	return total, nil
}
