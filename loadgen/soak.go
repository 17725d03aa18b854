package main

// The soak run: mixed traffic for an hour, in six parts. The last part is compared with the second one in throughput, p99.9
// and resident memory. So leaks, fragmentation and growing structures become visible. The first part is not judged, as the
// keyspace is still growing.

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

const (
	soakParts   = 6
	soakWorse   = 0.05
	soakKeys    = 100_000
	soakSamples = 100 // of the resident memory, in each part
)

// soakWorkload mixes permanent and temporary limiters, by commands and by scripts, locks, queues, and keys that live for 100
// ms.
func soakWorkload() *workload {
	w := mixed("soak", "mixed traffic", true, usedWorkloads(),
		portion{"rl.inline", 4}, portion{"rl.passing", 2}, portion{"script.inline", 2}, portion{"lk.mutex", 3}, portion{"dq.life", 3},
		portion{"get", 1}, portion{"set.px", 1})
	w.drains = false // the server must keep its data from part to part
	return w
}

// soaked is the result of one part.
type soaked struct {
	*result
	resident float64 // the average
}

func runSoak(args []string) error {
	p := params{connections: 50, pipeline: 1, keys: soakKeys, valueBytes: 32, warmup: time.Second, threads: max(1, runtime.NumCPU()/2)}
	var path string
	var length time.Duration
	flags := flag.NewFlagSet("limitkv-benchmark soak", flag.ExitOnError)
	flags.StringVar(&path, "limitkv", "bin/limitkv", "limitkv's binary")
	flags.DurationVar(&length, "duration", time.Hour, "how long to load the server")
	flags.Float64Var(&p.rate, "rate", 0, "requests a second, 0: as many as go")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if length < soakParts*time.Second {
		return fmt.Errorf("the duration must be at least %v", soakParts*time.Second)
	}
	p.duration = length/soakParts - p.warmup
	s, err := program{name: "limitkv", path: path, args: serverArgs}.start()
	if err != nil {
		return err
	}
	defer s.stop()
	parts, err := s.soak(&p)
	if err != nil {
		return err
	}
	return judgeSoak(parts[1], parts[soakParts-1])
}

// soak runs all parts, and prints a line for each.
func (t *target) soak(p *params) (parts []soaked, err error) {
	work := soakWorkload()
	if err := t.prepare(work, p); err != nil {
		return nil, err
	}
	table := tabwriter.NewWriter(os.Stdout, 8, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "part\trequests/s\tCPU µs\tp50 µs\tp99\tp99.9\tmax\tresident MB\t")
	for i := range soakParts {
		if i > 0 {
			if err := t.freshQueues(); err != nil {
				return nil, err
			}
		}
		var ended atomic.Bool
		sampled := make(chan float64)
		r, err := t.runUntil(work, p, func(func()) { sampled <- averageResident(t.pid, p.duration/soakSamples, &ended) })
		ended.Store(true)
		if err != nil {
			return nil, err
		}
		if r.Errors > 0 {
			return nil, fmt.Errorf("part %d: %d errors: %s", i+1, r.Errors, r.FirstError)
		}
		part := soaked{r, <-sampled}
		parts = append(parts, part)
		l := r.Latency
		fmt.Fprintf(table, "%d\t%.0f\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f\t\n", i+1, r.PerSecond, r.CPU, l.P50, l.P99, l.P999, l.Max, part.resident/(1<<20))
		table.Flush()
	}
	return parts, nil
}

// freshQueues makes the queues again, since the connections of each part number the entries from the start.
func (t *target) freshQueues() error {
	c, err := dial(t.addr, t.auth)
	if err != nil {
		return err
	}
	defer c.close()
	for i := range usedQueues {
		if _, err := c.text("DEL", fmt.Sprintf("q:%02d", i)); err != nil {
			return err
		}
	}
	return named(usedWorkloads(), "dq.life").prepare(c, &t.setup)
}

// averageResident returns the average resident memory of a process until the end, sampled at an interval.
func averageResident(pid int, every time.Duration, ended *atomic.Bool) float64 {
	sum, n := 0.0, 0
	for !ended.Load() || n == 0 {
		sum += float64(residentBytes(pid))
		n++
		time.Sleep(every)
	}
	return sum / float64(n)
}

// judgeSoak reports what is worse in the last part.
func judgeSoak(early, late soaked) error {
	failed := false
	for _, x := range []struct {
		name  string
		worse float64 // above 1
	}{
		{"throughput", early.PerSecond / late.PerSecond}, {"p99.9", late.Latency.P999 / early.Latency.P999}, {"resident memory", late.resident / early.resident},
	} {
		verdict := "as it was"
		if x.worse > 1+soakWorse {
			verdict, failed = "worse", true
		}
		fmt.Printf("%s: %s (%s)\n", x.name, verdict, strconv.FormatFloat((x.worse-1)*100, 'f', 1, 64)+" % worse")
	}
	if failed {
		return fmt.Errorf("the last part is over %.0f %% worse than the second", soakWorse*100)
	}
	return nil
}
