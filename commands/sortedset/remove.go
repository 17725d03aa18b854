package sortedset

// ZREM and ZREMRANGEBY*.

import (
	"github.com/limitkv/limitkv/server/command"
)

var zremRow = &command.Command{
	Name: "zrem", Arity: -3, Group: command.GroupSortedSet, Since: "1.2.0",
	Flags:      command.Write | command.Fast,
	ACL:        sortedSetACL,
	Keys:       []command.KeySpec{command.Key(1, command.RW|command.Delete)},
	Summary:    "Removes members.",
	Complexity: "O(log N) for each member",
	Syntax:     "key member:string...",
	Run:        zrem,
}

func zrem(c *command.Ctx) {
	key := c.Args[1]
	z, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	n := 0
	if z != nil {
		for _, member := range c.Args[2:] {
			if z.Remove(member) {
				n++
			}
		}
	}
	if n > 0 {
		removed(c, key, z, "zrem")
	}
	c.Int(int64(n))
}

func removeRow(name, since, syntax, summary string, by sortBy) *command.Command {
	return &command.Command{
		Name: name, Arity: 4, Group: command.GroupSortedSet, Since: since,
		Flags:      command.Write,
		ACL:        sortedSetACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Delete)},
		Summary:    summary,
		Complexity: "O(log N + M), M being the number of members removed",
		Syntax:     syntax,
		Run: func(c *command.Ctx) {
			key := c.Args[1]
			w, ok := parseWindow(c, by, c.Args[2], c.Args[3])
			if !ok {
				return
			}
			z, ok := lookupWrite(c, key)
			if !ok {
				return
			}
			n := 0
			if z != nil {
				lo, hi := w.ranks(z, false)
				c.Expect(2 * (hi - lo))
				if n = z.RemoveRange(lo, hi); n > 0 {
					removed(c, key, z, name)
				}
			}
			c.Int(int64(n))
		},
	}
}

var (
	zremrangebyrankRow = removeRow("zremrangebyrank", "2.0.0", "key start:integer stop:integer",
		"Removes the members in a range of ranks.", byRank)
	zremrangebyscoreRow = removeRow("zremrangebyscore", "1.2.0", "key min:double max:double",
		"Removes the members with scores in a range.", byScore)
	zremrangebylexRow = removeRow("zremrangebylex", "2.8.9", "key min:string max:string",
		"Removes the members in a range of names.", byLex)
)
