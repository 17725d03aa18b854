package zset

import (
	"encoding/binary"
	"math"
)

// packed is a small set in one slice without pointers: the number of entries
// (4 bytes), then the entries in order, each its score (8 bytes), the length of
// the member (varint) and the member. Everything is found by walking from the
// front: at the 128 entries that Redis's limits allow, that is at most some
// hundred nanoseconds. Offsets into the slice are called at.
type packed []byte

const (
	packedHeader = 4
	scoreBytes   = 8
)

func (p packed) count() int {
	if len(p) == 0 {
		return 0
	}
	return int(binary.LittleEndian.Uint32(p))
}

func (p packed) setCount(n int) {
	binary.LittleEndian.PutUint32(p, uint32(n))
}

func (p packed) score(at int) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(p[at:]))
}

// member returns the member of the entry at, and where the next entry starts.
func (p packed) member(at int) ([]byte, int) {
	at += scoreBytes
	n := int(p[at])
	at++
	if n >= 0x80 { // a member of 128 bytes or more, only with raised limits
		long, width := binary.Uvarint(p[at-1:])
		n = int(long)
		at += width - 1
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

// insert adds a member that is not there. Like Redis's listpack, which keeps
// such a score as an integer, it turns -0 into 0.
func (p *packed) insert(member []byte, score float64) {
	if len(*p) == 0 {
		*p = append(*p, 0, 0, 0, 0)
	}
	at := p.place(member, score)
	var head [scoreBytes + binary.MaxVarintLen64]byte
	n := entryHead(&head, len(member), score)
	p.grow(n + len(member))
	copy((*p)[at+n+len(member):], (*p)[at:])
	copy((*p)[at:], head[:n])
	copy((*p)[at+n:], member)
	p.setCount(p.count() + 1)
}

func entryHead(head *[scoreBytes + binary.MaxVarintLen64]byte, memberBytes int, score float64) int {
	if score == 0 {
		score = 0
	}
	binary.LittleEndian.PutUint64(head[:], math.Float64bits(score))
	return scoreBytes + binary.PutUvarint(head[scoreBytes:], uint64(memberBytes))
}

// grow lengthens the slice by n bytes. It reserves an eighth beyond what is
// needed, and not the double as append would: there are millions of such sets.
func (p *packed) grow(n int) {
	need := len(*p) + n
	if need > cap(*p) {
		bigger := append(packed(nil), make(packed, need+need/8)...)
		copy(bigger, *p)
		*p = bigger
	}
	*p = (*p)[:need]
}

// move gives the entry at a new score and puts it where it then belongs.
func (p *packed) move(at int, score float64) {
	var buf [128]byte
	end := p.next(at)
	entry := append(buf[:0], (*p)[at:end]...)
	member, _ := packed(entry).member(0)
	if score == 0 {
		score = 0
	}
	binary.LittleEndian.PutUint64(entry, math.Float64bits(score))
	// Take the entry out, without shortening the slice, then open a gap of its
	// size where it belongs.
	q := *p
	rest := q[:len(q)-len(entry)]
	copy(q[at:], q[end:])
	to := rest.place(member, score)
	copy(q[to+len(entry):], q[to:len(rest)])
	copy(q[to:], entry)
}

// cut removes the bytes of n entries. It gives memory back once half of it is
// unused.
func (p *packed) cut(from, to, n int) {
	q := *p
	left := q.count() - n
	if left == 0 {
		*p = nil
		return
	}
	q = append(q[:from], q[to:]...)
	q.setCount(left)
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

// countScore returns how many entries have a score below score, or equal if
// that counts.
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
	var below, within []bool // of each entry: before from, not beyond to
	var buf [2 * DefaultPackedEntriesMax]bool
	below, within = buf[:0:DefaultPackedEntriesMax], buf[DefaultPackedEntriesMax:][:0]
	p.ascend(0, n, func(member []byte, _ float64) bool {
		below = append(below, from.before(member))
		within = append(within, to.within(member))
		return true
	})
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

// descend goes backwards over entries that can only be walked forwards, so it
// notes where they start first.
func (p packed) descend(lo, hi int, fn func(member []byte, score float64) bool) {
	var buf [DefaultPackedEntriesMax]uint32
	starts := buf[:0]
	at := p.seek(lo)
	for i := lo; i < hi; i++ {
		starts = append(starts, uint32(at))
		at = p.next(at)
	}
	for i := len(starts) - 1; i >= 0; i-- {
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
