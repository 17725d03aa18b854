// Package rdb reads and writes the pieces of Redis's dump format that payloads are made of: lengths, strings, and the
// footer with version and checksum that ends what DUMP and FUNCTION DUMP return.
//
// Strings are written as they are. Redis packs numbers and compresses long strings; both are read here, but a reader
// takes the plain form just as well, and what is dumped is mostly restored soon and thrown away.
package rdb

import (
	"encoding/binary"
	"errors"
	"hash/crc64"
	"strconv"
)

// Version is the version of the format that is written, Redis 8.0's, and the newest that is read.
const Version = 12

// Function is the type of an entry that is a library's code; FunctionOld is what release candidates wrote.
const (
	FunctionOld = 246
	Function    = 245
)

// FooterBytes is the length of the footer: two bytes of version, eight of checksum.
const FooterBytes = 10

// ErrCorrupt says that bytes are not what they should be.
var ErrCorrupt = errors.New("rdb: corrupt payload")

// stringBytesMax limits what a string may claim to be when it is decompressed.
const stringBytesMax = 512 << 20

// table is of the polynomial of Jones, reflected, as Redis uses it; Redis does not invert, so sum undoes what
// hash/crc64 does at both ends.
var table = crc64.MakeTable(0x95ac9329ac4bc9b5)

func sum(b []byte) uint64 { return ^crc64.Update(^uint64(0), table, b) }

// AppendLength appends a length.
func AppendLength(dst []byte, n int) []byte {
	switch {
	case n < 1<<6:
		return append(dst, byte(n))
	case n < 1<<14:
		return append(dst, 0x40|byte(n>>8), byte(n))
	case uint64(n) < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, 0x80), uint32(n))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0x81), uint64(n))
}

// AppendString appends a string with its length.
func AppendString(dst []byte, s string) []byte { return append(AppendLength(dst, len(s)), s...) }

// AppendFooter ends a payload, all of which is in payload.
func AppendFooter(payload []byte) []byte {
	payload = append(payload, Version&0xff, Version>>8)
	return binary.LittleEndian.AppendUint64(payload, sum(payload))
}

// CheckFooter returns a payload without its footer. ok is false if the version is newer than ours or the checksum is
// wrong.
func CheckFooter(payload []byte) (body []byte, ok bool) {
	n := len(payload) - FooterBytes
	if n < 0 || binary.LittleEndian.Uint16(payload[n:]) > Version {
		return nil, false
	}
	return payload[:n], binary.LittleEndian.Uint64(payload[n+2:]) == sum(payload[:n+2])
}

// Reader reads a payload from its beginning.
type Reader struct{ rest []byte }

// NewReader reads b.
func NewReader(b []byte) *Reader { return &Reader{b} }

// More tells whether bytes are left.
func (r *Reader) More() bool { return len(r.rest) > 0 }

func (r *Reader) take(n uint64) ([]byte, error) {
	if n > uint64(len(r.rest)) {
		return nil, ErrCorrupt
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b, nil
}

// Type reads the byte that says what comes.
func (r *Reader) Type() (byte, error) {
	b, err := r.take(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

// length reads a length; encoded tells that it is the code of a special form instead.
func (r *Reader) length() (n uint64, encoded bool, err error) {
	b, err := r.take(1)
	if err != nil {
		return 0, false, err
	}
	first := b[0]
	switch {
	case first>>6 == 0:
		return uint64(first), false, nil
	case first>>6 == 1:
		if b, err = r.take(1); err != nil {
			return 0, false, err
		}
		return uint64(first&0x3f)<<8 | uint64(b[0]), false, nil
	case first == 0x80:
		if b, err = r.take(4); err != nil {
			return 0, false, err
		}
		return uint64(binary.BigEndian.Uint32(b)), false, nil
	case first == 0x81:
		if b, err = r.take(8); err != nil {
			return 0, false, err
		}
		return binary.BigEndian.Uint64(b), false, nil
	case first>>6 == 3:
		return uint64(first & 0x3f), true, nil
	}
	return 0, false, ErrCorrupt
}

// Length reads a length.
func (r *Reader) Length() (uint64, error) {
	n, encoded, err := r.length()
	if err == nil && encoded {
		err = ErrCorrupt
	}
	return n, err
}

// The special forms of strings.
const (
	formInt8 = iota
	formInt16
	formInt32
	formLZF
)

// String reads a string in any of its forms. It may alias the payload.
func (r *Reader) String() ([]byte, error) {
	n, encoded, err := r.length()
	if err != nil {
		return nil, err
	}
	if !encoded {
		return r.take(n)
	}
	var b []byte
	switch n {
	case formInt8:
		if b, err = r.take(1); err == nil {
			return strconv.AppendInt(nil, int64(int8(b[0])), 10), nil
		}
	case formInt16:
		if b, err = r.take(2); err == nil {
			return strconv.AppendInt(nil, int64(int16(binary.LittleEndian.Uint16(b))), 10), nil
		}
	case formInt32:
		if b, err = r.take(4); err == nil {
			return strconv.AppendInt(nil, int64(int32(binary.LittleEndian.Uint32(b))), 10), nil
		}
	case formLZF:
		return r.compressed()
	default:
		err = ErrCorrupt
	}
	return nil, err
}

func (r *Reader) compressed() ([]byte, error) {
	packed, err := r.Length()
	if err != nil {
		return nil, err
	}
	n, err := r.Length()
	if err != nil {
		return nil, err
	}
	b, err := r.take(packed)
	if err != nil {
		return nil, err
	}
	return expand(b, n)
}

// lzfGrowthMax is how much longer than its input LZF's output can be: three bytes stand for 264 at most.
const lzfGrowthMax = 264 / 3

// expand decompresses LZF: a byte below 32 tells how many bytes follow, less one, as they are; any other begins a
// reference to what is there already, with its length in the upper three bits (7: one more byte of it) and how far
// back in the rest and the next byte.
func expand(in []byte, n uint64) ([]byte, error) {
	if n > stringBytesMax || n > uint64(len(in))*lzfGrowthMax {
		return nil, ErrCorrupt
	}
	out := make([]byte, 0, n)
	for i := 0; i < len(in); {
		c := int(in[i])
		i++
		if c < 32 {
			if c++; i+c > len(in) {
				return nil, ErrCorrupt
			}
			out = append(out, in[i:i+c]...)
			i += c
		} else {
			size := c >> 5
			if size == 7 {
				if i >= len(in) {
					return nil, ErrCorrupt
				}
				size += int(in[i])
				i++
			}
			if i >= len(in) {
				return nil, ErrCorrupt
			}
			from := len(out) - (c&31<<8 | int(in[i])) - 1
			i++
			if from < 0 {
				return nil, ErrCorrupt
			}
			for range size + 2 {
				out = append(out, out[from])
				from++
			}
		}
		if uint64(len(out)) > n {
			return nil, ErrCorrupt
		}
	}
	if uint64(len(out)) != n {
		return nil, ErrCorrupt
	}
	return out, nil
}
