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
// SCAN: an entry belongs to the group its hash names (its home), even when it
// was put further along the probe sequence. The cursor walks homes in
// reverse-binary order, so whatever is present throughout a scan is returned
// although the table doubles or halves meanwhile.

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
	groupsMin    = 1
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
}

// shape is where a table's groups lie. It never changes: a table that is rebuilt
// gets another.
type shape struct {
	ctrl  []uint64
	slots []unsafe.Pointer
	mask  uint64
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
	atomic.StorePointer(&t.shape, b)
	atomic.StorePointer(&o.shape, a)
}

// hashSeed makes the order of keys differ between processes and collisions
// unpredictable for clients.
var hashSeed = maphash.MakeSeed()

// HashBytes is the hash by which keys are placed.
func HashBytes(b []byte) uint64 { return maphash.Bytes(hashSeed, b) }

func (t *table) mask() uint64 { return uint64(len(t.ctrl) - 1) }

func matchTag(word uint64, tag uint64) uint64 {
	x := word ^ (ctrlLow * tag)
	return (x - ctrlLow) &^ x & ctrlHigh
}

// matchEmpty marks the slots that were never used: byte 0.
func matchEmpty(word uint64) uint64 { return (word - ctrlLow) &^ word & ctrlHigh }

func tagOf(hash uint64) uint64  { return 0x80 | hash>>57 }
func homeOf(hash uint64) uint64 { return hash }

// find returns the slot of key, or -1.
func (t *table) find(hash uint64, key []byte) int {
	if len(t.ctrl) == 0 {
		return -1
	}
	mask, tag := t.mask(), tagOf(hash)
	g := homeOf(hash) & mask
	for step := uint64(1); ; step++ {
		word := t.ctrl[g]
		for m := matchTag(word, tag); m != 0; m &= m - 1 {
			i := int(g)*groupSlots + bits.TrailingZeros64(m)>>3
			e := Entry{(*header)(t.slots[i])}
			if e.h != nil && int(e.h.keyLen&^keyElsewhere) == len(key) && string(e.Key()) == string(key) {
				return i
			}
		}
		if matchEmpty(word) != 0 {
			return -1
		}
		g = (g + step) & mask
		if step > mask {
			return -1
		}
	}
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
	mask := t.mask()
	g := homeOf(hash) & mask
	for step := uint64(1); ; step++ {
		if free := ^t.ctrl[g] & ctrlHigh; free != 0 {
			return int(g), bits.TrailingZeros64(free) >> 3
		}
		g = (g + step) & mask
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

// resize rebuilds the table at a size that leaves it at most 7/16 to 7/8 full.
func (t *table) resize() {
	groups := groupsMin
	for (t.used+1)*16 > groups*groupSlots*14 {
		groups *= 2
	}
	// A table full of deleted markers is rebuilt at its own size.
	if groups < len(t.ctrl) && t.used*shrinkFactor >= len(t.slots) {
		groups = len(t.ctrl)
	}
	t.rebuild(groups)
}

// rebuildAhead is how many entries a rebuild has read ahead of putting them in:
// their cache misses then overlap.
const rebuildAhead = 16

func (t *table) rebuild(groups int) {
	old := t.slots
	t.bytes += int64(groups*groupSlots-len(old)) * slotBytes
	if t.counts == nil {
		t.counts = new(counts)
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
	atomic.StorePointer(&t.shape, unsafe.Pointer(&shape{t.ctrl, t.slots, t.mask()}))
}

// scan calls fn with every entry at home at the cursor's group and returns
// the next cursor, 0 at the end. fn must not change the table.
func (t *table) scan(cursor uint64, fn func(Entry)) uint64 {
	if len(t.ctrl) == 0 {
		return 0
	}
	mask := t.mask()
	home := cursor & mask
	g := home
	for step := uint64(1); step <= mask+1; step++ {
		word := t.ctrl[g]
		for m := word & ctrlHigh; m != 0; m &= m - 1 {
			e := Entry{(*header)(t.slots[int(g)*groupSlots+bits.TrailingZeros64(m)>>3])}
			if homeOf(HashBytes(e.Key()))&mask == home {
				fn(e)
			}
		}
		if matchEmpty(word) != 0 {
			break
		}
		g = (g + step) & mask
	}
	// Count the cursor's high bits up, in reverse order of bits.
	cursor |= ^mask
	cursor = bits.Reverse64(bits.Reverse64(cursor) + 1)
	return cursor
}

// each calls fn with every entry until it returns false. fn must not change
// the table.
func (t *table) each(fn func(Entry) bool) {
	for _, p := range t.slots {
		if p != nil && !fn(Entry{(*header)(p)}) {
			return
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
