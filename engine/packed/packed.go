// Package packed, internal to the server, is a list of byte strings in one slice without pointers: Redis's listpack,
// byte for byte.
//
// Every small collection (hash, set, list node, stream node) is stored in this form, because reading a few hundred
// bytes in sequence costs less than any pointer structure, and a collection is one allocation that the garbage
// collector does not scan. The layout is exactly the listpack's, because Redis decides by its byte counts when a list
// becomes a quicklist, and because DUMP writes it as it is.
//
// Layout: total bytes (uint32 LE), number of elements (uint16 LE, 65535 = count them), elements, 0xFF.
// An element is an encoding byte with its data, then the size of both, written to be read backwards.
// A string that is the canonical decimal form of an int64 is stored as that integer.
//
// A list is a []byte; nil is an empty list. Positions are byte offsets of elements, valid until the next
// edit. Walk with:
//
//	for p := packed.First(lp); p < packed.End(lp); p = packed.Next(lp, p) { … }
package packed

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

const (
	headerBytes  = 6
	eof          = 0xFF
	countUnknown = 0xFFFF

	// EmptyBytes is the size of a list without elements.
	EmptyBytes = headerBytes + 1

	// MaxBytes is the size beyond which a collection must not stay packed, as in Redis: the size has 32 bits.
	MaxBytes = 1 << 30
)

// Scratch is where Get writes an element that is stored as an integer. The caller provides it, so that reading
// allocates nothing; a result may alias it.
type Scratch [20]byte

// Bytes returns the size of lp as Redis counts it: an empty list has 7 bytes.
func Bytes(lp []byte) int {
	if lp == nil {
		return EmptyBytes
	}
	return len(lp)
}

// Count returns the number of elements. It walks the list if there are 65535 or more.
func Count(lp []byte) int {
	if len(lp) == 0 {
		return 0
	}
	if n := binary.LittleEndian.Uint16(lp[4:]); n != countUnknown {
		return int(n)
	}
	n := 0
	for p := First(lp); p < End(lp); p = Next(lp, p) {
		n++
	}
	return n
}

// First returns the position of the first element, End(lp) or more if there is none.
func First([]byte) int { return headerBytes }

// End returns the position after the last element.
func End(lp []byte) int { return len(lp) - 1 }

// Next returns the position after the element at p: the following element or End.
func Next(lp []byte, p int) int {
	// Small enough to be inlined: skipping elements is most of the work on a list.
	if n := steps[lp[p]]; n != 0 {
		return p + int(n)
	}
	return nextLong(lp, p)
}

// steps is the distance to the next element by the first byte of this one, 0 if that byte does not determine it.
var steps = func() (t [256]uint8) {
	for c := range t {
		switch {
		case c < 0x80:
			t[c] = 2
		case c < 0xC0:
			t[c] = uint8(c&0x3F) + 2
		case c < 0xE0:
			t[c] = 3
		}
	}
	t[0xF1], t[0xF2], t[0xF3], t[0xF4] = 4, 5, 6, 10
	return t
}()

func nextLong(lp []byte, p int) int {
	n := entryBytes(lp, p)
	return p + n + backlenBytes(n)
}

// Prev returns the position of the element before p, -1 if p is the first. p may be End.
func Prev(lp []byte, p int) int {
	if p <= headerBytes {
		return -1
	}
	n := backlen(lp, p-1)
	return p - n - backlenBytes(n)
}

// Last returns the position of the last element, -1 if there is none.
func Last(lp []byte) int { return Prev(lp, End(lp)) }

// Seek returns the position of the element with this index, counted from the end if negative (-1 is the
// last), -1 if there is none. It starts at the nearer end.
func Seek(lp []byte, index int) int {
	if len(lp) == 0 {
		return -1
	}
	n := int(binary.LittleEndian.Uint16(lp[4:]))
	if n != countUnknown {
		if index < 0 {
			index += n
		}
		if index < 0 || index >= n {
			return -1
		}
		if index > n/2 {
			index -= n
		}
	}
	if index < 0 {
		p := End(lp)
		for ; index < 0 && p >= 0; index++ {
			p = Prev(lp, p)
		}
		return p
	}
	p := First(lp)
	for ; index > 0 && p < End(lp); index-- {
		p = Next(lp, p)
	}
	if p >= End(lp) {
		return -1
	}
	return p
}

// Get returns the element at p. It aliases the list or the scratch.
func Get(lp []byte, p int, s *Scratch) []byte {
	start, length, n := decode(lp, p)
	if start >= 0 {
		return lp[start : start+length : start+length]
	}
	return strconv.AppendInt(s[:0], n, 10)
}

// Int returns the element at p if it is stored as an integer.
func Int(lp []byte, p int) (int64, bool) {
	start, _, n := decode(lp, p)
	return n, start < 0
}

// AppendTo appends the element at p to dst as a string.
func AppendTo(dst, lp []byte, p int) []byte {
	start, length, n := decode(lp, p)
	if start < 0 {
		return strconv.AppendInt(dst, n, 10)
	}
	return append(dst, lp[start:start+length]...)
}

// Find returns the position of the first element equal to val, from p on, -1 if there is none. After each element that
// differs it skips skip elements: with 1 it finds a field among field and value pairs.
func Find(lp []byte, p int, val []byte, skip int) int {
	want, isInt := ParseInt(val)
	end := End(lp)
	for p < end {
		c := lp[p]
		if n := int(c & 0x3F); c&0xC0 == 0x80 {
			// The last byte first: names in a hash often have the same beginning.
			if n == len(val) && (n == 0 || lp[p+n] == val[n-1]) && string(lp[p+1:p+1+n]) == string(val) {
				return p
			}
			p += n + 2
		} else {
			start, length, num := decode(lp, p)
			if start < 0 && isInt && num == want || start >= 0 && length == len(val) && bytes.Equal(lp[start:start+length], val) {
				return p
			}
			p = Next(lp, p)
		}
		for range skip {
			p = Next(lp, p)
		}
	}
	return -1
}

// Twice reports whether two elements are equal, among the first of each stride elements: the fields among values.
func Twice(lp []byte, stride int) bool {
	n := Count(lp) / stride
	var scratch Scratch
	if n <= twicePairsMax {
		for p := First(lp); p < End(lp); {
			val := Get(lp, p, &scratch)
			for range stride {
				p = Next(lp, p)
			}
			if Find(lp, p, val, stride-1) >= 0 {
				return true
			}
		}
		return false
	}
	seen := make(map[string]struct{}, n)
	for p := First(lp); p < End(lp); {
		seen[string(Get(lp, p, &scratch))] = struct{}{}
		for range stride {
			p = Next(lp, p)
		}
	}
	return len(seen) < n
}

// Once returns a new list of the tuples of stride elements, without those whose first element began an earlier one.
func Once(lp []byte, stride int) []byte {
	seen := make(map[string]struct{}, Count(lp)/stride)
	var scratch Scratch
	at, keep := 0, false
	return Filter(lp, func(p int) bool {
		if at%stride == 0 {
			val := Get(lp, p, &scratch)
			_, twice := seen[string(val)]
			if keep = !twice; keep {
				seen[string(val)] = struct{}{}
			}
		}
		at++
		return keep
	})
}

// twicePairsMax is up to how many elements Twice compares all pairs. A map takes as long for so many.
const twicePairsMax = 10

// Equal reports whether the element at p is val.
func Equal(lp []byte, p int, val []byte) bool {
	start, length, n := decode(lp, p)
	if start >= 0 {
		return length == len(val) && bytes.Equal(lp[start:start+length], val)
	}
	var s Scratch
	return bytes.Equal(strconv.AppendInt(s[:0], n, 10), val)
}

// decode returns where the string at p starts and its length, or start -1 and the integer.
func decode(lp []byte, p int) (start, length int, n int64) {
	c := lp[p]
	switch {
	case c < 0x80:
		return -1, 0, int64(c)
	case c < 0xC0:
		return p + 1, int(c & 0x3F), 0
	case c < 0xE0:
		v := int64(c&0x1F)<<8 | int64(lp[p+1])
		return -1, 0, v << 51 >> 51
	case c < 0xF0:
		return p + 2, int(c&0x0F)<<8 | int(lp[p+1]), 0
	}
	switch c {
	case 0xF0:
		return p + 5, int(binary.LittleEndian.Uint32(lp[p+1:])), 0
	case 0xF1:
		return -1, 0, int64(int16(binary.LittleEndian.Uint16(lp[p+1:])))
	case 0xF2:
		v := int64(lp[p+1]) | int64(lp[p+2])<<8 | int64(lp[p+3])<<16
		return -1, 0, v << 40 >> 40
	case 0xF3:
		return -1, 0, int64(int32(binary.LittleEndian.Uint32(lp[p+1:])))
	default:
		return -1, 0, int64(binary.LittleEndian.Uint64(lp[p+1:]))
	}
}

// entryBytes returns the size of the element at p without its backward length.
func entryBytes(lp []byte, p int) int {
	c := lp[p]
	switch {
	case c < 0x80:
		return 1
	case c < 0xC0:
		return 1 + int(c&0x3F)
	case c < 0xE0:
		return 2
	case c < 0xF0:
		return 2 + (int(c&0x0F)<<8 | int(lp[p+1]))
	}
	switch c {
	case 0xF0:
		return 5 + int(binary.LittleEndian.Uint32(lp[p+1:]))
	case 0xF1:
		return 3
	case 0xF2:
		return 4
	case 0xF3:
		return 5
	default:
		return 9
	}
}

// backlenBytes returns how many bytes the backward length n of an element takes. As in Redis, the limits are one below
// the powers of two from the second on.
func backlenBytes(n int) int {
	switch {
	case n <= 127:
		return 1
	case n < 16383:
		return 2
	case n < 2097151:
		return 3
	case n < 268435455:
		return 4
	default:
		return 5
	}
}

// backlen reads an element's length backwards from its last byte p.
func backlen(lp []byte, p int) int {
	n, shift := 0, 0
	for {
		n |= int(lp[p]&0x7F) << shift
		if lp[p]&0x80 == 0 || shift >= 28 {
			return n
		}
		shift += 7
		p--
	}
}

// ParseInt returns the integer that b is the canonical decimal form of: no sign but a minus, no leading
// zeros, nothing around it, within an int64. Formatting the result gives b again.
func ParseInt(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > len(Scratch{}) {
		return 0, false
	}
	if len(b) == 1 {
		return int64(b[0] - '0'), b[0] >= '0' && b[0] <= '9'
	}
	digits := b
	neg := b[0] == '-'
	if neg {
		digits = b[1:]
	}
	if digits[0] < '1' || digits[0] > '9' || len(digits) > 19 {
		return 0, false
	}
	var v uint64 // 19 digits fit
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + uint64(c-'0')
	}
	if neg {
		if v > 1<<63 {
			return 0, false
		}
		return -int64(v), true
	}
	return int64(v), v < 1<<63
}
