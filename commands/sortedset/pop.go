package sortedset

// Taking members from either end, waiting for them or not.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
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
	c.Expect(4 * n)
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
	event, word := "zpopmin", "ZPOPMIN"
	if max {
		event, word = "zpopmax", "ZPOPMAX"
		z.PopMax(n, reply)
	} else {
		z.PopMin(n, reply)
	}
	switch s {
	case shapeKeyOne:
		c.Effect([]byte(word), key)
	case shapeKeyed:
		c.EffectNumber(word, key, int64(n))
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
	Run:        ends.MPop,
}

// ends describes sorted sets to ZMPOP, BZMPOP, BZPOPMIN and BZPOPMAX.
var ends = &command.Ends{Kind: engine.KindZSet, Words: [2]string{"MIN", "MAX"}, Take: func(c *command.Ctx, key []byte, e engine.Entry, p *command.Pop) {
	s := shapeKeyOne
	if p.Counted {
		s = shapeKeyed
	}
	pop(c, key, c.EditZSet(key, e), p.Count, p.Far, s)
}}

func bzpopRow(name, summary string, max bool) *command.Command {
	return &command.Command{
		Name: name, Arity: -3, Group: command.GroupSortedSet, Since: "5.0.0",
		Flags:      command.Write | command.Fast | command.Blocking,
		ACL:        sortedSetACL,
		Keys:       []command.KeySpec{command.KeyRange(1, -2, 1, popKey)},
		Summary:    summary,
		Complexity: "O(log N)",
		Syntax:     "key... timeout:double",
		Run:        ends.BlockingPop(max),
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
	Run:        ends.BlockingMPop,
}
