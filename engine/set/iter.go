package set

// Reading all members, or some; removing some.

import (
	"strconv"

	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/engine/sample"
	"github.com/limitkv/limitkv/engine/table"
)

// Iter walks over the members: ascending in an intset, in the order of adding in a listpack, otherwise in the table's
// order. A write to the set invalidates it.
//
//	for it := s.Iter(); it.Next(); { it.Member() … }
//
// If the compiler moves the iterator to the heap, declare it before the loop: the loop's own variable is new in each
// iteration, which is an allocation for every member.
type Iter struct {
	s       *Set
	at      int // index in the intset, position in the listpack
	next    int
	records table.Iter
	record  table.Record
	buffer  packed.Scratch
}

// Iter returns an iterator before the first member.
func (s *Set) Iter() Iter {
	switch s.form() {
	case formIntset:
		return Iter{s: s}
	case formPacked:
		return Iter{s: s, next: packed.First(s.small)}
	}
	return Iter{s: s, records: s.large.Iter()}
}

// Next goes to the next member and reports whether there is one.
func (it *Iter) Next() bool {
	switch it.s.form() {
	case formIntset:
		it.at = it.next
		it.next++
		return it.at < intset(it.s.small).len()
	case formPacked:
		if it.at = it.next; it.at >= packed.End(it.s.small) {
			return false
		}
		it.next = packed.Next(it.s.small, it.at)
		return true
	}
	if !it.records.Next() {
		return false
	}
	it.record = it.records.Record()
	return true
}

// Member returns the member. It may alias the set or the iterator.
func (it *Iter) Member() []byte {
	switch it.s.form() {
	case formIntset:
		return strconv.AppendInt(it.buffer[:0], intset(it.s.small).at(it.at), 10)
	case formPacked:
		return packed.Get(it.s.small, it.at, &it.buffer)
	}
	return it.record.Key()
}

// Scan calls fn with about count members and returns the cursor for the next call, 0 at the end; see table.Table.Scan
// for what is guaranteed. A small set is passed as a whole. fn must not change the set.
func (s *Set) Scan(cursor uint64, count int, fn func(it *Iter)) uint64 {
	if s.form() != formTable {
		it := s.Iter()
		for it.Next() {
			fn(&it)
		}
		return 0
	}
	it := Iter{s: s}
	return s.large.Scan(cursor, count, func(r table.Record) {
		it.record = r
		fn(&it)
	})
}

// Random returns an iterator at a random member, each with the same probability. The set must not be empty.
func (s *Set) Random(next func() uint64) Iter {
	it := Iter{s: s}
	switch s.form() {
	case formIntset:
		it.at = sample.Below(next(), s.Len())
	case formPacked:
		it.at = packed.Seek(s.small, sample.Below(next(), s.Len()))
	default:
		it.record = s.large.Random(next)
	}
	return it
}

// Draw calls fn with count random members, which can repeat. The set must not be empty.
func (s *Set) Draw(count int, next func() uint64, fn func(it *Iter)) {
	if s.form() != formPacked || count < 4 {
		var it Iter
		for range count {
			it = s.Random(next)
			fn(&it)
		}
		return
	}
	positions := make([]int, 0, s.Len())
	for it := s.Iter(); it.Next(); {
		positions = append(positions, it.at)
	}
	it := Iter{s: s}
	for range count {
		it.at = positions[sample.Below(next(), len(positions))]
		fn(&it)
	}
}

// sparse is how many times larger than a sample a table must be, so that drawing until enough members differ is cheaper
// than a walk over all of it.
const sparse = 3

// Sample calls fn with count different members, or with all if there are fewer. Each choice has the same probability;
// the order is not random. fn must not change the set.
func (s *Set) Sample(count int, next func() uint64, fn func(it *Iter)) {
	n := s.Len()
	if s.form() == formTable && n/sparse > count {
		seen := make(map[table.Record]struct{}, count)
		it := Iter{s: s}
		for len(seen) < count {
			it.record = s.large.Random(next)
			if _, again := seen[it.record]; !again {
				seen[it.record] = struct{}{}
				fn(&it)
			}
		}
		return
	}
	choice := sample.Select(count, n)
	it := s.Iter()
	for !choice.Done() && it.Next() {
		if choice.Take(next) {
			fn(&it)
		}
	}
}

// keepFactor: if at most 1/keepFactor as many members remain as Pop takes, they are moved out instead.
const keepFactor = 5

// Pop removes count random members, or all if there are fewer, and calls fn with each; fn must not use the set. As in
// Redis, a set of which little remains is made anew, in the form that the rest fits into.
func (s *Set) Pop(count int, next func() uint64, lim Limits, fn func(member []byte)) {
	n := s.Len()
	if count >= n {
		it := s.Iter()
		for it.Next() {
			fn(it.Member())
		}
		*s = Set{}
		return
	}
	rest := n - count
	if s.form() == formPacked {
		s.popPacked(count, next, fn)
		return
	}
	if rest > count/keepFactor {
		var it Iter
		for range count {
			it = s.Random(next)
			member := it.Member()
			fn(member)
			s.Remove(member)
		}
		return
	}
	var kept Set
	if s.form() == formTable {
		kept.large = listpack
	}
	for range rest {
		it := s.Random(next)
		member := it.Member()
		kept.Add(member, lim)
		s.Remove(member)
	}
	it := s.Iter()
	for it.Next() {
		fn(it.Member())
	}
	*s = kept
}

func (s *Set) popPacked(count int, next func() uint64, fn func(member []byte)) {
	choice := sample.Select(count, s.Len())
	var buffer packed.Scratch
	for p := packed.First(s.small); !choice.Done(); {
		if choice.Take(next) {
			fn(packed.Get(s.small, p, &buffer))
			s.small = packed.Delete(s.small, p, 1)
		} else {
			p = packed.Next(s.small, p)
		}
	}
}
