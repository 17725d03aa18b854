package main

// docs/BENCHMARKS.md, written by the matrix run.

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// best returns the best of the other servers: the highest throughput, and the lowest processor time.
func (r *row) best() (perSecond, cpu float64) {
	for _, c := range r.cells[1:] {
		perSecond = max(perSecond, c.Median.PerSecond)
		if cpu == 0 || c.Median.CPU < cpu {
			cpu = c.Median.CPU
		}
	}
	return perSecond, cpu
}

// verdict formats a ratio, in bold if it is as good as claimed.
func verdict(ratio float64, good bool) string {
	if good {
		return fmt.Sprintf("**%.2f**", ratio)
	}
	return fmt.Sprintf("%.2f (not yet)", ratio)
}

func (m *matrix) document() string {
	var b strings.Builder
	mode := "full"
	if m.quick {
		mode = "quick"
	}
	fmt.Fprintf(&b, `# Benchmarks

<!-- Written by make bench-compare. -->

%s side by side on one machine: %s. The generator shares it.
Measured on %s, %s mode: medians of %d rounds of %v, in which the servers take turns; %d connections, %d thread(s) of the
generator, values of %d bytes. All servers run as they come, without persistence unless it is named.

`, strings.Join(m.versions, ", "), machine(), m.started.Format("2006-01-02"), mode, m.rounds, m.params.duration, m.params.connections, m.params.threads, m.params.valueBytes)
	fmt.Fprint(&b, "To repeat it: `make bench-compare` (`make bench-compare QUICK=1` for a first look), with REDIS_SERVER and VALKEY_SERVER naming\n"+
		"the servers to compare with where they are not in PATH. `bin/limitkv-benchmark --help` says how to load a server of your own\n"+
		"and what each workload asks of it. [BREADTH.md](BREADTH.md) has every command beside Redis, [SCRIPTS.md](SCRIPTS.md) scripts\n"+
		"that compute.\n")
	if len(m.rows) > 0 {
		fmt.Fprint(&b, "\n## Throughput\n\nRequests a second, and the server's processor time for each. The ratio is to the better of the others.\n\n"+
			"valkey-benchmark repeats the rows that it can send, with random keys: its ratio is of requests a second, as ours is, and then\n"+
			"of processor time. It can send neither what depends on a reply nor a time that goes on (–). It has one thread, which single\n"+
			"requests keep busy all the time, whichever server they go to.\n\n")
		m.throughput(&b, m.rows)
	}
	if len(m.used) > 0 {
		fmt.Fprint(&b, "\n## As they are used\n\nLimiters whose rule comes with every request and is over after a second, so that they are made and gone all the time; some that\n"+
			"all ask for, and some that refuse nearly all; queues from an entry's first day to its last; locks; all of these mixed. The others\n"+
			"do the same by scripts.\n\n")
		m.throughput(&b, m.used)
	}
	if len(m.contests) > 0 {
		m.contended(&b)
	}
	if len(m.libraries) > 0 || len(m.missing) > 0 {
		m.fromLibraries(&b)
	}
	if len(m.labours) > 0 {
		m.endToEnd(&b)
	}
	if len(m.few) > 0 {
		m.fewRequests(&b)
	}
	if len(m.latency) > 0 {
		m.latencies(&b)
	}
	if len(m.cores) > 0 {
		m.byCores(&b)
	}
	if len(m.memory) > 0 {
		fmt.Fprintf(&b, "\n## Memory and start\n\nResident memory of the process.\n\n| | %s | ratio to Redis | at most |\n| --- |%s --- | --- |\n", strings.Join(m.versions, " | "), strings.Repeat(" ---: |", len(m.versions)))
		for _, x := range m.memory {
			fmt.Fprintf(&b, "| %s |", x.name)
			for _, v := range x.values {
				if x.unit == "bytes" {
					fmt.Fprintf(&b, " %.0f %s |", v, x.unit)
				} else {
					fmt.Fprintf(&b, " %.1f %s |", v, x.unit)
				}
			}
			ratio := x.values[0] / x.values[1]
			if x.atMost == 0 {
				fmt.Fprintf(&b, " %.2f | |\n", ratio)
			} else {
				fmt.Fprintf(&b, " %s | %.1f |\n", verdict(ratio, ratio <= x.atMost), x.atMost)
			}
		}
	}
	if len(m.growth) > 0 {
		fmt.Fprint(&b, "\n## Growth\n\nRequests a second, and what is left of those at the first size.\n")
	}
	for _, g := range m.growth {
		fmt.Fprintf(&b, "\n%s:\n\n| |", g.name)
		for _, n := range g.sizes {
			fmt.Fprintf(&b, " %s |", thousands(float64(n)))
		}
		fmt.Fprintf(&b, "\n| --- |%s\n", strings.Repeat(" ---: |", len(g.sizes)))
		for i, v := range m.versions {
			fmt.Fprintf(&b, "| %s |", v)
			for size := range g.sizes {
				fmt.Fprintf(&b, " %s (%.0f %%) |", thousands(g.values[size][i]), 100*g.values[size][i]/g.values[0][i])
			}
			b.WriteString("\n")
		}
	}
	if m.durability != nil {
		m.durability.write(&b, m.versions)
	}
	return b.String()
}

// fromLibraries writes the table of the recordings.
func (m *matrix) fromLibraries(b *strings.Builder) {
	fmt.Fprint(b, "\n## Scripts of libraries\n\nWhat real libraries sent while they worked, recorded and sent again by every connection, with names of its own. The\n"+
		"recordings are made on the machine that measures (`limitkv-benchmark record`). Requests a second and processor time are a command's.\n\n")
	if len(m.libraries) > 0 {
		m.throughput(b, m.libraries)
		fmt.Fprintln(b)
	}
	for _, w := range m.recorded {
		fmt.Fprintf(b, "- %s: %s\n", w.name, w.does)
	}
	if len(m.missing) > 0 {
		fmt.Fprintf(b, "\n%s\n", m.leftOut())
	}
}

// throughput writes a table of rows.
func (m *matrix) throughput(b *strings.Builder, rows []row) {
	fmt.Fprintf(b, "| workload | pipeline | %s | ratio | at least | by valkey-benchmark | CPU µs | CPU ratio |\n| --- | ---: |%s ---: | ---: | ---: | --- | ---: |\n",
		strings.Join(m.versions, " | "), strings.Repeat(" ---: |", len(m.versions)))
	for i := range rows {
		r := &rows[i]
		name := r.workload
		if r.against != "" {
			name += " (theirs: " + r.against + ")"
		}
		if r.connections == 1 {
			name += ", one connection"
		}
		if r.keys != 0 {
			name += ", " + thousands(float64(r.keys)) + " keys"
		}
		fmt.Fprintf(b, "| %s | %d |", name, r.pipeline)
		if r.failed != "" {
			fmt.Fprintf(b, " not measured: %s |%s\n", strings.ReplaceAll(r.failed, "|", " "), strings.Repeat(" |", len(m.versions)+4))
			continue
		}
		var cpus []string
		for _, c := range r.cells {
			fmt.Fprintf(b, " %s |", thousands(c.Median.PerSecond))
			cpus = append(cpus, fmt.Sprintf("%.2f", c.Median.CPU))
		}
		perSecond, cpu := r.best()
		ratio, cpuRatio := r.cells[0].Median.PerSecond/perSecond, r.cells[0].Median.CPU/cpu
		text := fmt.Sprintf("%.2f", cpuRatio)
		if r.cpuAtMost > 0 {
			text = verdict(cpuRatio, cpuRatio <= r.cpuAtMost) + fmt.Sprintf(", at most %.1f", r.cpuAtMost)
		}
		fmt.Fprintf(b, " %s | %.1f | %s | %s | %s |\n", verdict(ratio, ratio >= r.atLeast), r.atLeast, r.confirmed(), strings.Join(cpus, " / "), text)
	}
}

// fewRequests writes the table of mostly idle servers.
func (m *matrix) fewRequests(b *strings.Builder) {
	fmt.Fprintf(b, "\n## Few requests\n\nThe server's processor time for each request in microseconds, where 8 connections ask so seldom that it sleeps in between.\n\n"+
		"| workload | requests a second | %s | ratio | at most |\n| --- | ---: |%s ---: | ---: |\n", strings.Join(m.versions, " | "), strings.Repeat(" ---: |", len(m.versions)))
	for i := range m.few {
		r := &m.few[i]
		fmt.Fprintf(b, "| %s | %s |", r.workload, thousands(r.cells[0].Median.Rate))
		for _, c := range r.cells {
			fmt.Fprintf(b, " %.1f |", c.Median.CPU)
		}
		_, cpu := r.best()
		ratio := r.cells[0].Median.CPU / cpu
		fmt.Fprintf(b, " %s | %.1f |\n", verdict(ratio, ratio <= r.cpuAtMost), r.cpuAtMost)
	}
}

func (m *matrix) latencies(b *strings.Builder) {
	fmt.Fprintf(b, "\n## Latency\n\nRequests come at half the rate of which the slowest server is capable, whether or not earlier ones were answered; microseconds from\n"+
		"when a request was due to its answer: p50 / p99 / p99.9, in rounds of %v. The ratios are those of the three to Redis's.\n\n"+
		"| workload | connections | requests a second | %s | ratios | at most |\n| --- | ---: | ---: |%s ---: | --- |\n",
		m.params.duration*latencyTimes, strings.Join(m.versions, " | "), strings.Repeat(" ---: |", len(m.versions)))
	for i := range m.latency {
		r := &m.latency[i]
		fmt.Fprintf(b, "| %s | %s | %s |", r.workload, thousands(float64(r.connections)), thousands(r.cells[0].Median.Rate))
		for _, c := range r.cells {
			l := c.Median.Latency
			fmt.Fprintf(b, " %.0f / %.0f / %.0f |", l.P50, l.P99, l.P999)
		}
		own, redis := r.cells[0].Median.Latency, r.cells[1].Median.Latency
		var ratios []string
		for _, ratio := range []float64{own.P50 / redis.P50, own.P99 / redis.P99, own.P999 / redis.P999} {
			ratios = append(ratios, verdict(ratio, ratio <= r.atLeast))
		}
		fmt.Fprintf(b, " %s | %.1f |\n", strings.Join(ratios, " / "), r.atLeast)
	}
}

// thousands formats a number in groups of three digits.
func thousands(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// machine describes the machine of the measurement.
func machine() string {
	model := "unknown processor"
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.SplitSeq(string(text), "\n") {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
			model = strings.TrimSpace(v)
			break
		}
	}
	return fmt.Sprintf("%d cores of %s, %s, %s", runtime.NumCPU(), model, runtime.GOOS, runtime.Version())
}
