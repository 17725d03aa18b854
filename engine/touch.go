package engine

// Touching the entries of a pipeline before its commands run. A lookup waits
// for memory three times, for the control word, the slot and the entry, twice more for
// an object, and the next lookup begins when the one before has ended. Looking all keys up at once,
// a step at a time, makes the processor wait for all of them together: 16 keys
// among a million cost hardly more than two.
//
// Nothing is concluded from what is seen here. It is read without the locks,
// which would serialize what is to overlap, and so may be out of date; control
// words, slots and the tables' directories are written by atomic stores for that. Of an
// entry its key is read, which never changes, and of an object a byte at which its first
// pointer points or pointed: the race detector is told to look away there.

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// TouchMax is the most keys that Touch looks at.
const TouchMax = 16

// Touch brings what belongs to keys of a database into the processor's caches.
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

// touchObjects goes on with the keys of entries and what their values begin with, which is elsewhere.
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

// beginner is an object that is in one piece of memory while it is small. Begins is where that begins, nil if there is none.
// It is called without the lock.
type beginner interface{ Begins() *byte }

// readAt reads what others may be writing.
//
//go:norace
func readAt(p *byte) uint64 { return uint64(*p) }

// touchDue is Touch for the entries of a wheel's slot from a node on. It tells how many there are behind the first one.
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

// sink is where a value goes that was read to have been read.
type sink struct{ never atomic.Bool }

// touched keeps the compiler from leaving out reads without a purpose.
var touched sink

func (s *sink) keep(v uint64) {
	if v == ^uint64(0) { // no sum is as large
		s.never.Store(true)
	}
}
