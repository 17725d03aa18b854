package main

// The other generator: valkey-benchmark repeats each row that it can send, so that nobody has to trust ours. It sends one
// command, or several in turn, with random numbers in them. It can send neither what depends on a reply, nor a time that goes
// on, nor keys of which some are asked for more often.

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

// Names of ours, as valkey-benchmark writes them. It puts 12 digits in the place of __rand_int__, other ones each time; those in
// the place of __rand_1st__ are the same in all commands of a turn.
const (
	outsideKey   = "key:__rand_int__"
	outsideQueue = "queue:__rand_int__"
	outsideLock  = "lock:__rand_1st__"
)

// outsideLoad is what valkey-benchmark is to send.
type outsideLoad struct {
	commands [][]string
	// keys, if not 0, is how many random numbers there are, in place of as many as the workload has keys.
	keys int
	// requests, if not 0, is how many are sent, in place of as many as there is time for.
	requests int
	countsUp bool // numbers follow each other
}

// outsideOne is a load of one command.
func outsideOne(args ...string) outsideLoad { return outsideLoad{commands: [][]string{args}} }

// outsideCommand is the load of a workload whose command is the same on each server.
func outsideCommand(args ...string) func(*setup) outsideLoad {
	return func(*setup) outsideLoad { return outsideOne(args...) }
}

// outsideCounters is how many counters the scripts that count get from valkey-benchmark. Its users do not change, as ours do; with
// so many, each makes about as many requests in a window as with ours.
const outsideCounters = 25_000

// outsideCounter is the load of a script that counts.
func outsideCounter(script string, args ...string) func(*setup) outsideLoad {
	return func(o *setup) outsideLoad {
		request := append([]string{"EVALSHA", o.shas[script], "1", script + ":__rand_int__"}, args...)
		return outsideLoad{commands: [][]string{request}, keys: outsideCounters}
	}
}

// outsidePolls is how many requests take what is due of queues. Half of them find something.
const outsidePolls = 300_000

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

// outsideResult is what valkey-benchmark measured of a server: requests a second, latencies in milliseconds, and the processor
// time of a request in microseconds.
type outsideResult struct{ PerSecond, P50, P99, CPU float64 }

// fromOutside measures a claim with valkey-benchmark, where the row's servers are prepared for it. It returns nil where
// valkey-benchmark cannot.
func (m *matrix) fromOutside(targets []*target, c claim) ([]outsideResult, error) {
	if m.outside == "" {
		return nil, nil
	}
	works := make([]*workload, len(targets))
	for i, t := range targets {
		if works[i] = find(c.workload); !t.offers(works[i]) {
			works[i] = find(c.against)
		}
		if works[i].outside == nil || c.pipeline < len(works[i].outside(&t.setup).commands) { // it sends a turn's commands at once
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

// outsideRound is one run. Its length is a whole number of seconds, as valkey-benchmark has them, if it has not a number of
// requests.
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

// outside has valkey-benchmark load a server.
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

// answers tells whether a server has an answer to each command, other than an error: valkey-benchmark does not look.
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

// outsideHole is what a pattern of ours has in the place of a number, outsideNumber what valkey-benchmark has.
var outsideHole = regexp.MustCompile(`#+`)

var outsideNumber = regexp.MustCompile(`__rand_\w\w\w__`)

// outsideRun has valkey-benchmark send a load for so many whole seconds, and returns its table. A pipeline has so many turns of
// all commands.
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

// confirmed is what the other generator says of the row: the ratio, thousands of requests a second, the ratio of processor time.
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
