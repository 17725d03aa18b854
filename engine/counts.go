package engine

// What a table counts of its entries: how many there are of each kind, how large they are, how many entries queues
// have. The counts change as entries come, change and go, so Tally need not look at the entries. What was counted for
// an entry is noted in it. The note of an object is updated where its memory is counted anew.

import (
	"math/bits"

	"github.com/limitkv/limitkv/engine/limiter"
)

// SizeBins is the number of bins of a histogram of lengths. It is enough for every length that fits in memory.
const SizeBins = 48

// sizedKinds is the last of the kinds, from KindString on, whose lengths are counted.
const sizedKinds = KindSet

// counts is small, because each table that has entries has one.
type counts struct {
	kinds [kindCount]int
	sizes [sizedKinds][SizeBins]uint32
	parts Parts
}

// Parts is how many entries and groups queues have, how many queues are paused or have a limiter, how many limiters have
// named grants, and how many of these are open.
type Parts struct{ Waiting, Leased, Groups, Paused, Limited, Named, Grants int }

// add adds o to p, or subtracts it if by is -1.
func (p *Parts) add(o *Parts, by int) {
	p.Waiting += by * o.Waiting
	p.Leased += by * o.Leased
	p.Groups += by * o.Groups
	p.Paused += by * o.Paused
	p.Limited += by * o.Limited
	p.Named += by * o.Named
	p.Grants += by * o.Grants
}

// parted is an object that is a queue.
type parted interface {
	Parts() (waiting, leased, groups int)
	Paused() bool
	Limit() string
}

// partsOf returns the parts of an object.
func partsOf(obj any) (p Parts) {
	switch o := obj.(type) {
	case parted:
		p.Waiting, p.Leased, p.Groups = o.Parts()
		if o.Paused() {
			p.Paused = 1
		}
		if o.Limit() != "" {
			p.Limited = 1
		}
	case *limiter.Named:
		p.Named, p.Grants = 1, o.Len()
	}
	return p
}

// partedEntry is the objectEntry of a delay queue, or of a limiter with grants, with the parts that were counted for
// it.
type partedEntry struct {
	objectEntry
	parts Parts
	at    int // in its table's list of queues
}

// hasParts tells whether objects of a kind have parts.
func (k Kind) hasParts() bool { return k == KindDelayQueue || k == KindLimiter }

// parts is where the counted parts of an object are noted, nil for a kind without parts.
func (o *objectEntry) parts() *Parts {
	if !o.kind.hasParts() {
		return nil
	}
	return &Entry{&o.header}.parted().parts
}

// binOf is the bin of a length: 0 for an empty value, i for 2^(i-1) and more.
func binOf(n int) uint8 { return uint8(min(bits.Len(uint(n)), SizeBins-1)) }

// bin is the bin in which an entry is counted.
func (e Entry) bin() uint8 {
	switch {
	case e.h.flags&flagObject != 0:
		return e.object().bin
	case e.h.flags&flagInt != 0:
		return binOf(digits(*e.intRef()))
	case e.h.kind.fitsBytes():
		return binOf(e.plainLen())
	}
	return binOf(int(e.h.valLen))
}

// enters counts an entry.
func (t *table) enters(e Entry) {
	c := t.counts
	c.kinds[e.h.kind]++
	t.bytes += e.counted()
	switch {
	case e.h.kind <= sizedKinds:
		c.sizes[e.h.kind-1][e.bin()]++
	case e.h.kind.hasParts() && e.h.flags&flagObject != 0:
		c.parts.add(e.object().parts(), 1)
		if e.h.kind == KindDelayQueue {
			t.listed(e.parted())
		}
	}
}

// leaves undoes what enters did.
func (t *table) leaves(e Entry) {
	c := t.counts
	c.kinds[e.h.kind]--
	t.bytes -= e.counted()
	switch {
	case e.h.kind <= sizedKinds:
		c.sizes[e.h.kind-1][e.bin()]--
	case e.h.kind.hasParts() && e.h.flags&flagObject != 0:
		c.parts.add(e.object().parts(), -1)
		if e.h.kind == KindDelayQueue {
			t.unlisted(e.parted())
		}
	}
}

// recount counts a changed object anew, and returns by how many bytes it has grown.
func (t *table) recount(o *objectEntry) (grown int64) {
	bin := o.bin
	if p := o.parts(); p != nil {
		t.counts.parts.add(p, -1)
	}
	grown = o.measure() * countedUnit
	t.bytes += grown
	if p := o.parts(); p != nil {
		t.counts.parts.add(p, 1)
	} else if o.bin != bin && o.kind <= sizedKinds {
		t.counts.sizes[o.kind-1][bin]--
		t.counts.sizes[o.kind-1][o.bin]++
	}
	return grown
}

// setInt changes an integer in place. It counts the new length, since nothing else does.
func (v *View) setInt(e Entry, n int64) {
	at := e.intRef()
	was, is := binOf(digits(*at)), binOf(digits(n))
	*at = n
	if was != is {
		_, s := v.locate(e.Key())
		c := s.tables[v.DB].counts
		c.sizes[KindString-1][was]--
		c.sizes[KindString-1][is]++
	}
}

// ofKind is the number of entries of a kind.
func (t *table) ofKind(k Kind) int {
	if t.counts == nil {
		return 0
	}
	return t.counts.kinds[k]
}

// promised is the number of entries that are never evicted (Entry.promises).
func (t *table) promised() int {
	if t.counts == nil {
		return 0
	}
	return t.counts.kinds[KindLock] + t.counts.kinds[KindDelayQueue] + t.counts.parts.Named
}

// digits is the length of a number as text.
func digits(n int64) int {
	u, sign := uint64(n), 0
	if n < 0 {
		u, sign = -u, 1
	}
	d := bits.Len64(u|1) * 1233 >> 12 // times log10(2), nearly
	if u >= powersOf10[d] {
		d++
	}
	return max(d, 1) + sign
}

var powersOf10 = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return p
}()
