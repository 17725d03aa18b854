// Package latency, internal to the server, is the family of LATENCY and SLOWLOG, which show what took long. server/latency
// records it.
package latency

import (
	"fmt"
	"strings"

	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/histogram"
	"github.com/limitkv/limitkv/server/latency"
)

type family struct{ s *server.Server }

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := family{s}
	return []*command.Command{f.slowlogRow(), f.latencyRow()}
}

func (f family) latencyRow() *command.Command {
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

func (f family) latencyHistory(c *command.Ctx) {
	e, _ := f.s.Latency.Events.Named(string(c.Args[2]))
	c.Array(len(e.Samples))
	for _, s := range e.Samples {
		c.Array(2)
		c.Int(s.AtSeconds)
		c.Int(s.Millis)
	}
}

func (f family) latencyLatest(c *command.Ctx) {
	events := f.s.Latency.Events.All()
	c.Array(len(events))
	for _, e := range events {
		last := e.Samples[len(e.Samples)-1]
		c.Array(4)
		c.BulkString(e.Name)
		c.Int(last.AtSeconds)
		c.Int(last.Millis)
		c.Int(e.Worst)
	}
}

func (f family) latencyReset(c *command.Ctx) { c.Int(int64(f.s.Latency.Events.Reset(c.Args[2:]))) }

// graphRows and graphColumns are the size of LATENCY GRAPH.
const (
	graphRows    = 4
	graphColumns = 80
)

func (f family) latencyGraph(c *command.Ctx) {
	e, ok := f.s.Latency.Events.Named(string(c.Args[2]))
	if !ok {
		c.Error("ERR No samples available for event '" + string(c.Args[2]) + "'")
		return
	}
	c.Verbatim("txt", graph(e, c.Now/1e6))
}

// graph draws the samples as columns, the latest to the right, with how long
// ago each was below it.
func graph(e latency.Event, now int64) string {
	samples := e.Samples[max(0, len(e.Samples)-graphColumns):]
	lo, hi := samples[0].Millis, samples[0].Millis
	for _, s := range samples {
		lo, hi = min(lo, s.Millis), max(hi, s.Millis)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s - high %d ms, low %d ms (all time high %d ms)\n%s\n", e.Name, hi, lo, e.Worst, strings.Repeat("-", graphColumns))
	for row := int64(graphRows); row > 0; row-- {
		for _, s := range samples {
			mark := byte(' ')
			if height := (s.Millis-lo)*graphRows/max(1, hi-lo) + 1; height > row {
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
			label := ago(now - s.AtSeconds)
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

func (f family) latencyDoctor(c *command.Ctx) {
	var b strings.Builder
	events := f.s.Latency.Events.All()
	switch {
	case f.s.Latency.Threshold() == 0:
		b.WriteString("Latency monitoring is off. CONFIG SET latency-monitor-threshold <milliseconds> turns it on.\n")
	case len(events) == 0:
		b.WriteString("Nothing took longer than latency-monitor-threshold so far.\n")
	}
	for _, e := range events {
		var sum int64
		for _, s := range e.Samples {
			sum += s.Millis
		}
		n := int64(len(e.Samples))
		fmt.Fprintf(&b, "%s: %d seconds with a latency, %d ms on average, %d ms at worst; the latest %s ago.\n",
			e.Name, n, sum/n, e.Worst, ago(c.Now/1e6-e.Samples[n-1].AtSeconds))
	}
	if len(events) > 0 {
		b.WriteString("SLOWLOG GET shows which commands they were, SCRIPT INFO whether a script holds more keys than it need.\n")
	}
	c.Verbatim("txt", b.String())
}

func (f family) latencyHistogram(c *command.Ctx) {
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
	if f.s.Latency.Tracking() {
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

// powerMicros is the k-th limit of LATENCY HISTOGRAM in microseconds: 1, 2, 4, 8, 16, 33, 66, 132 … Redis counts in
// nanoseconds, and doubles 1024.
func powerMicros(k int) int64 { return latency.NearNanos(1024<<k) / 1000 }
