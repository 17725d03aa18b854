package rdb

// Ziplists: the predecessor of listpacks in Redis before 7. They are converted to listpacks when read.
//
// Layout: total bytes and offset of the last element (uint32 LE), number of
// elements (uint16 LE), elements, 0xFF. An element is the length of the one
// before it (a byte, or 0xFE and uint32 LE), an encoding byte and its data:
//
//	00llllll            a string of l bytes
//	01llllll llllllll   likewise, the length big-endian
//	10000000 <uint32 BE>
//	11000000 int16   11010000 int32   11100000 int64   11110000 int24
//	11111110 int8    1111xxxx, from 0001 to 1101: the integer x-1

import (
	"encoding/binary"

	"github.com/limitkv/limitkv/engine/packed"
)

const (
	ziplistHeader = 10
	ziplistEnd    = 0xFF
	ziplistBig    = 0xFE
	countUnknown  = 0xFFFF
)

const problemZiplist = "an element of a ziplist is damaged"

// ziplist converts a ziplist to a listpack. what names the structure in errors.
func (r *decoder) ziplist(what string, b []byte) []byte {
	if r.Failed() || len(b) < ziplistHeader+1 || uint64(binary.LittleEndian.Uint32(b)) != uint64(len(b)) || b[len(b)-1] != ziplistEnd {
		r.fail(damaged(what))
		return nil
	}
	count := int(binary.LittleEndian.Uint16(b[8:]))
	z := Reader{rest: b[ziplistHeader : len(b)-1]}
	var lp []byte
	before, n := 0, 0
	last := ziplistHeader // where the last element begins
	for ; len(z.rest) > 0 && !z.Failed(); n++ {
		begin := len(z.rest)
		last = len(b) - 1 - begin
		size := uint64(z.Byte())
		switch size {
		case ziplistEnd:
			z.fail(problemZiplist)
		case ziplistBig:
			if b := z.take(4); b != nil {
				size = uint64(binary.LittleEndian.Uint32(b))
			}
		}
		if size != uint64(before) {
			z.fail(problemZiplist)
		}
		item := z.ziplistElement()
		if z.Failed() || packed.Bytes(lp)+item.Size() > packed.MaxBytes {
			r.fail(damaged(what))
			return nil
		}
		lp = packed.Append(lp, item)
		before = begin - len(z.rest)
	}
	// For an empty ziplist, Redis only checks that the offset of its last element is within the ziplist.
	tail := uint64(binary.LittleEndian.Uint32(b[4:]))
	if z.Failed() || count != countUnknown && count != n || n > 0 && tail != uint64(last) || tail >= uint64(len(b)) {
		r.fail(damaged(what))
		return nil
	}
	if lp == nil {
		lp = packed.Slice(nil, 0, 0, 0)
	}
	return lp
}

func (z *Reader) ziplistElement() packed.Item {
	c := z.Byte()
	switch {
	case c < 0x40:
		return packed.String(z.take(uint64(c)))
	case c < 0x80:
		return packed.String(z.take(uint64(c&0x3F)<<8 | uint64(z.Byte())))
	case c < 0xC0: // the other bits are unused
		if b := z.take(4); b != nil {
			return packed.String(z.take(uint64(binary.BigEndian.Uint32(b))))
		}
	case c > 0xF0 && c < 0xFE:
		return packed.Number(int64(c&0x0F) - 1)
	}
	size := map[byte]uint64{0xC0: 2, 0xD0: 4, 0xE0: 8, 0xF0: 3, 0xFE: 1}[c]
	b := z.take(size)
	if size == 0 || b == nil {
		z.fail(problemZiplist)
		return packed.Item{}
	}
	v := uint64(0)
	for i := len(b) - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	shift := 64 - 8*size
	return packed.Number(int64(v<<shift) >> shift)
}
