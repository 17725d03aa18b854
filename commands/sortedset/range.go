package sortedset

// ZRANGE in all its forms, and ZRANGESTORE.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/zset"
)

// form is what a command's name says about the range; other commands say it with options.
type form struct {
	by      sortBy
	reverse bool
	auto    bool // ZRANGE, ZRANGESTORE: by options
}

func (f *family) rangeRows() []*command.Command {
	row := func(name, since, syntax, summary, replaced string, fm form) *command.Command {
		c := &command.Command{
			Name: name, Arity: -4, Group: command.GroupSortedSet, Since: since,
			Flags:      command.ReadOnly,
			ACL:        sortedSetACL,
			Keys:       []command.KeySpec{command.Key(1, readKey)},
			Summary:    summary,
			Complexity: "O(log N + M), M being the number of members returned",
			Syntax:     syntax,
			Run:        func(c *command.Ctx) { zrange(c, fm) },
		}
		if replaced != "" {
			c.DeprecatedSince, c.ReplacedBy = "6.2.0", replaced
		}
		return c
	}
	const limit = " [LIMIT limit={offset:integer count:integer}]"
	return []*command.Command{
		row("zrange", "1.2.0", "key start:string stop:string [sortby=(BYSCORE | BYLEX)] [REV]"+limit+" [WITHSCORES]",
			"Returns members in a range of ranks, scores or names.", "", form{auto: true}),
		row("zrevrange", "1.2.0", "key start:integer stop:integer [WITHSCORES]",
			"Returns members in a range of ranks, from the highest score.", "`ZRANGE` with the `REV` argument",
			form{reverse: true}),
		row("zrangebyscore", "1.0.5", "key min:double max:double [WITHSCORES]"+limit,
			"Returns members with scores in a range.", "`ZRANGE` with the `BYSCORE` argument",
			form{by: byScore}),
		row("zrevrangebyscore", "2.2.0", "key max:double min:double [WITHSCORES]"+limit,
			"Returns members with scores in a range, from the highest.", "`ZRANGE` with the `REV` and `BYSCORE` arguments",
			form{by: byScore, reverse: true}),
		row("zrangebylex", "2.8.9", "key min:string max:string"+limit,
			"Returns members in a range of names.", "`ZRANGE` with the `BYLEX` argument",
			form{by: byLex}),
		row("zrevrangebylex", "2.8.9", "key max:string min:string"+limit,
			"Returns members in a range of names, from the last.", "`ZRANGE` with the `REV` and `BYLEX` arguments",
			form{by: byLex, reverse: true}),
		{
			Name: "zrangestore", Arity: -5, Group: command.GroupSortedSet, Since: "6.2.0",
			Flags:      command.Write | command.DenyOOM,
			ACL:        sortedSetACL,
			Keys:       []command.KeySpec{command.Key(1, command.OW|command.Update), command.Key(2, readKey)},
			Summary:    "Stores members in a range in another sorted set.",
			Complexity: "O(log N + M), M being the number of members stored",
			Syntax:     "dst:key src:key@1 min:string max:string [sortby=(BYSCORE | BYLEX)] [REV]" + limit,
			Run:        f.zrangestore,
		},
	}
}

// query is what a command's arguments say about the range.
type query struct {
	window        window
	reverse       bool
	withScores    bool
	offset, count int64
}

// parseRange reads the ends at from, and the options behind them.
func parseRange(c *command.Ctx, from int, fm form, store bool) (q query, ok bool) {
	a := c.Cursor(from + 2)
	by, limit := fm.by, false
	q.reverse, q.count = fm.reverse, -1
	for a.More() {
		switch {
		case !store && a.Is("WITHSCORES"):
			q.withScores = true
		case a.IsWith("LIMIT", 2):
			q.offset, q.count, limit = a.Int(), a.Int(), true
		case fm.auto && !q.reverse && a.Is("REV"):
			q.reverse = true
		case fm.auto && by == byRank && a.Is("BYLEX"):
			by = byLex
		case fm.auto && by == byRank && a.Is("BYSCORE"):
			by = byScore
		default:
			a.Syntax()
		}
	}
	if limit && q.count != -1 && by == byRank {
		a.Fail("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	}
	if q.withScores && by == byLex {
		a.Fail("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
	}
	if a.Failed(c) {
		return q, false
	}
	lo, hi := c.Args[from], c.Args[from+1]
	if q.reverse && by != byRank {
		lo, hi = hi, lo
	}
	q.window, ok = parseWindow(c, by, lo, hi)
	return q, ok
}

// ranks is the interval that the query selects.
func (q *query) ranks(z *zset.Set) (lo, hi int) {
	lo, hi = q.window.ranks(z, q.reverse)
	if q.window.by == byRank {
		return lo, hi
	}
	offset := q.offset
	if offset < 0 && z.Encoding() == "skiplist" {
		offset += int64(hi - lo) // Redis's skiplist takes it as counted from the other end
	}
	return limited(lo, hi, offset, q.count, q.reverse)
}

// each calls fn with the selected members in order.
func (q *query) each(z *zset.Set, lo, hi int, fn func(member []byte, score float64)) {
	visit := func(member []byte, score float64) bool {
		fn(member, score)
		return true
	}
	if q.reverse {
		z.Descend(lo, hi, visit)
	} else {
		z.Ascend(lo, hi, visit)
	}
}

func zrange(c *command.Ctx, fm form) {
	q, ok := parseRange(c, 2, fm, false)
	if !ok {
		return
	}
	z, ok := lookup(c, c.Args[1])
	if !ok {
		return
	}
	if z == nil {
		c.Array(0)
		return
	}
	lo, hi := q.ranks(z)
	c.Expect((hi - lo) / 2)
	pairs(c, hi-lo, q.withScores)
	q.each(z, lo, hi, func(member []byte, score float64) {
		if q.withScores {
			replyPair(c, member, score)
		} else {
			c.Bulk(member)
		}
	})
}

func (f *family) zrangestore(c *command.Ctx) {
	q, ok := parseRange(c, 3, form{auto: true}, true)
	if !ok {
		return
	}
	z, ok := lookup(c, c.Args[2])
	if !ok {
		return
	}
	lim := f.limits.Now()
	var out *zset.Set
	if z != nil {
		lo, hi := q.ranks(z)
		hint := 0
		if q.window.by == byRank {
			hint = hi - lo // only here Redis knows the length in advance
		}
		c.Expect(4 * (hi - lo))
		out = zset.New(hint, 0, lim)
		q.each(z, lo, hi, func(member []byte, score float64) { out.Add(member, score, 0, lim) })
	}
	f.store(c, c.Args[1], out, "zrangestore")
}

// store puts a result under a key, or deletes the key if there is none, and
// replies the number of members.
func (f *family) store(c *command.Ctx, key []byte, z *zset.Set, event string) {
	if z == nil || z.Len() == 0 {
		if c.Delete(key) {
			c.Changed(key, engine.EventGeneric, "del")
		}
		c.Int(0)
		return
	}
	lim := f.limits.Now()
	z.Pack(lim)
	c.GetWrite(key) // an expired key is removed first
	c.PutObject(key, engine.KindZSet, z, 0)
	c.Changed(key, engine.EventZSet, event)
	c.Int(int64(z.Len()))
}
