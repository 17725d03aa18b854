package main

// The other generator: valkey-benchmark repeats each row of which one command is enough, so that nobody has to trust ours.

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// outsideKey is a key of ours, as valkey-benchmark writes it.
const outsideKey = "key:__rand_int__"

// outsideGenerator is valkey-benchmark: beside the server that the environment names, or in PATH.
func outsideGenerator() string {
	const name = "valkey-benchmark"
	if server := binary("VALKEY", "valkey"); server != "" {
		if path := filepath.Join(filepath.Dir(server), name); executable(path) {
			return path
		}
	}
	path, _ := exec.LookPath(name)
	return path
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// fromOutside measures a claim with valkey-benchmark, where the row's servers are prepared for it. It returns nil where more
// than one command is needed.
func (m *matrix) fromOutside(targets []*target, c claim) ([]float64, error) {
	if m.outside == "" || c.connections != 0 {
		return nil, nil
	}
	works := make([]*workload, len(targets))
	for i, t := range targets {
		if works[i] = find(c.workload); !t.offers(works[i]) {
			works[i] = find(c.against)
		}
		if works[i].outside == nil {
			return nil, nil
		}
	}
	rounds := make([][]float64, len(targets))
	for round := range m.rounds {
		for i := range targets {
			i = (i + round) % len(targets)
			n, err := m.outsideRound(targets[i], works[i], c.pipeline)
			if err != nil {
				return nil, err
			}
			rounds[i] = append(rounds[i], n)
		}
	}
	medians := make([]float64, len(targets))
	for i, r := range rounds {
		slices.Sort(r)
		medians[i] = r[len(r)/2]
	}
	fmt.Fprintf(os.Stderr, "by %s: %.0f\n\n", filepath.Base(m.outside), medians)
	return medians, nil
}

// outsideRound is one run. Its length is a whole number of seconds, as it has them.
func (m *matrix) outsideRound(t *target, w *workload, pipeline int) (perSecond float64, err error) {
	table, _, err := outsideRun(m.outside, t.addr, m.params.connections, pipeline, t.setup.keys, m.params.duration, w.outside(&t.setup))
	if err != nil {
		return 0, err
	}
	return outsideRate(table)
}

// outsideRun has valkey-benchmark send a request for so many whole seconds, and returns its table.
func outsideRun(generator, addr string, connections, pipeline, keys int, length time.Duration, request []string) (table string, seconds int, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	seconds = max(1, int(length.Seconds()+0.5))
	cmd := exec.Command(generator, append([]string{
		"-h", host, "-p", port, "-c", strconv.Itoa(connections), "-P", strconv.Itoa(pipeline), "-r", strconv.Itoa(keys),
		"--duration", strconv.Itoa(seconds), "--csv", "--",
	}, request...)...)
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := err.(*exec.ExitError); ok {
			_, _ = os.Stderr.Write(exit.Stderr)
		}
		return "", 0, fmt.Errorf("%s: %w", generator, err)
	}
	return string(out), seconds, nil
}

// outsideRate reads requests a second from a table.
func outsideRate(table string) (float64, error) { return outsideColumn(table, "rps") }

// outsideColumn reads a number from a table: a line of names, a line of values, with quotes.
func outsideColumn(table, name string) (float64, error) {
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) < 2 {
		return 0, fmt.Errorf("valkey-benchmark wrote no table: %q", table)
	}
	split := func(line string) []string { return strings.Split(strings.Trim(strings.TrimSpace(line), `"`), `","`) }
	names, values := split(lines[len(lines)-2]), split(lines[len(lines)-1])
	i := slices.Index(names, name)
	if i < 0 {
		return 0, fmt.Errorf("valkey-benchmark wrote a table without %s: %q", name, table)
	}
	// What is tested comes first, and may have commas of its own.
	more := len(values) - len(names)
	if more < 0 {
		return 0, fmt.Errorf("valkey-benchmark wrote a torn table: %q", table)
	}
	return strconv.ParseFloat(values[i+more], 64)
}

// confirmed is what the other generator says of the row: the ratio, and thousands of requests a second.
func (r *row) confirmed() string {
	if r.outside == nil {
		return "–"
	}
	var words []string
	for _, n := range r.outside {
		words = append(words, fmt.Sprintf("%.0f", n/1000))
	}
	return fmt.Sprintf("%.2f (%s k)", r.outside[0]/slices.Max(r.outside[1:]), strings.Join(words, " / "))
}
