package storm

// Payloads of DUMP with other numbers and bytes in them than a server would write: what RESTORE takes of them, it has to
// answer for.

import (
	"encoding/binary"
	"hash/crc64"
	"math/rand/v2"
)

// polynomial is that of the checksum of payloads.
var polynomial = crc64.MakeTable(0x95ac9329ac4bc9b5)

const (
	trailer   = 10 // the version and the checksum at a payload's end
	checksum  = 8
	typeOther = 7 // the type of what modules have, and so of what Redis has no type for
)

// sealed puts a checksum to a payload.
func sealed(p []byte) []byte {
	sum := ^crc64.Update(^uint64(0), polynomial, p[:len(p)-checksum])
	binary.LittleEndian.PutUint64(p[len(p)-checksum:], sum)
	return p
}

// extreme is a number at which something may end.
func extreme(r *rand.Rand) uint64 {
	n := uint64(1) << r.IntN(64)
	switch r.IntN(6) {
	case 0:
		return n
	case 1:
		return n - 1
	case 2:
		return n + 1
	case 3:
		return -n
	case 4:
		return r.Uint64() >> r.IntN(64)
	}
	return uint64(r.IntN(4))
}

// length reads a length, as Redis's format has it: its value, and how many bytes it takes, 0 if there is none.
func length(p []byte) (n uint64, size int) {
	if len(p) == 0 {
		return 0, 0
	}
	switch p[0] >> 6 {
	case 0:
		return uint64(p[0]), 1
	case 1:
		if len(p) > 1 {
			return uint64(p[0]&0x3f)<<8 | uint64(p[1]), 2
		}
	case 2:
		switch {
		case p[0] == 0x80 && len(p) > 4:
			return uint64(binary.BigEndian.Uint32(p[1:])), 5
		case p[0] == 0x81 && len(p) > 8:
			return binary.BigEndian.Uint64(p[1:]), 9
		}
	}
	return 0, 0
}

func appendLength(dst []byte, n uint64) []byte {
	if n < 1<<6 {
		return append(dst, byte(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0x81), n)
}

// span is a part of a payload: a number, if it is one, or the bytes of a string.
type span struct {
	from, to int
	number   bool
}

// items finds the numbers and the strings of a module's value.
func items(p []byte) (found []span) {
	_, size := length(p[1:])
	for at := 1 + size; size > 0 && at < len(p)-trailer; {
		kind := p[at]
		at++
		n, width := length(p[at:])
		switch {
		case kind == 0:
			return found
		case width == 0 && p[at]>>6 == 3: // a string that is written as a number, or compressed
			switch p[at] & 0x3f {
			case 0, 1, 2:
				at += 1 + 1<<(p[at]&0x3f)
			default:
				long, w := length(p[at+1:])
				_, w2 := length(p[at+1+w:])
				at += 1 + w + w2 + int(long)
			}
			continue
		case width == 0 || kind == 5 && uint64(at+width)+n > uint64(len(p)):
			return found
		case kind == 5:
			found = append(found, span{at + width, at + width + int(n), false})
			width += int(n)
		default:
			found = append(found, span{at, at + width, true})
		}
		at += width
	}
	return found
}

// changed is a payload in which one to three things are others.
func changed(r *rand.Rand, payload []byte) []byte {
	p := append([]byte(nil), payload...)
	for range 1 + r.IntN(3) {
		if p[0] == typeOther {
			if found := items(p); len(found) > 0 {
				p = replaced(r, p, found[r.IntN(len(found))])
			}
			continue
		}
		at := 1 + r.IntN(len(p)-trailer)
		if _, size := length(p[at:]); size > 0 && at+size <= len(p)-trailer && r.IntN(2) == 0 {
			p = replaced(r, p, span{at, at + size, true})
		} else {
			p = replaced(r, p, span{at, min(at+8, len(p)-trailer), false})
		}
	}
	return sealed(p)
}

// replaced has another number, or other bytes of the same length, in a place.
func replaced(r *rand.Rand, p []byte, s span) []byte {
	if s.number {
		return append(appendLength(append([]byte(nil), p[:s.from]...), extreme(r)), p[s.to:]...)
	}
	if s.from == s.to {
		return p
	}
	at := s.from + r.IntN(s.to-s.from)
	switch n := s.to - at; {
	case n >= 8 && r.IntN(2) == 0:
		binary.LittleEndian.PutUint64(p[at:], extreme(r))
	case n >= 6 && r.IntN(3) == 0:
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], extreme(r))
		copy(p[at:at+6], b[:])
	default:
		p[at] = byte(r.Uint32())
	}
	return p
}
