package journal

// Marks are limitkv's own lines in a file of the log. Redis skips them because they begin with '#'. A mark precedes a
// group: the batches of one write, or some of them, never a part of a batch:
//
//	#LKV1 g <length> <lsn> <time> <synced> <crc of the group> <crc of the mark>
//
// All numbers are hexadecimal with a fixed width. lsn is the place in the log after the group. time is the Unix time of
// its last batch in microseconds. synced is the offset in this file up to which a sync had succeeded when the mark was
// written. Damage before that offset is rot, since the data had been on the disk. Damage after it may be a write that a
// crash of the machine tore, unless a later mark proves otherwise. The mark's own checksum includes its offset in the
// file, so that a mark inside a value does not count as one.
//
// A mark of kind a (adopted) covers the bytes before it, which another program wrote. A mark of kind c (closed) covers
// nothing; it records that the file was closed, and up to where it was synced.

import (
	"encoding/binary"
	"hash/crc32"
	"strconv"
	"sync"
)

const (
	markStem    = "#LKV"
	markVersion = '1'
	markSize    = 6 + 2 + 11 + 17 + 17 + 13 + 9 + 8 + 2
)

// The kinds of marks.
const (
	markGroup   = 'g'
	markAdopted = 'a'
	markClosed  = 'c'
)

type mark struct {
	kind   byte
	length int64 // of the bytes that it covers
	lsn    LSN
	micros int64
	synced int64
	crc    uint32
}

// castagnoli is the polynomial's table. It is built on first use: a server without a log starts without it.
var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// put writes a mark into to, which has markSize bytes, for the offset at in the file.
func (m *mark) put(to []byte, at int64) {
	copy(to, markStem)
	to[4], to[5], to[6], to[7] = markVersion, ' ', m.kind, ' '
	i := putHex(to, 8, 10, uint64(m.length))
	i = putHex(to, i, 16, uint64(m.lsn))
	i = putHex(to, i, 16, uint64(m.micros))
	i = putHex(to, i, 12, uint64(m.synced))
	i = putHex(to, i, 8, uint64(m.crc))
	putHex(to, i, 8, uint64(markSum(to[:i], at)))
	to[markSize-2], to[markSize-1] = '\r', '\n'
}

// markSum is a mark's own checksum.
func markSum(line []byte, at int64) uint32 {
	var place [8]byte
	binary.LittleEndian.PutUint64(place[:], uint64(at))
	return crc32.Update(crcOf(line), castagnoli(), place[:])
}

// putHex writes width digits and a blank, and returns the place after them.
func putHex(to []byte, i, width int, n uint64) int {
	for d := i + width - 1; d >= i; d-- {
		to[d] = hexDigits[n&15]
		n >>= 4
	}
	to[i+width] = ' '
	return i + width + 1
}

// parseMark reads a mark at the offset at. ok is true if every byte is as put writes it.
func parseMark(line []byte, at int64) (m mark, ok bool) {
	if len(line) < markSize {
		return m, false
	}
	number := func(i, width int) uint64 {
		n, _ := strconv.ParseUint(string(line[i:i+width]), 16, 64) // no number: differs from what put writes
		return n
	}
	m = mark{
		kind:   line[6],
		length: int64(number(8, 10)),
		lsn:    LSN(number(19, 16)),
		micros: int64(number(36, 16)),
		synced: int64(number(53, 12)),
		crc:    uint32(number(66, 8)),
	}
	var again [markSize]byte
	m.put(again[:], at)
	known := m.kind == markGroup || m.kind == markAdopted || m.kind == markClosed
	return m, known && string(again[:]) == string(line[:markSize])
}

// crcOf is the checksum of the bytes that a mark covers.
func crcOf(b []byte) uint32 { return crc32.Checksum(b, castagnoli()) }
