package zset

import "unsafe"

// A small set that is kept in bytes of others: a keyspace has it beside its key. What is changed and fits in is written there.
// What does not goes elsewhere, and they find out (In).

// Over makes s a small set over bytes that have one, with room behind it.
func (s *Set) Over(b []byte) { *s = Set{packed: b[:packed(b).bytes():len(b)]} }

// Begin makes s an empty set that has room to grow in.
func (s *Set) Begin(room []byte) { *s = Set{packed: emptyPacked(room)} }

// In tells whether the set still is over these bytes and nothing else.
func (s *Set) In(b []byte) bool {
	return s.big == nil && s.packed != nil && unsafe.SliceData(s.packed) == unsafe.SliceData(b)
}

// Plain returns the bytes of a small set, which is ok.
func (s *Set) Plain() (b []byte, ok bool) {
	switch {
	case s.big != nil:
		return nil, false
	case s.packed == nil:
		return emptyPacked(make(packed, packedHeader)), true
	}
	return s.packed, true
}

// PlainLen is how many members the set has that is in these bytes.
func PlainLen(b []byte) int { return packed(b).count() }

func (p packed) bytes() int { return int(p.header()&^packedMark) >> packedBytes }

// relocate moves the entries to a room if they have none for so many bytes more.
func (p *packed) relocate(more int, room []byte) {
	if n := len(*p) + more; n > cap(*p) && n <= len(room) {
		*p = append(packed(room[:0]), *p...)
	}
}

// Begins is where the memory of a small set begins that is an object, for a look ahead at it: another goroutine may be changing
// the set, and the answer be out of date.
//
//go:norace
func (s *Set) Begins() *byte { return unsafe.SliceData(s.packed) }
