package zset

import (
	"encoding/binary"
	"math/bits"
)

// index finds a member's entry by a hash of the member. It is extendible
// hashing: the top bits of the hash choose a segment through a directory, and a
// segment is a small open-addressed table of refs, probed a group of 8 slots at
// a time by a word of 7-bit tags. A full segment is split in two, alone, so
// growing never rehashes the whole (40 ms for a million members, as each hash
// is a cache miss). It takes about 8 bytes a member, where a
// map[string]float64 takes over 50 and makes the collector look at each.
//
// As a segment holds a contiguous range of hashes, walking segments in order
// with the hash as the cursor is a SCAN that no growth disturbs.
type index struct {
	dir     []*segment // a power of two of them; a segment may stand in several places in a row
	bits    uint       // log2(len(dir))
	deepest int        // segments with depth == bits
	count   int        // members
}

const (
	groupSlots   = 8
	groups       = 51 // 51*8*5 bytes and the header fill an allocation of 2048
	slots        = groups * groupSlots
	segmentMax   = slots * 7 / 8 // living and dead; so each probe meets an empty slot
	segmentMerge = slots / 8     // below this a segment looks for its twin
	tagEmpty     = 0x80
	tagDead      = 0xFE
	lowBits      = 0x0101010101010101
	highBits     = 0x8080808080808080
)

type segment struct {
	depth uint8 // how many top bits of the hash its members share
	used  uint16
	dead  uint16
	tags  [slots]uint8 // 7 bits of the hash, tagEmpty or tagDead
	refs  [slots]ref
}

func newSegment(depth uint8) *segment {
	g := &segment{depth: depth}
	for i := range g.tags {
		g.tags[i] = tagEmpty
	}
	return g
}

func newIndex() index {
	return index{dir: []*segment{newSegment(0)}, deepest: 1}
}

// hashMember mixes 16 bytes a step by a full multiplication, as wyhash does. It
// is seeded and so cannot be attacked from outside; it decides no order that
// anyone sees but that of ZSCAN.
func hashMember(b []byte, seed uint64) uint64 {
	const k0, k1, k2 = 0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3
	h := seed ^ k0
	n := uint64(len(b))
	for len(b) > 16 {
		h = mix(binary.LittleEndian.Uint64(b)^k1, binary.LittleEndian.Uint64(b[8:])^h)
		b = b[16:]
	}
	var lo, hi uint64
	switch {
	case len(b) >= 8: // the two words may overlap
		lo, hi = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[len(b)-8:])
	case len(b) >= 4:
		lo, hi = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))
	case len(b) > 0:
		lo = uint64(b[0])<<16 | uint64(b[len(b)/2])<<8 | uint64(b[len(b)-1])
	}
	return mix(mix(lo^k1, hi^h)^n, k2^seed)
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func (x *index) segment(h uint64) *segment {
	return x.dir[h>>(64-x.bits)]
}

// home returns the group where probing starts. The top bits have chosen the
// segment and the lowest are the tag, so the ones between decide.
func home(h uint64) int {
	return int(uint64(uint32(h>>8)) * groups >> 32)
}

func tag(h uint64) uint8 { return uint8(h) & 0x7f }

func (g *segment) word(group int) uint64 {
	return binary.LittleEndian.Uint64(g.tags[group*groupSlots:])
}

// zeros marks the bytes of w that are 0 (and perhaps a byte above one, so hits
// are to be checked).
func zeros(w uint64) uint64 { return (w - lowBits) &^ w & highBits }

// find returns the slot of a member, -1 if it is not there.
func (g *segment) find(a *arena, h uint64, member []byte) int {
	group := home(h)
	pattern := lowBits * uint64(tag(h))
	for {
		w := g.word(group)
		for hits := zeros(w ^ pattern); hits != 0; hits &= hits - 1 {
			slot := group*groupSlots + bits.TrailingZeros64(hits)/8
			if g.tags[slot] == tag(h) && string(a.member(g.refs[slot])) == string(member) {
				return slot
			}
		}
		if hasEmpty(w) {
			return -1
		}
		if group++; group == groups {
			group = 0
		}
	}
}

// hasEmpty tells tagEmpty, whose lowest bits are 0, from tagDead.
func hasEmpty(w uint64) bool { return w&^(w<<6)&highBits != 0 }

// slotOf returns the slot that holds r, which is there.
func (g *segment) slotOf(h uint64, r ref) int {
	group := home(h)
	for {
		for slot := group * groupSlots; slot < (group+1)*groupSlots; slot++ {
			if g.refs[slot] == r && g.tags[slot] == tag(h) {
				return slot
			}
		}
		if group++; group == groups {
			group = 0
		}
	}
}

// put stores a ref that is not there; there is room.
func (g *segment) put(h uint64, r ref) {
	group := home(h)
	for {
		if w := g.word(group) & highBits; w != 0 {
			slot := group*groupSlots + bits.TrailingZeros64(w)/8
			if g.tags[slot] == tagDead {
				g.dead--
			}
			g.tags[slot], g.refs[slot] = tag(h), r
			g.used++
			return
		}
		if group++; group == groups {
			group = 0
		}
	}
}

// cut removes a slot. It may be empty again, and not only dead, if its group
// has an empty slot, for then no probe went beyond the group.
func (g *segment) cut(slot int) {
	g.used--
	g.refs[slot] = 0
	if hasEmpty(g.word(slot / groupSlots)) {
		g.tags[slot] = tagEmpty
	} else {
		g.tags[slot] = tagDead
		g.dead++
	}
}

// find returns the entry of a member.
func (x *index) find(a *arena, h uint64, member []byte) (ref, bool) {
	g := x.segment(h)
	slot := g.find(a, h, member)
	if slot < 0 {
		return 0, false
	}
	return g.refs[slot], true
}

// insert adds the ref of a member that is not there. rehash gives the hash of
// one that is.
func (x *index) insert(h uint64, r ref, rehash func(ref) uint64) {
	g := x.segment(h)
	for int(g.used)+int(g.dead) >= segmentMax {
		x.makeRoom(g, h, rehash)
		g = x.segment(h)
	}
	g.put(h, r)
	x.count++
}

// remove removes the ref of a member.
func (x *index) remove(h uint64, r ref, rehash func(ref) uint64) {
	g := x.segment(h)
	g.cut(g.slotOf(h, r))
	x.count--
	if g.used < segmentMerge && g.depth > 0 {
		x.merge(g, h, rehash)
	}
}

// replace gives a member whose entry moved its new ref.
func (x *index) replace(h uint64, from, to ref) {
	g := x.segment(h)
	g.refs[g.slotOf(h, from)] = to
}

// makeRoom splits a segment, or cleans it if much of it is dead.
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

// merge joins a segment with its twin, with which it was one before a split, if
// both together fill less than half of one.
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

// place puts the members of the old segments, which cover the hashes that share
// the top depth bits with h, in the new ones, which cover the same.
func (x *index) place(depth uint8, h uint64, into []*segment, rehash func(ref) uint64, old ...*segment) {
	first := 0
	if depth > 0 {
		first = int(h>>(64-uint(depth))) << (x.bits - uint(depth))
	}
	each := 1 << (x.bits - uint(depth)) / len(into)
	for i := range each * len(into) {
		x.dir[first+i] = into[i/each]
	}
	for _, g := range old {
		for slot, t := range g.tags {
			if t < tagEmpty {
				h := rehash(g.refs[slot])
				x.segment(h).put(h, g.refs[slot])
			}
		}
	}
}

func (x *index) double() {
	dir := make([]*segment, 2*len(x.dir))
	for i := range dir {
		dir[i] = x.dir[i/2]
	}
	x.dir, x.deepest = dir, 0
	x.bits++
}

func (x *index) halve() {
	dir := make([]*segment, len(x.dir)/2)
	x.bits--
	for i := range dir {
		dir[i] = x.dir[2*i]
		if uint(dir[i].depth) == x.bits {
			x.deepest++
		}
	}
	x.dir = dir
}

// cursorBits is how much of the hash a cursor holds: a client in JavaScript or
// Lua keeps 53 bits of a number.
const cursorBits = 48

// scan calls fn for the members whose hash is at or above the cursor until they
// are about count, and returns the cursor after them, 0 at the end. A segment is
// handed out in parts if it holds much more than count.
func (x *index) scan(cursor uint64, count int, rehash func(ref) uint64, fn func(ref)) uint64 {
	from, done := cursor<<(64-cursorBits), 0
	for {
		g := x.segment(from)
		span := uint(64) - uint(g.depth) // log2 of the part of hashes
		for part := int(g.used); part > 2*max(count, 1) && span > 64-cursorBits; part /= 2 {
			span--
		}
		for slot, t := range g.tags {
			if t >= tagEmpty {
				continue
			}
			h := rehash(g.refs[slot])
			if h>>span == from>>span && h >= from {
				fn(g.refs[slot])
				done++
			}
		}
		from = (from>>span + 1) << span
		if from == 0 || span == 64 {
			return 0
		}
		if done >= max(count, 1) {
			return from >> (64 - cursorBits)
		}
	}
}

func (x *index) memoryUsage() int {
	bytes := 8 * len(x.dir)
	for i, g := range x.dir {
		if i == 0 || g != x.dir[i-1] {
			bytes += 2048
		}
	}
	return bytes
}
