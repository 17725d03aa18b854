package rdb

// Zipmaps: small hashes in Redis before 2.6. They are converted to hashes when read.
//
// Layout: number of pairs (a byte, 254 if there are too many), pairs, 0xFF. A pair is length and bytes of the field,
// length of the value, a byte with the number of unused bytes after the value, the value, the unused bytes. A length is
// a byte, or 0xFE and uint32 LE.

import (
	"encoding/binary"

	"github.com/limitkv/limitkv/engine/hash"
)

const (
	zipmapMany = 254
	zipmapBig  = 254
	zipmapEnd  = 255

	problemZipmap = "Zipmap integrity check failed"
)

func (r *decoder) zipmap(b []byte) *hash.Hash {
	if r.Failed() || len(b) < 2 || b[len(b)-1] != zipmapEnd {
		r.fail(problemZipmap)
		return nil
	}
	var h hash.Hash
	z := Reader{rest: b[1 : len(b)-1]}
	n := 0
	for ; len(z.rest) > 0 && !z.Failed(); n++ {
		field := z.take(z.zipmapLength())
		size := z.zipmapLength()
		unused := z.Byte()
		value := z.take(size)
		z.take(uint64(unused))
		if !z.Failed() && !h.Set(field, value, r.lim.Hash) {
			z.fail(problemZipmap) // a field twice
		}
	}
	if z.Failed() || n == 0 || b[0] != zipmapMany && int(b[0]) != n {
		r.fail(problemZipmap)
		return nil
	}
	return &h
}

func (z *Reader) zipmapLength() uint64 {
	switch n := z.Byte(); n {
	case zipmapEnd:
		z.fail(problemZipmap)
	case zipmapBig:
		if b := z.take(4); b != nil {
			return uint64(binary.LittleEndian.Uint32(b))
		}
	default:
		return uint64(n)
	}
	return 0
}
