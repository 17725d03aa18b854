package str

// Writing parts of strings.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) appendRow() *command.Command {
	return &command.Command{
		Name: "append", Arity: 3, Group: command.GroupString, Since: "2.0.0",
		Flags:      fastWrite,
		ACL:        stringACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Insert)},
		Summary:    "Adds text to the end of a string, which is made if it is missing.",
		Complexity: "O(1) on the average",
		Syntax:     "key value:string",
		Run:        f.append,
	}
}

func (f *family) append(c *command.Ctx) {
	key, more := c.Args[1], c.Args[2]
	e, ok := c.LookupWrite(key, engine.KindString)
	if !ok {
		return
	}
	if !e.Ok() {
		put(c, key, more, 0)
		c.Changed(key, engine.EventString, "append")
		c.Int(int64(len(more)))
		return
	}
	n := e.Len()
	if f.tooLong(c, int64(n), int64(len(more))) {
		return
	}
	copy(c.EditString(key, n, n+len(more))[n:], more)
	c.Changed(key, engine.EventString, "append")
	c.Int(int64(n + len(more)))
}

func (f *family) setrangeRow() *command.Command {
	return &command.Command{
		Name: "setrange", Arity: 4, Group: command.GroupString, Since: "2.2.0",
		Flags:      command.Write | command.DenyOOM,
		ACL:        stringACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update)},
		Summary:    "Overwrites a part of a string, which grows as needed.",
		Complexity: "O(N) in the length of the new part",
		Syntax:     "key offset:integer value:string",
		Run:        f.setrange,
	}
}

func (f *family) setrange(c *command.Ctx) {
	a := c.Cursor(2)
	offset := a.Int()
	if a.Failed(c) {
		return
	}
	if offset < 0 {
		c.Error(command.ErrOffset)
		return
	}
	key, part := c.Args[1], c.Args[3]
	e, ok := c.LookupWrite(key, engine.KindString)
	if !ok {
		return
	}
	n := e.Len()
	if len(part) == 0 {
		c.Int(int64(n))
		return
	}
	if f.tooLong(c, offset, int64(len(part))) {
		return
	}
	n = max(n, int(offset)+len(part))
	if offset == 0 && len(part) == n && c.Owns(part) {
		put(c, key, part, e.Deadline())
	} else {
		copy(c.EditString(key, int(offset), n)[offset:], part)
	}
	c.Changed(key, engine.EventString, "setrange")
	c.Int(int64(n))
}
