package engine

// Touching the entries of a pipeline before its commands run. A lookup waits for memory three times: for the control
// word, the slot and the entry; for an object twice more. The next lookup begins when this one has ended. If all keys
// are looked up together, one step for all at a time, the processor waits for all of them at once: 16 keys among a
// million cost hardly more than two.
//
// Nothing is concluded from what is read here. It is read without the locks, which would make the reads wait for each
// other, so it may be out of date. For that reason control words, slots and the tables' directories are written by
// atomic stores. An entry's key is read without that, since it never changes. So is the byte at which an object's
// first pointer points or pointed: the race detector ignores that read.

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// TouchMax is the most keys that Touch looks at.
const TouchMax = 16

// Touch brings the entries of keys of a database into the processor's caches.
func (ks *Keyspace) Touch(db int, places *[TouchMax]Place, n int) {
	var slots [TouchMax]*unsafe.Pointer
	found := 0
	for i := range places[:n] {
		p := &places[i]
		sh := (*shape)(atomic.LoadPointer(&ks.shards[p.shard].tables[db].shape))
		if sh == nil {
			continue
		}
		in := (*segment)(atomic.LoadPointer(&sh.segments[p.hash<<placeShift>>sh.shift]))
		g := in.home(p.hash)
		if m := matchTag(atomic.LoadUint64(&in.ctrl[g]), tagOf(p.hash)); m != 0 {
			slots[found] = &in.slots[g*groupSlots+bits.TrailingZeros64(m)>>3]
			found++
		}
	}
	var entries [TouchMax]*header
	for i, slot := range slots[:found] {
		entries[i] = (*header)(atomic.LoadPointer(slot))
	}
	var objects [TouchMax]*objectEntry
	read, n := uint64(0), 0
	for _, h := range entries[:found] {
		if h != nil && h.keyLen > keyElsewhere {
			objects[n] = (*objectEntry)(unsafe.Pointer(h))
			n++
		} else if h != nil {
			read += uint64(h.keyLen)
		}
	}
	if n > 0 {
		read += touchObjects(objects[:n])
	}
	touched.keep(read)
}

// touchObjects reads the keys of object entries, and the first bytes of their values, which are elsewhere in memory.
func touchObjects(objects []*objectEntry) (read uint64) {
	var begins [TouchMax]*byte
	for i, o := range objects {
		read += uint64(o.key[0])
		if x, ok := o.obj.(beginner); ok {
			begins[i] = x.Begins()
		}
	}
	for _, p := range begins[:len(objects)] {
		if p != nil {
			read += readAt(p)
		}
	}
	return read
}

// beginner is an object that is one piece of memory while it is small. Begins is the start of that piece, nil if
// there is none. It is called without the lock.
type beginner interface{ Begins() *byte }

// readAt reads a byte that others may be writing.
//
//go:norace
func readAt(p *byte) uint64 { return uint64(*p) }

// touchDue is Touch for the entries in a slot of a wheel, from a node on. It returns how many follow the first one.
func (ks *Keyspace) touchDue(w *wheel, n uint32) (behind int) {
	var refs [TouchMax]Entry
	found := 0
	for ; n >= wheelHeads && found < len(refs); n = w.nodes[n].next {
		refs[found] = Entry{(*header)(w.nodes[n].ref)}
		found++
	}
	if found > 1 {
		var places [TouchMax]Place
		read := uint64(0)
		for _, e := range refs[:found] {
			read += uint64(e.h.keyLen)
		}
		touched.keep(read)
		for i, e := range refs[:found] {
			places[i] = PlaceOf(e.Key())
		}
		ks.Touch(int(refs[0].dueRef().db), &places, found)
	}
	return found - 1
}

// sink takes values that were read only for the sake of reading.
type sink struct{ never atomic.Bool }

// touched keeps the compiler from removing reads whose result nobody uses.
var touched sink

func (s *sink) keep(v uint64) {
	if v == ^uint64(0) { // no sum is as large
		s.never.Store(true)
	}
}
