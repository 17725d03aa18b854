package set

// Restoring a small set as it is, for RESTORE.

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/limitkv/limitkv/engine/packed"
)

// ErrCorrupt is returned for data that is no intset, or no listpack of a set.
var ErrCorrupt = errors.New("set: corrupted intset or listpack")

// RestoreIntset returns a set of an intset that Small returned, which it verifies and copies. Redis accepts an intset
// that is out of order, or has a member twice. Here it is sorted, with each member once, and repaired is true.
func RestoreIntset(b []byte, lim Limits) (s Set, repaired bool, err error) {
	if len(b) < intsetHeader {
		return Set{}, false, ErrCorrupt
	}
	width, n := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
	if width != 2 && width != 4 && width != 8 || n == 0 || intsetHeader+n*width != uint64(len(b)) {
		return Set{}, false, ErrCorrupt
	}
	is := intset(append([]byte(nil), b...))
	for i := 1; i < is.len() && !repaired; i++ {
		repaired = is.at(i-1) >= is.at(i)
	}
	if repaired {
		is = is.sorted()
	}
	s = Set{small: is}
	if s.Len() > lim.MaxIntset {
		s.enlarge()
	}
	return s, repaired, nil
}

// sorted returns an intset of the same width with the members in order, each once.
func (is intset) sorted() intset {
	members := make([]int64, is.len())
	for i := range members {
		members[i] = is.at(i)
	}
	slices.Sort(members)
	members = slices.Compact(members)
	width := int(binary.LittleEndian.Uint32(is))
	next := make(intset, intsetHeader, intsetHeader+len(members)*width)
	copy(next, is[:4])
	binary.LittleEndian.PutUint32(next[4:], uint32(len(members)))
	for _, m := range members {
		next = append(next, binary.LittleEndian.AppendUint64(nil, uint64(m))[:width]...)
	}
	return next
}

// RestorePacked returns a set of a listpack that Small returned, which it verifies and copies. As in Redis the set
// stays packed however long its members are, unless there are too many.
func RestorePacked(lp []byte, lim Limits) (Set, error) {
	if lp == nil || packed.Check(lp) != nil || packed.Count(lp) == 0 {
		return Set{}, ErrCorrupt
	}
	s := Set{small: packed.Clone(lp), large: listpack}
	if packed.Twice(s.small, 1) {
		return Set{}, ErrCorrupt
	}
	if s.Len() > lim.MaxPacked {
		s.enlarge()
	}
	return s, nil
}
