package generic

// OBJECT: how a value is encoded and used.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/value"
)

func objectSub(name, since, summary string, reply func(c *command.Ctx, e engine.Entry)) *command.Command {
	return &command.Command{
		Name: name, Arity: 3, Since: since,
		Flags:      command.ReadOnly,
		ACL:        keyspaceACL,
		Keys:       []command.KeySpec{command.Key(2, command.RO)},
		Summary:    summary,
		Complexity: "O(1)",
		Tips:       varies,
		Syntax:     "key",
		Run: func(c *command.Ctx) {
			if e := c.Look(c.Args[2]); e.Ok() {
				reply(c, e)
			} else {
				c.Null()
			}
		},
	}
}

var objectRow = &command.Command{
	Name: "object", Arity: -2, Group: command.GroupGeneric, Since: "2.2.3",
	Summary:    "Looks at how values are held.",
	Complexity: "That of the subcommand",
	Sub: []*command.Command{
		objectSub("encoding", "2.2.3", "Returns the form in which a value is held.",
			func(c *command.Ctx, e engine.Entry) { c.BulkString(value.Encoding(e)) }),
		objectSub("freq", "4.0.0", "Returns the logarithmic counter of accesses to a key.", freq),
		objectSub("idletime", "2.2.3", "Returns for how many seconds a key has not been used.", idletime),
		objectSub("refcount", "2.2.3", "Returns how many references there are to a value.", refcount),
		command.HelpRow("6.2.0", keyspaceACL...),
	},
}

func freq(c *command.Ctx, e engine.Entry) {
	if !c.KS.LFU.Load() {
		c.Error("ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
		return
	}
	c.Int(int64(c.Freq(e)))
}

func idletime(c *command.Ctx, e engine.Entry) {
	if c.KS.LFU.Load() {
		c.Error("ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when switching between policies at runtime LRU and LFU data will take some time to adjust.")
		return
	}
	c.Int(max(c.Now/1e6-e.LastAccess(), 0))
}

// sharedRefcount is what Redis replies for the integers from 0 to 9999, which
// it shares between keys.
const sharedRefcount = 1<<31 - 1

func refcount(c *command.Ctx, e engine.Entry) {
	if e.Kind() == engine.KindString {
		if n, ok := e.Int(); ok && n >= 0 && n < 10000 {
			c.Int(sharedRefcount)
			return
		}
	}
	c.Int(1)
}
