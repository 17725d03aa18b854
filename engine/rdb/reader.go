package rdb

// The elements of payloads and files: numbers, and strings in their several forms.

import (
	"encoding/binary"
	"errors"
	"io"
	"strconv"
)

// Reader reads the elements of payloads. After an error it returns only zeros.
type Reader struct {
	rest      []byte
	maxString int
	problem   string // the first error, empty if there is none
	from      *source
	integers  []byte // space for the text of strings that are encoded as integers
}

// NewReader returns a reader of b. maxString is the largest size of a decompressed string, in bytes.
func NewReader(b []byte, maxString int) *Reader { return &Reader{rest: b, maxString: maxString} }

// More reports whether bytes are left and there was no error.
func (r *Reader) More() bool { return len(r.rest) > 0 && !r.Failed() }

// Failed reports whether there was an error.
func (r *Reader) Failed() bool { return r.problem != "" }

// problemShort is the error for bytes that end too early.
const problemShort = "unexpected end"

// fail records an error, unless there is one already.
func (r *Reader) fail(problem string) {
	if r.problem == "" {
		r.problem = problem
	}
}

// take returns the next n bytes, nil if there are fewer.
func (r *Reader) take(n uint64) []byte {
	if r.problem != "" || n > uint64(len(r.rest)) && !r.fill(n) {
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// fill reads until n bytes are available.
func (r *Reader) fill(n uint64) bool {
	if r.from == nil {
		r.fail(problemShort)
		return false
	}
	b, err := r.from.fill(r.rest, n)
	if r.rest = b; err == nil {
		return true
	}
	if errors.Is(err, io.EOF) {
		r.fail(problemShort)
	} else {
		r.fail(err.Error())
	}
	return false
}

// Byte reads a byte, such as the type of a value.
func (r *Reader) Byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *Reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
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

// length reads a length. If code is set, n is not a length but says how a string is encoded.
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
	r.fail("a length begins with byte " + strconv.Itoa(int(c)))
	return 0, false
}

// Len reads a number.
func (r *Reader) Len() uint64 {
	n, _ := r.length() // as in Redis, a code for the encoding of a string counts as a number too
	return n
}

// count reads a number of elements. Each takes at least a byte, so that a number above the remaining bytes is an error,
// before anything is allocated for it.
func (r *Reader) count() uint64 {
	n := r.Len()
	if n > uint64(len(r.rest)) && (r.from == nil || n > r.from.left(len(r.rest))) {
		r.fail(strconv.FormatUint(n, 10) + " elements in fewer bytes")
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
		begin := len(r.integers)
		r.integers = strconv.AppendInt(r.integers, v, 10)
		return r.integers[begin:len(r.integers):len(r.integers)]
	case asLZF:
		size, full := r.Len(), r.Len()
		src := r.take(size)
		if r.Failed() {
			return nil
		}
		if full > uint64(r.maxString) || full > size*lzfRatioMax {
			r.fail("a compressed string of " + strconv.FormatUint(full, 10) + " bytes")
			return nil
		}
		b, ok := decompress(src, int(full))
		if !ok {
			r.fail("a string is badly compressed")
		}
		return b
	}
	r.fail("a string is of unknown form " + strconv.FormatUint(n, 10))
	return nil
}
