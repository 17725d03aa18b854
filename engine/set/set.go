// Package set, internal to the server, is Redis's set: a small set of integers is a sorted array (intset), another
// small set is a listpack, a large one is a table.
//
// The intset and the listpack are Redis's, byte for byte, and a set changes its form when Redis's does, because OBJECT
// ENCODING shows the form, and the order of SMEMBERS depends on it: ascending, in the order of adding, or any. No form
// changes back to a smaller one, except in the results of whole commands, as in Redis.
//
// Byte arguments are copied and must not alias the set. Results may alias it until the next write.
package set

import (
	"strconv"
	"unsafe"

	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/engine/table"
)

// Limits are the sizes up to which a set stays small: set-max-intset-entries, set-max-listpack-entries and
// set-max-listpack-value.
type Limits struct {
	MaxIntset      int // members, if all are integers
	MaxPacked      int // members
	MaxPackedBytes int // bytes of a member
}

// DefaultLimits are Redis's.
var DefaultLimits = Limits{MaxIntset: 512, MaxPacked: 128, MaxPackedBytes: 64}

// maxIntset is the most that MaxIntset can be, as in Redis.
const maxIntset = 1 << 30

// Set is a set of byte strings. The zero value is an empty intset.
type Set struct {
	small []byte // the intset or the listpack
	// large is nil for an intset, listpack for a listpack.
	large *table.Table
}

// listpack marks a set that is a listpack. It is always empty.
var listpack = &table.Table{}

type form int

const (
	formIntset form = iota
	formPacked
	formTable
)

func (s *Set) form() form {
	switch s.large {
	case nil:
		return formIntset
	case listpack:
		return formPacked
	}
	return formTable
}

// New returns an empty set in the form that Redis chooses when a command makes a set for size members, the first of
// which is first.
func New(first []byte, size int, lim Limits) Set {
	if _, ok := packed.ParseInt(first); ok && size <= lim.MaxIntset {
		return Set{}
	}
	if size <= lim.MaxPacked {
		return Set{large: listpack}
	}
	return newTable()
}

func newTable() Set { return Set{large: &table.Table{}} }

// Prepare must be called before a command adds size members to a set that exists. Redis decides by their number, before
// it checks whether they are there already, that a set becomes large.
func (s *Set) Prepare(size int, lim Limits) {
	if f := s.form(); f == formPacked && size > lim.MaxPacked || f == formIntset && size > lim.MaxIntset {
		s.enlarge()
	}
}

// Len returns the number of members.
func (s *Set) Len() int {
	switch s.form() {
	case formIntset:
		return intset(s.small).len()
	case formPacked:
		return packed.Count(s.small)
	}
	return s.large.Len()
}

// Encoding is OBJECT ENCODING's answer: intset, listpack or hashtable.
func (s *Set) Encoding() string { return [...]string{"intset", "listpack", "hashtable"}[s.form()] }

// MemoryUsage returns the bytes that the set takes.
func (s *Set) MemoryUsage() int {
	n := int(unsafe.Sizeof(*s)) + cap(s.small)
	if s.form() == formTable {
		n += int(unsafe.Sizeof(*s.large)) + s.large.MemoryUsage()
	}
	return n
}

// MemoryEstimate is MemoryUsage, which takes a constant time.
func (s *Set) MemoryEstimate() int { return s.MemoryUsage() }

// Small returns the intset or the listpack of a small set, which DUMP writes as they are; nil if the set is
// large or a new intset.
func (s *Set) Small() []byte { return s.small }

// Contains reports whether the set has the member.
func (s *Set) Contains(member []byte) bool {
	switch s.form() {
	case formIntset:
		v, ok := packed.ParseInt(member)
		return ok && intset(s.small).contains(v)
	case formPacked:
		return packed.Find(s.small, packed.First(s.small), member, 0) >= 0
	}
	return !s.large.Get(member).None()
}

// Add adds a member and reports whether it is new.
func (s *Set) Add(member []byte, lim Limits) bool {
	switch s.form() {
	case formIntset:
		v, ok := packed.ParseInt(member)
		if !ok {
			s.leaveIntset(member, lim)
			return true
		}
		next, added := intset(s.small).add(v)
		s.small = next
		if added && next.len() > min(lim.MaxIntset, maxIntset) {
			s.enlarge()
		}
		return added
	case formPacked:
		if packed.Find(s.small, packed.First(s.small), member, 0) >= 0 {
			return false
		}
		if packed.Count(s.small) < lim.MaxPacked && len(member) <= lim.MaxPackedBytes &&
			len(s.small)+len(member) <= packed.MaxBytes {
			s.small = packed.Append(s.small, packed.String(member))
			return true
		}
		s.enlarge()
	}
	if !s.large.Get(member).None() {
		return false
	}
	s.large.Add(table.NewRecord(member, 0, false))
	return true
}

// leaveIntset adds the first member of an intset that is no integer.
func (s *Set) leaveIntset(member []byte, lim Limits) {
	is := intset(s.small)
	n, longest := is.len(), 0
	if n > 0 {
		longest = max(len(strconv.FormatInt(is.at(0), 10)), len(strconv.FormatInt(is.at(n-1), 10)))
	}
	if n >= lim.MaxPacked || len(member) > lim.MaxPackedBytes || longest > lim.MaxPackedBytes {
		s.enlarge()
		s.large.Add(table.NewRecord(member, 0, false))
		return
	}
	s.toPacked()
	s.small = packed.Append(s.small, packed.String(member))
}

// Remove removes a member and reports whether it was there.
func (s *Set) Remove(member []byte) bool {
	switch s.form() {
	case formIntset:
		v, ok := packed.ParseInt(member)
		if ok {
			s.small, ok = intset(s.small).remove(v)
		}
		return ok
	case formPacked:
		p := packed.Find(s.small, packed.First(s.small), member, 0)
		if p >= 0 {
			s.small = packed.Delete(s.small, p, 1)
		}
		return p >= 0
	}
	return !s.large.Delete(member).None()
}

// toPacked turns an intset into a listpack.
func (s *Set) toPacked() {
	var lp []byte
	for i := range intset(s.small).len() {
		lp = packed.Append(lp, packed.Number(intset(s.small).at(i)))
	}
	s.small, s.large = lp, listpack
}

// toIntset turns a set of integers, in any form, into an intset if it is not too long for one.
func (s *Set) toIntset(lim Limits) {
	if s.form() == formIntset || s.Len() > min(lim.MaxIntset, maxIntset) {
		return
	}
	var is intset
	for it := s.Iter(); it.Next(); {
		v, _ := packed.ParseInt(it.Member())
		is, _ = is.add(v)
	}
	*s = Set{small: is}
}

// enlarge turns a small set into a table.
func (s *Set) enlarge() {
	t := &table.Table{}
	for it := s.Iter(); it.Next(); {
		t.Add(table.NewRecord(it.Member(), 0, false))
	}
	s.small, s.large = nil, t
}

// Clone returns a copy that shares nothing with s.
func (s *Set) Clone() Set {
	if s.form() == formTable {
		t := s.large.Clone(nil)
		return Set{large: &t}
	}
	return Set{small: packed.Clone(s.small), large: s.large}
}

// Begins is the address of a small set's memory, to prefetch it. Another goroutine may be changing the set, so the
// address may be out of date.
//
//go:norace
func (s *Set) Begins() *byte { return unsafe.SliceData(s.small) }
