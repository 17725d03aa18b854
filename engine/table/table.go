// Package table, internal to the server, is the hash table behind large hashes and sets: linear
// hashing over buckets of one cache line, with SCAN's guarantee.
//
// A bucket has eight bytes of tags (parts of the hashes) and seven slots; a slot refers to a record, one
// allocation without pointers that starts with its key. So a lookup is two cache misses, the bucket and the
// record, and the garbage collector traces one reference an element.
//
// The table grows by splitting one bucket at a time, in order (linear hashing, Litwin 1980), and shrinks by merging the
// last one back. So a million elements are never rehashed at once, there is no second table to search meanwhile, and
// the load is the same at every size, while doubling a table halves it. Open addressing was rejected because an element
// can be outside its bucket, where SCAN over a growing table would have to follow it. Here a bucket's elements are in
// its chain only.
package table

import (
	"math/bits"
	"unsafe"

	"github.com/limitkv/limitkv/zset/wyhash"
)

const (
	slots = 7

	// loadMax is the mean number of elements per bucket above which a bucket is split, loadMin the one below which two
	// are merged. They are far apart, so that small changes of the size do not split and merge buckets all the time.
	loadMax = 5
	loadMin = 1

	// A segment of 512 buckets is the smallest that Go allocates as pages of its own, without a header that
	// would push the buckets off the cache lines.
	segmentShift = 9
	segmentSize  = 1 << segmentShift

	// tagChained is the tag of the last slot when it holds the next bucket of the chain.
	tagChained = 1
)

// bucket is 64 bytes. A tag is 0 for a free slot, at least 0x80 for a record. Records fill the lowest slots
// of a chain without gaps, so that the first free slot ends it.
type bucket struct {
	tags [8]uint8
	slot [slots]unsafe.Pointer
}

func (b *bucket) next() *bucket {
	if b.tags[slots-1] == tagChained {
		return (*bucket)(b.slot[slots-1])
	}
	return nil
}

// used returns how many records the bucket itself holds.
func (b *bucket) used() int {
	n := 0
	for n < slots && b.tags[n] >= 0x80 {
		n++
	}
	return n
}

// Table maps keys to records. The zero value is an empty table.
type Table struct {
	// segments hold the buckets in order, segmentSize in each; the first is shorter while it is alone.
	segments [][]bucket
	buckets  int // in use, in all the segments
	count    int
	chainMax int    // no chain holds more records
	chained  int    // buckets beyond the first of their chain
	bytes    int    // allocated for records
	image    *Image // nil unless one is under way
}

// Len returns the number of records.
func (t *Table) Len() int { return t.count }

// MemoryUsage returns the bytes allocated for the buckets and the records.
func (t *Table) MemoryUsage() int {
	n := t.chained
	if len(t.segments) > 0 {
		n += cap(t.segments[0]) + (len(t.segments)-1)*segmentSize
	}
	return t.bytes + n*int(unsafe.Sizeof(bucket{})) + cap(t.segments)*int(unsafe.Sizeof([]bucket{}))
}

func (t *Table) bucket(i int) *bucket { return &t.segments[i>>segmentShift][i&(segmentSize-1)] }

// low returns the number of buckets at the start of the current round of splits, a power of two: those below
// buckets-low have been split.
func (t *Table) low() int { return 1 << (bits.Len(uint(t.buckets)) - 1) }

// index returns the bucket of a hash.
func (t *Table) index(hash uint64) int {
	n := t.low()
	i := int(hash & uint64(2*n-1))
	if i >= t.buckets {
		i &= n - 1
	}
	return i
}

// tagOf uses the top of the hash; the index uses the bottom.
func tagOf(hash uint64) uint8 { return uint8(hash>>57) | 0x80 }

// matches returns a word with the high bit of each byte set where b's tag is tag. A byte above a match can be
// set falsely; the key is compared anyway.
func (b *bucket) matches(tag uint8) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	x := *(*uint64)(unsafe.Pointer(&b.tags)) ^ ones*uint64(tag)
	return (x - ones) &^ x & highs
}

// place is a record's slot.
type place struct {
	b      *bucket
	i      int
	before *bucket // the one before b in the chain
}

func (t *Table) find(hash uint64, key []byte) (place, bool) {
	if t.count == 0 {
		return place{}, false
	}
	tag := tagOf(hash)
	var before *bucket
	for b := t.bucket(t.index(hash)); b != nil; before, b = b, b.next() {
		for m := b.matches(tag); m != 0; m &= m - 1 {
			i := bits.TrailingZeros64(m) >> 3
			if i < slots && b.tags[i] == tag && string(Record{b.slot[i]}.Key()) == string(key) {
				return place{b, i, before}, true
			}
		}
	}
	return place{}, false
}

// Get returns the record with this key, the zero Record if there is none.
func (t *Table) Get(key []byte) Record {
	if p, ok := t.find(wyhash.Sum(key), key); ok {
		return Record{p.b.slot[p.i]}
	}
	return Record{}
}

// Add adds a record whose key the table does not hold.
func (t *Table) Add(r Record) {
	t.count++
	t.bytes += r.allocated()
	if t.buckets == 0 {
		t.segments = [][]bucket{make([]bucket, 1)}
		t.buckets = 1
	}
	hash := wyhash.Sum(r.Key())
	if t.image != nil {
		t.image.note(hash, r.Key())
	}
	t.push(t.index(hash), tagOf(hash), r.p)
	if t.count > t.buckets*loadMax {
		t.split()
	}
}

// push puts a record at the end of the chain of bucket i.
func (t *Table) push(i int, tag uint8, p unsafe.Pointer) {
	b := t.bucket(i)
	n := 1
	for next := b.next(); next != nil; next = b.next() {
		b = next
		n += slots - 1
	}
	j := b.used()
	if j == slots {
		more := &bucket{}
		t.chained++
		more.tags[0], more.slot[0] = b.tags[j-1], b.slot[j-1]
		b.tags[j-1], b.slot[j-1] = tagChained, unsafe.Pointer(more)
		n += slots - 1
		b, j = more, 1
	}
	b.tags[j], b.slot[j] = tag, p
	t.chainMax = max(t.chainMax, n+j)
}

// Replace puts r in place of old, which has the same key. old must be in the table.
func (t *Table) Replace(old, r Record) {
	t.Changing(old)
	key := r.Key()
	p, _ := t.find(wyhash.Sum(key), key)
	t.bytes += r.allocated() - old.allocated()
	p.b.slot[p.i] = r.p
}

// Delete removes the record with this key and returns it, the zero Record if there is none.
func (t *Table) Delete(key []byte) Record {
	p, ok := t.find(wyhash.Sum(key), key)
	if !ok {
		return Record{}
	}
	r := Record{p.b.slot[p.i]}
	if t.image != nil {
		t.image.leaves(r)
	}
	t.count--
	t.bytes -= r.allocated()
	t.removeAt(p)
	if t.count == 0 {
		*t = Table{image: t.image}
		return r
	}
	for range 2 {
		if t.buckets > 1 && t.count < t.buckets*loadMin {
			t.merge()
		}
	}
	return r
}

// removeAt fills the hole with the last record of the chain.
func (t *Table) removeAt(p place) {
	last, before := p.b, p.before
	for next := last.next(); next != nil; next = last.next() {
		last, before = next, last
	}
	j := last.used() - 1
	p.b.tags[p.i], p.b.slot[p.i] = last.tags[j], last.slot[j]
	last.tags[j], last.slot[j] = 0, nil
	if before != nil && j == 1 {
		// A single record needs no chained bucket: it moves to the slot that referred to the bucket.
		t.chained--
		before.tags[slots-1], before.slot[slots-1] = last.tags[0], last.slot[0]
	}
}
