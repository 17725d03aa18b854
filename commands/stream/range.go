package stream

// Reading entries: XLEN, XRANGE, XREVRANGE.

import (
	"github.com/limitkv/limitkv/engine/stream"
	"github.com/limitkv/limitkv/server/command"
)

var xlenRow = &command.Command{
	Name: "xlen", Arity: 2, Group: command.GroupStream, Since: "5.0.0",
	Flags:      command.ReadOnly | command.Fast,
	ACL:        streamACL,
	Keys:       []command.KeySpec{command.Key(1, command.RO)},
	Summary:    "Returns how many entries a stream has.",
	Complexity: "O(1)",
	Syntax:     "key",
	Run: func(c *command.Ctx) {
		s, ok := lookup(c, c.Args[1])
		switch {
		case !ok:
		case s == nil:
			c.Int(0)
		default:
			c.Int(int64(s.Len()))
		}
	},
}

func rangeRow(name, syntax, summary string, reverse bool) *command.Command {
	return &command.Command{
		Name: name, Arity: -4, Group: command.GroupStream, Since: "5.0.0",
		Flags:      command.ReadOnly,
		ACL:        streamACL,
		Keys:       []command.KeySpec{command.Key(1, readKey)},
		Summary:    summary,
		Complexity: "O(log B + N), B being the number of blocks and N of entries returned",
		Syntax:     syntax,
		History:    [][2]string{{"6.2.0", "Ends that are not part of the range."}},
		Run:        func(c *command.Ctx) { xrange(c, reverse) },
	}
}

var (
	xrangeRow = rangeRow("xrange", "key start:string end:string [COUNT count:integer]",
		"Returns the entries in a range of IDs.", false)
	xrevrangeRow = rangeRow("xrevrange", "key end:string start:string [COUNT count:integer]",
		"Returns the entries in a range of IDs, from the last one.", true)
)

func xrange(c *command.Ctx, reverse bool) {
	a := c.Cursor(2)
	first, second := a.Bytes(), a.Bytes()
	if reverse {
		first, second = second, first
	}
	ends := command.ArgsOf(first, second)
	start := startArg(&ends)
	var end stream.ID
	if ends.Err() == "" {
		end = endArg(&ends)
	}
	if ends.Failed(c) {
		return
	}
	count := int64(-1)
	for a.More() {
		if a.IsWith("COUNT", 1) {
			count = max(a.Int(), 0)
		} else {
			a.Syntax()
		}
	}
	if a.Failed(c) {
		return
	}
	s, ok := lookup(c, c.Args[1])
	switch {
	case !ok:
	case s == nil:
		c.Array(0)
	case count == 0:
		c.NullArray()
	default:
		replyRange(c, s, start, end, max(count, 0), reverse)
	}
}
