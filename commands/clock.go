package commands

// What the server does, and says, when the system's clock steps.

import (
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

// steppedMin is the smallest step of the clock that is logged.
const steppedMin = 100 * time.Millisecond

// clockStepped is called when the server's clock has followed a step of the system's, in microseconds.
func (s *server) clockStepped(micros int64) {
	if micros < 0 {
		s.Pause.Moved(s.Keyspace, -micros)
	}
	step := time.Duration(micros) * time.Microsecond
	switch {
	case step >= steppedMin:
		s.Logf('w', "The system's clock went forward by %v. The server's followed: what is due by it happens now.", step)
	case step <= -steppedMin:
		s.Logf('w', "The system's clock went back by %v. The server's followed.", -step)
	}
}

// wordBack is the effect of a clock that went back: by how many milliseconds, as a number below 0, and the time in
// microseconds that it showed then.
var wordBack = []byte("LKV.BACK")

// clockCommands are the rows of the clock.
func clockCommands(s *command.Server) []*command.Command {
	s.Keyspace.Causes.SetBack = func(v *engine.View, byMillis int64) {
		v.LogSystem(wordBack, command.Number(byMillis), command.Number(v.Now))
	}
	return []*command.Command{{
		Name: "lkv.back", Arity: 3, Group: command.GroupServer, Since: "0.1.0",
		Flags:      command.Write | command.Applied | command.WholeKeyspace,
		Summary:    "Does again what a journal tells of a clock that went back.",
		Complexity: "O(N) in all that lasts for a length of time",
		Syntax:     "ms:integer unix-us:integer",
		Run:        applyBack,
	}}
}

// errBack is for what no journal of ours has.
const errBack = "ERR this is no effect of a clock"

// timeMax is the last time, in microseconds, that a journal can tell of, and of the longest step.
const timeMax = 1 << 60

func applyBack(c *command.Ctx) {
	a := c.Cursor(1)
	by, at := a.IntRange(-timeMax/1000, -1, errBack), a.IntRange(0, timeMax, errBack)
	if a.Failed(c) {
		return
	}
	c.SetBack(at, by)
	c.CountChange()
	c.OK()
}
