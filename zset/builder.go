package zset

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/limitkv/limitkv/zset/wyhash"
)

// Builder makes a set of members whose scores change until the last one is known, as in a union. It sorts the members
// once, at the end, where a set would move a member at every change. While a set of them would be packed, they are in a
// packed set that is not in order.
type Builder struct {
	small packed
	big   *large // nil while they are in small
	refs  []ref
}

// The room that a Builder has at first: for some entries, or for the expected number of them, each of so many bytes.
const (
	builderEntries    = 16
	builderEntryBytes = 24
)

// NewBuilder returns a Builder of a "skiplist" with about this number of members, or more.
func NewBuilder(members int) *Builder {
	b := &Builder{}
	if members > packedEntriesMax {
		b.enlarge(members)
		return b
	}
	b.small = emptyPacked(make(packed, packedHeader+builderEntryBytes*max(members, builderEntries)))
	b.small.setSkiplist()
	return b
}

// enlarge continues in the large form.
func (b *Builder) enlarge(members int) {
	b.big, b.refs = newLarge(true), make([]ref, 0, members)
	b.big.index = newIndexOf(members)
	b.small.ascend(0, b.small.count(), func(member []byte, score float64) bool {
		b.Add(member, score, nil)
		return true
	})
	b.small = nil
}

// Add adds a member. If it is there already, combine makes its new score of the old one and this one. combine is nil
// for a member that is not there.
func (b *Builder) Add(member []byte, score float64, combine func(old, score float64) float64) {
	if b.big == nil {
		if combine != nil {
			if at, old, found := b.small.find(member); found {
				b.small.setScore(at, combine(old, score))
				return
			}
		}
		if b.small.hasRoom(len(member)) {
			b.small = slices.Grow(b.small, headBytes(member)+len(member))
			b.small.put(len(b.small), member, score)
			return
		}
		b.enlarge(2 * packedEntriesMax)
	}
	l := b.big
	h := wyhash.Sum(member)
	if combine != nil {
		if r, found := l.find(h, member); found {
			l.arena.setScore(r, combine(l.arena.score(r), score))
			return
		}
	}
	r := l.arena.add(member, score)
	l.index.insert(h, r, l.rehash)
	b.refs = append(b.refs, r)
}

// Set returns the set. The Builder must not be used any more.
func (b *Builder) Set() *Set {
	if b.big == nil {
		return &Set{packed: b.small.sorted()}
	}
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

// fill makes an empty order from sorted entries, level by level, with full nodes.
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
