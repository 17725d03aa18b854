package engine

// The hash table of one shard and database. The entries are in the order of their hashes, cut into segments
// (segment.go) of some thousand keys. A segment that is full is rebuilt, or split into two, while its shard is
// locked. The table is never rebuilt as a whole: that locked a shard for 8 ms where 10^7 keys were filled in. On the
// other hand a find without segments is 4 ns faster.
//
// The directory finds the segment of a hash by its first bits (extendible hashing, Fagin et al. 1979). A segment that
// has fewer bits than the directory is in it several times, side by side. The directory doubles when a segment with
// as many bits as itself is split. Doubling copies references only.
//
// The table is written under its shard's lock. Control words, slots and the directory, once others can see them, are
// written by atomic stores, since Touch reads them without the lock.
//
// SCAN: an entry belongs to the group that its hash selects (its home), even when it was put further along. The
// cursor is a hash: all entries with smaller ones have been returned. That means the same in a table of any size. So
// a key that is present throughout a scan is returned once, however the table grows and shrinks meanwhile.

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"
)

type table struct {
	segments []unsafe.Pointer // *segment: the directory, whose length is a power of two
	shift    uint64           // 64 less the bits by which the directory tells hashes apart
	width    int              // slots of all segments
	shape    unsafe.Pointer   // *shape: the directory for those without the lock
	used     int
	bytes    int64   // memory of the table and its entries
	counts   *counts // nil where there has been no entry yet
	queues   []*partedEntry
	// been notes that the database has had entries. It is nil in a table that is in no keyspace. It stays where it is
	// when contents are exchanged.
	been *atomic.Bool
}

// shape is the directory for readers without the lock. A doubled directory is a new shape.
type shape struct {
	segments []unsafe.Pointer
	shift    uint64
}

// empty forgets all entries.
func (t *table) empty() { t.exchange(&table{}) }

// exchange swaps the contents of two tables. Others may see one of them, or both.
func (t *table) exchange(o *table) {
	a, b := t.shape, o.shape
	t.segments, o.segments = o.segments, t.segments
	t.shift, o.shift = o.shift, t.shift
	t.width, o.width = o.width, t.width
	t.used, o.used = o.used, t.used
	t.bytes, o.bytes = o.bytes, t.bytes
	t.counts, o.counts = o.counts, t.counts
	t.queues, o.queues = o.queues, t.queues
	atomic.StorePointer(&t.shape, b)
	atomic.StorePointer(&o.shape, a)
	t.mark()
	o.mark()
}

// mark notes that the database has had entries. Tally skips databases that never had any.
func (t *table) mark() {
	if t.counts != nil && t.been != nil {
		t.been.Store(true)
	}
}

// hashSeed makes the order of keys differ between processes and collisions
// unpredictable for clients.
var hashSeed = maphash.MakeSeed()

// HashBytes is the hash that decides where keys are.
func HashBytes(b []byte) uint64 { return maphash.Bytes(hashSeed, b) }

// placeShift leaves out the upper bits of a hash: those that are the same for all keys of a shard, and those above,
// from which the tag is made.
const placeShift = 16

// placeBits is the number of bits of a place.
const placeBits = 64 - placeShift

// placeOf is the place of a hash in the order of the groups.
func placeOf(hash uint64) uint64 { return hash << placeShift >> placeShift }

// A slot of the table, as find returns it, or -1: the number in the directory, then the slot in the segment.
const (
	slotBits = 13
	slotMask = 1<<slotBits - 1
)

// segment is the segment with a number in the directory. The table must have segments.
func (t *table) segment(n int) *segment { return (*segment)(t.segments[n]) }

// numberOf is the number in the directory of the segment of a hash.
func (t *table) numberOf(hash uint64) int { return int(hash << placeShift >> t.shift) }

// nextSegment is the number of the segment behind the one with this number.
func (t *table) nextSegment(n int) int {
	same := 64 - t.shift - t.segment(n).depth // bits of the number that all lead to this segment
	return (n>>same + 1) << same
}

// firstOf is the first place of the segment with this number.
func (t *table) firstOf(n int) uint64 { return uint64(n) << t.shift >> placeShift }

// slot is the slot that find has found.
func (t *table) slot(i int) *unsafe.Pointer { return &t.segment(i >> slotBits).slots[i&slotMask] }

// at is the entry that find has found.
func (t *table) at(i int) Entry { return Entry{(*header)(*t.slot(i))} }

// find returns the slot of key, or -1.
func (t *table) find(hash uint64, key []byte) int {
	if len(t.segments) == 0 {
		return -1
	}
	n := t.numberOf(hash)
	p := t.segment(n)
	tag := tagOf(hash)
	g := p.home(hash)
	for range p.ctrl {
		word := p.ctrl[g]
		for m := matchTag(word, tag); m != 0; m &= m - 1 {
			i := g*groupSlots + bits.TrailingZeros64(m)>>3
			e := Entry{(*header)(p.slots[i])}
			if e.h != nil && int(e.h.keyLen&^keyElsewhere) == len(key) && string(e.Key()) == string(key) {
				return n<<slotBits | i
			}
		}
		if matchEmpty(word) != 0 {
			return -1
		}
		g = p.after(g)
	}
	return -1
}

// entry returns the entry of a key, the zero Entry if there is none.
func (t *table) entry(key []byte) Entry {
	if i := t.find(HashBytes(key), key); i >= 0 {
		return t.at(i)
	}
	return Entry{}
}

// insert adds an entry whose key is not in the table.
func (t *table) insert(hash uint64, e Entry) {
	if len(t.segments) == 0 {
		t.begin()
	}
	p := t.segment(t.numberOf(hash))
	for p.full() {
		t.resize(t.numberOf(hash))
		p = t.segment(t.numberOf(hash))
	}
	p.insert(hash, e)
	t.used++
	t.enters(e)
}

// begin makes the first segment.
func (t *table) begin() {
	if t.counts == nil {
		t.counts = new(counts)
		t.mark()
	}
	t.direct([]unsafe.Pointer{unsafe.Pointer(newSegment(0, 1))}, 64)
	t.wider(groupSlots)
}

// direct gives the table another directory.
func (t *table) direct(segments []unsafe.Pointer, shift uint64) {
	t.segments, t.shift = segments, shift
	atomic.StorePointer(&t.shape, unsafe.Pointer(&shape{segments, shift}))
}

func (t *table) wider(slots int) {
	t.width += slots
	t.bytes += int64(slots) * slotBytes
}

// replace puts another entry for the same key into slot i.
func (t *table) replace(i int, e Entry) {
	t.leaves(t.at(i))
	t.enters(e)
	atomic.StorePointer(t.slot(i), unsafe.Pointer(e.h))
}

// remove empties slot i.
func (t *table) remove(i int) {
	t.leaves(t.at(i))
	p := t.segment(i >> slotBits)
	p.remove(i & slotMask)
	if t.used--; t.used == 0 && len(t.segments) > 1 {
		t.wider(-t.width)
		t.segments = nil
		atomic.StorePointer(&t.shape, nil)
	} else if p.sparse() {
		t.resize(i >> slotBits)
	}
}

// resize rebuilds the segment with this number at the size that it needs, as two segments if that is too large for
// one.
func (t *table) resize(n int) {
	p := t.segment(n)
	groups := p.groupsFor()
	if groups <= groupsMax {
		q := newSegment(p.depth, groups)
		p.move(q, q)
		t.put(n, q)
		t.wider(len(q.slots) - len(p.slots))
		return
	}
	if p.depth == 64-t.shift {
		segments := make([]unsafe.Pointer, 0, 2*len(t.segments))
		for _, same := range t.segments {
			segments = append(segments, same, same)
		}
		t.direct(segments, t.shift-1)
		n *= 2
	}
	low, high := newSegment(p.depth+1, halfGroups), newSegment(p.depth+1, halfGroups)
	p.move(low, high)
	n = n >> (64 - t.shift - p.depth) << (64 - t.shift - p.depth)
	t.put(n, low)
	t.put(t.nextSegment(n), high)
	t.wider(len(low.slots) + len(high.slots) - len(p.slots))
}

// put enters a segment in the directory wherever the segment with the number n was, or in its half if that segment
// was split.
func (t *table) put(n int, p *segment) {
	same := 64 - t.shift - p.depth
	for first, i := n>>same<<same, 0; i < 1<<same; i++ {
		atomic.StorePointer(&t.segments[first+i], unsafe.Pointer(p))
	}
}

// rebuildAhead is how many entries a rebuild reads before it puts them in, and a walk before it shows them, so that
// their cache misses overlap.
const rebuildAhead = 16

// scan calls fn with every entry that is in the cursor's group and whose place is not before the cursor. It returns
// the next cursor, 0 at the end. fn must not change the table.
func (t *table) scan(cursor uint64, fn func(Entry)) uint64 {
	if len(t.segments) == 0 {
		return 0
	}
	cursor = placeOf(cursor)
	n := t.numberOf(cursor)
	p := t.segment(n)
	if next := p.scan(cursor, fn); next != 0 {
		return t.firstOf(n)>>(placeBits-p.depth)<<(placeBits-p.depth) | next
	}
	if n = t.nextSegment(n); n == len(t.segments) {
		return 0
	}
	return t.firstOf(n)
}

// each calls fn with every entry until it returns false. fn must not change
// the table. Entries are read ahead, so that their cache misses overlap.
func (t *table) each(fn func(Entry) bool) {
	for n := 0; n < len(t.segments); n = t.nextSegment(n) {
		if !t.segment(n).each(fn) {
			return
		}
	}
}

// walk goes through a table in steps, between which others may change the table. It meets every entry that is present
// throughout, some of them more than once.
type walk struct {
	place uint64 // the first place of the current segment
	seen  *segment
	at    int // how far the walk is in that segment
}

// segment is the segment where the walk is, nil at the end. If it has been rebuilt or split meanwhile, the walk
// begins it anew, since its entries may be anywhere in it.
func (w *walk) segment(t *table) *segment {
	if len(t.segments) == 0 || w.place == walked {
		return nil
	}
	p := t.segment(t.numberOf(w.place))
	if p != w.seen {
		w.seen, w.at = p, 0
	}
	return p
}

// leave moves on to the next segment.
func (w *walk) leave(t *table) {
	n := t.nextSegment(t.numberOf(w.place))
	w.place, w.seen = walked, nil
	if n < len(t.segments) {
		w.place = t.firstOf(n)
	}
}

// walked is the place of a walk at its end.
const walked = 1 << placeBits

// random returns an entry near a random place, the zero Entry when empty.
func (t *table) random(r uint64) Entry {
	e, _ := t.randomOf(r, func(Entry) bool { return true })
	return e
}

// randomOf is random among the entries that fit. It also returns how many entries it looked at: all, if none fits.
func (t *table) randomOf(r uint64, fits func(Entry) bool) (e Entry, looked int) {
	if t.used == 0 {
		return Entry{}, 0
	}
	n := t.numberOf(r)
	first := t.segment(n)
	at := int(bits.RotateLeft64(r, 32) % uint64(len(first.slots)))
	for around := false; ; around = t.segment(n) == first {
		if p := t.segment(n); p.used > 0 {
			for _, slot := range p.slots[at:] {
				if slot == nil {
					continue
				}
				looked++
				if e = (Entry{(*header)(slot)}); fits(e) {
					return e, looked
				}
			}
		}
		if around {
			return Entry{}, looked
		}
		at = 0
		if n = t.nextSegment(n); n == len(t.segments) {
			n = 0
		}
	}
}

// twin is a copy of a table with copies of its entries.
func (t *table) twin(clone func(obj any) any) table {
	if t.used == 0 {
		return table{}
	}
	c := *t
	own := *t.counts
	c.counts = &own
	c.queues = make([]*partedEntry, len(t.queues))
	c.direct(slices.Clone(t.segments), t.shift)
	for n := 0; n < len(c.segments); n = c.nextSegment(n) {
		c.put(n, c.segment(n).twin(func(e Entry) Entry {
			e = e.twin(clone)
			if e.h.kind == KindDelayQueue {
				c.queues[e.parted().at] = e.parted()
			}
			return e
		}))
	}
	return c
}
