package main

// The gain from more processors: the same load on one processor and on all. The other servers get I/O threads for that. The
// workloads cost the server much more than the generator, which shares the machine.

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setting is a server with a part of the machine.
type setting struct {
	program
	label string
}

// settings returns limitkv on one processor and on all, and the other servers with and without I/O threads.
func (m *matrix) settings() (list []setting, err error) {
	taskset, err := exec.LookPath("taskset") // a Linux program
	if err != nil {
		return nil, err
	}
	all := runtime.NumCPU()
	for _, p := range m.programs {
		one := setting{p, p.name + ", 1 processor"}
		one.wrap = []string{taskset, "-c", strconv.Itoa(all - 1)}
		list = append(list, one)
		more := setting{p, fmt.Sprintf("%s, %d processors", p.name, all)}
		if p.name != "limitkv" {
			more.args = slices.Concat(p.args, []string{"--io-threads", strconv.Itoa(all)})
			more.label = fmt.Sprintf("%s, %d processors and io-threads", p.name, all)
		}
		list = append(list, more)
	}
	return list, nil
}

// scalingWorkloads are sent in pipelines. Each key is used once, except that of zrangebyscore, which is the same for all.
var scalingWorkloads = []string{"rate_limiter_acquire", "sliding_window", "filter", "hset", "zrangebyscore"}

// scalingRound is the shortest round. A second thread must show its gain in each round, which takes a third of a second.
const scalingRound = 4 * time.Second

// measureCores runs one server after the other: an idle I/O thread of Valkey spins for a while, and would take a processor
// from the next server.
func (m *matrix) measureCores() error {
	settings, err := m.settings()
	if err != nil {
		fmt.Fprintln(os.Stderr, "processors are not compared:", err)
		return nil
	}
	p := m.params
	p.duration = max(p.duration, scalingRound)
	for _, name := range scalingWorkloads {
		m.cores = append(m.cores, row{claim: claim{workload: name, pipeline: 16}})
	}
	for _, s := range settings {
		m.coreLabels = append(m.coreLabels, s.label)
		err := run([]program{s.program}, func(targets []*target, _ []string) error {
			for i := range m.cores {
				r := &m.cores[i]
				one, err := m.row(targets, r.claim, p)
				if err != nil {
					return err
				}
				r.cells = append(r.cells, one.cells...)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// byCores writes the table of processors.
func (m *matrix) byCores(b *strings.Builder) {
	fmt.Fprintf(b, "\n## Processors\n\nRequests a second in pipelines of 16, in thousands, and processor time for each in microseconds, of servers that have one processor\n"+
		"or all, where the others get threads for input and output. The generator shares them. Gain is what all processors bring limitkv.\n\n"+
		"| workload | %s | gain |\n| --- |%s ---: |\n", strings.Join(m.coreLabels, " | "), strings.Repeat(" ---: |", len(m.coreLabels)))
	for i := range m.cores {
		r := &m.cores[i]
		fmt.Fprintf(b, "| %s |", r.workload)
		for _, c := range r.cells {
			fmt.Fprintf(b, " %.0f (%.2f) |", c.Median.PerSecond/1000, c.Median.CPU)
		}
		fmt.Fprintf(b, " %.2f |\n", r.cells[1].Median.PerSecond/r.cells[0].Median.PerSecond)
	}
}
