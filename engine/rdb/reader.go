package rdb

// The pieces that all payloads are made of: numbers, and strings in their
// several forms.

import (
	"encoding/binary"
	"strconv"
)

// Reader reads what payloads are made of. After something that was wrong all
// that it reads is zero.
type Reader struct {
	rest      []byte
	maxString int
	failed    bool
}

// NewReader reads b; maxString bounds what a compressed string may become, in
// bytes.
func NewReader(b []byte, maxString int) *Reader { return &Reader{rest: b, maxString: maxString} }

// More tells whether bytes are left, and nothing was wrong.
func (r *Reader) More() bool { return len(r.rest) > 0 && !r.failed }

// Failed tells whether something was wrong.
func (r *Reader) Failed() bool { return r.failed }

func (r *Reader) fail() { r.failed = true }

// take takes n bytes, nil if there are not so many.
func (r *Reader) take(n uint64) []byte {
	if r.failed || n > uint64(len(r.rest)) {
		r.fail()
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// Byte reads a byte: the type of what comes.
func (r *Reader) Byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *Reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *Reader) millis() int64 { return int64(r.uint64()) }

// length reads a length; code is set if it is not one but says how a string is
// written.
func (r *Reader) length() (n uint64, code bool) {
	c := r.Byte()
	switch {
	case c&coded == coded:
		return uint64(c &^ coded), true
	case c < len14:
		return uint64(c), false
	case c < len32:
		return uint64(c&^len14)<<8 | uint64(r.Byte()), false
	case c == len32:
		if b := r.take(4); b != nil {
			return uint64(binary.BigEndian.Uint32(b)), false
		}
	case c == len64:
		if b := r.take(8); b != nil {
			return binary.BigEndian.Uint64(b), false
		}
	}
	r.fail()
	return 0, false
}

// Len reads a number.
func (r *Reader) Len() uint64 {
	n, _ := r.length()
	return n
}

// count reads how many of something there are, which must be some. Each takes a
// byte at least: no number makes more room than the payload warrants.
func (r *Reader) count() uint64 {
	n := r.Len()
	if n == 0 || n > uint64(len(r.rest)) {
		r.fail()
		return 0
	}
	return n
}

// String reads a string, which may alias the payload.
func (r *Reader) String() []byte {
	n, code := r.length()
	if !code {
		return r.take(n)
	}
	switch n {
	case asInt8, asInt8 + 1, asInt8 + 2:
		b := r.take(1 << n)
		if b == nil {
			return nil
		}
		v := int64(int8(b[0]))
		switch len(b) {
		case 2:
			v = int64(int16(binary.LittleEndian.Uint16(b)))
		case 4:
			v = int64(int32(binary.LittleEndian.Uint32(b)))
		}
		return strconv.AppendInt(nil, v, 10)
	case asLZF:
		size, full := r.Len(), r.Len()
		src := r.take(size)
		if r.failed || full > uint64(r.maxString) || full > size*lzfRatioMax {
			r.fail()
			return nil
		}
		b, ok := decompress(src, int(full))
		if !ok {
			r.fail()
		}
		return b
	}
	r.fail()
	return nil
}
