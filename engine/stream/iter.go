package stream

import "github.com/limitkv/limitkv/engine/packed"

// Iter walks over the entries of a range. A write to the stream invalidates it.
//
//	for it := s.Range(start, end, false); it.Next(); {
//		it.ID()
//		for it.NextPair() { it.Field(), it.Value() … }
//	}
type Iter struct {
	s          *Stream
	start, end ID
	reverse    bool

	block   int // of lp
	lp      []byte
	at      int // the element that is read next
	flagsAt int // where the entry begins

	id    ID
	flags int64

	fields       int // of the entry
	masterFields int
	masterAt     int
	pairsLeft    int
	fieldAt      int // of the pair; 0 before the first pair if the fields are the master's
	valueAt      int

	fieldBuffer, valueBuffer packed.Scratch
}

// Range returns an iterator before the first entry from start to end, both included, or in reverse from end to
// start.
func (s *Stream) Range(start, end ID, reverse bool) Iter {
	it := Iter{s: s, start: start, end: end, reverse: reverse}
	if reverse {
		it.block = s.search(end) + 1
	} else {
		it.block = max(s.search(start), 0) - 1
	}
	return it
}

// enter goes to the next block in the direction of the iterator and reports whether there is one.
func (it *Iter) enter() bool {
	if it.reverse {
		it.block--
	} else {
		it.block++
	}
	if it.block < 0 || it.block >= len(it.s.blocks) {
		return false
	}
	b := &it.s.blocks[it.block]
	it.lp = b.lp
	it.masterFields, it.masterAt, it.at = b.master()
	if it.reverse {
		it.flagsAt = packed.End(it.lp)
	} else if it.start.Compare(b.id) > 0 {
		it.at = b.near(it.start, it.at)
	}
	return true
}

// near returns where to begin the search for the first entry that is not before id. This is the first entry or, if id
// is nearer to the last one, as for readers of new entries, the position that is found by going back from the last
// entry.
func (b *block) near(id ID, first int) int {
	last, at := b.entryBefore(packed.End(b.lp))
	if id.Millis-b.id.Millis <= (last.Millis-b.id.Millis)/2 {
		return first
	}
	next := packed.End(b.lp)
	for last.Compare(id) >= 0 && at > first {
		next = at
		last, at = b.entryBefore(at)
	}
	if last.Compare(id) >= 0 {
		return at
	}
	return next
}

// entryBefore returns the ID of the entry, deleted or not, that ends at position p, and where it begins. There
// must be one.
func (b *block) entryBefore(p int) (ID, int) {
	p = packed.Prev(b.lp, p)
	n, _ := packed.Int(b.lp, p)
	for range n {
		p = packed.Prev(b.lp, p)
	}
	at := packed.Next(b.lp, p)
	millis, _ := packed.Int(b.lp, at)
	seq, _ := packed.Int(b.lp, packed.Next(b.lp, at))
	return ID{b.id.Millis + uint64(millis), b.id.Seq + uint64(seq)}, p
}

// Next goes to the next entry and reports whether there is one.
func (it *Iter) Next() bool {
	for {
		if it.lp == nil && !it.enter() {
			return false
		}
		if !it.seek() {
			it.lp = nil
			continue
		}
		it.parse()
		if it.flags&flagDeleted != 0 {
			continue
		}
		before, after := it.id.Compare(it.start) < 0, it.id.Compare(it.end) > 0
		if !before && !after {
			return true
		}
		if before == it.reverse {
			it.block, it.lp = -1, nil
			if !it.reverse {
				it.block = len(it.s.blocks)
			}
			return false
		}
	}
}

// seek goes to the next entry of the block, deleted or not, and reports whether there is one.
func (it *Iter) seek() bool {
	if it.reverse {
		// The element before the entry is the number of elements of the previous entry, or the 0 of the master entry.
		p := packed.Prev(it.lp, it.flagsAt)
		n, _ := packed.Int(it.lp, p)
		for range n {
			p = packed.Prev(it.lp, p)
		}
		it.flagsAt = p
		return n > 0
	}
	if it.flagsAt > 0 {
		// Skip the part of the entry that was not read, and the number of its elements.
		left := it.pairsLeft + 1
		if it.flags&flagSameFields == 0 {
			left += it.pairsLeft
		}
		for range left {
			it.at = packed.Next(it.lp, it.at)
		}
	}
	it.flagsAt = it.at
	if it.at < packed.End(it.lp) {
		return true
	}
	it.flagsAt = 0
	return false
}

// parse reads the head of the entry.
func (it *Iter) parse() {
	p := it.flagsAt
	next := func() int64 {
		n, _ := packed.Int(it.lp, p)
		p = packed.Next(it.lp, p)
		return n
	}
	it.flags = next()
	it.id = it.s.blocks[it.block].id
	it.id.Millis += uint64(next())
	it.id.Seq += uint64(next())
	if it.flags&flagSameFields != 0 {
		it.fields, it.fieldAt = it.masterFields, 0
	} else {
		it.fields = int(next())
	}
	it.pairsLeft = it.fields
	it.at = p
}

// ID returns the entry's ID.
func (it *Iter) ID() ID { return it.id }

// Pairs returns how many fields with values the entry has.
func (it *Iter) Pairs() int { return it.fields }

// NextPair goes to the next field of the entry and reports whether there is one.
func (it *Iter) NextPair() bool {
	if it.pairsLeft == 0 {
		return false
	}
	switch {
	case it.flags&flagSameFields == 0:
		it.fieldAt = it.at
		it.at = packed.Next(it.lp, it.at)
	case it.fieldAt == 0:
		it.fieldAt = it.masterAt
	default:
		it.fieldAt = packed.Next(it.lp, it.fieldAt)
	}
	it.pairsLeft--
	it.valueAt = it.at
	it.at = packed.Next(it.lp, it.at)
	return true
}

// Field returns the name of the field. It may alias the stream or the iterator.
func (it *Iter) Field() []byte { return packed.Get(it.lp, it.fieldAt, &it.fieldBuffer) }

// Value returns the value of the field. It may alias the stream or the iterator.
func (it *Iter) Value() []byte { return packed.Get(it.lp, it.valueAt, &it.valueBuffer) }
