package engine

// The hash table of one shard and database: open addressing in groups of 8
// slots. A group has one control word with a byte per slot (0 empty, 1
// deleted, 0x80|7 bits of hash in use), so a lookup compares 8 slots with a
// few integer operations and touches an entry only where 7 bits agree. The
// slots are bare references; keys and hashes are not repeated in the table.
//
// What belongs to the table is written under its shard's lock; control words
// and slots, once others can see them, by atomic stores, since Touch looks at
// them without the lock.
//
// The groups share the hashes among them in equal parts and in their order, so
// there may be any number of groups. A table therefore grows by half: of a
// million keys it takes 11 bytes each, where one that doubles takes 19.
//
// SCAN: an entry belongs to the group that has its hash (its home), even when it
// was put further along. The cursor is a hash up to which all has been shown. That
// means the same in a table of any size, so whatever is present throughout a scan
// is returned once, however the table grows and shrinks meanwhile.

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"
	"unsafe"
)

const (
	groupSlots   = 8
	ctrlLow      = 0x0101010101010101
	ctrlHigh     = 0x8080808080808080
	ctrlDeleted  = 0x01
	loadNum      = 7 // grow when more than 7/8 of the slots are not empty
	shrinkFactor = 8 // shrink when fewer than 1/8 of the slots are used
)

type table struct {
	ctrl    []uint64
	slots   []unsafe.Pointer // *header
	shape   unsafe.Pointer   // *shape: the same for those without the lock
	used    int
	deleted int
	bytes   int64   // what the table and its entries take
	counts  *counts // nil where there has been no entry yet
	queues  []*partedEntry
	// been is the database's mark that it has had entries, nil where the table is of no
	// keyspace. It stays where it is when contents are exchanged.
	been *atomic.Bool
}

// shape is where a table's groups lie. It never changes: a table that is rebuilt
// gets another.
type shape struct {
	ctrl  []uint64
	slots []unsafe.Pointer
}

// empty forgets all entries.
func (t *table) empty() { t.exchange(&table{}) }

// exchange swaps the contents of two tables, of which one may be seen by
// others and one not, or both.
func (t *table) exchange(o *table) {
	a, b := t.shape, o.shape
	t.ctrl, o.ctrl = o.ctrl, t.ctrl
	t.slots, o.slots = o.slots, t.slots
	t.used, o.used = o.used, t.used
	t.deleted, o.deleted = o.deleted, t.deleted
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

// homeOf is the group, of so many, that a hash belongs to.
func homeOf(hash uint64, groups int) int {
	g, _ := bits.Mul64(hash<<placeShift, uint64(groups))
	return int(g)
}

// placeOf is where a hash is in the order of the groups.
func placeOf(hash uint64) uint64 { return hash << placeShift >> placeShift }

// firstPlace is the first place whose home is a group, of so many, which is not the first.
func firstPlace(group, groups int) uint64 {
	q, _ := bits.Div64(uint64(group), 0, uint64(groups))
	place := q >> placeShift
	if homeOf(place, groups) < group {
		place++ // both divisions round down
	}
	return place
}

// after is the group where one goes on that has found no place in a group.
func (t *table) after(g int) int {
	if g++; g < len(t.ctrl) {
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

// find returns the slot of key, or -1.
func (t *table) find(hash uint64, key []byte) int {
	if len(t.ctrl) == 0 {
		return -1
	}
	tag := tagOf(hash)
	g := homeOf(hash, len(t.ctrl))
	for range t.ctrl {
		word := t.ctrl[g]
		for m := matchTag(word, tag); m != 0; m &= m - 1 {
			i := g*groupSlots + bits.TrailingZeros64(m)>>3
			e := Entry{(*header)(t.slots[i])}
			if e.h != nil && int(e.h.keyLen&^keyElsewhere) == len(key) && string(e.Key()) == string(key) {
				return i
			}
		}
		if matchEmpty(word) != 0 {
			return -1
		}
		g = t.after(g)
	}
	return -1
}

// entry returns what is under a key, the zero Entry if nothing is.
func (t *table) entry(key []byte) Entry {
	if i := t.find(HashBytes(key), key); i >= 0 {
		return Entry{(*header)(t.slots[i])}
	}
	return Entry{}
}

// insert adds an entry whose key is not in the table.
func (t *table) insert(hash uint64, e Entry) {
	if (t.used+t.deleted+1)*8 > len(t.slots)*loadNum {
		t.resize()
	}
	g, i := t.freeSlot(hash)
	word := t.ctrl[g]
	if byte(word>>(8*i)) == ctrlDeleted {
		t.deleted--
	}
	atomic.StoreUint64(&t.ctrl[g], withTag(word, i, hash))
	atomic.StorePointer(&t.slots[g*groupSlots+i], unsafe.Pointer(e.h))
	t.used++
	t.enters(e)
}

// freeSlot finds the group and slot where an entry with a hash goes.
func (t *table) freeSlot(hash uint64) (group, slot int) {
	g := homeOf(hash, len(t.ctrl))
	for {
		if free := ^t.ctrl[g] & ctrlHigh; free != 0 {
			return g, bits.TrailingZeros64(free) >> 3
		}
		g = t.after(g)
	}
}

func withTag(word uint64, slot int, hash uint64) uint64 {
	return word&^(0xff<<(8*slot)) | tagOf(hash)<<(8*slot)
}

// replace puts another entry for the same key into slot i.
func (t *table) replace(i int, e Entry) {
	t.leaves(Entry{(*header)(t.slots[i])})
	t.enters(e)
	atomic.StorePointer(&t.slots[i], unsafe.Pointer(e.h))
}

// remove empties slot i.
func (t *table) remove(i int) {
	g, s := i/groupSlots, i%groupSlots
	word := t.ctrl[g]
	word &^= 0xff << (8 * s)
	// A group that still has an empty slot never made a probe go on, so the
	// slot can be empty again; otherwise it must stay a marker.
	if matchEmpty(t.ctrl[g]) == 0 {
		word |= ctrlDeleted << (8 * s)
		t.deleted++
	}
	t.leaves(Entry{(*header)(t.slots[i])})
	atomic.StoreUint64(&t.ctrl[g], word)
	atomic.StorePointer(&t.slots[i], nil)
	t.used--
	if len(t.slots) > groupSlots*4 && t.used*shrinkFactor < len(t.slots) {
		t.resize()
	}
}

// resize rebuilds the table at a size that leaves it 7/12 full: it may grow by half
// before it is rebuilt again.
func (t *table) resize() {
	const full = groupSlots * loadNum
	groups := ((t.used+1)*groupSlots*3/2 + full - 1) / full
	// A table full of deleted markers is rebuilt at its own size.
	if groups < len(t.ctrl) && t.used*shrinkFactor >= len(t.slots) {
		groups = len(t.ctrl)
	}
	t.rebuild(groups)
}

// rebuildAhead is how many entries a rebuild has read ahead of putting them in, and
// a walk ahead of showing them: their cache misses then overlap.
const rebuildAhead = 16

func (t *table) rebuild(groups int) {
	old := t.slots
	t.bytes += int64(groups*groupSlots-len(old)) * slotBytes
	if t.counts == nil {
		t.counts = new(counts)
		t.mark()
	}
	t.ctrl = make([]uint64, groups)
	t.slots = make([]unsafe.Pointer, groups*groupSlots)
	t.deleted = 0
	var next [rebuildAhead]Entry
	for len(old) > 0 {
		n, lengths := 0, uint64(0)
		for len(old) > 0 && n < rebuildAhead {
			if p := old[0]; p != nil {
				next[n] = Entry{(*header)(p)}
				lengths += uint64(next[n].h.keyLen)
				n++
			}
			old = old[1:]
		}
		touched.keep(lengths)
		for _, e := range next[:n] {
			hash := HashBytes(e.Key())
			g, i := t.freeSlot(hash)
			t.ctrl[g] = withTag(t.ctrl[g], i, hash)
			t.slots[g*groupSlots+i] = unsafe.Pointer(e.h)
		}
	}
	atomic.StorePointer(&t.shape, unsafe.Pointer(&shape{t.ctrl, t.slots}))
}

// scan calls fn with every entry whose place is not before the cursor and in the
// same group, and returns the next cursor, 0 at the end. fn must not change the
// table.
func (t *table) scan(cursor uint64, fn func(Entry)) uint64 {
	if len(t.ctrl) == 0 {
		return 0
	}
	home := homeOf(cursor, len(t.ctrl))
	cursor = placeOf(cursor)
	g := home
	for range t.ctrl {
		word := t.ctrl[g]
		for m := word & ctrlHigh; m != 0; m &= m - 1 {
			e := Entry{(*header)(t.slots[g*groupSlots+bits.TrailingZeros64(m)>>3])}
			if hash := HashBytes(e.Key()); homeOf(hash, len(t.ctrl)) == home && placeOf(hash) >= cursor {
				fn(e)
			}
		}
		if matchEmpty(word) != 0 {
			break
		}
		g = t.after(g)
	}
	if home++; home == len(t.ctrl) {
		return 0
	}
	return firstPlace(home, len(t.ctrl))
}

// each calls fn with every entry until it returns false. fn must not change
// the table. Entries are read ahead, so that their cache misses overlap.
func (t *table) each(fn func(Entry) bool) {
	for slots := t.slots; len(slots) > 0; {
		some := slots[:min(rebuildAhead, len(slots))]
		slots = slots[len(some):]
		lengths := uint64(0)
		for _, p := range some {
			if p != nil {
				lengths += uint64((*header)(p).keyLen)
			}
		}
		touched.keep(lengths)
		for _, p := range some {
			if p != nil && !fn(Entry{(*header)(p)}) {
				return
			}
		}
	}
}

// random returns an entry near a random place, the zero Entry when empty.
func (t *table) random(r uint64) Entry {
	if t.used == 0 {
		return Entry{}
	}
	n := uint64(len(t.slots))
	for i := r % n; ; i = (i + 1) % n {
		if t.slots[i] != nil {
			return Entry{(*header)(t.slots[i])}
		}
	}
}
