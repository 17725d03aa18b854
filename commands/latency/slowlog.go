package latency

// SLOWLOG: the commands that took long, the latest first.

import (
	"fmt"
	"math"
	"sync"

	"github.com/limitkv/limitkv/server/command"
)

// What an entry keeps of a command.
const (
	slowArgsMax     = 32
	slowArgBytesMax = 128
)

type slowlog struct {
	mu      sync.Mutex
	next    int64
	entries []slowEntry // the latest last
}

type slowEntry struct {
	id, atSeconds, micros int64
	args                  []string
	addr, name            string
}

// declareSlow declares the parameters of the slow log and of the latency
// monitor, which share the look at each command's time.
func (f *family) declareSlow() {
	c := f.s.Config
	f.slowerThan = c.Int("slowlog-log-slower-than", 10000, -1, math.MaxInt64, "microseconds from which a command is logged as slow, -1 = none")
	f.slowMax = c.Int("slowlog-max-len", 128, 0, math.MaxInt64, "most entries of the slow log")
	f.latencyThreshold = c.Int("latency-monitor-threshold", 0, 0, math.MaxInt64, "milliseconds from which a latency is sampled, 0 = off")
	c.OnChange(f.watchSlow, "slowlog-log-slower-than", "slowlog-max-len", "latency-monitor-threshold")
	f.s.SlowLog = f
	f.watchSlow()
}

// watchSlow sets from which time on Executed is called.
func (f *family) watchSlow() {
	at := f.slowerThan.Load()
	if f.slowMax.Load() == 0 {
		at = -1
	}
	if ms := f.latencyThreshold.Load(); ms > 0 && (at < 0 || ms*1000 < at) {
		at = ms * 1000
	}
	f.s.SlowMicros.Store(at)
	f.slow.mu.Lock()
	f.slow.trim(f.slowMax.Load())
	f.slow.mu.Unlock()
}

// Executed notes a command that took long.
func (f *family) Executed(c *command.Ctx, cmd *command.Command, args [][]byte, micros int64) {
	if ms := f.latencyThreshold.Load(); ms > 0 && micros/1000 >= ms {
		event := "command"
		if cmd.Flags&command.Fast != 0 {
			event = "fast-command"
		}
		f.latency.add(event, c.Now/1e6, micros/1000)
	}
	if at := f.slowerThan.Load(); at < 0 || micros < at || cmd.Flags&command.SkipSlowlog != 0 {
		return
	}
	e := slowEntry{atSeconds: c.Now / 1e6, micros: micros, args: shownArgs(cmd, args)}
	if !c.Script { // a script's commands have no client
		e.name = c.Session.Name()
		if c.Session.Conn != nil {
			e.addr = c.Session.Conn.RemoteAddr()
		}
	}
	f.slow.mu.Lock()
	defer f.slow.mu.Unlock()
	e.id = f.slow.next
	f.slow.next++
	f.slow.entries = append(f.slow.entries, e)
	f.slow.trim(f.slowMax.Load())
}

// trim drops the oldest entries, a few more at a time than must be.
func (l *slowlog) trim(most int64) {
	if n := int64(len(l.entries)) - most; n > 0 {
		l.entries = append(l.entries[:0:0], l.entries[n:]...)
	}
}

// shownArgs are arguments as the slow log keeps them: the first ones, cut, and
// no passwords.
func shownArgs(cmd *command.Command, args [][]byte) []string {
	n := min(len(args), slowArgsMax)
	out := make([]string, n)
	for i := range n {
		switch {
		case n < len(args) && i == n-1:
			out[i] = fmt.Sprintf("... (%d more arguments)", len(args)-n+1)
		case cmd.Secret != nil && cmd.Secret(args, i):
			out[i] = command.Redacted
		case len(args[i]) > slowArgBytesMax:
			out[i] = fmt.Sprintf("%s... (%d more bytes)", args[i][:slowArgBytesMax], len(args[i])-slowArgBytesMax)
		default:
			out[i] = string(args[i])
		}
	}
	return out
}

func (f *family) slowlogRow() *command.Command {
	const flags = command.Admin | command.Loading | command.Stale
	return &command.Command{
		Name: "slowlog", Arity: -2, Group: command.GroupServer, Since: "2.2.12",
		Summary:    "Commands about the log of slow commands.",
		Complexity: "That of the subcommand",
		Sub: []*command.Command{
			{
				Name: "get", Arity: -2, Since: "2.2.12", Flags: flags,
				Summary:    "The latest entries of the slow log.",
				Complexity: "O(N) in the number of entries",
				Tips:       []string{"request_policy:all_nodes", "nondeterministic_output"},
				Syntax:     "[count:integer]",
				History:    [][2]string{{"4.0.0", "Entries tell the client's address and name."}},
				Run:        f.slowlogGet,
			},
			command.HelpRow("6.2.0"),
			{
				Name: "len", Arity: 2, Since: "2.2.12", Flags: flags,
				Summary:    "How many entries the slow log has.",
				Complexity: "O(1)",
				Tips:       []string{"request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"},
				Run: func(c *command.Ctx) {
					f.slow.mu.Lock()
					defer f.slow.mu.Unlock()
					c.Int(int64(len(f.slow.entries)))
				},
			},
			{
				Name: "reset", Arity: 2, Since: "2.2.12", Flags: flags,
				Summary:    "Empties the slow log.",
				Complexity: "O(N) in the number of entries",
				Tips:       []string{"request_policy:all_nodes", "response_policy:all_succeeded"},
				Run: func(c *command.Ctx) {
					f.slow.mu.Lock()
					defer f.slow.mu.Unlock()
					f.slow.entries = nil
					c.OK()
				},
			},
		},
	}
}

func (f *family) slowlogGet(c *command.Ctx) {
	if len(c.Args) > 3 {
		c.Error(command.ErrSubcommandSyntax("SLOWLOG", c.Args[1]))
		return
	}
	count := int64(10)
	if len(c.Args) == 3 {
		const text = "ERR count should be greater than or equal to -1"
		a := c.Cursor(2)
		if count = a.IntOr(text); count < -1 {
			a.Fail(text)
		}
		if a.Failed(c) {
			return
		}
	}
	f.slow.mu.Lock()
	defer f.slow.mu.Unlock()
	all := f.slow.entries
	if count < 0 || count > int64(len(all)) {
		count = int64(len(all))
	}
	c.Array(int(count))
	for i := range int(count) {
		e := &all[len(all)-1-i]
		c.Array(6)
		c.Int(e.id)
		c.Int(e.atSeconds)
		c.Int(e.micros)
		c.Array(len(e.args))
		for _, a := range e.args {
			c.BulkString(a)
		}
		c.BulkString(e.addr)
		c.BulkString(e.name)
	}
}
