package hash

// Reading fields.

import (
	"github.com/limitkv/limitkv/commands/scan"
	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
)

var hgetRow = &command.Command{
	Name: "hget", Arity: 3, Group: command.GroupHash, Since: "2.0.0",
	Flags:      fastRead,
	ACL:        hashACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns the value of a field.",
	Complexity: "O(1)",
	Syntax:     "key field:string",
	Run: func(c *command.Ctx) {
		if h, ok := lookup(c, c.Args[1]); ok {
			replyField(c, h, c.Args[2])
		}
	},
}

var hmgetRow = &command.Command{
	Name: "hmget", Arity: -3, Group: command.GroupHash, Since: "2.0.0",
	Flags:      fastRead,
	ACL:        hashACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns the values of fields.",
	Complexity: "O(N) in the number of fields asked for",
	Syntax:     "key field:string...",
	Run: func(c *command.Ctx) {
		h, ok := lookup(c, c.Args[1])
		if !ok {
			return
		}
		c.Array(len(c.Args) - 2)
		for _, field := range c.Args[2:] {
			replyField(c, h, field)
		}
	},
}

func allRow(name, since, summary string, fields, values bool) *command.Command {
	return &command.Command{
		Name: name, Arity: 2, Group: command.GroupHash, Since: since,
		Flags:      command.ReadOnly,
		ACL:        hashACL,
		Keys:       []command.KeySpec{command.Key(1, readKey)},
		Summary:    summary,
		Complexity: "O(N) in the size of the hash",
		Tips:       []string{"nondeterministic_output_order"},
		Syntax:     "key",
		Run:        func(c *command.Ctx) { all(c, fields, values) },
	}
}

var (
	hgetallRow = allRow("hgetall", "2.0.0", "Returns all fields with their values.", true, true)
	hkeysRow   = allRow("hkeys", "2.0.0", "Returns the names of all fields.", true, false)
	hvalsRow   = allRow("hvals", "2.0.0", "Returns the values of all fields.", false, true)
)

func all(c *command.Ctx, fields, values bool) {
	h, ok := lookup(c, c.Args[1])
	if !ok {
		return
	}
	n := 0
	if h != nil {
		n = h.Len()
	}
	c.Expect(2 * n)
	if fields && values {
		c.Map(n)
	} else {
		c.Array(n)
	}
	if h == nil {
		return
	}
	for it := h.Iter(); it.Next(); {
		if fields {
			c.Bulk(it.Field())
		}
		if values {
			c.Bulk(it.Value())
		}
	}
}

var hexistsRow = &command.Command{
	Name: "hexists", Arity: 3, Group: command.GroupHash, Since: "2.0.0",
	Flags:      fastRead,
	ACL:        hashACL,
	Keys:       []command.KeySpec{command.Key(1, command.RO)},
	Summary:    "Tells whether a hash has a field.",
	Complexity: "O(1)",
	Syntax:     "key field:string",
	Run: func(c *command.Ctx) {
		if h, ok := lookup(c, c.Args[1]); ok {
			if h != nil && h.Exists(c.Args[2]) {
				c.Int(1)
			} else {
				c.Int(0)
			}
		}
	},
}

var hlenRow = &command.Command{
	Name: "hlen", Arity: 2, Group: command.GroupHash, Since: "2.0.0",
	Flags:      fastRead,
	ACL:        hashACL,
	Keys:       []command.KeySpec{command.Key(1, command.RO)},
	Summary:    "Counts the fields of a hash.",
	Complexity: "O(1)",
	Syntax:     "key",
	Run: func(c *command.Ctx) {
		if h, ok := lookup(c, c.Args[1]); ok {
			if h == nil {
				c.Int(0)
			} else {
				c.Int(int64(h.Len()))
			}
		}
	},
}

var hstrlenRow = &command.Command{
	Name: "hstrlen", Arity: 3, Group: command.GroupHash, Since: "3.2.0",
	Flags:      fastRead,
	ACL:        hashACL,
	Keys:       []command.KeySpec{command.Key(1, command.RO)},
	Summary:    "Returns the length of a field's value.",
	Complexity: "O(1)",
	Syntax:     "key field:string",
	Run: func(c *command.Ctx) {
		h, ok := lookup(c, c.Args[1])
		if !ok {
			return
		}
		n := 0
		if h != nil {
			var s packed.Scratch
			value, _ := h.Get(c.Args[2], &s)
			n = len(value)
		}
		c.Int(int64(n))
	},
}

var hrandfieldRow = &command.Command{
	Name: "hrandfield", Arity: -2, Group: command.GroupHash, Since: "6.2.0",
	Flags:      command.ReadOnly,
	ACL:        hashACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns fields at random.",
	Complexity: "O(N) in the number of fields returned",
	Tips:       []string{"nondeterministic_output"},
	Syntax:     "key [options={count:integer [WITHVALUES]}]",
	Run:        hrandfield,
}

func hrandfield(c *command.Ctx) {
	if len(c.Args) == 2 {
		h, ok := lookup(c, c.Args[1])
		if !ok {
			return
		}
		if h == nil {
			c.Null()
			return
		}
		it := h.Random(c.Server.Random)
		c.Bulk(it.Field())
		return
	}
	n, withValues, ok := command.ParseRandomCount(c, "WITHVALUES")
	if !ok {
		return
	}
	h, ok := lookup(c, c.Args[1])
	if !ok {
		return
	}
	if h == nil || n == 0 {
		c.Array(0)
		return
	}
	reply := func(it *hash.Iter) {
		if withValues && c.Proto == 3 {
			c.Array(2)
		}
		c.Bulk(it.Field())
		if withValues {
			c.Bulk(it.Value())
		}
	}
	count := int(-n)
	if n > 0 {
		count = int(min(n, int64(h.Len())))
	}
	c.Expect(8 * count)
	if withValues && c.Proto != 3 {
		c.Array(count * 2)
	} else {
		c.Array(count)
	}
	if n < 0 { // with repetition
		h.Draw(count, c.Server.Random, reply)
	} else {
		h.Sample(count, c.Server.Random, reply)
	}
}

var hscanRow = &command.Command{
	Name: "hscan", Arity: -3, Group: command.GroupHash, Since: "2.8.0",
	Flags:      command.ReadOnly,
	ACL:        hashACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns some fields with their values, and where to go on.",
	Complexity: "O(1) for a call, O(N) for all calls of a complete scan",
	Tips:       []string{"nondeterministic_output"},
	Syntax:     "key cursor:integer [MATCH pattern] [COUNT count:integer] [NOVALUES]",
	Run:        hscan,
}

func hscan(c *command.Ctx) {
	scan.Value(c, scan.Hash, lookup, func(h *hash.Hash, cursor uint64, o *scan.Options, found *resp.Writer) (n int, next uint64) {
		next = h.Scan(cursor, o.Count, func(it *hash.Iter) {
			field := it.Field()
			if !o.Wants(field) {
				return
			}
			found.Bulk(field)
			n++
			if !o.NoValues {
				found.Bulk(it.Value())
				n++
			}
		})
		return n, next
	})
}
