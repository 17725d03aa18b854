// Package sortedset, internal to the server, is the family of sorted sets.
package sortedset

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
	"github.com/limitkv/limitkv/zset"
)

type family struct{ limits *params.ZSetLimits }

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{s.Config.ZSet()}
	rows := []*command.Command{
		f.zaddRow(), f.zincrbyRow(),
		zscoreRow, zmscoreRow, zcardRow, zrankRow, zrevrankRow, zcountRow, zlexcountRow,
		zremRow, zremrangebyrankRow, zremrangebyscoreRow, zremrangebylexRow,
		zpopminRow, zpopmaxRow, zmpopRow, bzpopminRow, bzpopmaxRow, bzmpopRow,
		zrandmemberRow, zscanRow,
	}
	rows = append(rows, f.rangeRows()...)
	return append(rows, f.algebraRows()...)
}

var sortedSetACL = []string{"sortedset"}

const (
	readKey  = command.RO | command.Access
	fastRead = command.ReadOnly | command.Fast
)

// lookup finds a sorted set for reading, nil if the key is missing.
func lookup(c *command.Ctx, key []byte) (*zset.Set, bool) {
	e, ok := c.Lookup(key, engine.KindZSet)
	return c.ReadZSet(e), ok
}

// lookupWrite finds a sorted set that is going to be changed. It is stored when the change is announced.
func lookupWrite(c *command.Ctx, key []byte) (*zset.Set, bool) {
	e, ok := c.LookupWrite(key, engine.KindZSet)
	return c.EditZSet(key, e), ok
}

// removed announces a removal, and deletes the key if nothing is left.
func removed(c *command.Ctx, key []byte, z *zset.Set, event string) {
	c.Changed(key, engine.EventZSet, event)
	if z.Len() == 0 {
		c.Delete(key)
		c.Notify(engine.EventGeneric, "del", key) // the change was announced
	}
}

// replyPair replies a member with its score: as a pair in RESP3, as two elements of the list in RESP2.
func replyPair(c *command.Ctx, member []byte, score float64) {
	if c.Proto == 3 {
		c.Array(2)
	}
	c.Bulk(member)
	c.Double(score)
}

// pairs replies the head of a list of n members, with scores or without.
func pairs(c *command.Ctx, n int, withScores bool) {
	if withScores && c.Proto != 3 {
		n *= 2
	}
	c.Array(n)
}
