package sortedset

// ZADD and ZINCRBY.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/zset"
)

func (f *family) zaddRow() *command.Command {
	return &command.Command{
		Name: "zadd", Arity: -4, Group: command.GroupSortedSet, Since: "1.2.0",
		Flags:      command.Write | command.DenyOOM | command.Fast,
		ACL:        sortedSetACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Update)},
		Summary:    "Adds members to a sorted set, or changes their scores.",
		Complexity: "O(log N) for each member",
		Syntax:     "key [condition=(NX | XX)] [comparison=(GT | LT)] [change=CH] [increment=INCR] data={score:double member:string}...",
		Run:        f.zadd,
	}
}

func (f *family) zincrbyRow() *command.Command {
	return &command.Command{
		Name: "zincrby", Arity: 4, Group: command.GroupSortedSet, Since: "1.2.0",
		Flags:      command.Write | command.DenyOOM | command.Fast,
		ACL:        sortedSetACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Access|command.Update)},
		Summary:    "Adds a number to the score of a member.",
		Complexity: "O(log N)",
		Syntax:     "key increment:integer member:string",
		Run: func(c *command.Ctx) {
			for _, option := range []string{"NX", "XX", "CH", "INCR", "GT", "LT"} {
				if command.EqualFold(c.Args[2], option) { // Redis reads ZADD's options here too
					c.Error(command.ErrSyntax)
					return
				}
			}
			f.add(c, c.Args[2:], zset.Incr, false)
		},
	}
}

func (f *family) zadd(c *command.Ctx) {
	a := c.Cursor(2)
	var flags zset.Flags
	changed := false
	for more := true; more; {
		switch {
		case a.Is("NX"):
			flags |= zset.NX
		case a.Is("XX"):
			flags |= zset.XX
		case a.Is("CH"):
			changed = true
		case a.Is("INCR"):
			flags |= zset.Incr
		case a.Is("GT"):
			flags |= zset.GT
		case a.Is("LT"):
			flags |= zset.LT
		default:
			more = false
		}
	}
	pairs := a.Rest()
	has := func(f zset.Flags) bool { return flags&f == f }
	switch {
	case len(pairs)%2 != 0 || len(pairs) == 0:
		c.Error(command.ErrSyntax)
	case has(zset.NX | zset.XX):
		c.Error("ERR XX and NX options at the same time are not compatible")
	case has(zset.GT|zset.NX) || has(zset.LT|zset.NX) || has(zset.GT|zset.LT):
		c.Error("ERR GT, LT, and/or NX options at the same time are not compatible")
	case has(zset.Incr) && len(pairs) > 2:
		c.Error("ERR INCR option supports a single increment-element pair")
	default:
		f.add(c, pairs, flags, changed)
	}
}

// add adds pairs of score and member and replies: the score after an
// increment, else how many members are new, or with changed how many changed.
func (f *family) add(c *command.Ctx, pairs [][]byte, flags zset.Flags, changed bool) {
	var few [16]float64
	scores := few[:0]
	for i := 0; i < len(pairs); i += 2 {
		score, ok := number.ParseDouble(pairs[i])
		if !ok {
			c.Error(command.ErrNotFloat)
			return
		}
		scores = append(scores, score)
	}
	key := c.Args[1]
	z, ok := lookupWrite(c, key)
	if !ok {
		return
	}
	lim := f.limits.Now()
	switch {
	case z != nil:
		z.Prepare(len(scores), 0, lim)
	case flags&zset.XX != 0:
		replyAdd(c, flags, false, 0, 0)
		return
	default:
		z = c.NewZSet(key)
		z.Prepare(len(scores), len(pairs[1]), lim)
	}
	lim.Room = c.EditRoom()
	added, updated, processed := 0, 0, false
	var score float64
	for i := range scores {
		var outcome zset.Outcome
		outcome, score = z.Add(pairs[2*i+1], scores[i], flags, lim)
		switch outcome {
		case zset.NaN:
			c.Error("ERR resulting score is not a number (NaN)")
			return // an increment is alone, so nothing was changed before
		case zset.Added:
			added++
		case zset.Updated:
			updated++
		}
		if outcome != zset.Kept {
			processed = true
		}
	}
	if added+updated > 0 {
		event := "zadd"
		if flags&zset.Incr != 0 {
			event = "zincr"
		}
		c.Changed(key, engine.EventZSet, event)
	}
	n := added
	if changed {
		n += updated
	}
	replyAdd(c, flags, processed, score, n)
}

func replyAdd(c *command.Ctx, flags zset.Flags, processed bool, score float64, n int) {
	switch {
	case flags&zset.Incr == 0:
		c.Int(int64(n))
	case processed:
		c.Double(score)
	default:
		c.Null()
	}
}
