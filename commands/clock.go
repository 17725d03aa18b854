package commands

// The effect of a system clock that was set back.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

// wordBack is the effect of a clock that was set back. Its arguments are by how many milliseconds, as a number below 0, and
// the time in microseconds that the clock then showed.
var wordBack = []byte("LKV.BACK")

// clockCommands are the rows of the clock.
func clockCommands(s *server.Server) []*command.Command {
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

// errBack is the error for arguments that no journal of this server contains.
const errBack = "ERR this is no effect of a clock"

// timeMax is the latest time and the longest step that a journal can contain, in microseconds.
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
