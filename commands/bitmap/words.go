package bitmap

// Operations on long strings of bits, eight bytes at a time. One byte at a time takes seven to forty times as long.

import (
	"crypto/subtle"
	"encoding/binary"
	"math/bits"
)

// countBits is how many bits of b are set.
func countBits(b []byte) int {
	n, b := countBlocks(b)
	return n + countWords(b)
}

func countWords(b []byte) (n int) {
	for len(b) >= 32 {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(b)) + bits.OnesCount64(binary.LittleEndian.Uint64(b[8:])) +
			bits.OnesCount64(binary.LittleEndian.Uint64(b[16:])) + bits.OnesCount64(binary.LittleEndian.Uint64(b[24:]))
		b = b[32:]
	}
	for ; len(b) >= 8; b = b[8:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(b))
	}
	for _, x := range b {
		n += bits.OnesCount8(x)
	}
	return n
}

// The operations of BITOP.
type operation uint8

const (
	opAnd operation = iota
	opOr
	opXor
	opNot
)

// combine makes dst the combination of dst and src. src is not longer than dst; missing bytes count as zeros.
func combine(op operation, dst, src []byte) {
	rest := dst[len(src):]
	dst = dst[:len(src)]
	switch op {
	case opAnd:
		for ; len(dst) >= 32 && len(src) >= 32; dst, src = dst[32:], src[32:] {
			andWord(dst, src)
			andWord(dst[8:], src[8:])
			andWord(dst[16:], src[16:])
			andWord(dst[24:], src[24:])
		}
		for i := range dst {
			dst[i] &= src[i]
		}
		clear(rest)
	case opOr:
		for ; len(dst) >= 32 && len(src) >= 32; dst, src = dst[32:], src[32:] {
			orWord(dst, src)
			orWord(dst[8:], src[8:])
			orWord(dst[16:], src[16:])
			orWord(dst[24:], src[24:])
		}
		for i := range dst {
			dst[i] |= src[i]
		}
	case opXor:
		subtle.XORBytes(dst, dst, src)
	}
}

func andWord(dst, src []byte) {
	binary.NativeEndian.PutUint64(dst, binary.NativeEndian.Uint64(dst)&binary.NativeEndian.Uint64(src))
}

func orWord(dst, src []byte) {
	binary.NativeEndian.PutUint64(dst, binary.NativeEndian.Uint64(dst)|binary.NativeEndian.Uint64(src))
}

// combineAll makes dst the combination of the sources, none of which is longer than dst. It works in pieces that stay in the
// processor's nearest cache.
func combineAll(op operation, dst []byte, sources [][]byte) {
	const piece = 8 << 10
	for at := 0; at < len(dst); at += piece {
		part := dst[at:min(at+piece, len(dst))]
		for i, b := range sources {
			b = b[min(at, len(b)):min(at+piece, len(b))]
			switch {
			case i > 0:
				combine(op, part, b)
			case op == opNot:
				invert(part, b)
			default:
				clear(part[copy(part, b):])
			}
		}
	}
}

// invert makes dst the inverse of b. They have the same length, and may be the same slice.
func invert(dst, b []byte) {
	for ; len(dst) >= 32 && len(b) >= 32; dst, b = dst[32:], b[32:] {
		notWord(dst, b)
		notWord(dst[8:], b[8:])
		notWord(dst[16:], b[16:])
		notWord(dst[24:], b[24:])
	}
	for i := range b {
		dst[i] = ^b[i]
	}
}

func notWord(dst, b []byte) {
	binary.NativeEndian.PutUint64(dst, ^binary.NativeEndian.Uint64(b))
}

// sameBytes counts the bytes at the beginning of b that are all x, as far as it can compare eight at a time.
func sameBytes(b []byte, x byte) (n int) {
	word := uint64(x) * 0x0101010101010101
	for len(b)-n >= 8 && binary.NativeEndian.Uint64(b[n:]) == word {
		n += 8
	}
	return n
}
