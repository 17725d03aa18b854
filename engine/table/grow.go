package table

// Growing and shrinking, one bucket at a time; copying.

import (
	"unsafe"

	"github.com/limitkv/limitkv/zset/wyhash"
)

// split divides the next bucket of the round between itself and a new last bucket.
func (t *Table) split() {
	low := t.low()
	from := t.buckets - low
	t.extend()
	t.buckets++
	to := t.buckets - 1
	// Take the chain out and put each record where its hash now says.
	chain := t.take(from)
	for b := &chain; b != nil; b = b.next() {
		for i := range b.used() {
			dest := from
			if wyhash.Sum(Record{b.slot[i]}.Key())&uint64(low) != 0 {
				dest = to
			}
			t.push(dest, b.tags[i], b.slot[i])
		}
	}
}

// take empties the chain of bucket i and returns it.
func (t *Table) take(i int) bucket {
	chain := *t.bucket(i)
	*t.bucket(i) = bucket{}
	for b := chain.next(); b != nil; b = b.next() {
		t.chained--
	}
	return chain
}

// merge undoes the last split.
func (t *Table) merge() {
	last := t.buckets - 1
	chain := t.take(last)
	t.buckets--
	into := last - t.low()
	for b := &chain; b != nil; b = b.next() {
		for i := range b.used() {
			t.push(into, b.tags[i], b.slot[i])
		}
	}
	t.trim()
}

// extend makes room for one more bucket.
func (t *Table) extend() {
	if first := t.segments[0]; t.buckets < segmentSize {
		if t.buckets == len(first) {
			t.segments[0] = make([]bucket, 2*len(first))
			copy(t.segments[0], first)
		}
	} else if t.buckets>>segmentShift == len(t.segments) {
		t.segments = append(t.segments, make([]bucket, segmentSize))
	}
}

// trim releases segments that are no longer used, except one spare one.
func (t *Table) trim() {
	used := (t.buckets + segmentSize - 1) >> segmentShift
	if n := len(t.segments); n > used+1 {
		t.segments[n-1] = nil
		t.segments = t.segments[:n-1]
	}
	if first := t.segments[0]; len(first) > 1 && t.buckets <= len(first)/4 {
		t.segments = [][]bucket{make([]bucket, len(first)/2)}
		copy(t.segments[0], first)
	}
}

// Clone returns a copy of the table with copies of its records. copied, if not nil, is called with each copy.
func (t *Table) Clone(copied func(Record)) Table {
	c := *t
	c.image = nil
	c.segments = make([][]bucket, len(t.segments))
	for i, s := range t.segments {
		c.segments[i] = append([]bucket(nil), s...)
	}
	for i := range c.buckets {
		for b := c.bucket(i); b != nil; b = b.next() {
			if next := b.next(); next != nil {
				own := *next
				b.slot[slots-1] = unsafe.Pointer(&own)
			}
			for j := range b.used() {
				r := Record{b.slot[j]}.Clone()
				b.slot[j] = r.p
				if copied != nil {
					copied(r)
				}
			}
		}
	}
	return c
}
