package zset

import "github.com/limitkv/limitkv/zset/wyhash"

// Image passes on the members of a large set as they were when it began, a few at a time, while the set changes. It
// goes through the index in the order of hashes, as Scan does. A member that it has not reached is passed on before it
// changes or is removed. It is noted while it is in the set, as are new members: noted members are skipped later. So
// only members that change before they are reached are copied.
type Image struct {
	l      *large
	fn     func(member []byte, score float64)
	cursor uint64 // of scan: hashes below it are done
	noted  map[string]struct{}
}

// Image begins an image of a set, nil if the set is packed. fn is called with each member once, by Next and by
// functions that change the set. A set has one image at a time: a new one ends the last.
func (s *Set) Image(fn func(member []byte, score float64)) *Image {
	if s.big == nil {
		return nil
	}
	m := &Image{l: s.big, fn: fn, noted: map[string]struct{}{}}
	s.big.image = m
	return m
}

// Next passes on about count members. It returns false at the end.
func (m *Image) Next(count int) bool {
	l := m.l
	if l.image != m {
		return false
	}
	m.cursor = l.scan(m.cursor, count, func(member []byte, score float64) {
		if _, noted := m.noted[string(member)]; !noted {
			m.fn(member, score)
		}
	})
	if m.cursor == 0 {
		m.End()
	}
	return l.image == m
}

// End ends the image without the rest.
func (m *Image) End() {
	if m.l.image == m {
		m.l.image = nil
	}
}

// done tells whether the image has passed a hash.
func (m *Image) done(h uint64) bool { return h>>(64-cursorBits) < m.cursor }

// note is called before a member is added.
func (m *Image) note(h uint64, member []byte) {
	if !m.done(h) {
		m.noted[string(member)] = struct{}{}
	}
}

// leaves is called before an entry is removed. A member that is not there needs no note, so members that come and go
// take no memory.
func (m *Image) leaves(h uint64, r ref) {
	if m.done(h) {
		return
	}
	member := m.l.arena.member(r)
	if _, noted := m.noted[string(member)]; noted {
		delete(m.noted, string(member))
	} else {
		m.fn(member, m.l.arena.score(r))
	}
}

// keep is called before an entry changes.
func (m *Image) keep(r ref) {
	member := m.l.arena.member(r)
	h := wyhash.Sum(member)
	if m.done(h) {
		return
	}
	if _, noted := m.noted[string(member)]; !noted {
		m.fn(member, m.l.arena.score(r))
		m.noted[string(member)] = struct{}{}
	}
}
