package zset

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/limitkv/limitkv/zset/wyhash"
)

// Builder makes a large set of members whose scores change until the last is known, as those of a union do. They are sorted
// once, at the end, where a set would move each to another place at every change.
type Builder struct {
	big  *large
	refs []ref
}

// BuilderMin is from how many members on a Builder makes the set that adding them makes: one of fewer may be packed.
const BuilderMin = packedEntriesMax + 1

// NewBuilder returns a Builder of a "skiplist" of at least so many members, BuilderMin or more.
func NewBuilder(members int) *Builder {
	b := &Builder{big: newLarge(true), refs: make([]ref, 0, members)}
	b.big.index = newIndexOf(members)
	return b
}

// Add adds a member, or gives the one that is there the score that combine makes of its score and this one.
func (b *Builder) Add(member []byte, score float64, combine func(old, score float64) float64) {
	l := b.big
	h := wyhash.Sum(member)
	if r, found := l.find(h, member); found {
		l.arena.setScore(r, combine(l.arena.score(r), score))
		return
	}
	r := l.arena.add(member, score)
	l.index.insert(h, r, l.rehash)
	b.refs = append(b.refs, r)
}

// Set returns the set. The Builder is not used any more.
func (b *Builder) Set() *Set {
	a := &b.big.arena
	entries := make([]slot, len(b.refs))
	for i, r := range b.refs {
		entries[i] = slot{score: a.score(r), ref: r}
	}
	slices.SortFunc(entries, func(x, y slot) int {
		switch {
		case x.score < y.score:
			return -1
		case x.score > y.score:
			return 1
		}
		return bytes.Compare(a.member(x.ref), a.member(y.ref))
	})
	b.big.order.fill(entries)
	return &Set{big: b.big}
}

// fill makes an empty order one of sorted entries, level by level, with full nodes.
func (o *order) fill(entries []slot) {
	o.len = len(entries)
	for inner := false; len(entries) > 0; inner = true {
		above := make([]slot, 0, (len(entries)+fanout-1)/fanout)
		for part := range slices.Chunk(entries, fanout) {
			n := new(node)
			if inner {
				n.kids = new(kids)
			}
			n.n = uint32(len(part))
			for i, s := range part {
				n.set(i, s)
			}
			above = append(above, n.asSlot())
		}
		if len(above) == 1 {
			o.root = above[0].node
			return
		}
		entries = above
	}
}

// newIndexOf returns an index with room for so many members.
func newIndexOf(members int) index {
	x := newIndex()
	x.bits = uint(bits.Len(uint(members / segmentFill)))
	x.deepest = 1 << x.bits
	x.dir, x.depths = make([]*segment, x.deepest), make([]uint8, x.deepest)
	for i := range x.dir {
		x.dir[i], x.depths[i] = newSegment(uint8(x.bits)), uint8(x.bits)
	}
	return x
}
