// Package str is the family of strings.
package str

import (
	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
)

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	return []*command.Command{getRow, setRow}
}

var getRow = &command.Command{
	Name: "get", Arity: 2, Group: command.GroupString, Since: "1.0.0",
	Flags:      command.ReadOnly | command.Fast,
	ACL:        []string{"string"},
	Keys:       []command.KeySpec{command.Key(1, command.RO|command.Access)},
	Summary:    "Returns the value of a string.",
	Complexity: "O(1)",
	Syntax:     "key",
	Run:        get,
}

func get(c *command.Ctx) {
	e, ok := c.Lookup(c.Args[1], engine.KindString)
	if !ok {
		return
	}
	replyString(c, e)
}

// replyString replies the value of a string, null for a missing key.
func replyString(c *command.Ctx, e engine.Entry) {
	if !e.Ok() {
		c.Null()
		return
	}
	var scratch [20]byte
	c.Bulk(e.Bytes(scratch[:]))
}

var setRow = &command.Command{
	Name: "set", Arity: -3, Group: command.GroupString, Since: "1.0.0",
	Flags:      command.Write | command.DenyOOM,
	ACL:        []string{"string"},
	Keys:       []command.KeySpec{command.Key(1, command.RW|command.Access|command.Update|command.Insert)},
	Summary:    "Stores a string, whatever the key held before.",
	Complexity: "O(1)",
	Syntax:     "key value:string [condition=(NX | XX)] [GET] [expiration=(EX seconds:integer | PX milliseconds:integer | EXAT unix-time-seconds:unix-time | PXAT unix-time-milliseconds:unix-time | KEEPTTL)]",
	Run:        set,
}

func set(c *command.Ctx) {
	c.PutString(c.Args[1], c.Args[2], 0)
	c.Changed(c.Args[1], engine.EventString, "set")
	c.OK()
}
