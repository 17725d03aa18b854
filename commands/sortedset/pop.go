package sortedset

// Taking members from either end, waiting for them or not.

import (
	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/zset"
)

const popKey = command.RW | command.Access | command.Delete

// shape is how popped members are replied.
type shape uint8

const (
	shapeFlat   shape = iota // member, score, member, score
	shapePairs               // the same, as pairs in RESP3
	shapeKeyOne              // key, member, score
	shapeKeyed               // key, [[member, score], ...]
)

// pop takes up to count members, count > 0, from an end of a set that is not
// empty, and replies them.
func pop(c *command.Ctx, key []byte, z *zset.Set, count int64, max bool, s shape) {
	n := int(min(count, int64(z.Len())))
	switch s {
	case shapeFlat:
		c.Array(n * 2)
	case shapePairs:
		pairs(c, n, true)
	case shapeKeyOne:
		c.Array(3)
		c.Bulk(key)
	case shapeKeyed:
		c.Array(2)
		c.Bulk(key)
		c.Array(n)
	}
	reply := func(member []byte, score float64) {
		switch {
		case s == shapePairs:
			replyPair(c, member, score)
			return
		case s == shapeKeyed:
			c.Array(2)
		}
		c.Bulk(member)
		c.Double(score)
	}
	event := "zpopmin"
	if max {
		event = "zpopmax"
		z.PopMax(n, reply)
	} else {
		z.PopMin(n, reply)
	}
	removed(c, key, z, event)
}

func zpopRow(name, summary string, max bool) *command.Command {
	return &command.Command{
		Name: name, Arity: -2, Group: command.GroupSortedSet, Since: "5.0.0",
		Flags:      command.Write | command.Fast,
		ACL:        sortedSetACL,
		Keys:       []command.KeySpec{command.Key(1, popKey)},
		Summary:    summary,
		Complexity: "O(log N + M), M being the number of members taken",
		Syntax:     "key [count:integer]",
		Run:        func(c *command.Ctx) { zpop(c, max) },
	}
}

var (
	zpopminRow = zpopRow("zpopmin", "Takes the members with the lowest scores.", false)
	zpopmaxRow = zpopRow("zpopmax", "Takes the members with the highest scores.", true)
)

func zpop(c *command.Ctx, max bool) {
	if len(c.Args) > 3 {
		c.Error(command.ErrSyntax)
		return
	}
	count, s := int64(1), shapeFlat
	if len(c.Args) == 3 {
		a := c.Cursor(2)
		count, s = a.Positive(command.ErrNotPositive), shapePairs
		if a.Failed(c) {
			return
		}
	}
	key := c.Args[1]
	z, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	if z == nil || count == 0 {
		c.Array(0)
		return
	}
	pop(c, key, z, count, max, s)
}

var zmpopRow = &command.Command{
	Name: "zmpop", Arity: -4, Group: command.GroupSortedSet, Since: "7.0.0",
	Flags:      command.Write,
	ACL:        sortedSetACL,
	Keys:       []command.KeySpec{command.NumKeys(1, popKey)},
	Summary:    "Takes members from an end of the first sorted set that has any.",
	Complexity: "O(K) + O(M log N) for K keys and M members taken",
	Syntax:     "numkeys:integer key... where=(MIN | MAX) [COUNT count:integer]",
	Run: func(c *command.Ctx) {
		if q, ok := parseMPop(c, 1); ok && !q.now(c) {
			c.NullArray()
		}
	},
}

// popQuery is a pop from the first key that has members.
type popQuery struct {
	keys  [][]byte
	max   bool
	count int64
	shape shape
}

// parseMPop reads numkeys, keys, an end and COUNT.
func parseMPop(c *command.Ctx, from int) (q popQuery, ok bool) {
	q.count, q.shape = 1, shapeKeyed
	a := c.Cursor(from)
	n := a.IntOr("ERR numkeys should be greater than 0")
	if a.Err() == "" && n <= 0 {
		a.Fail("ERR numkeys should be greater than 0")
	}
	if a.Err() == "" && n >= int64(a.Left()) { // the end comes behind the keys
		a.Syntax()
	}
	if a.Failed(c) {
		return q, false
	}
	for range n {
		q.keys = append(q.keys, a.Bytes())
	}
	switch {
	case a.Is("MIN"):
	case a.Is("MAX"):
		q.max = true
	default:
		a.Syntax()
	}
	counted := false
	for a.More() {
		if counted || !a.IsWith("COUNT", 1) {
			a.Syntax()
			break
		}
		counted = true
		if q.count = a.IntOr("ERR count should be greater than 0"); q.count <= 0 {
			a.Fail("ERR count should be greater than 0")
		}
	}
	return q, !a.Failed(c)
}

// now pops if a key has members. It reports whether it replied, be it an
// error.
func (q *popQuery) now(c *command.Ctx) bool {
	for _, key := range q.keys {
		z, ok := lookupWrite(c, key)
		if !ok {
			return true
		}
		if z != nil {
			pop(c, key, z, q.count, q.max, q.shape)
			return true
		}
	}
	return false
}

// wait blocks until a key has members.
func (q *popQuery) wait(c *command.Ctx, deadline int64) {
	if q.now(c) {
		return
	}
	if !c.CanBlock() {
		c.NullArray()
		return
	}
	rest := *q
	c.Block(command.Wait{
		Keys:     q.keys,
		Deadline: deadline,
		Serve: func(c *command.Ctx, key []byte) (engine.Served, int64) {
			e := c.GetWrite(key)
			switch {
			case !e.Ok():
				return engine.ServedHold, 0
			case e.Kind() != engine.KindZSet:
				return engine.ServedSkip, 0 // those behind may wait for this kind
			}
			pop(c, key, e.Object().(*zset.Set), rest.count, rest.max, rest.shape)
			return engine.ServedDone, 0
		},
	})
}

func bzpopRow(name, summary string, max bool) *command.Command {
	return &command.Command{
		Name: name, Arity: -3, Group: command.GroupSortedSet, Since: "5.0.0",
		Flags:      command.Write | command.Fast | command.Blocking,
		ACL:        sortedSetACL,
		Keys:       []command.KeySpec{command.KeyRange(1, -2, 1, popKey)},
		Summary:    summary,
		Complexity: "O(log N)",
		Syntax:     "key... timeout:double",
		Run: func(c *command.Ctx) {
			last := len(c.Args) - 1
			a := c.Cursor(last)
			deadline := a.Timeout(c)
			if a.Failed(c) {
				return
			}
			q := popQuery{keys: c.Args[1:last], max: max, count: 1, shape: shapeKeyOne}
			q.wait(c, deadline)
		},
	}
}

var (
	bzpopminRow = bzpopRow("bzpopmin", "Takes the member with the lowest score, waiting for one.", false)
	bzpopmaxRow = bzpopRow("bzpopmax", "Takes the member with the highest score, waiting for one.", true)
)

var bzmpopRow = &command.Command{
	Name: "bzmpop", Arity: -5, Group: command.GroupSortedSet, Since: "7.0.0",
	Flags:      command.Write | command.Blocking,
	ACL:        sortedSetACL,
	Keys:       []command.KeySpec{command.NumKeys(2, popKey)},
	Summary:    "Takes members from an end of the first sorted set that has any, waiting for them.",
	Complexity: "O(K) + O(M log N) for K keys and M members taken",
	Syntax:     "timeout:double numkeys:integer key... where=(MIN | MAX) [COUNT count:integer]",
	Run: func(c *command.Ctx) {
		a := c.Cursor(1)
		deadline := a.Timeout(c)
		if a.Failed(c) {
			return
		}
		if q, ok := parseMPop(c, 2); ok {
			q.wait(c, deadline)
		}
	},
}
