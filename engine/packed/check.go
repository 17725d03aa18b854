package packed

import (
	"encoding/binary"
	"errors"
)

// ErrCorrupt is what Check returns for bytes that are not a list.
var ErrCorrupt = errors.New("packed: not a listpack")

// Check verifies bytes that come from outside, such as RESTORE's: after it, no function of this package reads
// beyond them. The tests of all structures run it after each step.
func Check(lp []byte) error {
	if lp == nil {
		return nil
	}
	n, ok := whole(lp)
	if !ok {
		return ErrCorrupt
	}
	if count := int(binary.LittleEndian.Uint16(lp[4:])); count != countUnknown && count != n {
		return ErrCorrupt
	}
	return nil
}

// Recounted returns a copy of a list that is whole but for its number of elements, which is right in the copy; nil if more is
// wrong.
func Recounted(lp []byte) []byte {
	n, ok := whole(lp)
	if !ok {
		return nil
	}
	counted := append([]byte(nil), lp...)
	binary.LittleEndian.PutUint16(counted[4:], uint16(min(n, countUnknown)))
	return counted
}

// whole tells whether bytes are a list, whatever number of elements it says, and returns how many there are.
func whole(lp []byte) (n int, ok bool) {
	if len(lp) < EmptyBytes || uint64(binary.LittleEndian.Uint32(lp)) != uint64(len(lp)) || lp[len(lp)-1] != eof {
		return 0, false
	}
	end := End(lp)
	for p := headerBytes; p < end; n++ {
		size, ok := checkEntry(lp[p:end])
		if !ok {
			return 0, false
		}
		k := backlenBytes(size)
		if size > end-p-k || backlen(lp, p+size+k-1) != size {
			return 0, false
		}
		// The bytes that continue the length are marked, its first is not.
		for i := range k {
			if (lp[p+size+i]&0x80 != 0) != (i > 0) {
				return 0, false
			}
		}
		p += size + k
	}
	return n, true
}

// checkEntry returns the size of the element that b starts with, if b has enough bytes to tell.
func checkEntry(b []byte) (size int, ok bool) {
	header := 1
	switch c := b[0]; {
	case c >= 0xE0 && c < 0xF0:
		header = 2
	case c == 0xF0:
		header = 5
	case c > 0xF4:
		return 0, false
	}
	if len(b) < header {
		return 0, false
	}
	return entryBytes(b, 0), true
}
