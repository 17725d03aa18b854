package sortedset

// Some members: ZRANDMEMBER and ZSCAN.

import (
	"math"
	"strconv"

	"github.com/limitkv/limitkv/commands/scan"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/zset"
)

var zrandmemberRow = &command.Command{
	Name: "zrandmember", Arity: -2, Group: command.GroupSortedSet, Since: "6.2.0",
	Flags:      command.ReadOnly,
	ACL:        sortedSetACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns members at random.",
	Complexity: "O(M log N), M being the number of members returned",
	Tips:       []string{"nondeterministic_output"},
	Syntax:     "key [options={count:integer [WITHSCORES]}]",
	Run:        zrandmember,
}

func zrandmember(c *command.Ctx) {
	if len(c.Args) == 2 {
		z, ok := lookup(c, c.Args[1])
		if !ok {
			return
		}
		if z == nil {
			c.Null()
			return
		}
		member, _, _ := z.ByRank(c.RandomN(z.Len()))
		c.Bulk(member)
		return
	}
	n, withScores, ok := command.ParseRandomCount(c, "WITHSCORES")
	if !ok {
		return
	}
	z, ok := lookup(c, c.Args[1])
	if !ok {
		return
	}
	if z == nil || n == 0 {
		c.Array(0)
		return
	}
	reply := func(rank int) {
		member, score, _ := z.ByRank(rank)
		if withScores {
			replyPair(c, member, score)
		} else {
			c.Bulk(member)
		}
	}
	if n < 0 { // with repetition
		c.Expect(4 * int(-n))
		pairs(c, int(-n), withScores)
		for range -n {
			reply(c.RandomN(z.Len()))
		}
		return
	}
	k := int(min(n, int64(z.Len())))
	c.Expect(4 * k)
	ranks := sample(z.Len(), k, c.RandomN)
	pairs(c, len(ranks), withScores)
	for _, r := range ranks {
		reply(r)
	}
}

// sample draws k different numbers below n (Floyd's way: k draws, whatever n).
func sample(n, k int, random func(n int) int) []int {
	out := make([]int, 0, k)
	if k == n {
		for i := range n {
			out = append(out, i)
		}
		return out
	}
	seen := make(map[int]struct{}, k)
	for i := n - k; i < n; i++ {
		r := random(i + 1)
		if _, dup := seen[r]; dup {
			r = i
		}
		seen[r] = struct{}{}
		out = append(out, r)
	}
	return out
}

var zscanRow = &command.Command{
	Name: "zscan", Arity: -3, Group: command.GroupSortedSet, Since: "2.8.0",
	Flags:      command.ReadOnly,
	ACL:        sortedSetACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Returns some members with their scores, and where to go on.",
	Complexity: "O(1) for a call, O(N) for all calls of a complete scan",
	Tips:       []string{"nondeterministic_output"},
	Syntax:     "key cursor:integer [MATCH pattern] [COUNT count:integer]",
	Run:        zscan,
}

func zscan(c *command.Ctx) {
	scan.Value(c, scan.Other, lookup, func(z *zset.Set, cursor uint64, o *scan.Options, found *resp.Writer) (n int, next uint64) {
		next = z.Scan(cursor, o.Count, func(member []byte, score float64) {
			if o.Wants(member) {
				var b [32]byte
				found.Bulk(member)
				found.Bulk(appendScanned(b[:0], z, score))
				n += 2
			}
		})
		return n, next
	})
}

// appendScanned appends a score as ZSCAN writes it: as elsewhere for a packed set, with 17 digits for a large one.
func appendScanned(dst []byte, z *zset.Set, score float64) []byte {
	if z.Encoding() != "skiplist" || math.IsInf(score, 0) || score == math.Trunc(score) && math.Abs(score) < 1e17 {
		return number.AppendDouble(dst, score)
	}
	return strconv.AppendFloat(dst, score, 'g', 17, 64)
}
