package list

// Reading and changing lists inside.

import (
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/server/command"
)

var llenRow = &command.Command{
	Name: "llen", Arity: 2, Group: command.GroupList, Since: "1.0.0",
	Flags:      command.ReadOnly | command.Fast,
	ACL:        listACL,
	Keys:       []command.KeySpec{command.Key(1, command.RO)},
	Summary:    "Counts the elements of a list.",
	Complexity: "O(1)",
	Syntax:     "key",
	Run: func(c *command.Ctx) {
		if l, ok := lookup(c, c.Args[1]); ok {
			if l == nil {
				c.Int(0)
			} else {
				c.Int(int64(l.Len()))
			}
		}
	},
}

var lindexRow = &command.Command{
	Name: "lindex", Arity: 3, Group: command.GroupList, Since: "1.0.0",
	Flags:      command.ReadOnly,
	ACL:        listACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns the element at an index.",
	Complexity: "O(N) in the distance from the nearer end",
	Syntax:     "key index:integer",
	Run: func(c *command.Ctx) {
		l, ok := lookup(c, c.Args[1])
		if !ok {
			return
		}
		if l == nil { // Redis does not look at the index then
			c.Null()
			return
		}
		a := c.Cursor(2)
		index := a.Int()
		if a.Failed(c) {
			return
		}
		var s packed.Scratch
		if value, ok := l.Index(clampIndex(index), &s); ok {
			c.Bulk(value)
		} else {
			c.Null()
		}
	},
}

// clampIndex makes an index fit an int; indexes that it changes are beyond any list.
func clampIndex(i int64) int { return int(max(min(i, math.MaxInt32), math.MinInt32)) }

var lrangeRow = &command.Command{
	Name: "lrange", Arity: 4, Group: command.GroupList, Since: "1.0.0",
	Flags:      command.ReadOnly,
	ACL:        listACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns the elements in a range of indexes.",
	Complexity: "O(S + N), S being the distance of the range from an end and N its length",
	Syntax:     "key start:integer stop:integer",
	Run: func(c *command.Ctx) {
		a := c.Cursor(2)
		start, stop := a.Int(), a.Int()
		if a.Failed(c) {
			return
		}
		l, ok := lookup(c, c.Args[1])
		if !ok {
			return
		}
		if l == nil {
			c.Array(0)
			return
		}
		first, n := resolve(start, stop, l.Len())
		c.Expect(n / 2)
		c.Array(n)
		it := l.Iter(first, false)
		for range n {
			it.Next()
			c.Bulk(it.Value())
		}
	},
}

var lposRow = &command.Command{
	Name: "lpos", Arity: -3, Group: command.GroupList, Since: "6.0.6",
	Flags:      command.ReadOnly,
	ACL:        listACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns where in a list an element is.",
	Complexity: "O(N) in the length of the list",
	Syntax:     "key element:string [RANK rank:integer] [COUNT num-matches:integer] [MAXLEN len:integer]",
	Run:        lpos,
}

func lpos(c *command.Ctx) {
	a := c.Cursor(3)
	rank, count, most, counted := int64(1), int64(1), int64(0), false
	for a.More() {
		switch {
		case a.IsWith("RANK", 1):
			rank = a.IntRange(-math.MaxInt64, math.MaxInt64, command.ErrCountRange)
			if a.Err() == "" && rank == 0 {
				a.Fail("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list")
			}
		case a.IsWith("COUNT", 1):
			count, counted = a.Positive("ERR COUNT can't be negative"), true
		case a.IsWith("MAXLEN", 1):
			most = a.Positive("ERR MAXLEN can't be negative")
		default:
			a.Syntax()
		}
	}
	if a.Failed(c) {
		return
	}
	l, ok := lookup(c, c.Args[1])
	if !ok {
		return
	}
	var found []int64
	if l != nil {
		c.Expect(l.Len() / 8)
		reverse, from := rank < 0, 0
		if reverse {
			rank, from = -rank, l.Len()-1
		}
		it := l.Iter(from, reverse)
		matches := int64(0)
		for seen := int64(0); (most == 0 || seen < most) && it.Next(); seen++ {
			if !it.Equal(c.Args[2]) {
				continue
			}
			if matches++; matches < rank {
				continue
			}
			at := seen
			if reverse {
				at = int64(l.Len()) - 1 - seen
			}
			found = append(found, at)
			if int64(len(found)) == count { // 0: all of them
				break
			}
		}
	}
	switch {
	case counted:
		c.Array(len(found))
		for _, at := range found {
			c.Int(at)
		}
	case len(found) == 0:
		c.Null()
	default:
		c.Int(found[0])
	}
}

func (f *family) lsetRow() *command.Command {
	return &command.Command{
		Name: "lset", Arity: 4, Group: command.GroupList, Since: "1.0.0",
		Flags:      command.Write | command.DenyOOM,
		ACL:        listACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update)},
		Summary:    "Replaces the element at an index.",
		Complexity: "O(N) in the distance from the nearer end",
		Syntax:     "key index:integer element:string",
		Run: func(c *command.Ctx) {
			key := c.Args[1]
			l, ok := lookupWrite(c, key)
			if !ok {
				return
			}
			if l == nil {
				c.Error(command.ErrNoSuchKey)
				return
			}
			a := c.Cursor(2)
			index := int64(int32(a.Int())) // on Redis only LSET cuts its index to 32 bits
			if a.Failed(c) {
				return
			}
			if !l.Set(clampIndex(index), c.Args[3], f.limits()) {
				c.Error(command.ErrIndexRange)
				return
			}
			c.OK()
			c.Changed(key, engine.EventList, "lset")
		},
	}
}

func (f *family) linsertRow() *command.Command {
	return &command.Command{
		Name: "linsert", Arity: 5, Group: command.GroupList, Since: "2.2.0",
		Flags:      command.Write | command.DenyOOM,
		ACL:        listACL,
		Keys:       []command.KeySpec{command.Key(1, pushKey)},
		Summary:    "Adds an element before or after another.",
		Complexity: "O(N) in the distance from the head",
		Syntax:     "key where=(BEFORE | AFTER) pivot:string element:string",
		Run: func(c *command.Ctx) {
			a := c.Cursor(2)
			after := a.Is("AFTER")
			if !after && !a.Is("BEFORE") {
				c.Error(command.ErrSyntax)
				return
			}
			key := c.Args[1]
			l, ok := lookupWrite(c, key)
			if l != nil {
				c.Expect(l.Len() / 16)
			}
			switch {
			case !ok:
			case l == nil:
				c.Int(0)
			case !l.Insert(c.Args[3], c.Args[4], after, f.limits()):
				c.Int(-1)
			default:
				c.Changed(key, engine.EventList, "linsert")
				c.Int(int64(l.Len()))
			}
		},
	}
}

func (f *family) lremRow() *command.Command {
	return &command.Command{
		Name: "lrem", Arity: 4, Group: command.GroupList, Since: "1.0.0",
		Flags:      command.Write,
		ACL:        listACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Delete)},
		Summary:    "Removes elements that equal a value.",
		Complexity: "O(N) in the length of the list",
		Syntax:     "key count:integer element:string",
		Run: func(c *command.Ctx) {
			a := c.Cursor(2)
			count := a.IntRange(-math.MaxInt64, math.MaxInt64, command.ErrCountRange)
			if a.Failed(c) {
				return
			}
			key := c.Args[1]
			l, ok := lookupWrite(c, key)
			if !ok {
				return
			}
			n := 0
			if l != nil {
				c.Expect(l.Len() / 8)
				fromTail := count < 0
				if fromTail {
					count = -count
				}
				if n = l.RemoveValue(c.Args[3], int(count), fromTail, f.limits()); n > 0 {
					removed(c, key, l, "lrem")
				}
			}
			c.Int(int64(n))
		},
	}
}

func (f *family) ltrimRow() *command.Command {
	return &command.Command{
		Name: "ltrim", Arity: 4, Group: command.GroupList, Since: "1.0.0",
		Flags:      command.Write,
		ACL:        listACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Delete)},
		Summary:    "Keeps the elements in a range of indexes and removes the others.",
		Complexity: "O(N) in the number of elements removed",
		Syntax:     "key start:integer stop:integer",
		Run: func(c *command.Ctx) {
			a := c.Cursor(2)
			start, stop := a.Int(), a.Int()
			if a.Failed(c) {
				return
			}
			key := c.Args[1]
			l, ok := lookupWrite(c, key)
			if !ok {
				return
			}
			if l != nil {
				first, n := resolve(start, stop, l.Len())
				c.Expect((l.Len() - n) / 64)
				l.Trim(first, n, f.limits())
				removed(c, key, l, "ltrim")
			}
			c.OK()
		},
	}
}
