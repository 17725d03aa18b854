package lkv

// LKV.LOG: what clients sent, for a test to look at.

import (
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/faults"
)

func (f family) logRow() *command.Command {
	const filter = "[MATCH pattern] [CLIENT client-id:integer]"
	return &command.Command{
		Name: "lkv.log", Arity: -2, Group: command.GroupTest, Since: "0.2.0",
		Flags:      command.Test | command.NoScript | command.NoMulti | command.Loading | command.Stale,
		Summary:    "Keeps what clients send, so that a test can look at it.",
		Complexity: "O(N) in the number of commands kept",
		Sub: []*command.Command{
			f.row("on", 2, "", "Begins to keep commands.", func(c *command.Ctx) { f.turnLog(c, true) }),
			f.row("off", 2, "", "Ends keeping; what was kept stays.", func(c *command.Ctx) { f.turnLog(c, false) }),
			f.row("reset", 2, "", "Forgets what was kept and returns how many commands there were.", f.resetLog),
			f.row("get", -2, filter+" [COUNT count:integer]", "Returns the commands that were kept, the oldest first.", f.getLog),
			f.row("count", -2, filter, "Counts the commands that were kept.", f.countLog),
		},
	}
}

func (f family) turnLog(c *command.Ctx, on bool) {
	f.s.Faults.Log(c.KS, on)
	c.OK()
}

func (f family) resetLog(c *command.Ctx) { c.Int(f.s.Faults.ResetLog(c.KS)) }

// wanted parses a filter and returns the entries that pass it.
func (f family) wanted(c *command.Ctx, counted bool) (list []faults.Received, ok bool) {
	a := c.Cursor(2)
	var pattern []byte
	client, most := int64(-1), int64(-1)
	for a.More() {
		switch {
		case a.IsWith("MATCH", 1):
			pattern = a.Bytes()
		case a.IsWith("CLIENT", 1):
			client = a.IntRange(0, 1<<62, command.ErrNotInt)
		case counted && a.IsWith("COUNT", 1):
			most = a.IntRange(1, 1<<62, "ERR COUNT must be positive")
		default:
			a.Syntax()
		}
	}
	if a.Failed(c) {
		return nil, false
	}
	return f.s.Faults.Logged(c.KS, pattern, client, most), true
}

func (f family) getLog(c *command.Ctx) {
	list, ok := f.wanted(c, true)
	if !ok {
		return
	}
	c.Array(len(list))
	for _, r := range list {
		c.Array(4)
		c.Int(r.Micros / 1000)
		c.Int(r.Client)
		c.Int(int64(r.DB))
		c.Array(len(r.Args))
		for _, a := range r.Args {
			c.Bulk(a)
		}
	}
}

func (f family) countLog(c *command.Ctx) {
	if list, ok := f.wanted(c, false); ok {
		c.Int(int64(len(list)))
	}
}
