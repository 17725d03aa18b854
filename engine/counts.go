package engine

// What a table counts of its entries: how many there are of each kind, how large
// they are, how many entries queues have. It is kept as entries come, change and
// go, so that who looks (Tally) need not look at them: an entry is counted by
// what is noted of it, and what is noted is brought up to date where an object is
// counted anew for its memory.

import (
	"math/bits"

	"github.com/limitkv/limitkv/engine/limiter"
)

// SizeBins is how many bins a histogram of lengths has, which is enough for every
// length there can be in memory.
const SizeBins = 48

// sizedKinds are the first kinds, of which lengths are counted.
const sizedKinds = KindSet

// counts is small, since each table that has entries has one.
type counts struct {
	kinds [kindCount]int
	sizes [sizedKinds][SizeBins]uint32
	parts Parts
}

// Parts is how many entries and groups queues have, how many queues are paused or have a limiter, how many limiters have
// named grants, and how many of these are open.
type Parts struct{ Waiting, Leased, Groups, Paused, Limited, Named, Grants int }

// add adds, by times 1 or -1.
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

// partsOf is what there is of an object.
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

// partedEntry is the objectEntry of a delay queue, or of a limiter with grants, with what is noted of it.
type partedEntry struct {
	objectEntry
	parts Parts
	at    int // in its table's list of queues
}

// hasParts tells whether objects of a kind have parts.
func (k Kind) hasParts() bool { return k == KindDelayQueue || k == KindLimiter }

// parts is where the parts of an object are noted, nil for what has none.
func (o *objectEntry) parts() *Parts {
	if !o.kind.hasParts() {
		return nil
	}
	return &Entry{&o.header}.parted().parts
}

// binOf is the bin of a length: 0 for none, i for 2^(i-1) and more.
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

// recount counts an object anew that has changed, and returns by how many bytes
// it has grown.
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

// setInt changes an integer in place. Its length is counted where it changes.
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

// ofKind is how many entries of a kind there are.
func (t *table) ofKind(k Kind) int {
	if t.counts == nil {
		return 0
	}
	return t.counts.kinds[k]
}

// promised is how many entries are never evicted (Entry.promises).
func (t *table) promised() int {
	if t.counts == nil {
		return 0
	}
	return t.counts.kinds[KindLock] + t.counts.kinds[KindDelayQueue] + t.counts.parts.Named
}

// digits is how long a number is as text.
func digits(n int64) int {
	u, sign := uint64(n), 0
	if n < 0 {
		u, sign = -u, 1
	}
	d := bits.Len64(u|1) * 1233 >> 12 // log10 of 2, nearly
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
