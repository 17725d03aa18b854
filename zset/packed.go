package zset

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
)

// packed is a small set in one slice without pointers: a header of 4 bytes, then the entries in order, each its score
// (8 bytes), the length of the member (varint) and the member. Everything is found by walking from the front. The
// header has the number of entries; then the number of bytes of all of it, for callers whose slice is longer
// (Set.Over); and in the top bit whether Redis would have made the set a skiplist by now. Offsets into the slice are
// called at.
type packed []byte

const (
	packedHeader = 4
	packedCount  = 1<<8 - 1
	packedBytes  = 8 // the first bit of the number of bytes
	packedMark   = 1 << 31
	scoreBytes   = 8

	// packedEntriesMax and packedBytesMax say when a set takes the large form, whatever the values of
	// zset-max-listpack-*: a walk over so much costs less than half a microsecond, and a large set starts at 4 KiB.
	// Every set that is a listpack by Redis's default limits is packed.
	packedEntriesMax = 128
	packedBytesMax   = 10 << 10

	// The header has room for them.
	_ = uint(packedCount - packedEntriesMax)
	_ = uint((packedMark-1)>>packedBytes - packedBytesMax)
)

func (p packed) header() uint32 {
	if len(p) == 0 {
		return 0
	}
	return binary.LittleEndian.Uint32(p)
}

// note sets the number of bytes in the header, and adds n to the number of entries.
func (p packed) note(n int) {
	h := p.header()
	binary.LittleEndian.PutUint32(p, h&packedMark|uint32(len(p))<<packedBytes|uint32(int(h&packedCount)+n))
}

func (p packed) count() int     { return int(p.header() & packedCount) }
func (p packed) skiplist() bool { return p.header()&packedMark != 0 }

func (p *packed) setSkiplist() {
	if len(*p) == 0 {
		*p = emptyPacked(make(packed, packedHeader))
	}
	binary.LittleEndian.PutUint32(*p, p.header()|packedMark)
}

// emptyPacked is a set without entries that can grow in room.
func emptyPacked(room []byte) packed {
	p := packed(room[:packedHeader])
	clear(p)
	p.note(0)
	return p
}

// leaveSkiplist makes the set one that is a listpack in Redis, where -0 is 0.
func (p packed) leaveSkiplist() {
	if len(p) == 0 {
		return
	}
	binary.LittleEndian.PutUint32(p, p.header()&^packedMark)
	for at := packedHeader; at < len(p); at = p.next(at) {
		if p.score(at) == 0 {
			p.setScore(at, 0)
		}
	}
}

// hasRoom reports whether the set can stay packed with one more member.
func (p packed) hasRoom(memberBytes int) bool {
	return p.count() < packedEntriesMax && len(p)+scoreBytes+2+memberBytes <= packedBytesMax
}

func (p packed) score(at int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(p[at:]))
}

func (p packed) setScore(at int, score float64) {
	binary.LittleEndian.PutUint64(p[at:], math.Float64bits(score))
}

// member returns the member of the entry at, and where the next entry starts.
func (p packed) member(at int) ([]byte, int) {
	at += scoreBytes
	n := int(p[at])
	at++
	if n >= 0x80 { // two bytes are enough for packedBytesMax
		n = n&0x7f | int(p[at])<<7
		at++
	}
	return p[at : at+n : at+n], at + n
}

// next returns where the entry after the one at starts.
func (p packed) next(at int) int {
	_, end := p.member(at)
	return end
}

// find returns where member's entry is, and its score.
func (p packed) find(member []byte) (at int, score float64, found bool) {
	for at := packedHeader; at < len(p); {
		m, end := p.member(at)
		if string(m) == string(member) {
			return at, p.score(at), true
		}
		at = end
	}
	return 0, 0, false
}

func (p packed) rank(member []byte) (rank int, score float64, ok bool) {
	for at := packedHeader; at < len(p); rank++ {
		m, end := p.member(at)
		if string(m) == string(member) {
			return rank, p.score(at), true
		}
		at = end
	}
	return 0, 0, false
}

// place returns where an entry (score, member) belongs.
func (p packed) place(member []byte, score float64) int {
	at := packedHeader
	for at < len(p) {
		m, end := p.member(at)
		if sc := p.score(at); sc > score || sc == score && string(m) > string(member) {
			break
		}
		at = end
	}
	return at
}

// insert adds a new member.
func (p *packed) insert(member []byte, score float64) {
	if len(*p) == 0 {
		*p = emptyPacked(make(packed, packedHeader, packedHeader+headBytes(member)+len(member)))
	}
	p.put(p.place(member, score), member, score)
}

// headBytes is how many bytes of an entry are before its member.
func headBytes(member []byte) int {
	if len(member) >= 0x80 {
		return scoreBytes + 2
	}
	return scoreBytes + 1
}

// put inserts an entry before the one at an offset, or at the end.
func (p *packed) put(at int, member []byte, score float64) {
	head := headBytes(member)
	p.grow(head + len(member))
	q := *p
	q.note(1)
	copy(q[at+head+len(member):], q[at:])
	q.setScore(at, score)
	q[at+scoreBytes] = byte(len(member))
	if len(member) >= 0x80 {
		q[at+scoreBytes] |= 0x80
		q[at+scoreBytes+1] = byte(len(member) >> 7)
	}
	copy(q[at+head:], member)
}

// grow lengthens the slice by n bytes. It reserves an eighth more than needed, instead of doubling as append would:
// there are millions of such sets.
func (p *packed) grow(n int) {
	need := len(*p) + n
	if need > cap(*p) {
		bigger := append(packed(nil), make(packed, need+need/8)...)
		copy(bigger, *p)
		*p = bigger
	}
	*p = (*p)[:need]
}

// sorted returns a copy with the entries in order, and no room for more.
func (p packed) sorted() packed {
	var room [packedEntriesMax]uint16
	starts := room[:0]
	for at := packedHeader; at < len(p); at = p.next(at) {
		starts = append(starts, uint16(at))
	}
	slices.SortFunc(starts, func(x, y uint16) int {
		switch a, b := p.score(int(x)), p.score(int(y)); {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		a, _ := p.member(int(x))
		b, _ := p.member(int(y))
		return bytes.Compare(a, b)
	})
	q := append(make(packed, 0, len(p)), p[:packedHeader]...)
	for _, at := range starts {
		q = append(q, p[at:p.next(int(at))]...)
	}
	return q // its header is as it was
}

// move gives the entry at an offset a new score and moves it to its new place.
func (p *packed) move(at int, score float64) {
	var buf [128]byte
	end := p.next(at)
	entry := append(buf[:0], (*p)[at:end]...)
	member, _ := packed(entry).member(0)
	packed(entry).setScore(0, score)
	// Take the entry out, without shortening the slice, then open a gap of its
	// size where it belongs.
	q := *p
	rest := q[:len(q)-len(entry)]
	copy(q[at:], q[end:])
	to := rest.place(member, score)
	copy(q[to+len(entry):], q[to:len(rest)])
	copy(q[to:], entry)
}

// cut removes the bytes of n entries. It releases memory once half of it is unused.
func (p *packed) cut(from, to, n int) {
	q := append((*p)[:from], (*p)[to:]...)
	q.note(-n)
	if cap(q) > 64 && len(q) < cap(q)/2 {
		q = q.clone()
	}
	*p = q
}

// seek returns where the entry of a rank starts.
func (p packed) seek(rank int) int {
	at := packedHeader
	for ; rank > 0; rank-- {
		at = p.next(at)
	}
	return at
}

func (p *packed) removeRange(lo, hi int) {
	from := p.seek(lo)
	to := from
	for i := lo; i < hi; i++ {
		to = p.next(to)
	}
	p.cut(from, to, hi-lo)
}

// countScore returns how many entries have a score below score or, with orEqual, equal to it.
func (p packed) countScore(score float64, orEqual bool) int {
	n := 0
	for at := packedHeader; at < len(p); at = p.next(at) {
		if sc := p.score(at); sc > score || sc == score && !orEqual {
			break
		}
		n++
	}
	return n
}

// lexRange walks as Redis does, so that the result is the same even where the
// scores differ and the members are therefore not in order.
func (p packed) lexRange(from, to *LexBound, reverse bool) (lo, hi int) {
	n := p.count()
	var below, within [packedEntriesMax]bool // of each entry: before from, not beyond to
	for i, at := 0, packedHeader; i < n; i++ {
		member, end := p.member(at)
		below[i], within[i] = from.before(member), to.within(member)
		at = end
	}
	if n == 0 || below[n-1] || !within[0] {
		return 0, 0
	}
	if !reverse {
		for lo < n && below[lo] {
			lo++
		}
		for hi = lo; hi < n && within[hi]; hi++ {
		}
		return lo, hi
	}
	for hi = n; hi > 0 && !within[hi-1]; hi-- {
	}
	for lo = hi; lo > 0 && !below[lo-1]; lo-- {
	}
	return lo, hi
}

func (p packed) ascend(lo, hi int, fn func(member []byte, score float64) bool) {
	at := p.seek(lo)
	for i := lo; i < hi; i++ {
		member, end := p.member(at)
		if !fn(member, p.score(at)) {
			return
		}
		at = end
	}
}

// descend goes backwards, but entries can only be walked forwards. So it first finds where they start.
func (p packed) descend(lo, hi int, fn func(member []byte, score float64) bool) {
	var starts [packedEntriesMax]uint16
	at := p.seek(lo)
	for i := lo; i < hi; i++ {
		starts[i] = uint16(at)
		at = p.next(at)
	}
	for i := hi - 1; i >= lo; i-- {
		at := int(starts[i])
		member, _ := p.member(at)
		if !fn(member, p.score(at)) {
			return
		}
	}
}

func (p packed) clone() packed {
	return append(packed(nil), p...)
}
