package table

// Records: the bytes of an element in one allocation without pointers.

import "unsafe"

// A record is: a head (key length, whether a value follows, the owner's mark), the length of the value if there is one,
// the key, the value. The lengths are varints: a set's member of up to 31 bytes takes one byte more than itself.
const (
	markBit  = 1
	valueBit = 2
	headBits = 2
)

// Record is a reference to an element. The zero Record is none.
type Record struct{ p unsafe.Pointer }

// NewRecord returns a record with a copy of the key, a value of valueLen zero bytes for the caller to fill, and a mark,
// which has a meaning only for the caller.
func NewRecord(key []byte, valueLen int, mark bool) Record {
	head := uint64(len(key)) << headBits
	if mark {
		head |= markBit
	}
	size := varintLen(head) + len(key)
	if valueLen > 0 {
		head |= valueBit
		size += varintLen(uint64(valueLen)) + valueLen
	}
	b := make([]byte, size)
	n := putVarint(b, head)
	if valueLen > 0 {
		n += putVarint(b[n:], uint64(valueLen))
	}
	copy(b[n:], key)
	return Record{unsafe.Pointer(&b[0])}
}

// None reports whether r is the zero Record.
func (r Record) None() bool { return r.p == nil }

// Key returns the key. It aliases the record.
func (r Record) Key() []byte {
	head := uint64(*(*byte)(r.p))
	at := 1
	if head >= 0x80 {
		head, at = getVarint(r.p, 0)
	}
	if head&valueBit != 0 {
		at += r.varintSize(at)
	}
	if head>>headBits == 0 {
		return []byte{} // there may be no byte to point to
	}
	return unsafe.Slice((*byte)(unsafe.Add(r.p, at)), head>>headBits)
}

// Value returns the value, for reading and for writing in place. It aliases the record.
func (r Record) Value() []byte {
	head, at := getVarint(r.p, 0)
	if head&valueBit == 0 {
		return nil
	}
	n, at := getVarint(r.p, at)
	return unsafe.Slice((*byte)(unsafe.Add(r.p, at+int(head>>headBits))), n)
}

// Mark returns the mark that the record was made with.
func (r Record) Mark() bool { return *(*byte)(r.p)&markBit != 0 }

// Clone returns a copy of the record.
func (r Record) Clone() Record {
	b := append([]byte(nil), unsafe.Slice((*byte)(r.p), r.size())...)
	return Record{unsafe.Pointer(&b[0])}
}

func (r Record) size() int {
	head, at := getVarint(r.p, 0)
	n := uint64(0)
	if head&valueBit != 0 {
		n, at = getVarint(r.p, at)
	}
	return at + int(head>>headBits) + int(n)
}

// allocated returns the bytes that the allocator gives for the record, to within a few per cent.
func (r Record) allocated() int {
	n := r.size()
	switch {
	case n <= 32:
		return (n + 7) &^ 7
	case n <= 256:
		return (n + 15) &^ 15
	case n <= 512:
		return (n + 31) &^ 31
	default:
		return n + n/16
	}
}

// varintSize returns the size of the variable-length integer at offset at.
func (r Record) varintSize(at int) int {
	n := 1
	for *(*byte)(unsafe.Add(r.p, at+n-1)) >= 0x80 {
		n++
	}
	return n
}

func getVarint(p unsafe.Pointer, at int) (v uint64, next int) {
	for shift := 0; ; shift += 7 {
		c := *(*byte)(unsafe.Add(p, at))
		at++
		v |= uint64(c&0x7F) << shift
		if c < 0x80 {
			return v, at
		}
	}
}

func putVarint(b []byte, v uint64) int {
	n := 0
	for ; v >= 0x80; v >>= 7 {
		b[n] = byte(v) | 0x80
		n++
	}
	b[n] = byte(v)
	return n + 1
}

func varintLen(v uint64) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}
