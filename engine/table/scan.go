package table

// Reading all of a table, or some of it.

import (
	"math/bits"

	"github.com/limitkv/limitkv/engine/sample"
)

// Iter walks over all records in an order that stays the same until the table changes, which invalidates the iterator.
//
//	for it := t.Iter(); it.Next(); { it.Record() … }
type Iter struct {
	t      *Table
	b      *bucket
	bucket int // the next one
	slot   int
}

// Iter returns an iterator before the first record.
func (t *Table) Iter() Iter { return Iter{t: t} }

// Next goes to the next record and reports whether there is one.
func (it *Iter) Next() bool {
	it.slot++
	for {
		if it.b != nil {
			if it.slot < slots && it.b.tags[it.slot] >= 0x80 {
				return true
			}
			it.b = it.b.next()
			it.slot = 0
			continue
		}
		if it.bucket >= it.t.buckets {
			return false
		}
		it.b = it.t.bucket(it.bucket)
		it.bucket++
		it.slot = 0
	}
}

// Record returns the record that the iterator is at.
func (it *Iter) Record() Record { return Record{it.b.slot[it.slot]} }

// Scan calls fn with the records of some buckets, until there were at least count of them or 10 × count buckets were
// read, and returns the cursor for the next call, 0 at the end. A scan begins with cursor 0. A record that is in the
// table during the whole scan is passed at least once, however the table grows and shrinks meanwhile.
//
// As in Redis the cursor counts with its bits reversed: the buckets that a split makes of a bucket differ in a higher
// bit, so all of them are before or after the cursor, as that bucket was.
func (t *Table) Scan(cursor uint64, count int, fn func(Record)) uint64 {
	if t.count == 0 {
		return 0
	}
	visits := 10 * count
	low := t.low()
	for seen := 0; ; {
		i := int(cursor & uint64(low-1))
		seen += t.emit(i, fn)
		if i+low < t.buckets {
			seen += t.emit(i+low, fn)
		}
		cursor |= ^uint64(low - 1)
		cursor = bits.Reverse64(bits.Reverse64(cursor) + 1)
		visits--
		if cursor == 0 || seen >= count || visits <= 0 {
			return cursor
		}
	}
}

func (t *Table) emit(i int, fn func(Record)) int {
	n := 0
	for b := t.bucket(i); b != nil; b = b.next() {
		for j := range b.used() {
			fn(Record{b.slot[j]})
			n++
		}
	}
	return n
}

// Random returns a random record, each with the same probability. next is a source of random numbers. The table must
// not be empty.
func (t *Table) Random(next func() uint64) Record {
	for {
		// Choose a bucket, and a place in the longest possible chain. If this chain is shorter, try again.
		i := sample.Below(next(), t.buckets)
		j := sample.Below(next(), t.chainMax)
		for b := t.bucket(i); b != nil; b = b.next() {
			n := b.used()
			if j < n {
				return Record{b.slot[j]}
			}
			j -= n
		}
	}
}
