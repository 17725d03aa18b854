package engine

// A segment of a table: open addressing in groups of 8 slots. A group has one control
// word with a byte per slot (0 empty, 1 deleted, 0x80|7 bits of hash in use), so a
// lookup compares 8 slots with a few integer operations and touches an entry only
// where 7 bits agree. The slots are bare references; keys and hashes are not repeated
// in the table.
//
// The groups divide the hashes of the segment into equal ranges, in order, so there may be any number of groups.

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

const (
	groupSlots   = 8
	ctrlLow      = 0x0101010101010101
	ctrlHigh     = 0x8080808080808080
	ctrlDeleted  = 0x01
	loadNum      = 7 // a segment is full when 7/8 of the slots are not empty
	shrinkFactor = 8 // shrink when fewer than 1/8 of the slots are used
	smallGroups  = 4 // a segment this small is not worth shrinking

	// groupsMax is the most groups of a segment.
	groupsMax = 1 << slotBits / groupSlots
)

// halfGroups is the size of the two halves of a split segment, which may grow by a quarter before they are rebuilt.
// The slots of these, and of the largest segments, fill whole pages of Go's allocator.
const halfGroups = groupsMax * 5 / 8

// segment holds the entries whose places begin with the same bits. It fills one cache line.
type segment struct {
	ctrl          []uint64
	slots         []unsafe.Pointer // *header
	used, deleted int32
	depth         uint64 // the number of these bits
}

func newSegment(depth uint64, groups int) *segment {
	return &segment{ctrl: make([]uint64, groups), slots: make([]unsafe.Pointer, groups*groupSlots), depth: depth}
}

// homeOf is the group, among so many, that a hash belongs to.
func homeOf(hash uint64, groups int) int {
	g, _ := bits.Mul64(hash<<placeShift, uint64(groups))
	return int(g)
}

// home is the group that a hash of this segment belongs to.
func (p *segment) home(hash uint64) int { return homeOf(hash<<p.depth, len(p.ctrl)) }

// firstPlace is the first place whose home is a given group, among so many. The group is not the first one.
func firstPlace(group, groups int) uint64 {
	q, _ := bits.Div64(uint64(group), 0, uint64(groups))
	place := q >> placeShift
	if homeOf(place, groups) < group {
		place++ // both divisions round down
	}
	return place
}

// after is the group where a search continues after a group.
func (p *segment) after(g int) int {
	if g++; g < len(p.ctrl) {
		return g
	}
	return 0
}

func matchTag(word uint64, tag uint64) uint64 {
	x := word ^ (ctrlLow * tag)
	return (x - ctrlLow) &^ x & ctrlHigh
}

// matchEmpty marks the slots that were never used: byte 0.
func matchEmpty(word uint64) uint64 { return (word - ctrlLow) &^ word & ctrlHigh }

func tagOf(hash uint64) uint64 { return 0x80 | hash>>57 }

// full tells whether the segment must be rebuilt before another entry comes.
func (p *segment) full() bool { return int(p.used+p.deleted+1)*8 > len(p.slots)*loadNum }

// sparse tells whether the segment should be made smaller.
func (p *segment) sparse() bool {
	return len(p.slots) > groupSlots*smallGroups && int(p.used)*shrinkFactor < len(p.slots)
}

// insert adds an entry to a segment that is not full.
func (p *segment) insert(hash uint64, e Entry) {
	g, i := p.freeSlot(hash)
	word := p.ctrl[g]
	if byte(word>>(8*i)) == ctrlDeleted {
		p.deleted--
	}
	atomic.StoreUint64(&p.ctrl[g], withTag(word, i, hash))
	atomic.StorePointer(&p.slots[g*groupSlots+i], unsafe.Pointer(e.h))
	p.used++
}

// freeSlot finds the group and the slot for a new entry with a hash.
func (p *segment) freeSlot(hash uint64) (group, slot int) {
	g := p.home(hash)
	for {
		if free := ^p.ctrl[g] & ctrlHigh; free != 0 {
			return g, bits.TrailingZeros64(free) >> 3
		}
		g = p.after(g)
	}
}

func withTag(word uint64, slot int, hash uint64) uint64 {
	return word&^(0xff<<(8*slot)) | tagOf(hash)<<(8*slot)
}

// remove empties slot i.
func (p *segment) remove(i int) {
	g, s := i/groupSlots, i%groupSlots
	word := p.ctrl[g] &^ (0xff << (8 * s))
	// A probe never went past a group that still has an empty slot, so the slot can be empty again. Otherwise it must
	// get the deleted marker.
	if matchEmpty(p.ctrl[g]) == 0 {
		word |= ctrlDeleted << (8 * s)
		p.deleted++
	}
	atomic.StoreUint64(&p.ctrl[g], word)
	atomic.StorePointer(&p.slots[i], nil)
	p.used--
}

// groupsFor is how many groups a rebuild gives the segment; more than groupsMax means that it is split. After a
// rebuild it is about 7/12 full: it may grow by half before the next one.
func (p *segment) groupsFor() int {
	const full = groupSlots * loadNum
	groups := ((int(p.used)+1)*groupSlots*3/2 + full - 1) / full
	switch {
	case groups < len(p.ctrl) && int(p.used)*shrinkFactor >= len(p.slots):
		return len(p.ctrl) // the segment is full of deleted markers
	case groups > groupsMax*3/4 && len(p.ctrl) < groupsMax:
		return groupsMax
	}
	return groups
}

// move puts the entries into the two halves of the segment, or all into one if low and high are the same. Entries are
// read ahead, so that their cache misses overlap.
func (p *segment) move(low, high *segment) {
	var next [rebuildAhead]Entry
	for old := p.slots; len(old) > 0; {
		n, lengths := 0, uint64(0)
		for len(old) > 0 && n < rebuildAhead {
			if r := old[0]; r != nil {
				next[n] = Entry{(*header)(r)}
				lengths += uint64(next[n].h.keyLen)
				n++
			}
			old = old[1:]
		}
		touched.keep(lengths)
		for _, e := range next[:n] {
			hash := HashBytes(e.Key())
			to := low
			if hash<<placeShift<<p.depth>>63 != 0 {
				to = high
			}
			g, i := to.freeSlot(hash)
			to.ctrl[g] = withTag(to.ctrl[g], i, hash)
			to.slots[g*groupSlots+i] = unsafe.Pointer(e.h)
			to.used++
		}
	}
}

// scan does the part of table.scan in this segment. It returns the place of the next group within the segment, 0 at
// its end.
func (p *segment) scan(cursor uint64, fn func(Entry)) uint64 {
	home := p.home(cursor)
	g := home
	for range p.ctrl {
		word := p.ctrl[g]
		for m := word & ctrlHigh; m != 0; m &= m - 1 {
			e := Entry{(*header)(p.slots[g*groupSlots+bits.TrailingZeros64(m)>>3])}
			if hash := HashBytes(e.Key()); p.home(hash) == home && placeOf(hash) >= cursor {
				fn(e)
			}
		}
		if matchEmpty(word) != 0 {
			break
		}
		g = p.after(g)
	}
	if home++; home == len(p.ctrl) {
		return 0
	}
	return (firstPlace(home, len(p.ctrl)) + 1<<p.depth - 1) >> p.depth
}

// each is table.each for the segment. It reports whether fn wants more entries.
func (p *segment) each(fn func(Entry) bool) bool {
	for slots := p.slots; len(slots) > 0; {
		some := slots[:min(rebuildAhead, len(slots))]
		slots = slots[len(some):]
		lengths := uint64(0)
		for _, r := range some {
			if r != nil {
				lengths += uint64((*header)(r).keyLen)
			}
		}
		touched.keep(lengths)
		for _, r := range some {
			if r != nil && !fn(Entry{(*header)(r)}) {
				return false
			}
		}
	}
	return true
}

// twin is a copy of the segment, with copies of its entries that copied makes.
func (p *segment) twin(copied func(Entry) Entry) *segment {
	c := newSegment(p.depth, len(p.ctrl))
	c.used, c.deleted = p.used, p.deleted
	copy(c.ctrl, p.ctrl)
	for i, r := range p.slots {
		if r != nil {
			c.slots[i] = unsafe.Pointer(copied(Entry{(*header)(r)}).h)
		}
	}
	return c
}
