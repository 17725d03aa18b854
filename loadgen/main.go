// Command loadgen is bin/limitkv-benchmark. It loads servers that speak the Redis protocol with typical requests of rate
// limiters, delay queues and locks, and measures throughput, latency and the servers' processor time.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

const usage = `Usage: limitkv-benchmark [options] [host:port ...]
       limitkv-benchmark matrix [options]
       limitkv-benchmark record [options]
       limitkv-benchmark breadth [options]
       limitkv-benchmark scripts [options]
       limitkv-benchmark replicas [options]
       limitkv-benchmark allocations [options]
       limitkv-benchmark instructions [options]
       limitkv-benchmark soak [options]
       limitkv-benchmark single [options]
       limitkv-benchmark profile [options]

Loads each server in turn, 127.0.0.1:6379 if none is given, and compares them.
THE SERVERS ARE EMPTIED (FLUSHALL) before each workload. matrix starts limitkv,
Redis and Valkey itself and compares them in all that docs/BENCHMARKS.md holds.
record records what real libraries send, for the matrix and for --workload recorded.
breadth compares the processor time of every command with Redis's, scripts that of
what scripts compute. replicas measures what replicas cost their primary, and a full
synchronisation. allocations compares what Go benchmarks allocate with a baseline,
instructions how many instructions they take (it needs valgrind).
soak loads limitkv with mixed traffic for an hour and fails if it ends worse than it began.
single measures single requests, beside a program that answers always the same.
profile makes the profile by which the server is compiled (make profile).

`

func main() {
	if len(os.Args) > 1 {
		if run := map[string]func([]string) error{"matrix": runMatrix, "record": runRecord, "breadth": runBreadth, "scripts": runComputing, "replicas": runReplicas,
			"allocations": runAllocations, "instructions": runInstructions, "soak": runSoak, "single": runSingle, "profile": runProfile, leastCommand: runLeast}[os.Args[1]]; run != nil {
			check(run(os.Args[2:]))
			return
		}
	}
	p := params{}
	var names, scripts string
	var rounds int
	var asJSON, yes bool
	flags := flag.NewFlagSet("limitkv-benchmark", flag.ExitOnError)
	flags.StringVar(&names, "workload", "basic", "which workloads, separated by commas: their names, or all, basic, zset, scripts, unproven, native, locks, used, recorded")
	flags.IntVar(&p.connections, "connections", 50, "how many connections")
	flags.IntVar(&p.pipeline, "pipeline", 1, "how many requests a connection sends before it waits for the answers")
	flags.DurationVar(&p.duration, "duration", 3*time.Second, "how long to measure in each round")
	flags.DurationVar(&p.warmup, "warmup", 300*time.Millisecond, "how long to load before that")
	flags.IntVar(&p.keys, "keys", 0, "how many keys (members of a sorted set, messages), 0 for what the workload is made for")
	flags.IntVar(&p.valueBytes, "value", 32, "size of values in bytes")
	flags.Float64Var(&p.rate, "rate", 0, "requests a second, sent when they are due whether or not earlier ones were answered;\n0: each connection waits for its answers")
	flags.Uint64Var(&p.requests, "requests", 0, "end a round after this many requests, 0: by time alone")
	flags.IntVar(&rounds, "rounds", 1, "how often to repeat; the servers take turns, and medians are reported")
	flags.IntVar(&p.threads, "threads", max(1, runtime.NumCPU()/2), "threads of the generator")
	flags.StringVar(&p.auth, "auth", "", "password, or user:password")
	flags.StringVar(&scripts, "scripts", "", "folder with scripts to run in place of the tool's own of the same shape\n(filter.lua, limit2.lua, consume.lua, lock.lua, unlock.lua, sliding_window.lua, rate_limiter_init.lua, rate_limiter_acquire.lua)")
	flags.BoolVar(&asJSON, "json", false, "report in JSON, every round")
	flags.BoolVar(&yes, "yes", false, "empty servers that hold keys without asking")
	var addrs []string
	flags.Func("compare", "a server to compare with; may be given several times", func(a string) error {
		addrs = append(addrs, a)
		return nil
	})
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), usage, "Workloads:\n\n")
		for _, w := range workloads() {
			own := ""
			if w.own {
				own = " (limitkv)"
			}
			fmt.Fprintf(flags.Output(), "  %-22s %s%s\n", w.name, w.does, own)
		}
		for _, l := range libraries {
			fmt.Fprintf(flags.Output(), "  %-22s %s (once recorded)\n", l.name, l.does)
		}
		fmt.Fprint(flags.Output(), "\nOptions:\n\n")
		flags.PrintDefaults()
	}
	for rest := os.Args[1:]; ; {
		_ = flags.Parse(rest) // it exits on errors
		rest = flags.Args()
		if len(rest) == 0 {
			break
		}
		addrs = append(addrs, rest[0])
		rest = rest[1:]
	}
	p.scripts = scripts
	if len(addrs) == 0 {
		addrs = []string{"127.0.0.1:6379"}
	}
	chosen, err := choose(names)
	check(err)
	if p.connections < 1 || p.pipeline < 1 || p.threads < 1 || rounds < 1 || p.duration <= 0 {
		check(fmt.Errorf("connections, pipeline, threads, rounds and duration must be above 0"))
	}
	var targets []*target
	for _, a := range addrs {
		t, err := newTarget(a, p.auth)
		check(err)
		if !yes {
			check(t.mayBeEmptied())
		}
		targets = append(targets, t)
	}
	var cells []*cell
	failed := false
	for _, w := range chosen {
		found, err := compare(w, targets, &p, rounds)
		check(err)
		cells = append(cells, found...)
		if !asJSON {
			printCells(os.Stdout, found)
		}
		for _, c := range found {
			failed = failed || c.Median.Errors > 0
		}
	}
	if asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		check(e.Encode(cells))
	}
	if failed {
		check(fmt.Errorf("there were error replies: what was measured is not the workload"))
	}
}

// mayBeEmptied refuses servers whose data somebody may need.
func (t *target) mayBeEmptied() error {
	c, err := dial(t.addr, t.auth)
	if err != nil {
		return err
	}
	defer c.close()
	n, err := c.text("DBSIZE")
	if err != nil {
		return err
	}
	if n != "0" {
		return fmt.Errorf("%s holds %s keys, which would be deleted: give --yes if that is meant", t.addr, n)
	}
	return nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "limitkv-benchmark:", strings.TrimSpace(err.Error()))
		os.Exit(1)
	}
}
