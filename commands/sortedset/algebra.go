package sortedset

// Union, intersection and difference. A set counts as a sorted set in which
// every score is 1.

import (
	"slices"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/zset"
)

// operation is one of the three.
type operation uint8

const (
	union operation = iota
	inter
	diff
)

func (f *family) algebraRows() []*command.Command {
	const weights = " [WEIGHTS weight:integer...] [AGGREGATE aggregate=(SUM | MIN | MAX)]"
	read := func(name, syntax, summary, complexity string, op operation) *command.Command {
		return &command.Command{
			Name: name, Arity: -3, Group: command.GroupSortedSet, Since: "6.2.0",
			Flags:      command.ReadOnly | command.TakesTime,
			ACL:        sortedSetACL,
			Keys:       []command.KeySpec{command.NumKeys(1, readKey)},
			Summary:    summary,
			Complexity: complexity,
			Syntax:     "numkeys:integer key..." + syntax + " [WITHSCORES]",
			Run:        func(c *command.Ctx) { f.algebra(c, op) },
		}
	}
	store := func(name, since, syntax, summary, complexity string, op operation) *command.Command {
		return &command.Command{
			Name: name, Arity: -4, Group: command.GroupSortedSet, Since: since,
			Flags:      command.Write | command.DenyOOM | command.TakesTime,
			ACL:        sortedSetACL,
			Keys:       []command.KeySpec{command.Key(1, command.OW|command.Update), command.NumKeys(2, readKey)},
			Summary:    summary,
			Complexity: complexity,
			Syntax:     "destination:key numkeys:integer key@1..." + syntax,
			Run:        func(c *command.Ctx) { f.algebraStore(c, op, name) },
		}
	}
	const sum, product = "O(N + M log M) in the sizes of the sets and of the result", "O(N*K + M log M) for K sets of which the smallest has N members"
	return []*command.Command{
		read("zunion", weights, "Returns the union of sorted sets.", sum, union),
		read("zinter", weights, "Returns the intersection of sorted sets.", product, inter),
		read("zdiff", "", "Returns what the first sorted set has and the others have not.", product, diff),
		store("zunionstore", "2.0.0", weights, "Stores the union of sorted sets.", sum, union),
		store("zinterstore", "2.0.0", weights, "Stores the intersection of sorted sets.", product, inter),
		store("zdiffstore", "6.2.0", "", "Stores what the first sorted set has and the others have not.", product, diff),
		{
			Name: "zintercard", Arity: -3, Group: command.GroupSortedSet, Since: "7.0.0",
			Flags:      command.ReadOnly | command.TakesTime,
			ACL:        sortedSetACL,
			Keys:       []command.KeySpec{command.NumKeys(1, readKey)},
			Summary:    "Counts the intersection of sorted sets.",
			Complexity: product,
			Syntax:     "numkeys:integer key... [LIMIT limit:integer]",
			Run:        zintercard,
		},
	}
}

// source is an operand: a sorted set or a set, or neither where the key is
// missing.
type source struct {
	z      *zset.Set
	s      *set.Set
	weight float64
}

func (s *source) len() int {
	switch {
	case s.z != nil:
		return s.z.Len()
	case s.s != nil:
		return s.s.Len()
	}
	return 0
}

func (s *source) score(member []byte) (score float64, ok bool) {
	switch {
	case s.z != nil:
		return s.z.Score(member)
	case s.s != nil:
		return 1, s.s.Contains(member)
	}
	return 0, false
}

func (s *source) each(fn func(member []byte, score float64) bool) {
	switch {
	case s.z != nil:
		s.z.Ascend(0, s.z.Len(), fn)
	case s.s != nil:
		it := s.s.Iter()
		for it.Next() {
			if !fn(it.Member(), 1) {
				return
			}
		}
	}
}

// operands are the sources, and what to do with their scores.
type operands struct {
	sources    []source
	aggregate  func(a, b float64) float64
	withScores bool
	limit      int64
}

// parseOperands reads the number of keys at from, the keys and the options.
func parseOperands(c *command.Ctx, from int, op operation, store, card bool) (o operands, ok bool) {
	o.aggregate = sumScores
	a := c.Cursor(from)
	n := a.Int()
	if a.Err() == "" && n < 1 {
		a.Fail("ERR at least 1 input key is needed for '" + c.Cmd.FullName() + "' command")
	}
	if a.Err() == "" && n > int64(a.Left()) {
		a.Syntax()
	}
	if a.Failed(c) {
		return o, false
	}
	o.sources = make([]source, 0, n)
	for range n {
		s := source{weight: 1}
		switch e := c.Get(a.Bytes()); e.Kind() {
		case engine.KindNone:
		case engine.KindZSet:
			s.z = e.Object().(*zset.Set)
		case engine.KindSet:
			s.s = e.Object().(*set.Set)
		default:
			c.WrongType()
			return o, false
		}
		o.sources = append(o.sources, s)
	}
	for a.More() {
		switch {
		case op != diff && !card && a.IsWith("WEIGHTS", int(n)):
			for i := range o.sources {
				o.sources[i].weight = a.FloatOr("ERR weight value is not a float")
			}
		case op != diff && !card && a.IsWith("AGGREGATE", 1):
			switch {
			case a.Is("SUM"):
				o.aggregate = sumScores
			case a.Is("MIN"):
				o.aggregate = minScore
			case a.Is("MAX"):
				o.aggregate = maxScore
			default:
				a.Syntax()
			}
		case !store && !card && a.Is("WITHSCORES"):
			o.withScores = true
		case card && a.IsWith("LIMIT", 1):
			if o.limit = a.IntOr("ERR LIMIT can't be negative"); o.limit < 0 {
				a.Fail("ERR LIMIT can't be negative")
			}
		default:
			a.Syntax()
		}
	}
	if a.Failed(c) {
		return o, false
	}
	n = 0
	for i := range o.sources {
		n += int64(o.sources[i].len())
	}
	c.Expect(4 * int(n))
	return o, true
}

// sumScores adds scores; infinities of both signs make 0, as in Redis.
func sumScores(a, b float64) float64 {
	if s := a + b; s == s {
		return s
	}
	return 0
}

// minScore and maxScore keep the first of two equal scores, and the first where
// the second is no number, as Redis's comparisons do.
func minScore(a, b float64) float64 {
	if b < a {
		return b
	}
	return a
}

func maxScore(a, b float64) float64 {
	if b > a {
		return b
	}
	return a
}

// weighted is a score by its weight, 0 where that is no number.
func weighted(weight, score float64) float64 {
	if w := weight * score; w == w {
		return w
	}
	return 0
}

// result computes the operation into a new set. It is a skiplist, as in Redis, so that -0 keeps its sign; a stored result
// becomes a listpack later.
func (o *operands) result(op operation) *zset.Set {
	sorted, atLeast := o.sources, 0
	if op == union {
		sorted = o.bySize()
		atLeast = sorted[len(sorted)-1].len()
	}
	b := zset.NewBuilder(atLeast)
	switch op {
	case union:
		for _, s := range sorted {
			s.each(func(member []byte, score float64) bool {
				b.Add(member, weighted(s.weight, score), o.aggregate)
				return true
			})
		}
	case inter:
		o.eachCommon(func(member []byte, score float64) bool {
			b.Add(member, score, nil)
			return true
		})
	case diff:
		o.sources[0].each(func(member []byte, score float64) bool {
			for i := range o.sources[1:] {
				if _, ok := o.sources[i+1].score(member); ok {
					return true
				}
			}
			b.Add(member, score, nil)
			return true
		})
	}
	return b.Set()
}

// bySize are the sources from the smallest to the largest, the order in which
// Redis aggregates: with infinities and zeros it shows in the result.
func (o *operands) bySize() []source {
	sorted := slices.Clone(o.sources)
	slices.SortStableFunc(sorted, func(a, b source) int { return a.len() - b.len() })
	return sorted
}

// eachCommon calls fn with the members that all sources have. It walks the smallest source.
func (o *operands) eachCommon(fn func(member []byte, score float64) bool) {
	sorted := o.bySize()
	sorted[0].each(func(member []byte, score float64) bool {
		score = weighted(sorted[0].weight, score)
		for i := range sorted[1:] {
			s := &sorted[i+1]
			other, ok := s.score(member)
			if !ok {
				return true
			}
			score = o.aggregate(score, s.weight*other)
		}
		return fn(member, score)
	})
}

func (f *family) algebra(c *command.Ctx, op operation) {
	o, ok := parseOperands(c, 1, op, false, false)
	if !ok {
		return
	}
	z := o.result(op)
	pairs(c, z.Len(), o.withScores)
	z.Ascend(0, z.Len(), func(member []byte, score float64) bool {
		if o.withScores {
			replyPair(c, member, score)
		} else {
			c.Bulk(member)
		}
		return true
	})
}

func (f *family) algebraStore(c *command.Ctx, op operation, event string) {
	o, ok := parseOperands(c, 2, op, true, false)
	if !ok {
		return
	}
	f.store(c, c.Args[1], o.result(op), event)
}

func zintercard(c *command.Ctx) {
	o, ok := parseOperands(c, 1, inter, false, true)
	if !ok {
		return
	}
	n := int64(0)
	o.eachCommon(func([]byte, float64) bool {
		n++
		return o.limit == 0 || n < o.limit
	})
	c.Int(n)
}
