// This file saves and restores the groups of a queue: their turns and their limiters.

package delayqueue

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/limitkv/limitkv/engine/limiter"
)

// Group is a group as it is saved.
type Group struct {
	Name            string // "" is the group of all entries without one
	Turn            uint64 // the lowest goes first
	Waiting, Leased int
	Bucket          []byte // its limiter, nil for none
}

// Groups is how many groups there are.
func (q *Queue) Groups() int {
	if q.rank == nil {
		return 0
	}
	n := len(q.rank.groups)
	for _, spare := range q.rank.spare {
		n -= spare.Len()
	}
	return n
}

// Turns returns the groups in the order of their turns, with that of entries without a group, and the last turn. There
// are none if the queue has no ranks.
func (q *Queue) Turns() (list []Group, last uint64) {
	k := q.rank
	if k == nil {
		return nil, 0
	}
	list = append(list, Group{Turn: k.plain.turn})
	for _, g := range k.groups {
		if bucket := q.bucketOf(g); bucket != nil || g.waiting > 0 || g.leased > 0 {
			list = append(list, Group{g.name, g.turn, g.waiting, g.leased, bucket})
		}
	}
	if len(list) == 1 && k.byTime.Len() == 0 && q.template == nil {
		return nil, 0
	}
	slices.SortFunc(list, func(a, b Group) int { return cmp.Or(cmp.Compare(a.Turn, b.Turn), cmp.Compare(a.Name, b.Name)) })
	return list, k.turn
}

// RestoreTurns restores what Turns returned. The queue must have its entries already.
func (q *Queue) RestoreTurns(list []Group, last uint64) error {
	if last > seqMax || q.rank != nil && list == nil {
		return ErrCorrupt
	}
	if list == nil {
		return nil
	}
	turns := make([]uint64, len(list))
	for i, was := range list {
		if turns[i] = was.Turn; was.Turn > last {
			return ErrCorrupt
		}
	}
	if last > seqMax/2 { // numbered anew
		order := slices.Sorted(slices.Values(turns))
		for i, turn := range turns {
			at, _ := slices.BinarySearch(order, turn)
			turns[i] = uint64(at + 1)
		}
		last = uint64(len(list))
	}
	seen := map[*group]bool{}
	for i, was := range list {
		x := Extra{Group: []byte(was.Name)}
		if len(was.Name) > GroupBytesMax || len(was.Bucket) > 0 && !q.sameRules(was.Bucket) {
			return ErrCorrupt
		}
		g := q.groupOf(&x)
		if seen[g] || g != q.rank.plain && g.empty() && len(was.Bucket) == 0 {
			return ErrCorrupt
		}
		seen[g] = true
		if g.turn = turns[i]; len(was.Bucket) > 0 { // none is ready before something is delivered
			g.rules, g.bucket = q.rules, bytes.Clone(was.Bucket)
			q.refresh(g)
		}
	}
	if len(seen) != len(q.rank.groups)+1 {
		return ErrCorrupt
	}
	if q.rank.turn = last; q.rank.byTime.Len() == 0 && len(q.rank.groups) == 0 && q.template == nil {
		return ErrCorrupt
	}
	return nil
}

// sameRules tells whether a group's limiter is valid, and has the rules that groups have.
func (q *Queue) sameRules(bucket []byte) bool {
	if q.template == nil || limiter.CheckPlain(bucket) != nil {
		return false
	}
	var buf [limiter.RulesMax]limiter.Rule
	return limiter.HasRules(bucket, limiter.Rules(buf[:0], q.template))
}
