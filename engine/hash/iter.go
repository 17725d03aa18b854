package hash

// Reading all fields, or some.

import (
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/engine/sample"
	"github.com/limitkv/limitkv/engine/table"
)

// Iter walks over the fields: in the order of the list if packed (without deadlines that is the order of their
// creation), otherwise in the table's order. A write to the hash invalidates it.
//
//	for it := h.Iter(); it.Next(); { it.Field(), it.Value() … }
//
// If the compiler moves the iterator to the heap, declare it before the loop: the loop's own variable is new in each
// iteration, which is an allocation for every field.
type Iter struct {
	h                        *Hash
	at, valueAt, next        int // positions in the list
	records                  table.Iter
	record                   table.Record
	fieldBuffer, valueBuffer packed.Scratch
}

// Iter returns an iterator before the first field.
func (h *Hash) Iter() Iter {
	if h.packed() {
		return Iter{h: h, next: packed.First(h.lp)}
	}
	return Iter{h: h, records: h.large.table.Iter()}
}

// Next goes to the next field and reports whether there is one.
func (it *Iter) Next() bool {
	if !it.h.packed() {
		if !it.records.Next() {
			return false
		}
		it.record = it.records.Record()
		return true
	}
	if it.next >= packed.End(it.h.lp) {
		return false
	}
	it.seek(it.next)
	return true
}

// seek goes to the field at a position of the list.
func (it *Iter) seek(p int) {
	lp := it.h.lp
	it.at = p
	it.valueAt = packed.Next(lp, p)
	it.next = packed.Next(lp, it.valueAt)
	if it.h.large != nil {
		it.next = packed.Next(lp, it.next)
	}
}

// Field returns the field's name. It may alias the hash or the iterator.
func (it *Iter) Field() []byte {
	if it.record.None() {
		return packed.Get(it.h.lp, it.at, &it.fieldBuffer)
	}
	return it.record.Key()
}

// Value returns the field's value. It may alias the hash or the iterator.
func (it *Iter) Value() []byte {
	if it.record.None() {
		return packed.Get(it.h.lp, it.valueAt, &it.valueBuffer)
	}
	return valueOf(it.record)
}

// Deadline returns the field's deadline in unix ms, 0 if it has none.
func (it *Iter) Deadline() int64 {
	switch {
	case !it.record.None():
		return it.h.large.deadlineOf(it.record)
	case it.h.large == nil:
		return 0
	}
	return it.h.deadlineAt(it.at)
}

// Scan calls fn with about count fields and returns the cursor for the next call, 0 at the end; see table.Table.Scan
// for what is guaranteed. A packed hash is passed as a whole. fn must not change the hash.
func (h *Hash) Scan(cursor uint64, count int, fn func(it *Iter)) uint64 {
	if h.packed() {
		it := h.Iter()
		for it.Next() {
			fn(&it)
		}
		return 0
	}
	it := Iter{h: h}
	return h.large.table.Scan(cursor, count, func(r table.Record) {
		it.record = r
		fn(&it)
	})
}

// Random returns an iterator at a random field, each with the same probability. next is a source of random numbers. The
// hash must not be empty.
func (h *Hash) Random(next func() uint64) Iter {
	it := Iter{h: h}
	if h.packed() {
		it.seek(packed.Seek(h.lp, h.stride()*sample.Below(next(), h.Len())))
	} else {
		it.record = h.large.table.Random(next)
	}
	return it
}

// Draw calls fn with count random fields, which can repeat. The hash must not be empty.
func (h *Hash) Draw(count int, next func() uint64, fn func(it *Iter)) {
	if !h.packed() || count < 4 {
		var it Iter
		for range count {
			it = h.Random(next)
			fn(&it)
		}
		return
	}
	positions := make([]int, 0, h.Len())
	for it := h.Iter(); it.Next(); {
		positions = append(positions, it.at)
	}
	it := Iter{h: h}
	for range count {
		it.seek(positions[sample.Below(next(), len(positions))])
		fn(&it)
	}
}

// sparse is how many times larger than a sample a table must be, so that drawing until enough fields differ is cheaper
// than a walk over all of it.
const sparse = 3

// Sample calls fn with count different fields, or with all if there are fewer. Each choice has the same probability;
// the order is not random.
func (h *Hash) Sample(count int, next func() uint64, fn func(it *Iter)) {
	if n := h.Len(); !h.packed() && n/sparse > count {
		seen := make(map[table.Record]struct{}, count)
		it := Iter{h: h}
		for len(seen) < count {
			it.record = h.large.table.Random(next)
			if _, again := seen[it.record]; !again {
				seen[it.record] = struct{}{}
				fn(&it)
			}
		}
		return
	}
	choice := sample.Select(count, h.Len())
	it := h.Iter()
	for !choice.Done() && it.Next() {
		if choice.Take(next) {
			fn(&it)
		}
	}
}
