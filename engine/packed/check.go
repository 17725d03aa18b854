package packed

import (
	"encoding/binary"
	"errors"
)

// ErrCorrupt is what Check returns for bytes that are not a list.
var ErrCorrupt = errors.New("packed: not a listpack")

// Check verifies bytes from outside, such as RESTORE's: after it, no function of this package reads beyond them. The
// tests of all structures run it after each step.
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

// Recounted returns a copy of a list with the right number of elements in its header, or nil if anything else is wrong.
func Recounted(lp []byte) []byte {
	n, ok := whole(lp)
	if !ok {
		return nil
	}
	counted := append([]byte(nil), lp...)
	binary.LittleEndian.PutUint16(counted[4:], uint16(min(n, countUnknown)))
	return counted
}

// whole tells whether bytes are a list, except perhaps for the number of elements in the header, and returns that
// number.
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
		// The first byte of the length is not marked, the bytes that continue it are.
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
