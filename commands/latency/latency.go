// Package latency, internal to the server, is the family of what took long: SLOWLOG, LATENCY and
// INFO latencystats. This file is the latency monitor, the worst times of each second by kind of
// event, and the histograms of all commands.
package latency

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/histogram"
)

// latencySamplesMax is how many seconds with a latency an event keeps.
const latencySamplesMax = 160

type latencyMonitor struct {
	mu     sync.Mutex
	events map[string]*latencyEvent
}

type latencyEvent struct {
	samples []latencySample // the latest last
	worst   int64
}

type latencySample struct{ atSeconds, millis int64 }

// add notes a latency. Of each second the worst is kept.
func (m *latencyMonitor) add(event string, atSeconds, millis int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.events == nil {
		m.events = make(map[string]*latencyEvent)
	}
	e := m.events[event]
	if e == nil {
		e = &latencyEvent{}
		m.events[event] = e
	}
	e.worst = max(e.worst, millis)
	if n := len(e.samples); n > 0 && e.samples[n-1].atSeconds == atSeconds {
		e.samples[n-1].millis = max(e.samples[n-1].millis, millis)
		return
	}
	if len(e.samples) == latencySamplesMax {
		e.samples = append(e.samples[:0], e.samples[1:]...)
	}
	e.samples = append(e.samples, latencySample{atSeconds, millis})
}

// names lists the events that have samples.
func (m *latencyMonitor) names() (names []string) {
	for name := range m.events {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

type family struct {
	s           *server.Server
	slow        slowlog
	latency     latencyMonitor
	percentiles percentiles

	slowerThan, slowMax, latencyThreshold *atomic.Int64
	tracking                              *atomic.Bool
}

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := &family{s: s}
	s.Mutexes = append(s.Mutexes, &f.slow.mu, &f.latency.mu)
	f.declareSlow()
	f.declareStats()
	return []*command.Command{f.slowlogRow(), f.latencyRow()}
}

func (f *family) latencyRow() *command.Command {
	const flags = command.Admin | command.NoScript | command.Loading | command.Stale
	tips := []string{"nondeterministic_output", "request_policy:all_nodes", "response_policy:special"}
	return &command.Command{
		Name: "latency", Arity: -2, Group: command.GroupServer, Since: "2.8.13",
		Summary:    "Commands about what took long.",
		Complexity: "That of the subcommand",
		Sub: []*command.Command{
			{
				Name: "doctor", Arity: 2, Since: "2.8.13", Flags: flags, Tips: tips,
				Summary:    "A report of latencies in words.",
				Complexity: "O(1)",
				Run:        f.latencyDoctor,
			},
			{
				Name: "graph", Arity: 3, Since: "2.8.13", Flags: flags, Tips: tips,
				Summary:    "A graph of the latencies of an event.",
				Complexity: "O(1)",
				Syntax:     "event:string",
				Run:        f.latencyGraph,
			},
			command.HelpRow("2.8.13"),
			{
				Name: "histogram", Arity: -2, Since: "7.0.0", Flags: flags, Tips: tips,
				Summary:    "How long commands took: numbers of calls by powers of two of microseconds.",
				Complexity: "O(N) in the number of commands asked for",
				Syntax:     "[COMMAND:string...]",
				Run:        f.latencyHistogram,
			},
			{
				Name: "history", Arity: 3, Since: "2.8.13", Flags: flags, Tips: tips,
				Summary:    "The latencies of an event, by time.",
				Complexity: "O(1)",
				Syntax:     "event:string",
				Run:        f.latencyHistory,
			},
			{
				Name: "latest", Arity: 2, Since: "2.8.13", Flags: flags, Tips: tips,
				Summary:    "The latest latency of each event.",
				Complexity: "O(1)",
				Run:        f.latencyLatest,
			},
			{
				Name: "reset", Arity: -2, Since: "2.8.13", Flags: flags,
				Summary:    "Forgets the latencies of all or of some events.",
				Complexity: "O(1)",
				Tips:       []string{"request_policy:all_nodes", "response_policy:agg_sum"},
				Syntax:     "[event:string...]",
				Run:        f.latencyReset,
			},
		},
	}
}

func (f *family) latencyHistory(c *command.Ctx) {
	f.latency.mu.Lock()
	defer f.latency.mu.Unlock()
	e := f.latency.events[string(c.Args[2])]
	if e == nil {
		c.Array(0)
		return
	}
	c.Array(len(e.samples))
	for _, s := range e.samples {
		c.Array(2)
		c.Int(s.atSeconds)
		c.Int(s.millis)
	}
}

func (f *family) latencyLatest(c *command.Ctx) {
	f.latency.mu.Lock()
	defer f.latency.mu.Unlock()
	names := f.latency.names()
	c.Array(len(names))
	for _, name := range names {
		e := f.latency.events[name]
		last := e.samples[len(e.samples)-1]
		c.Array(4)
		c.BulkString(name)
		c.Int(last.atSeconds)
		c.Int(last.millis)
		c.Int(e.worst)
	}
}

func (f *family) latencyReset(c *command.Ctx) {
	f.latency.mu.Lock()
	defer f.latency.mu.Unlock()
	was := len(f.latency.events)
	if len(c.Args) == 2 {
		clear(f.latency.events)
	}
	for _, name := range c.Args[2:] {
		delete(f.latency.events, string(name))
	}
	c.Int(int64(was - len(f.latency.events)))
}

// graphRows and graphColumns are the size of LATENCY GRAPH.
const (
	graphRows    = 4
	graphColumns = 80
)

func (f *family) latencyGraph(c *command.Ctx) {
	f.latency.mu.Lock()
	defer f.latency.mu.Unlock()
	name := string(c.Args[2])
	e := f.latency.events[name]
	if e == nil {
		c.Error("ERR No samples available for event '" + name + "'")
		return
	}
	c.Verbatim("txt", e.graph(name, c.Now/1e6))
}

// graph draws the samples as columns, the latest to the right, with how long
// ago each was below it.
func (e *latencyEvent) graph(name string, now int64) string {
	samples := e.samples[max(0, len(e.samples)-graphColumns):]
	lo, hi := samples[0].millis, samples[0].millis
	for _, s := range samples {
		lo, hi = min(lo, s.millis), max(hi, s.millis)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s - high %d ms, low %d ms (all time high %d ms)\n%s\n", name, hi, lo, e.worst, strings.Repeat("-", graphColumns))
	for row := int64(graphRows); row > 0; row-- {
		for _, s := range samples {
			mark := byte(' ')
			if height := (s.millis-lo)*graphRows/max(1, hi-lo) + 1; height > row {
				mark = '#'
			} else if height == row {
				mark = '_'
			}
			b.WriteByte(mark)
		}
		b.WriteByte('\n')
	}
	for row := 0; ; row++ {
		line, more := make([]byte, len(samples)), false
		for i, s := range samples {
			label := ago(now - s.atSeconds)
			line[i] = ' '
			if row < len(label) {
				line[i], more = label[row], true
			}
		}
		if !more {
			return b.String()
		}
		fmt.Fprintf(&b, "%s\n", line)
	}
}

// ago is a number of seconds in one unit.
func ago(seconds int64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%ds", seconds)
	case seconds < 3600:
		return fmt.Sprintf("%dm", seconds/60)
	case seconds < 24*3600:
		return fmt.Sprintf("%dh", seconds/3600)
	default:
		return fmt.Sprintf("%dd", seconds/(24*3600))
	}
}

func (f *family) latencyDoctor(c *command.Ctx) {
	var b strings.Builder
	f.latency.mu.Lock()
	defer f.latency.mu.Unlock()
	names := f.latency.names()
	switch {
	case f.latencyThreshold.Load() == 0:
		b.WriteString("Latency monitoring is off. CONFIG SET latency-monitor-threshold <milliseconds> turns it on.\n")
	case len(names) == 0:
		b.WriteString("Nothing took longer than latency-monitor-threshold so far.\n")
	}
	for _, name := range names {
		e := f.latency.events[name]
		var sum int64
		for _, s := range e.samples {
			sum += s.millis
		}
		n := int64(len(e.samples))
		fmt.Fprintf(&b, "%s: %d seconds with a latency, %d ms on average, %d ms at worst; the latest %s ago.\n",
			name, n, sum/n, e.worst, ago(c.Now/1e6-e.samples[n-1].atSeconds))
	}
	if len(names) > 0 {
		b.WriteString("SLOWLOG GET shows which commands they were, SCRIPT INFO whether a script holds more keys than it need.\n")
	}
	c.Verbatim("txt", b.String())
}

func (f *family) latencyHistogram(c *command.Ctx) {
	type entry struct {
		cmd   *command.Command
		times *histogram.Times
	}
	var all []entry
	add := func(cmd *command.Command) {
		if t := f.s.Workers.Times(cmd); t.Calls > 0 {
			all = append(all, entry{cmd, t})
		}
	}
	if f.tracking.Load() {
		if len(c.Args) == 2 {
			for _, cmd := range f.s.Table.All() {
				add(cmd)
			}
		}
		for _, name := range c.Args[2:] {
			if cmd := f.s.Table.Named(name); cmd != nil {
				add(cmd)
				for _, sub := range cmd.Sub {
					add(sub)
				}
			}
		}
	}
	c.Map(len(all))
	for _, e := range all {
		c.BulkString(e.cmd.FullName())
		c.Map(2)
		c.BulkString("calls")
		c.Int(e.times.Calls)
		c.BulkString("histogram_usec")
		replyTimes(c, e.times)
	}
}

// replyTimes replies how many calls took at most each power of two.
func replyTimes(c *command.Ctx, t *histogram.Times) {
	var tops, sums []int64
	var sum int64
	at := 0
	t.Each(func(top, n int64) {
		for powerMicros(at) < top {
			at++
		}
		sum += n
		if k := len(tops); k > 0 && tops[k-1] == powerMicros(at) {
			sums[k-1] = sum
			return
		}
		tops, sums = append(tops, powerMicros(at)), append(sums, sum)
	})
	c.Map(len(tops))
	for i := range tops {
		c.Int(tops[i])
		c.Int(sums[i])
	}
}

// powerMicros is the k-th limit of LATENCY HISTOGRAM in microseconds: 1, 2, 4,
// 8, 16, 33, 66, 132 … Redis keeps nanoseconds, of which it doubles 1024.
func powerMicros(k int) int64 { return nearNanos(1024<<k) / 1000 }

// nearNanos is the highest time that Redis's histograms, with two digits of
// precision, do not tell from one in nanoseconds.
func nearNanos(n int64) int64 {
	width := int64(1)
	for n/width >= 256 {
		width *= 2
	}
	return n/width*width + width - 1
}
