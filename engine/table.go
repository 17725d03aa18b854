package engine

// The hash table of one shard and database: the hashes in their order, cut into
// segments (segment.go) of some thousand keys. A segment that is full is rebuilt, or
// split into two, while its shard is locked. The table is never rebuilt as a whole: that
// held a shard for 8 ms where 10^7 keys were filled in, and a find is 4 ns faster without
// segments.
//
// The directory names the segment of each hash by its first bits (extendible hashing,
// Fagin et al. 1979). A segment of fewer bits than the directory stands there several
// times, side by side. The directory doubles when a segment must be told apart that has
// as many bits, which copies references only.
//
// What belongs to the table is written under its shard's lock; control words, slots
// and the directory, once others can see them, by atomic stores, since Touch looks at
// them without the lock.
//
// SCAN: an entry belongs to the group that has its hash (its home), even when it
// was put further along. The cursor is a hash up to which all has been shown. That
// means the same in a table of any size, so whatever is present throughout a scan
// is returned once, however the table grows and shrinks meanwhile.

import (
	"hash/maphash"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"
)

type table struct {
	segments []unsafe.Pointer // *segment: the directory, as long as a power of two
	shift    uint64           // 64 less the bits by which the directory tells hashes apart
	width    int              // slots of all segments
	shape    unsafe.Pointer   // *shape: the directory for those without the lock
	used     int
	bytes    int64   // what the table and its entries take
	counts   *counts // nil where there has been no entry yet
	queues   []*partedEntry
	// been is the database's mark that it has had entries, nil where the table is of no
	// keyspace. It stays where it is when contents are exchanged.
	been *atomic.Bool
}

// shape is the directory as it is found without the lock. A directory that has doubled
// is another one.
type shape struct {
	segments []unsafe.Pointer
	shift    uint64
}

// empty forgets all entries.
func (t *table) empty() { t.exchange(&table{}) }

// exchange swaps the contents of two tables, of which one may be seen by
// others and one not, or both.
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

// mark notes that the database has had entries, which lets Tally pass over those that
// never had any.
func (t *table) mark() {
	if t.counts != nil && t.been != nil {
		t.been.Store(true)
	}
}

// hashSeed makes the order of keys differ between processes and collisions
// unpredictable for clients.
var hashSeed = maphash.MakeSeed()

// HashBytes is the hash by which keys are placed.
func HashBytes(b []byte) uint64 { return maphash.Bytes(hashSeed, b) }

// placeShift leaves out those bits of a hash that are the same for all keys of a
// shard, and what is above them, of which the tag is.
const placeShift = 16

// placeBits are those of a place.
const placeBits = 64 - placeShift

// placeOf is where a hash is in the order of the groups.
func placeOf(hash uint64) uint64 { return hash << placeShift >> placeShift }

// A place in the table, or -1: the number in the directory, and the slot of the segment.
const (
	slotBits = 13
	slotMask = 1<<slotBits - 1
)

// segment is the segment of a hash; the table has some.
func (t *table) segment(n int) *segment { return (*segment)(t.segments[n]) }

// numberOf is where the directory names the segment of a hash.
func (t *table) numberOf(hash uint64) int { return int(hash << placeShift >> t.shift) }

// nextSegment is the number of the segment behind the one with this number.
func (t *table) nextSegment(n int) int {
	same := 64 - t.shift - t.segment(n).depth // bits that make no difference
	return (n>>same + 1) << same
}

// firstOf is the first place of the segment with this number.
func (t *table) firstOf(n int) uint64 { return uint64(n) << t.shift >> placeShift }

// slot is what find has found.
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

// entry returns what is under a key, the zero Entry if nothing is.
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

// resize rebuilds the segment with this number at the size that it is to have, as two if
// that is too much for one.
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

// put has a segment stand wherever the directory names the segment whose number is n, or that
// segment's half.
func (t *table) put(n int, p *segment) {
	same := 64 - t.shift - p.depth
	for first, i := n>>same<<same, 0; i < 1<<same; i++ {
		atomic.StorePointer(&t.segments[first+i], unsafe.Pointer(p))
	}
}

// rebuildAhead is how many entries a rebuild has read ahead of putting them in, and
// a walk ahead of showing them: their cache misses then overlap.
const rebuildAhead = 16

// scan calls fn with every entry whose place is not before the cursor and in the
// same group, and returns the next cursor, 0 at the end. fn must not change the
// table.
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

// walk goes through a table by steps, between which others change the table. What is
// there throughout is met, some of it more than once.
type walk struct {
	place uint64 // where a segment begins
	seen  *segment
	at    int // how far in the segment the walk is
}

// segment is the segment where the walk is, nil at the end. A segment that has been rebuilt or
// split meanwhile begins anew: its entries may be anywhere in it.
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

// leave goes on with the next segment.
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

// randomOf is random for one of those that fit, and tells how many entries it looked at: all, if none fits.
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
