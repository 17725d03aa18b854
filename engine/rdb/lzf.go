package rdb

// LZF, Marc Lehmann's compression: runs of literal bytes, and references to bytes up to 8 KB before. The compressor
// makes the same decisions as liblzf as built in Redis, so that its output is identical byte for byte.
//
//	000lllll <l+1 bytes>         literal bytes
//	lllooooo oooooooo            l+2 bytes from o+1 bytes before; l from 1 to 6
//	111ooooo llllllll oooooooo   l+9 bytes

import (
	"encoding/binary"
	"sync"
)

const (
	lzfHashBits    = 16
	lzfLiteralsMax = 1 << 5
	lzfOffsetMax   = 1 << 13
	lzfLengthMax   = 1<<8 + 1<<3
	// lzfRatioMax is the largest ratio of a string to its compressed form: a reference of three bytes represents up to
	// 264.
	lzfRatioMax = lzfLengthMax / 3
	// lzfSaved is how many bytes compression has to save at least, and lzfFrom the least length that is tried.
	lzfSaved = 4
	lzfFrom  = 21
)

// lzfTable maps a hash of three bytes to the place where it was last seen. Places of earlier strings are below base, so
// that the table need not be cleared.
type lzfTable struct {
	seen [1 << lzfHashBits]uint32
	base uint32
}

var lzfTables = sync.Pool{New: func() any { return &lzfTable{base: 1} }}

// begin prepares the table for a string of n bytes.
func (t *lzfTable) begin(n int) {
	if uint64(t.base)+uint64(n)+1 > 1<<32-1 {
		*t = lzfTable{base: 1}
	}
}

func lzfHash(h uint32) uint32 { return (h>>(24-lzfHashBits) - h*5) & (1<<lzfHashBits - 1) }

// compress appends the compressed form of src, which has at least five bytes. It returns false if that does not save
// lzfSaved bytes.
func compress(dst, src []byte) ([]byte, bool) {
	n := len(src)
	if uint64(n) >= 1<<31 {
		return dst, false
	}
	t := lzfTables.Get().(*lzfTable)
	t.begin(n)
	dst, ok := t.compress(dst, src)
	t.base += uint32(n) + 1
	lzfTables.Put(t)
	return dst, ok
}

// extended returns dst with n more bytes of any content. Appending a made slice would clear them in one step that the
// runtime cannot preempt: a garbage collection that starts then makes all other goroutines wait for it.
func extended(dst []byte, n int) []byte {
	n += len(dst)
	if n <= cap(dst) {
		return dst[:n]
	}
	next := make([]byte, n, max(n, cap(dst)+cap(dst)/4))
	copy(next, dst)
	return next
}

func (t *lzfTable) compress(dst, src []byte) ([]byte, bool) {
	n := len(src)
	begin, limit := len(dst), n-lzfSaved
	const slack = 8 // the control byte of a run may be reserved beyond the limit
	dst = extended(dst, limit+slack)
	out := dst[begin:]
	op, literals, ip := 1, 0, 0 // out[op-literals-1] is the control byte of the run
	h := uint32(src[0])<<8 | uint32(src[1])
	for ip < n-2 {
		h = h<<8 | uint32(src[ip+2])
		slot := &t.seen[lzfHash(h)]
		ref := int(int64(*slot) - int64(t.base))
		*slot = t.base + uint32(ip)
		offset := ip - ref - 1
		if ref <= 0 || offset >= lzfOffsetMax || src[ref] != src[ip] || src[ref+1] != src[ip+1] || src[ref+2] != src[ip+2] {
			if op >= limit {
				return dst[:begin], false
			}
			out[op] = src[ip]
			op, ip, literals = op+1, ip+1, literals+1
			if literals == lzfLiteralsMax {
				out[op-literals-1] = byte(literals - 1)
				op, literals = op+1, 0
			}
			continue
		}
		empty := 0
		if literals == 0 {
			empty = 1 // the control byte is not needed
		}
		if op-empty+4 >= limit {
			return dst[:begin], false
		}
		out[op-literals-1] = byte(literals - 1)
		op -= empty
		length := lzfMatch(src, ref, ip) - 2
		if length < 7 {
			out[op] = byte(offset>>8 + length<<5)
		} else {
			out[op] = byte(offset>>8 + 7<<5)
			op++
			out[op] = byte(length - 7)
		}
		out[op+1] = byte(offset)
		op += 3
		literals = 0
		ip += length + 2
		if ip >= n-2 {
			break
		}
		// Only the last two places within the match are remembered.
		ip -= 2
		h = uint32(src[ip])<<8 | uint32(src[ip+1])
		for range 2 {
			h = h<<8 | uint32(src[ip+2])
			t.seen[lzfHash(h)] = t.base + uint32(ip)
			ip++
		}
	}
	if op+3 > limit {
		return dst[:begin], false
	}
	for ; ip < n; ip++ {
		out[op] = src[ip]
		op, literals = op+1, literals+1
		if literals == lzfLiteralsMax {
			out[op-literals-1] = byte(literals - 1)
			op, literals = op+1, 0
		}
	}
	out[op-literals-1] = byte(literals - 1)
	if literals == 0 {
		op--
	}
	return dst[:begin+op], true
}

// lzfMatch is how many bytes at ref and at ip are equal: at least three. Near the end, and for most lengths, the result
// has the peculiarities of the original, which compares sixteen bytes before it checks the limit.
func lzfMatch(src []byte, ref, ip int) int {
	most := min(len(src)-ip-2, lzfLengthMax)
	length := 2
	if most > 16 {
		for range 16 {
			if length++; src[ref+length] != src[ip+length] {
				return length
			}
		}
	}
	for {
		if length++; length >= most || src[ref+length] != src[ip+length] {
			return length
		}
	}
}

// decompress returns the n bytes that src represents. It returns false if their number is not n, or if src is not valid.
func decompress(src []byte, n int) ([]byte, bool) {
	out := make([]byte, 0, n)
	for len(src) > 0 {
		control := int(src[0])
		src = src[1:]
		if control < lzfLiteralsMax {
			length := control + 1
			if length > len(src) || length > n-len(out) {
				return nil, false
			}
			out = append(out, src[:length]...)
			src = src[length:]
			continue
		}
		length := control >> 5
		if length == 7 {
			if len(src) == 0 {
				return nil, false
			}
			length += int(src[0])
			src = src[1:]
		}
		if len(src) == 0 {
			return nil, false
		}
		ref := len(out) - (control&0x1f<<8 | int(src[0])) - 1
		src = src[1:]
		length += 2
		if ref < 0 || length > n-len(out) {
			return nil, false
		}
		if ref+length <= len(out) {
			out = append(out, out[ref:ref+length]...)
			continue
		}
		for range length { // the referenced bytes overlap the output
			out = append(out, out[ref])
			ref++
		}
	}
	return out, len(out) == n
}

// The lengths of strings and the numbers of elements.
const (
	len14  = 1 << 6
	len32  = 0x80
	len64  = 0x81
	coded  = 0xC0 // the rest of the byte says how a string is written:
	asInt8 = 0
	asLZF  = 3
)

// appendLen appends a length.
func appendLen(dst []byte, n uint64) []byte {
	switch {
	case n < 1<<6:
		return append(dst, byte(n))
	case n < 1<<14:
		return append(dst, len14|byte(n>>8), byte(n))
	case n < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, len32), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, len64), n)
}
