package set

// Taking a small set over as it is: RESTORE.

import (
	"encoding/binary"
	"errors"

	"github.com/limitkv/limitkv/engine/packed"
)

// ErrCorrupt is returned for what is no intset, or no listpack of a set.
var ErrCorrupt = errors.New("set: corrupted intset or listpack")

// RestoreIntset returns a set of an intset as Small returns it, which it verifies and copies.
func RestoreIntset(b []byte, lim Limits) (Set, error) {
	if len(b) < intsetHeader {
		return Set{}, ErrCorrupt
	}
	width, n := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
	if width != 2 && width != 4 && width != 8 || n == 0 || intsetHeader+n*width != uint64(len(b)) {
		return Set{}, ErrCorrupt
	}
	is := intset(append([]byte(nil), b...))
	for i := 1; i < is.len(); i++ {
		if is.at(i-1) >= is.at(i) {
			return Set{}, ErrCorrupt
		}
	}
	s := Set{small: is}
	if s.Len() > lim.MaxIntset {
		s.enlarge()
	}
	return s, nil
}

// RestorePacked returns a set of a listpack as Small returns it, which it verifies and copies. As in Redis the
// set stays packed unless it has too many members, however long they are.
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
