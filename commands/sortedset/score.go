package sortedset

// Scores, ranks and counts.

import (
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/zset"
)

func readRow(name string, arity int, since, syntax, summary, complexity string, run func(c *command.Ctx)) *command.Command {
	return &command.Command{
		Name: name, Arity: arity, Group: command.GroupSortedSet, Since: since,
		Flags:      fastRead,
		ACL:        sortedSetACL,
		Keys:       []command.KeySpec{command.Key(1, readKey)},
		Summary:    summary,
		Complexity: complexity,
		Syntax:     syntax,
		Run:        run,
	}
}

var zcardRow = &command.Command{
	Name: "zcard", Arity: 2, Group: command.GroupSortedSet, Since: "1.2.0",
	Flags:      fastRead,
	ACL:        sortedSetACL,
	Keys:       []command.KeySpec{command.Key(1, command.RO)},
	Summary:    "Counts the members of a sorted set.",
	Complexity: "O(1)",
	Syntax:     "key",
	Run: func(c *command.Ctx) {
		if z, ok := lookup(c, c.Args[1]); ok {
			if z == nil {
				c.Int(0)
			} else {
				c.Int(int64(z.Len()))
			}
		}
	},
}

var (
	zscoreRow = readRow("zscore", 3, "1.2.0", "key member:string",
		"Returns the score of a member.", "O(1)", zscore)
	zmscoreRow = readRow("zmscore", -3, "6.2.0", "key member:string...",
		"Returns the scores of members.", "O(N) in the number of members", zmscore)
	zrankRow = readRow("zrank", -3, "2.0.0", "key member:string [WITHSCORE]",
		"Returns how many members come before a member.", "O(log N)", func(c *command.Ctx) { rank(c, false) })
	zrevrankRow = readRow("zrevrank", -3, "2.0.0", "key member:string [WITHSCORE]",
		"Returns how many members come after a member.", "O(log N)", func(c *command.Ctx) { rank(c, true) })
	zcountRow = readRow("zcount", 4, "2.0.0", "key min:double max:double",
		"Counts the members with scores in a range.", "O(log N)", func(c *command.Ctx) { count(c, byScore) })
	zlexcountRow = readRow("zlexcount", 4, "2.8.9", "key min:string max:string",
		"Counts the members in a range of names.", "O(log N)", func(c *command.Ctx) { count(c, byLex) })
)

func zscore(c *command.Ctx) {
	z, ok := lookup(c, c.Args[1])
	if !ok {
		return
	}
	replyScore(c, z, c.Args[2])
}

func zmscore(c *command.Ctx) {
	z, ok := lookup(c, c.Args[1])
	if !ok {
		return
	}
	c.Array(len(c.Args) - 2)
	for _, member := range c.Args[2:] {
		replyScore(c, z, member)
	}
}

func replyScore(c *command.Ctx, z *zset.Set, member []byte) {
	if z != nil {
		if score, ok := z.Score(member); ok {
			c.Double(score)
			return
		}
	}
	c.Null()
}

func rank(c *command.Ctx, reverse bool) {
	withScore := len(c.Args) == 4 && command.EqualFold(c.Args[3], "WITHSCORE")
	if len(c.Args) > 4 {
		c.Error(command.ErrArity(c.Cmd.FullName()))
		return
	}
	if len(c.Args) > 3 && !withScore {
		c.Error(command.ErrSyntax)
		return
	}
	z, ok := lookup(c, c.Args[1])
	if !ok {
		return
	}
	var r int
	var score float64
	found := false
	if z != nil {
		r, score, found = z.Rank(c.Args[2])
	}
	switch {
	case !found && withScore:
		c.NullArray()
		return
	case !found:
		c.Null()
		return
	case reverse:
		r = z.Len() - 1 - r
	}
	if withScore {
		c.Array(2)
		c.Int(int64(r))
		c.Double(score)
		return
	}
	c.Int(int64(r))
}

func count(c *command.Ctx, by sortBy) {
	w, ok := parseWindow(c, by, c.Args[2], c.Args[3])
	if !ok {
		return
	}
	z, ok := lookup(c, c.Args[1])
	if !ok {
		return
	}
	if z == nil {
		c.Int(0)
		return
	}
	lo, hi := w.ranks(z, false)
	c.Int(int64(hi - lo))
}
