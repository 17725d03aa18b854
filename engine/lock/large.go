package lock

// A lock with many holders. It finds them by name, by fence, and in the order in which their leases end, in a time that
// hardly depends on their number.

import (
	"bytes"
	"unsafe"

	"github.com/tidwall/btree"
)

type large struct {
	owners  map[string]*Holder
	byFence *btree.BTreeG[*Holder]
	byEnd   *btree.BTreeG[*Holder]
	bytes   int // memory of the holders
}

// degree is the degree of the trees: a node has at most twice as many items.
const degree = 16

func newLarge() *large {
	o := btree.Options{NoLocks: true, Degree: degree}
	return &large{
		owners:  make(map[string]*Holder),
		byFence: btree.NewBTreeGOptions(func(a, b *Holder) bool { return a.Fence < b.Fence }, o),
		byEnd:   btree.NewBTreeGOptions(endsBefore, o),
	}
}

func (x *large) add(h Holder) {
	own := h
	own.Owner = bytes.Clone(h.Owner)
	x.owners[string(own.Owner)] = &own
	x.byFence.Set(&own)
	x.byEnd.Set(&own)
	x.bytes += holderBytes + 2*len(own.Owner)
}

func (x *large) remove(owner []byte) {
	h := x.owners[string(owner)]
	x.bytes -= holderBytes + 2*len(owner)
	delete(x.owners, string(owner))
	x.byFence.Delete(h)
	x.byEnd.Delete(h)
}

func (x *large) change(owner []byte, untilMicros, delayMicros, session int64) {
	h := x.owners[string(owner)]
	x.byEnd.Delete(h)
	h.UntilMicros, h.DelayMicros, h.Session = untilMicros, delayMicros, session
	x.byEnd.Set(h)
}

// bound tells whether a lease is bound to a connection: such a lease ends first or last of all.
func (x *large) bound() bool {
	first, ok := x.byEnd.Min()
	last, _ := x.byEnd.Max()
	return ok && (first.Bound() || last.Bound())
}

// Large returns a copy of the lock with indices, which is not stored as bytes.
func (l *Lock) Large() *Lock {
	n := &Lock{Mode: l.Mode, Permits: l.Permits, ClosedMicros: l.ClosedMicros, large: newLarge()}
	l.Each(func(h Holder) bool {
		n.add(h)
		return true
	})
	return n
}

// Clone returns a copy that shares nothing with a large lock.
func (l *Lock) Clone() *Lock { return l.Large() }

// holderBytes is what a holder of a large lock takes beside its name: itself, and its places in the trees and the map.
const holderBytes = int(unsafe.Sizeof(Holder{})) + 2*12 + 48

// MemoryEstimate is how many bytes a large lock takes, to within some per cent.
func (l *Lock) MemoryEstimate() int {
	n := int(unsafe.Sizeof(*l))
	if l.large != nil {
		n += int(unsafe.Sizeof(*l.large)) + l.large.bytes
	}
	return n
}

// MemoryUsage is what MEMORY USAGE replies.
func (l *Lock) MemoryUsage() int { return l.MemoryEstimate() }

// Encoding is what OBJECT ENCODING replies.
func (l *Lock) Encoding() string {
	if l.large != nil {
		return "btree"
	}
	return "packed"
}
