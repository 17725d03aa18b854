package set

// Intersection, union, difference. A nil set is empty, like a key that does not exist.

import (
	"slices"

	"github.com/limitkv/limitkv/engine/packed"
)

func size(s *Set) int {
	if s == nil {
		return 0
	}
	return s.Len()
}

// bySize returns the sets in ascending order of size.
func bySize(sets []*Set) []*Set {
	sets = slices.Clone(sets)
	slices.SortStableFunc(sets, func(a, b *Set) int { return size(a) - size(b) })
	return sets
}

// Inter calls fn with the members that all sets have, in the order of the smallest set (the first if there are
// several), at most limit of them (0: any number), and returns how many. There must be a set. fn may be nil.
func Inter(sets []*Set, limit int, fn func(it *Iter)) int {
	sets = bySize(sets)
	if size(sets[0]) == 0 {
		return 0
	}
	n := 0
	it := sets[0].Iter()
next:
	for it.Next() {
		member := it.Member()
		for _, s := range sets[1:] {
			if s != sets[0] && !s.Contains(member) {
				continue next
			}
		}
		n++
		if fn != nil {
			fn(&it)
		}
		if n == limit {
			break
		}
	}
	return n
}

// InterStore returns the intersection in the form that SINTERSTORE gives it: integers become an intset, whatever form
// the sets have.
func InterStore(sets []*Set, lim Limits) Set {
	smallest := slices.MinFunc(sets, func(a, b *Set) int { return size(a) - size(b) })
	var inter Set
	if size(smallest) == 0 || smallest.form() == formIntset {
		Inter(sets, 0, func(it *Iter) { inter.Add(it.Member(), lim) })
		return inter
	}
	inter.large = listpack
	integers := true
	if smallest.form() == formPacked {
		integers = inter.interPacked(smallest, sets, lim)
	} else {
		Inter(sets, 0, func(it *Iter) {
			if integers {
				_, integers = packed.ParseInt(it.Member())
			}
			inter.Add(it.Member(), lim)
		})
	}
	if integers {
		inter.toIntset(lim)
	}
	return inter
}

// interPacked makes s the members of smallest, a listpack, that all the sets have, by copying elements. It reports
// whether all are integers.
func (s *Set) interPacked(smallest *Set, sets []*Set, lim Limits) (integers bool) {
	integers = true
	longest := 0
	var scratch packed.Scratch
	s.small = packed.Filter(smallest.small, func(p int) bool {
		member := packed.Get(smallest.small, p, &scratch)
		for _, other := range sets {
			if other != smallest && !other.Contains(member) {
				return false
			}
		}
		if integers {
			_, integers = packed.Int(smallest.small, p)
		}
		longest = max(longest, len(member))
		return true
	})
	if s.Len() > lim.MaxPacked || longest > lim.MaxPackedBytes { // the limits may have changed since smallest was made
		s.enlarge()
	}
	return integers
}

// collector returns the empty set in which a union or difference is collected. A result that is only replied need not
// be small. So unless all the sets are intsets it is a table, which is faster to search.
func collector(sets []*Set, reply bool) Set {
	for _, s := range sets {
		if reply && s != nil && s.form() != formIntset {
			return newTable()
		}
	}
	return Set{}
}

// Union returns the union, which is replied or, if reply is false, stored.
func Union(sets []*Set, reply bool, lim Limits) Set {
	u := collector(sets, reply)
	for _, s := range sets {
		if s != nil {
			u.addAll(s, lim)
		}
	}
	return u
}

func (s *Set) addAll(from *Set, lim Limits) {
	for it := from.Iter(); it.Next(); {
		s.Add(it.Member(), lim)
	}
}

// Diff returns the members of the first set that are in no other. They are replied or, if reply is false, stored. There
// must be a set.
func Diff(sets []*Set, reply bool, lim Limits) Set {
	d := collector(sets, reply)
	first, others := sets[0], sets[1:]
	if first == nil || slices.Contains(others, first) {
		return d
	}
	// Either each member of the first set is looked up in the others, or the others are removed from a copy. The choice
	// is Redis's, because the form of a stored result depends on it.
	look, takeOff := 0, 0
	for _, s := range sets {
		if s != nil {
			look += first.Len()
			takeOff += s.Len()
		}
	}
	if look/2 > takeOff {
		d.addAll(first, lim)
		for _, s := range others {
			if d.Len() == 0 {
				break
			}
			if s == nil {
				continue
			}
			for it := s.Iter(); it.Next(); {
				d.Remove(it.Member())
			}
		}
		return d
	}
	// The largest first, because it most probably has a member.
	others = slices.Clone(others)
	slices.SortStableFunc(others, func(a, b *Set) int { return size(b) - size(a) })
next:
	for it := first.Iter(); it.Next(); {
		member := it.Member()
		for _, s := range others {
			if s != nil && s.Contains(member) {
				continue next
			}
		}
		d.Add(member, lim)
	}
	return d
}
