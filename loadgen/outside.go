package main

// The other generator: valkey-benchmark repeats each row that it can send, so that nobody has to trust only ours. It sends one
// command, or several in turn, with random numbers in them. It cannot send requests that depend on a reply, increasing times,
// or keys with different frequencies.

import (
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Names in valkey-benchmark's form. It replaces __rand_int__ by 12 random digits each time, and __rand_1st__ by digits that
// are the same in all commands of a turn.
const (
	outsideKey   = "key:__rand_int__"
	outsideQueue = "queue:__rand_int__"
	outsideLock  = "lock:__rand_1st__"
)

// outsideLoad is a load for valkey-benchmark.
type outsideLoad struct {
	commands [][]string
	// keys, if not 0, is how many random numbers there are, instead of the workload's number of keys.
	keys int
	// requests, if not 0, is the number of requests, instead of as many as fit in the time.
	requests int
	countsUp bool // numbers are consecutive
}

// outsideOne is a load of one command.
func outsideOne(args ...string) outsideLoad { return outsideLoad{commands: [][]string{args}} }

// outsideCommand is the load of a workload with the same command on each server.
func outsideCommand(args ...string) func(*setup) outsideLoad {
	return func(*setup) outsideLoad { return outsideOne(args...) }
}

// outsideCounters is the number of counters for scripts that count. valkey-benchmark's users do not change, as ours do; with
// this number, each makes about as many requests in a window as ours.
const outsideCounters = 25_000

// outsideCounter is the load of a script that counts.
func outsideCounter(script string, args ...string) func(*setup) outsideLoad {
	return func(o *setup) outsideLoad {
		request := append([]string{"EVALSHA", o.shas[script], "1", script + ":__rand_int__"}, args...)
		return outsideLoad{commands: [][]string{request}, keys: outsideCounters}
	}
}

// outsidePolls is the number of requests that poll queues. Half of them find something.
const outsidePolls = 300_000

// outsideGenerator finds valkey-benchmark: next to the server from the environment, or in PATH.
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

// outsideResult is valkey-benchmark's result for a server: requests per second, latencies in milliseconds, and processor time
// per request in microseconds.
type outsideResult struct{ PerSecond, P50, P99, CPU float64 }

// fromOutside measures a claim with valkey-benchmark, on servers prepared for the row. It returns nil if valkey-benchmark
// cannot send it.
func (m *matrix) fromOutside(targets []*target, c claim) ([]outsideResult, error) {
	if m.outside == "" {
		return nil, nil
	}
	works := make([]*workload, len(targets))
	for i, t := range targets {
		if works[i] = find(c.workload); !t.offers(works[i]) {
			works[i] = find(c.against)
		}
		if works[i].outside == nil || c.pipeline < len(works[i].outside(&t.setup).commands) { // it sends all commands of a turn at once
			return nil, nil
		}
	}
	rounds := make([][]outsideResult, len(targets))
	for round := range m.rounds {
		for i := range targets {
			i = (i + round) % len(targets)
			r, err := m.outsideRound(targets[i], works[i], c)
			if err != nil {
				return nil, err
			}
			rounds[i] = append(rounds[i], r)
		}
	}
	var medians []outsideResult
	for _, r := range rounds {
		medians = append(medians, middles(r))
	}
	fmt.Fprintf(os.Stderr, "by %s: %.2f\n\n", filepath.Base(m.outside), medians)
	return medians, nil
}

// outsideRound is one run. Without a number of requests it takes whole seconds, as valkey-benchmark requires.
func (m *matrix) outsideRound(t *target, w *workload, c claim) (r outsideResult, err error) {
	if w.drains {
		p := m.params
		p.keys = c.keys
		if err := t.prepare(w, &p); err != nil {
			return r, err
		}
	}
	load := w.outside(&t.setup)
	if load.keys == 0 {
		load.keys = t.setup.keys
	}
	if err := t.answers(load); err != nil {
		return r, fmt.Errorf("%s on %s: %w", w.name, t.name, err)
	}
	connections := m.params.connections
	if c.connections != 0 {
		connections = c.connections
	}
	return t.outside(m.outside, connections, max(1, c.pipeline/len(load.commands)), m.params.duration, load)
}

// outside loads a server with valkey-benchmark.
func (t *target) outside(generator string, connections, pipeline int, length time.Duration, load outsideLoad) (r outsideResult, err error) {
	before := processorNanos(t.pid)
	table, seconds, err := outsideRun(generator, t.addr, connections, pipeline, length, load)
	took := processorNanos(t.pid) - before
	if err != nil {
		return r, err
	}
	for name, to := range map[string]*float64{"rps": &r.PerSecond, "p50_latency_ms": &r.P50, "p99_latency_ms": &r.P99} {
		if *to, err = outsideColumn(table, name); err != nil {
			return r, err
		}
	}
	requests := float64(load.requests)
	if requests == 0 {
		requests = r.PerSecond * float64(seconds)
	}
	r.CPU = float64(took) / 1000 / requests
	return r, nil
}

// answers tells whether a server replies to each command without an error, which valkey-benchmark does not check.
func (t *target) answers(load outsideLoad) error {
	c, err := dial(t.addr, t.auth)
	if err != nil {
		return err
	}
	defer c.close()
	for _, command := range load.commands {
		var args []string
		for _, arg := range command {
			args = append(args, outsideNumber.ReplaceAllString(arg, "000000000000"))
		}
		if _, err := c.text(args...); err != nil {
			return err
		}
	}
	return nil
}

// outsideHole is a hole of our patterns, outsideNumber its form in valkey-benchmark.
var outsideHole = regexp.MustCompile(`#+`)

var outsideNumber = regexp.MustCompile(`__rand_\w\w\w__`)

// outsideRun lets valkey-benchmark send a load for whole seconds, and returns its table. A pipeline has so many turns of all
// commands.
func outsideRun(generator, addr string, connections, pipeline int, length time.Duration, load outsideLoad) (table string, seconds int, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	args := []string{
		"-h", host, "-p", port, "-c", strconv.Itoa(connections), "-P", strconv.Itoa(pipeline), "-r", strconv.Itoa(load.keys), "--csv",
	}
	if load.countsUp {
		args = append(args, "--sequential")
	}
	if load.requests != 0 {
		args = append(args, "-n", strconv.Itoa(load.requests))
	} else {
		seconds = max(1, int(length.Seconds()+0.5))
		args = append(args, "--duration", strconv.Itoa(seconds))
	}
	args = append(args, "--")
	for i, command := range load.commands {
		if i > 0 {
			args = append(args, ";")
		}
		args = append(args, command...)
	}
	cmd := exec.Command(generator, args...)
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := err.(*exec.ExitError); ok {
			_, _ = os.Stderr.Write(exit.Stderr)
		}
		return "", 0, fmt.Errorf("%s: %w", generator, err)
	}
	return string(out), seconds, nil
}

// outsideColumn reads a number from a table: a line of names and a line of values, in quotes.
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
	// The description of the test comes first, and may contain commas.
	more := len(values) - len(names)
	if more < 0 {
		return 0, fmt.Errorf("valkey-benchmark wrote a torn table: %q", table)
	}
	return strconv.ParseFloat(values[i+more], 64)
}

// confirmed formats the other generator's result for the row: the ratio, thousands of requests per second, and the ratio of
// processor time.
func (r *row) confirmed() string {
	if r.outside == nil {
		return "–"
	}
	var words []string
	best, least := 0.0, math.Inf(1)
	for i, o := range r.outside {
		words = append(words, fmt.Sprintf("%.0f", o.PerSecond/1000))
		if i > 0 {
			best, least = max(best, o.PerSecond), min(least, o.CPU)
		}
	}
	own := r.outside[0]
	return fmt.Sprintf("%.2f (%s k), CPU %.2f", own.PerSecond/best, strings.Join(words, " / "), own.CPU/least)
}
