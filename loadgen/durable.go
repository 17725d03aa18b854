package main

// The cost of durability: all servers with an append-only file and the same appendfsync, reads beside writers, and loading.
// Each server has its own directory on the file system of the temporary directory.

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// logged is the row of a workload with an append-only file. Its first cell is limitkv's without one.
type logged struct {
	row
	policy string
	// ofNone is the least share of the throughput without a file that is claimed; 0: nothing is claimed.
	ofNone float64
}

// beside is GET alone and beside writers, with one result per server.
type beside struct {
	name          string
	alone, beside []*cell
	keep          float64 // the share of the throughput alone that is claimed; 0: nothing is claimed
	atLeast       float64 // the claimed ratio to the better of the others
	p99Max        float64 // microseconds; 0, nothing is claimed
}

// durability is the results about durability.
type durability struct {
	logged    []logged
	beside    []beside
	pictures  []string
	pictured  [][]pictured // by kind of snapshot, by server
	keys      int
	loading   []loaded
	slowFsync string // why there are no rows with a slow disk
}

const (
	everysec = "everysec"
	always   = "always"
)

// besideWriters is the number of connections that write beside GET, slowFsyncMicros how much longer a sync takes on a slow
// disk.
const (
	besideWriters   = 8
	slowFsyncMicros = 5000
)

// loggedClaims lists the workloads with an append-only file.
func loggedClaims() (list []logged) {
	add := func(policy, workload, against string, pipeline, connections int, atLeast, ofNone float64) {
		list = append(list, logged{row{claim: claim{workload: workload, against: against, pipeline: pipeline, connections: connections,
			atLeast: atLeast}}, policy, ofNone})
	}
	for _, pipeline := range []int{1, 16} {
		for _, connections := range []int{50, 1000} {
			add(everysec, "set", "", pipeline, connections, 1, 0.85)
		}
	}
	for _, name := range []string{"incr", "hset", "zadd", "filter"} {
		add(everysec, name, "", 16, 50, 1, 0.85)
	}
	add(everysec, "rl.acquire.gcra", "rate_limiter_acquire", 16, 50, 10, 0.85)
	add(everysec, "dq.add", "set", 16, 50, 1, 0.85)
	for _, pipeline := range []int{1, 16} {
		for _, connections := range []int{50, 1000} {
			add(always, "set", "", pipeline, connections, 1, 0)
			add(always, "dq.add", "set", pipeline, connections, 1, 0)
		}
	}
	return list
}

// keeping returns the program with its own directory, which the caller must remove, and other settings.
func (p program) keeping(args ...string) (program, string, error) {
	dir, err := os.MkdirTemp("", "limitkv-benchmark-")
	p.args = slices.Concat([]string{"--dir", dir, "--maxclients", "20000"}, args)
	return p, dir, err
}

func withLog(policy string) []string {
	return []string{"--save", "", "--appendonly", "yes", "--appendfsync", policy}
}

// withPrograms starts servers with the settings that args returns for each, and stops them afterwards.
func withPrograms(programs []program, args func(i int) []string, wrap []string, f func(targets []*target) error) error {
	var targets []*target
	for i, p := range programs {
		p, dir, err := p.keeping(args(i)...)
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		p.wrap = wrap
		s, err := p.start()
		if err != nil {
			return err
		}
		defer s.stop()
		targets = append(targets, s.target)
	}
	return f(targets)
}

func (m *matrix) measureDurability() error {
	return m.measureKept(m.measureLogged, m.measureBeside, m.measurePictures, m.measureLoading)
}

// measureSnapshots is the part of measureDurability that depends on the number of keys.
func (m *matrix) measureSnapshots() error { return m.measureKept(m.measurePictures, m.measureLoading) }

func (m *matrix) measureKept(parts ...func() error) error {
	if m.durability != nil {
		return nil
	}
	if m.versions == nil {
		if err := m.with(func([]*target) error { return nil }); err != nil {
			return err
		}
	}
	m.durability = &durability{keys: cmp.Or(m.keys, 10_000_000)}
	if m.quick && m.keys == 0 {
		m.durability.keys = 1_000_000
	}
	for _, part := range parts {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

func (m *matrix) measureLogged() error {
	claims := loggedClaims()
	all := append([]program{m.programs[0]}, m.programs...)
	for _, policy := range []string{everysec, always} {
		err := withPrograms(all, func(i int) []string {
			if i == 0 {
				return []string{"--save", "", "--appendonly", "no"}
			}
			return withLog(policy)
		}, nil, func(targets []*target) error {
			for _, c := range claims {
				if c.policy != policy {
					continue
				}
				r, err := m.row(targets, c.claim, m.params)
				if err != nil {
					return err
				}
				c.row = r
				m.durability.logged = append(m.durability.logged, c)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// slowDisk returns a wrapper that runs a server with slower syncs. It works for any system call and library, as the kernel
// stops the server only there.
func slowDisk() ([]string, error) {
	path, err := exec.LookPath("strace")
	if err != nil {
		return nil, errors.New("strace, which makes syncs slow, is not there")
	}
	return []string{path, "-f", "--seccomp-bpf", "-qq", "-o", os.DevNull, "-e", "trace=fsync,fdatasync",
		"-e", fmt.Sprintf("inject=fsync,fdatasync:delay_exit=%d", slowFsyncMicros)}, nil
}

func (m *matrix) measureBeside() error {
	slow, err := slowDisk()
	if err != nil {
		m.durability.slowFsync = err.Error()
	}
	for _, b := range []beside{{name: "as the disk is", keep: 0.9}, {name: "each sync takes 5 ms more", atLeast: 8, p99Max: 1000}} {
		var wrap []string
		if b.atLeast > 0 {
			if wrap = slow; wrap == nil {
				continue
			}
		}
		err := withPrograms(m.programs, func(int) []string { return withLog(always) }, wrap, func(targets []*target) error {
			get, set := find("get"), find("set")
			p := m.params
			p.pipeline = 1
			var err error
			if b.alone, err = compare(get, targets, &p, m.rounds); err != nil {
				return err
			}
			b.beside = make([]*cell, len(targets))
			for i := range b.beside {
				b.beside[i] = &cell{}
			}
			for round := range m.rounds {
				for i := range targets {
					i = (i + round) % len(targets)
					r, err := targets[i].besideWriters(get, set, &p)
					if err != nil {
						return err
					}
					b.beside[i].Rounds = append(b.beside[i].Rounds, r)
				}
			}
			for _, c := range b.beside {
				c.Median = median(c.Rounds)
			}
			printCells(os.Stderr, b.alone)
			printCells(os.Stderr, b.beside)
			return nil
		})
		if err != nil {
			return err
		}
		m.durability.beside = append(m.durability.beside, b)
	}
	return nil
}

// besideWriters runs a workload while other connections write.
func (t *target) besideWriters(w, writes *workload, p *params) (*result, error) {
	l := &load{work: writes, setup: &t.setup, pipeline: 1}
	ready, written := make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := drive(l, t.addr, t.auth, besideWriters, 1, func() { close(ready) })
		written <- err
	}()
	select {
	case <-ready:
	case err := <-written:
		return nil, err
	}
	r, err := t.run(w, p)
	done := l.done.Load()
	l.phase.Store(ended)
	err = errors.Join(err, <-written)
	if err == nil && done == 0 {
		err = errors.New("nothing was written beside")
	}
	return r, err
}

// write writes the document's section on durability.
func (d *durability) write(b *strings.Builder, versions []string) {
	fmt.Fprint(b, "\n## Kept on disk\n")
	if len(d.logged) > 0 {
		fmt.Fprintf(b, "\nAll servers with an append-only file and the same `appendfsync`. Of no log is limitkv's throughput as a part of what it does without.\n\n"+
			"| workload | appendfsync | connections | pipeline | %s | ratio | at least | of no log | CPU µs | CPU ratio |\n| --- | --- | ---: | ---: |%s ---: | ---: | --- | --- | ---: |\n",
			strings.Join(versions, " | "), strings.Repeat(" ---: |", len(versions)))
	}
	for _, l := range d.logged {
		none, with := l.cells[0].Median, row{cells: l.cells[1:]}
		name := l.workload
		if l.against != "" {
			name += " (theirs: " + l.against + ")"
		}
		fmt.Fprintf(b, "| %s | %s | %d | %d |", name, l.policy, l.connections, l.pipeline)
		var cpus []string
		for _, c := range with.cells {
			fmt.Fprintf(b, " %s |", thousands(c.Median.PerSecond))
			cpus = append(cpus, fmt.Sprintf("%.2f", c.Median.CPU))
		}
		best, cpu := with.best()
		ratio, left := with.cells[0].Median.PerSecond/best, with.cells[0].Median.PerSecond/none.PerSecond
		of := fmt.Sprintf("%.2f", left)
		if l.ofNone > 0 {
			of = verdict(left, left >= l.ofNone) + fmt.Sprintf(", at least %.2f", l.ofNone)
		}
		fmt.Fprintf(b, " %s | %.1f | %s | %s | %.2f |\n", verdict(ratio, ratio >= l.atLeast), l.atLeast, of, strings.Join(cpus, " / "), with.cells[0].Median.CPU/cpu)
	}
	d.writeBeside(b, versions)
	d.writePictures(b, versions)
	d.writeLoading(b, versions)
}

func (d *durability) writeBeside(b *strings.Builder, versions []string) {
	if len(d.beside) == 0 {
		return
	}
	fmt.Fprintf(b, "\nGET of all other connections beside %d connections that SET, with `appendfsync always`: requests a second, what is left of those alone, and the\n"+
		"microseconds of p50 / p99.\n\n| | %s | left | ratio | p99 |\n| --- |%s --- | --- | --- |\n", besideWriters,
		strings.Join(versions, " | "), strings.Repeat(" ---: |", len(versions)))
	for _, x := range d.beside {
		fmt.Fprintf(b, "| %s |", x.name)
		best := 0.0
		for i, c := range x.beside {
			r := c.Median
			fmt.Fprintf(b, " %s (%.0f %%), %.0f / %.0f |", thousands(r.PerSecond), 100*r.PerSecond/x.alone[i].Median.PerSecond, r.Latency.P50, r.Latency.P99)
			if i > 0 {
				best = max(best, r.PerSecond)
			}
		}
		ours := x.beside[0].Median
		left, ratio := ours.PerSecond/x.alone[0].Median.PerSecond, ours.PerSecond/best
		kept, times, p99 := fmt.Sprintf("%.2f", left), fmt.Sprintf("%.2f", ratio), fmt.Sprintf("%.0f µs", ours.Latency.P99)
		if x.keep > 0 {
			kept = verdict(left, left >= x.keep) + fmt.Sprintf(", at least %.1f", x.keep)
		}
		if x.atLeast > 0 {
			times = verdict(ratio, ratio >= x.atLeast) + fmt.Sprintf(", at least %.0f", x.atLeast)
		}
		if x.p99Max > 0 {
			p99 = verdict(ours.Latency.P99/x.p99Max, ours.Latency.P99 <= x.p99Max) + fmt.Sprintf(" of %.0f µs", x.p99Max)
		}
		fmt.Fprintf(b, " %s | %s | %s |\n", kept, times, p99)
	}
	if d.slowFsync != "" {
		fmt.Fprintf(b, "\nNot measured with a slow disk: %s.\n", d.slowFsync)
	}
}
