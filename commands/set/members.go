package set

// Members: adding, removing, asking for them.

import (
	"bytes"
	"math"
	"slices"

	"github.com/limitkv/limitkv/commands/scan"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) saddRow() *command.Command {
	return &command.Command{
		Name: "sadd", Arity: -3, Group: command.GroupSet, Since: "1.0.0",
		Flags:      command.Write | command.DenyOOM | command.Fast,
		ACL:        setACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Insert)},
		Summary:    "Adds members to a set.",
		Complexity: "O(N) in the number of members added",
		Syntax:     "key member:string...",
		Run: func(c *command.Ctx) {
			key, members := c.Args[1], c.Args[2:]
			s, ok := lookupWrite(c, key)
			if !ok {
				return
			}
			lim := f.limits()
			if s == nil {
				s = f.create(c, key, members[0], len(members))
			} else {
				s.Prepare(len(members), lim)
			}
			n := 0
			for _, m := range members {
				if s.Add(m, lim) {
					n++
				}
			}
			if n > 0 {
				c.Changed(key, engine.EventSet, "sadd")
			}
			c.Int(int64(n))
		},
	}
}

// create makes a set under a missing key, for members that begin with first.
func (f *family) create(c *command.Ctx, key, first []byte, members int) *set.Set {
	s := set.New(first, members, f.limits())
	c.PutObject(key, engine.KindSet, &s, 0)
	return &s
}

var sremRow = &command.Command{
	Name: "srem", Arity: -3, Group: command.GroupSet, Since: "1.0.0",
	Flags:      command.Write | command.Fast,
	ACL:        setACL,
	Keys:       []command.KeySpec{command.Key(1, command.RW|command.Delete)},
	Summary:    "Removes members from a set.",
	Complexity: "O(N) in the number of members removed",
	Syntax:     "key member:string...",
	Run: func(c *command.Ctx) {
		key := c.Args[1]
		s, ok := lookupWrite(c, key)
		if !ok {
			return
		}
		n := 0
		if s != nil {
			for _, m := range c.Args[2:] {
				if s.Remove(m) {
					n++
				}
			}
		}
		if n > 0 {
			removed(c, key, s, "srem")
		}
		c.Int(int64(n))
	},
}

func (f *family) smoveRow() *command.Command {
	return &command.Command{
		Name: "smove", Arity: 4, Group: command.GroupSet, Since: "1.0.0",
		Flags:      command.Write | command.Fast,
		ACL:        setACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Access|command.Delete), command.Key(2, command.RW|command.Insert)},
		Summary:    "Moves a member from a set to another.",
		Complexity: "O(1)",
		Syntax:     "source:key destination:key@1 member:string",
		Run:        f.smove,
	}
}

func (f *family) smove(c *command.Ctx) {
	from, to, member := c.Args[1], c.Args[2], c.Args[3]
	source, ok := lookupWrite(c, from)
	if !ok {
		return
	}
	if source == nil {
		c.Int(0)
		return
	}
	destination, ok := lookupWrite(c, to)
	if !ok {
		return
	}
	if bytes.Equal(from, to) {
		c.Int(boolInt(source.Contains(member)))
		return
	}
	if !source.Remove(member) {
		c.Int(0)
		return
	}
	removed(c, from, source, "srem")
	if destination == nil {
		destination = f.create(c, to, member, 1)
	}
	if destination.Add(member, f.limits()) {
		c.Changed(to, engine.EventSet, "sadd")
	}
	c.Int(1)
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

var scardRow = &command.Command{
	Name: "scard", Arity: 2, Group: command.GroupSet, Since: "1.0.0",
	Flags:      fastRead,
	ACL:        setACL,
	Keys:       []command.KeySpec{command.Key(1, command.RO)},
	Summary:    "Counts the members of a set.",
	Complexity: "O(1)",
	Syntax:     "key",
	Run: func(c *command.Ctx) {
		if s, ok := lookup(c, c.Args[1]); ok {
			if s == nil {
				c.Int(0)
			} else {
				c.Int(int64(s.Len()))
			}
		}
	},
}

var sismemberRow = &command.Command{
	Name: "sismember", Arity: 3, Group: command.GroupSet, Since: "1.0.0",
	Flags:      fastRead,
	ACL:        setACL,
	Keys:       []command.KeySpec{command.Key(1, command.RO)},
	Summary:    "Tells whether a set has a member.",
	Complexity: "O(1)",
	Syntax:     "key member:string",
	Run: func(c *command.Ctx) {
		if s, ok := lookup(c, c.Args[1]); ok {
			c.Int(boolInt(s != nil && s.Contains(c.Args[2])))
		}
	},
}

var smismemberRow = &command.Command{
	Name: "smismember", Arity: -3, Group: command.GroupSet, Since: "6.2.0",
	Flags:      fastRead,
	ACL:        setACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Tells which members a set has.",
	Complexity: "O(N) in the number of members asked for",
	Syntax:     "key member:string...",
	Run: func(c *command.Ctx) {
		s, ok := lookup(c, c.Args[1])
		if !ok {
			return
		}
		c.Array(len(c.Args) - 2)
		for _, m := range c.Args[2:] {
			c.Int(boolInt(s != nil && s.Contains(m)))
		}
	},
}

var smembersRow = &command.Command{
	Name: "smembers", Arity: 2, Group: command.GroupSet, Since: "1.0.0",
	Flags:      command.ReadOnly,
	ACL:        setACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns all members of a set.",
	Complexity: "O(N) in the size of the set",
	Tips:       []string{"nondeterministic_output_order"},
	Syntax:     "key",
	Run: func(c *command.Ctx) {
		if s, ok := lookup(c, c.Args[1]); ok {
			replyAll(c, s)
		}
	},
}

// replyAll replies the members of a set; nil is an empty set.
func replyAll(c *command.Ctx, s *set.Set) {
	if s == nil {
		c.Set(0)
		return
	}
	c.Expect(s.Len())
	c.Set(s.Len())
	for it := s.Iter(); it.Next(); {
		c.Bulk(it.Member())
	}
}

func (f *family) spopRow() *command.Command {
	return &command.Command{
		Name: "spop", Arity: -2, Group: command.GroupSet, Since: "1.0.0",
		Flags:      command.Write | command.Fast,
		ACL:        setACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Access|command.Delete)},
		Summary:    "Takes members at random.",
		Complexity: "O(N) in the number of members taken",
		Tips:       []string{"nondeterministic_output"},
		Syntax:     "key [count:integer]",
		Run:        f.spop,
	}
}

// popBatch is how many members one effect of SPOP has, as in Redis.
const popBatch = 1024

func (f *family) spop(c *command.Ctx) {
	if len(c.Args) > 3 {
		c.Error(command.ErrSyntax)
		return
	}
	counted, count := len(c.Args) == 3, int64(1)
	if counted {
		a := c.Cursor(2)
		if count = a.Positive(command.ErrNotPositive); a.Failed(c) {
			return
		}
	}
	key := c.Args[1]
	s, ok := lookupWrite(c, key)
	switch {
	case !ok:
		return
	case !counted && s == nil:
		c.Null()
		return
	case s == nil || count == 0:
		c.Set(0)
		return
	}
	n := int(min(count, int64(s.Len())))
	c.Expect(4 * n)
	if counted {
		c.Set(n)
	}
	var taken [][]byte
	s.Pop(n, c.Server.Random, f.limits(), func(member []byte) {
		c.Bulk(member)
		if c.Logging() {
			taken = append(taken, bytes.Clone(member))
		}
	})
	if counted && s.Len() == 0 {
		c.EffectRemoved(key)
	} else {
		for batch := range slices.Chunk(taken, popBatch) {
			c.Effect(append([][]byte{[]byte("SREM"), key}, batch...)...)
		}
	}
	removed(c, key, s, "spop")
}

var srandmemberRow = &command.Command{
	Name: "srandmember", Arity: -2, Group: command.GroupSet, Since: "1.0.0",
	Flags:      command.ReadOnly,
	ACL:        setACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns members at random.",
	Complexity: "O(N) in the number of members returned",
	Tips:       []string{"nondeterministic_output"},
	Syntax:     "key [count:integer]",
	Run:        srandmember,
}

func srandmember(c *command.Ctx) {
	if len(c.Args) > 3 {
		c.Error(command.ErrSyntax)
		return
	}
	counted, count := len(c.Args) == 3, int64(1)
	if counted {
		a := c.Cursor(2)
		if count = a.IntRange(-math.MaxInt64, math.MaxInt64, command.ErrCountRange); a.Failed(c) {
			return
		}
	}
	s, ok := lookup(c, c.Args[1])
	reply := func(it *set.Iter) { c.Bulk(it.Member()) }
	switch {
	case !ok:
	case !counted && s == nil:
		c.Null()
	case !counted:
		it := s.Random(c.Server.Random)
		reply(&it)
	case s == nil || count == 0:
		c.Array(0)
	case count < 0: // with repetition
		c.Expect(8 * int(-count))
		c.Array(int(-count))
		s.Draw(int(-count), c.Server.Random, reply)
	default:
		n := int(min(count, int64(s.Len())))
		c.Expect(2 * n)
		c.Array(n)
		s.Sample(n, c.Server.Random, reply)
	}
}

var sscanRow = &command.Command{
	Name: "sscan", Arity: -3, Group: command.GroupSet, Since: "2.8.0",
	Flags:      command.ReadOnly,
	ACL:        setACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns some members, and where to go on.",
	Complexity: "O(1) for a call, O(N) for all calls of a complete scan",
	Tips:       []string{"nondeterministic_output"},
	Syntax:     "key cursor:integer [MATCH pattern] [COUNT count:integer]",
	Run:        sscan,
}

func sscan(c *command.Ctx) {
	scan.Value(c, scan.Other, lookup, func(s *set.Set, cursor uint64, o *scan.Options, found *resp.Writer) (n int, next uint64) {
		next = s.Scan(cursor, o.Count, func(it *set.Iter) {
			if member := it.Member(); o.Wants(member) {
				found.Bulk(member)
				n++
			}
		})
		return n, next
	})
}
