package zset

import (
	"sort"

	"github.com/tidwall/btree"
)

// order keeps the entries of a large set in order of (score, member).
type order struct {
	arena *arena
	tree  *btree.BTreeG[item]
}

// item is an entry in the tree, with a copy of the score, so that the member is
// only looked at where scores are equal.
type item struct {
	score float64
	ref   ref
}

func newOrder(a *arena) order {
	less := func(x, y item) bool {
		if x.score != y.score {
			return x.score < y.score
		}
		return x.ref != y.ref && string(a.member(x.ref)) < string(a.member(y.ref))
	}
	return order{a, btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})}
}

func (o *order) insert(score float64, r ref) { o.tree.Set(item{score, r}) }
func (o *order) remove(score float64, r ref) { o.tree.Delete(item{score, r}) }

func (o *order) replace(score float64, from, to ref) {
	o.tree.Delete(item{score, from})
	o.tree.Set(item{score, to})
}

func (o *order) countWhile(before func(item) bool) int {
	return sort.Search(o.tree.Len(), func(i int) bool {
		it, _ := o.tree.GetAt(i)
		return !before(it)
	})
}

func (o *order) rank(score float64, r ref) int {
	key := item{score, r}
	return o.countWhile(func(it item) bool { return o.tree.Less(it, key) })
}

func (o *order) countScore(score float64, orEqual bool) int {
	return o.countWhile(func(it item) bool { return it.score < score || orEqual && it.score == score })
}

func (o *order) countMembers(before func(member []byte) bool) int {
	return o.countWhile(func(it item) bool { return before(o.arena.member(it.ref)) })
}

func (o *order) ascend(lo, hi int, fn func(score float64, r ref) bool) {
	first, _ := o.tree.GetAt(lo)
	it := o.tree.Iter()
	for ok := it.Seek(first); ok && lo < hi; lo++ {
		if !fn(it.Item().score, it.Item().ref) {
			return
		}
		ok = it.Next()
	}
}

func (o *order) descend(lo, hi int, fn func(score float64, r ref) bool) {
	first, _ := o.tree.GetAt(hi - 1)
	it := o.tree.Iter()
	for ok := it.Seek(first); ok && lo < hi; hi-- {
		if !fn(it.Item().score, it.Item().ref) {
			return
		}
		ok = it.Prev()
	}
}

func (o *order) removeRange(lo, hi int, fn func(r ref)) {
	for ; lo < hi; hi-- {
		it, _ := o.tree.DeleteAt(lo)
		fn(it.ref)
	}
}
