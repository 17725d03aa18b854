// Package latency, internal to the server, records what took long: the slow log and the latency monitor, which share the check
// of each command's time, and the latency percentiles of all commands.
package latency

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/server/command"
)

// Monitor holds the slow log and the latency monitor.
type Monitor struct {
	s *command.Server
	// Events are those of the latency monitor.
	Events      Events
	percentiles atomic.Pointer[[]float64]

	slowerThan, slowMax, threshold *atomic.Int64
	tracking                       *atomic.Bool

	mu      sync.Mutex
	next    int64
	entries []Entry // of the slow log, the latest last
}

// New declares the parameters about latency.
func New(s *command.Server) *Monitor {
	m := &Monitor{s: s}
	s.Mutexes = append(s.Mutexes, &m.mu, &m.Events.mu)
	c := s.Config
	m.slowerThan = c.Int("slowlog-log-slower-than", 10000, -1, math.MaxInt64, "microseconds from which a command is logged as slow, -1 = none")
	m.slowMax = c.Int("slowlog-max-len", 128, 0, math.MaxInt64, "most entries of the slow log")
	m.threshold = c.Int("latency-monitor-threshold", 0, 0, math.MaxInt64, "milliseconds from which a latency is sampled, 0 = off")
	c.OnChange(m.watchSlow, "slowlog-log-slower-than", "slowlog-max-len", "latency-monitor-threshold")
	m.watchSlow()
	m.declareStats()
	return m
}

// Threshold is the number of milliseconds from which a latency is sampled, 0: none. Tracking tells whether INFO has the
// percentiles of commands.
func (m *Monitor) Threshold() int64 { return m.threshold.Load() }
func (m *Monitor) Tracking() bool   { return m.tracking.Load() }

// Slow returns entries of the slow log, the latest first: at most so many, all if most is negative.
func (m *Monitor) Slow(most int64) []Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := int64(len(m.entries))
	if most < 0 || most > n {
		most = n
	}
	list := slices.Clone(m.entries[n-most:])
	slices.Reverse(list)
	return list
}

// SlowLen returns the number of entries in the slow log, ResetSlow empties it.
func (m *Monitor) SlowLen() int { m.mu.Lock(); defer m.mu.Unlock(); return len(m.entries) }
func (m *Monitor) ResetSlow()   { m.mu.Lock(); defer m.mu.Unlock(); m.entries = nil }

// The limits of an entry's arguments.
const (
	slowArgsMax     = 32
	slowArgBytesMax = 128
)

// Entry is a slow command.
type Entry struct {
	ID, AtSeconds, Micros int64
	Args                  []string
	Addr, Name            string
}

// watchSlow sets the time from which Executed is called.
func (m *Monitor) watchSlow() {
	at := m.slowerThan.Load()
	if m.slowMax.Load() == 0 {
		at = -1
	}
	if ms := m.threshold.Load(); ms > 0 && (at < 0 || ms*1000 < at) {
		at = ms * 1000
	}
	m.s.SlowMicros.Store(at)
	m.mu.Lock()
	m.trim(m.slowMax.Load())
	m.mu.Unlock()
}

// Executed records a slow command.
func (m *Monitor) Executed(c *command.Ctx, cmd *command.Command, args [][]byte, micros int64) {
	if ms := m.threshold.Load(); ms > 0 && micros/1000 >= ms {
		event := "command"
		if cmd.Flags&command.Fast != 0 {
			event = "fast-command"
		}
		m.Events.add(event, c.Now/1e6, micros/1000)
	}
	if at := m.slowerThan.Load(); at < 0 || micros < at || cmd.Flags&command.SkipSlowlog != 0 {
		return
	}
	e := Entry{AtSeconds: c.Now / 1e6, Micros: micros, Args: shownArgs(cmd, args)}
	if !c.Script { // a script's commands have no client
		e.Name = c.Session.Name()
		if c.Session.Conn != nil {
			e.Addr = c.Session.Conn.RemoteAddr()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e.ID = m.next
	m.next++
	m.entries = append(m.entries, e)
	m.trim(m.slowMax.Load())
}

// trim drops the oldest entries until there are at most so many.
func (m *Monitor) trim(most int64) {
	if n := int64(len(m.entries)) - most; n > 0 {
		m.entries = append(m.entries[:0:0], m.entries[n:]...)
	}
}

// shownArgs returns arguments for the slow log: the first ones, shortened, without passwords.
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
