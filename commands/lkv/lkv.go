// Package lkv, internal to the server, is the family of additional commands of a server started with --test. They control its
// clock and its random numbers, so that a test need neither sleep nor guess. They also make commands fail, and show what the
// server received. Without --test they do not exist.
package lkv

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	if !s.TestMode {
		return nil
	}
	f := family{s}
	freeze := f.row("freeze", -2, "[unix-ms:unix-time]", "Stops the clock, at a given time or where it is.", f.freeze)
	advance := f.row("advance", 3, "ms:integer", "Moves the stopped clock forward; whatever falls due has happened when it replies.", f.advance)
	freeze.Plan, advance.Plan = f.plan, f.plan
	return []*command.Command{
		f.faultRow(), f.logRow(), snapshotRow(s), namespaceRow(s), journalRow(s),
		{
			Name: "lkv.clock", Arity: -2, Group: command.GroupTest, Since: "0.1.0",
			Flags:      command.Test | command.NoScript | command.NoMulti | command.Loading | command.Stale,
			Summary:    "Reads, stops, moves and starts the server's clock.",
			Complexity: "O(N) in what falls due",
			Sub: []*command.Command{
				f.row("now", 2, "", "Returns the server's time in Unix milliseconds.", f.now),
				freeze, advance,
				f.row("resume", 2, "", "Lets the clock run again, with the system's time.", f.resume),
			},
		},
		{
			Name: "lkv.seed", Arity: 2, Group: command.GroupTest, Since: "0.1.0",
			Flags:      command.Test | command.NoScript | command.Loading | command.Stale | command.Fast,
			Summary:    "Makes the server's random choices a repeatable sequence.",
			Complexity: "O(1)",
			Syntax:     "seed:integer",
			Run:        seed,
		},
	}
}

type family struct{ s *server.Server }

func (f family) row(name string, arity int, syntax, summary string, run func(*command.Ctx)) *command.Command {
	return &command.Command{
		Name: name, Arity: arity, Group: command.GroupTest, Since: "0.1.0",
		Flags:   command.Test | command.NoScript | command.NoMulti | command.Loading | command.Stale,
		Summary: summary, Complexity: "O(1)", Syntax: syntax, Run: run,
	}
}

const (
	// millisMax is the last time that the clock can be moved to, in the year
	// 9999; it leaves room for every deadline that commands accept.
	millisMax = 253_402_300_799_999
	errTime   = "ERR the time is out of range"
)

func (f family) now(c *command.Ctx) { c.Int(f.s.Keyspace.Clock.Now() / 1000) }

// advanceInline is the number of deadlines up to which the clock is moved on the event loop, while its other clients wait.
const advanceInline = 200

func (f family) plan(*command.Ctx, *engine.LockSet) (long bool) {
	return !f.s.Keyspace.Sched.Few(advanceInline)
}

// freeze stops the clock. If the given time is later than the clock's, everything until then happens as in an advance. To an
// earlier time the clock just jumps.
func (f family) freeze(c *command.Ctx) {
	a := c.Cursor(2)
	now := f.s.Keyspace.Clock.Now()
	at := now / 1000 * 1000
	if a.More() {
		at = a.IntRange(0, millisMax, errTime) * 1000
	}
	if a.More() {
		a.Syntax()
	}
	if a.Failed(c) {
		return
	}
	f.s.Keyspace.Sched.Freeze(at)
	c.OK()
}

// advance stops the clock if it runs: advancing a clock that moves by itself makes no sense.
func (f family) advance(c *command.Ctx) {
	a := c.Cursor(2)
	ms := a.IntRange(0, millisMax, errTime)
	if a.Failed(c) {
		return
	}
	now := f.s.Keyspace.Clock.Now()
	if now/1000+ms > millisMax {
		c.Error(errTime)
		return
	}
	f.s.Keyspace.Clock.Freeze(now)
	f.s.Keyspace.Sched.Advance(ms * 1000)
	c.OK()
}

func (f family) resume(c *command.Ctx) {
	f.s.Keyspace.Sched.Resume()
	c.OK()
}

func seed(c *command.Ctx) {
	a := c.Cursor(1)
	n := a.Int()
	if a.Failed(c) {
		return
	}
	c.Server.Seed(uint64(n))
	c.OK()
}
