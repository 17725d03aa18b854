package zset

import "unsafe"

// A small set can be in memory that is not its own: a keyspace stores it beside its key. Changes that fit are written
// there. Otherwise the set moves elsewhere, and the owner of the memory notices that by In.

// Over makes s a small set on b, which begins with one and has room behind it.
func (s *Set) Over(b []byte) { *s = Set{packed: b[:packed(b).bytes():len(b)]} }

// Begin makes s an empty set that can grow in room.
func (s *Set) Begin(room []byte) { *s = Set{packed: emptyPacked(room)} }

// In tells whether the set still uses the memory of b and no other.
func (s *Set) In(b []byte) bool {
	return s.big == nil && s.packed != nil && unsafe.SliceData(s.packed) == unsafe.SliceData(b)
}

// Plain returns the bytes of a small set; ok is false for a large one.
func (s *Set) Plain() (b []byte, ok bool) {
	switch {
	case s.big != nil:
		return nil, false
	case s.packed == nil:
		return emptyPacked(make(packed, packedHeader)), true
	}
	return s.packed, true
}

// PlainLen is the number of members of the set in these bytes.
func PlainLen(b []byte) int { return packed(b).count() }

func (p packed) bytes() int { return int(p.header()&^packedMark) >> packedBytes }

// relocate moves the entries to room if they fit there and cannot grow by so many bytes where they are.
func (p *packed) relocate(more int, room []byte) {
	if n := len(*p) + more; n > cap(*p) && n <= len(room) {
		*p = append(packed(room[:0]), *p...)
	}
}

// Begins is the address of the memory of a small set that is an object, to prefetch it. Another goroutine may be
// changing the set, so the address may be out of date.
//
//go:norace
func (s *Set) Begins() *byte { return unsafe.SliceData(s.packed) }
