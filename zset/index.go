package zset

import "math/bits"

// index finds a member's entry by a hash of the member. It is extendible hashing: the top bits of the hash choose a
// segment through a directory. A segment is a small open-addressed table of refs, probed a group of 8 slots at a time
// by a word of 7-bit tags. A full segment alone is split in two, so growing never rehashes everything (40 ms for a
// million members, because each hash is a cache miss). It takes about 8 bytes a member. A map[string]float64 takes over
// 50, and the garbage collector looks at each.
//
// A segment has a contiguous range of hashes. So a walk over the segments in order, with the hash as the cursor, is a
// SCAN that no growth disturbs.
type index struct {
	dir     []*segment // a power of two of them; a segment may have several places in a row
	depths  []uint8    // of the same; here, so that a lookup need not fetch the head of the segment
	bits    uint       // log2(len(dir))
	deepest int        // segments with depth == bits
	count   int        // members
}

const (
	groupSlots   = 8
	groups       = 51 // with the head they fill an allocation of 2048 bytes
	slots        = groups * groupSlots
	segmentMax   = slots * 7 / 8 // used and dead slots; so each probe finds an empty slot
	segmentMerge = slots / 8     // a segment with fewer members may merge with its twin
	segmentBytes = 2048

	tagEmpty  = 0x80
	tagDead   = 0xFE
	lowBits   = 0x0101010101010101
	highBits  = 0x8080808080808080
	allEmpty  = tagEmpty * lowBits
	slotShift = 8 // bits of a tag
)

type segment struct {
	depth  uint8 // how many top bits of the hash its members share
	used   uint16
	dead   uint16
	groups [groups]group
}

// group is 40 bytes, so that tags and refs are mostly in one cache line.
type group struct {
	tags uint64 // a byte for each slot: 7 bits of the hash, tagEmpty or tagDead
	refs [groupSlots]ref
}

func newSegment(depth uint8) *segment {
	g := &segment{depth: depth}
	for i := range g.groups {
		g.groups[i].tags = allEmpty
	}
	return g
}

func newIndex() index {
	return index{dir: []*segment{newSegment(0)}, depths: []uint8{0}, deepest: 1}
}

func (x *index) segment(h uint64) *segment { return x.dir[h>>(64-x.bits)] }

// home returns the group where probing starts. It rises with the hash, so that a range of a segment's hashes is in
// consecutive groups, which scan relies on. (The low bits are the tag.)
func home(h uint64, depth uint8) int {
	group, _ := bits.Mul64(h<<depth, groups)
	return int(group)
}

func tag(h uint64) uint64 { return h & 0x7f }

func (p *group) tag(i int) uint64 { return p.tags >> (slotShift * i) & 0xff }

func (p *group) setTag(i int, tag uint64) {
	p.tags = p.tags&^(0xff<<(slotShift*i)) | tag<<(slotShift*i)
}

// hasEmpty reports whether a slot is empty. Bit 1 is clear in tagEmpty and set in tagDead.
func (p *group) hasEmpty() bool { return p.tags&^(p.tags<<6)&highBits != 0 }

// match marks the slots with the tag. It may also mark a slot above such a slot, so the caller must check each.
func (p *group) match(tag uint64) uint64 {
	w := p.tags ^ lowBits*tag
	return (w - lowBits) &^ w & highBits
}

func after(group int) int {
	if group++; group < groups {
		return group
	}
	return 0
}

// find returns the entry of a member.
func (x *index) find(a *arena, h uint64, member []byte) (ref, bool) {
	i := h >> (64 - x.bits)
	g := x.dir[i]
	for at := home(h, x.depths[i]); ; at = after(at) {
		p := &g.groups[at]
		for hits := p.match(tag(h)); hits != 0; hits &= hits - 1 {
			r := p.refs[bits.TrailingZeros64(hits)/slotShift]
			if r != 0 && string(a.member(r)) == string(member) {
				return r, true
			}
		}
		if p.hasEmpty() {
			return 0, false
		}
	}
}

// slotOf returns the group and slot of r, which must be there.
func (g *segment) slotOf(h uint64, r ref) (*group, int) {
	for at := home(h, g.depth); ; at = after(at) {
		p := &g.groups[at]
		for i, have := range p.refs {
			if have == r { // a free slot has 0
				return p, i
			}
		}
	}
}

// put stores a ref that is not there. There must be room.
func (g *segment) put(h uint64, r ref) {
	for at := home(h, g.depth); ; at = after(at) {
		p := &g.groups[at]
		if free := p.tags & highBits; free != 0 {
			i := bits.TrailingZeros64(free) / slotShift
			if p.tag(i) == tagDead {
				g.dead--
			}
			p.setTag(i, tag(h))
			p.refs[i] = r
			g.used++
			return
		}
	}
}

// insert adds the ref of a new member. rehash returns the hash of an existing one.
func (x *index) insert(h uint64, r ref, rehash func(ref) uint64) {
	g := x.segment(h)
	for int(g.used)+int(g.dead) >= segmentMax {
		x.makeRoom(g, h, rehash)
		g = x.segment(h)
	}
	g.put(h, r)
	x.count++
}

// remove removes the ref of a member. If the group has an empty slot, no probe went beyond the group, so the slot can
// be empty again; otherwise it is dead.
func (x *index) remove(h uint64, r ref, rehash func(ref) uint64) {
	g := x.segment(h)
	p, i := g.slotOf(h, r)
	if p.hasEmpty() {
		p.setTag(i, tagEmpty)
	} else {
		p.setTag(i, tagDead)
		g.dead++
	}
	p.refs[i] = 0
	g.used--
	x.count--
	if g.used < segmentMerge && g.depth > 0 {
		x.merge(g, h, rehash)
	}
}

// replace replaces the ref of a member whose entry moved.
func (x *index) replace(h uint64, from, to ref) {
	p, i := x.segment(h).slotOf(h, from)
	p.refs[i] = to
}

// makeRoom splits a segment, or makes it anew if much of it is dead.
func (x *index) makeRoom(g *segment, h uint64, rehash func(ref) uint64) {
	if int(g.used) < segmentMax/2 {
		x.place(g.depth, h, []*segment{newSegment(g.depth)}, rehash, g)
		return
	}
	if uint(g.depth) == x.bits {
		x.double()
	}
	if uint(g.depth)+1 == x.bits {
		x.deepest += 2
	}
	x.place(g.depth, h, []*segment{newSegment(g.depth + 1), newSegment(g.depth + 1)}, rehash, g)
}

// merge joins a segment with its twin, from which a split separated it, if both together fill half of one or less.
func (x *index) merge(g *segment, h uint64, rehash func(ref) uint64) {
	twin := x.segment(h ^ 1<<(64-uint(g.depth)))
	if twin.depth != g.depth || int(twin.used)+int(g.used) > segmentMax/2 {
		return
	}
	if uint(g.depth) == x.bits {
		x.deepest -= 2
	}
	x.place(g.depth-1, h, []*segment{newSegment(g.depth - 1)}, rehash, g, twin)
	for x.deepest == 0 && x.bits > 0 {
		x.halve()
	}
}

// place moves the members of the old segments to the new ones. Both cover the hashes that share the top depth bits with
// h.
func (x *index) place(depth uint8, h uint64, into []*segment, rehash func(ref) uint64, old ...*segment) {
	first := 0
	if depth > 0 {
		first = int(h>>(64-uint(depth))) << (x.bits - uint(depth))
	}
	each := 1 << (x.bits - uint(depth)) / len(into)
	for i := range each * len(into) {
		x.dir[first+i] = into[i/each]
		x.depths[first+i] = into[i/each].depth
	}
	for _, g := range old {
		for i := range g.groups {
			for _, r := range g.groups[i].refs {
				if r != 0 {
					h := rehash(r)
					x.segment(h).put(h, r)
				}
			}
		}
	}
}

func (x *index) double() {
	x.bits++
	x.resize(func(i int) int { return i / 2 })
}

func (x *index) halve() {
	x.bits--
	x.resize(func(i int) int { return 2 * i })
}

// resize makes a new directory, whose place i is the old place old(i).
func (x *index) resize(old func(i int) int) {
	dir, depths := make([]*segment, 1<<x.bits), make([]uint8, 1<<x.bits)
	x.deepest = 0
	for i := range dir {
		dir[i], depths[i] = x.dir[old(i)], x.depths[old(i)]
		if uint(depths[i]) == x.bits {
			x.deepest++
		}
	}
	x.dir, x.depths = dir, depths
}

// cursorBits is how many bits of the hash a cursor has: a number in JavaScript or Lua has 53 bits.
const cursorBits = 48

// scan calls fn for the members whose hash is at or above the cursor, until there were about count of them, and returns
// the cursor after them, 0 at the end. A segment with many more members than count is scanned in parts.
func (x *index) scan(cursor uint64, count int, rehash func(ref) uint64, fn func(ref)) uint64 {
	from, done := cursor<<(64-cursorBits), 0
	for {
		g := x.segment(from)
		span := uint(64) - uint(g.depth) // log2 of the part of hashes
		for part := int(g.used); part > 2*max(count, 1) && span > 64-cursorBits; part /= 2 {
			span--
		}
		next := (from>>span + 1) << span // 0 after the last hash
		g.scan(from, next-1, func(r ref) {
			if h := rehash(r); from <= h && h <= next-1 {
				fn(r)
				done++
			}
		})
		if next == 0 {
			return 0
		}
		if done >= max(count, 1) {
			return next >> (64 - cursorBits)
		}
		from = next
	}
}

// scan calls fn for the refs in all slots where hashes from first to last can be: in the groups where their probes
// start, and in those after them until a probe would stop.
func (g *segment) scan(first, last uint64, fn func(ref)) {
	start, end := home(first, g.depth), home(last, g.depth)
	for at, probing := start, false; ; {
		p := &g.groups[at]
		for _, r := range p.refs {
			if r != 0 {
				fn(r)
			}
		}
		probing = probing || at == end
		if at = after(at); at == start || probing && p.hasEmpty() {
			return
		}
	}
}

func (x *index) memoryUsage() int {
	bytes := 9 * len(x.dir)
	for i, g := range x.dir {
		if i == 0 || g != x.dir[i-1] {
			bytes += segmentBytes
		}
	}
	return bytes
}
