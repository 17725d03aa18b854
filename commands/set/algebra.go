package set

// Union, intersection and difference.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/set"
	"github.com/limitkv/limitkv/server/command"
)

// operation computes a result, for a reply or to be stored.
type operation func(sets []*set.Set, reply bool, lim set.Limits) set.Set

// inter is never for a reply: replyInter makes no set.
func inter(sets []*set.Set, _ bool, lim set.Limits) set.Set { return set.InterStore(sets, lim) }

// replyInter replies the intersection as it is found: only how many there are comes before them.
func replyInter(c *command.Ctx, sets []*set.Set) {
	var members []byte
	var ends []int
	n := set.Inter(sets, 0, func(it *set.Iter) {
		members = append(members, it.Member()...)
		ends = append(ends, len(members))
	})
	c.Set(n)
	from := 0
	for _, end := range ends {
		c.Bulk(members[from:end])
		from = end
	}
}

func (f *family) algebraRows() []*command.Command {
	row := func(name, summary, complexity string, op operation) []*command.Command {
		event := name + "store"
		return []*command.Command{
			{
				Name: name, Arity: -2, Group: command.GroupSet, Since: "1.0.0",
				Flags:      command.ReadOnly | command.TakesTime,
				ACL:        setACL,
				Keys:       []command.KeySpec{command.KeyRange(1, -1, 1, readKey)},
				Summary:    "Returns " + summary,
				Complexity: complexity,
				Tips:       []string{"nondeterministic_output_order"},
				Syntax:     "key...",
				Run: func(c *command.Ctx) {
					if sets, ok := operands(c, c.Args[1:]); ok {
						s := op(sets, true, f.limits())
						replyAll(c, &s)
					}
				},
			},
			{
				Name: event, Arity: -3, Group: command.GroupSet, Since: "1.0.0",
				Flags:      command.Write | command.DenyOOM | command.TakesTime,
				ACL:        setACL,
				Keys:       []command.KeySpec{command.Key(1, command.OW|command.Update), command.KeyRange(2, -1, 1, readKey)},
				Summary:    "Stores " + summary,
				Complexity: complexity,
				Syntax:     "destination:key key@1...",
				Run: func(c *command.Ctx) {
					if sets, ok := operands(c, c.Args[2:]); ok {
						s := op(sets, false, f.limits())
						store(c, c.Args[1], &s, event)
					}
				},
			},
		}
	}
	const sum, product = "O(N) in the sizes of the sets", "O(N*K) for K sets of which the smallest has N members"
	rows := row("sunion", "the union of sets.", sum, set.Union)
	inters := row("sinter", "the intersection of sets.", product, inter)
	inters[0].Run = func(c *command.Ctx) {
		if sets, ok := operands(c, c.Args[1:]); ok {
			replyInter(c, sets)
		}
	}
	rows = append(rows, inters...)
	rows = append(rows, row("sdiff", "what the first set has and the others have not.", sum, set.Diff)...)
	return append(rows, &command.Command{
		Name: "sintercard", Arity: -3, Group: command.GroupSet, Since: "7.0.0",
		Flags:      command.ReadOnly | command.TakesTime,
		ACL:        setACL,
		Keys:       []command.KeySpec{command.NumKeys(1, readKey)},
		Summary:    "Counts the intersection of sets.",
		Complexity: product,
		Syntax:     "numkeys:integer key... [LIMIT limit:integer]",
		Run:        sintercard,
	})
}

// operands finds the sets of keys; a missing one is nil.
func operands(c *command.Ctx, keys [][]byte) ([]*set.Set, bool) {
	sets, n := make([]*set.Set, len(keys)), 0
	for i, key := range keys {
		s, ok := lookup(c, key)
		if !ok {
			return nil, false
		}
		sets[i] = s
		if s != nil {
			n += s.Len()
		}
	}
	c.Expect(2 * n)
	return sets, true
}

// store puts a result under a key, or deletes the key if it is empty, and
// replies its size.
func store(c *command.Ctx, key []byte, s *set.Set, event string) {
	if s.Len() == 0 {
		if c.Delete(key) {
			c.Changed(key, engine.EventGeneric, "del")
		}
		c.Int(0)
		return
	}
	c.GetWrite(key) // an expired key is removed first
	c.PutObject(key, engine.KindSet, s, 0)
	c.Changed(key, engine.EventSet, event)
	c.Int(int64(s.Len()))
}

func sintercard(c *command.Ctx) {
	a := c.Cursor(1)
	const errKeys = "ERR numkeys should be greater than 0"
	n := a.IntOr(errKeys)
	if a.Err() == "" && n <= 0 {
		a.Fail(errKeys)
	}
	if a.Err() == "" && n > int64(a.Left()) {
		a.Fail("ERR Number of keys can't be greater than number of args")
	}
	if a.Failed(c) {
		return
	}
	a = c.Cursor(2 + int(n))
	limit := int64(0)
	for a.More() {
		if !a.IsWith("LIMIT", 1) {
			a.Syntax()
			break
		}
		limit = a.Positive("ERR LIMIT can't be negative")
	}
	if a.Failed(c) {
		return
	}
	if sets, ok := operands(c, c.Args[2:2+n]); ok {
		c.Int(int64(set.Inter(sets, int(min(limit, 1<<31)), nil)))
	}
}
