package engine

// Entries: what the table refers to. A string (and every other value in plain bytes) is one pointer-free allocation
// that holds header, deadline, key and value. So the garbage collector marks one object and follows no pointer, and a
// get reads one place. Other values are objects of their own behind a header of the same form.
//
// Tried and rejected: map[string][]byte (107-148 bytes a key with a 16-byte
// key and a 32-byte value against 74-79 here, and 40 % of a pipelined GET's
// time in cache misses).

import (
	"strconv"
	"unsafe"

	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/zset"
)

const (
	flagInt          uint8 = 1 << iota // the value is an int64, not text
	flagRaw                            // the string was edited in place: OBJECT ENCODING says raw
	flagDeadline                       // a deadline follows the header
	flagObject                         // this is an objectEntry
	flagInnerDue                       // the object has deadlines inside (Settler), or it is a lock
	flagIdle                           // a limiter that disappears once it is full
	flagInnerCounted                   // a hash with deadlines inside, counted in wheel.volatileHashes
	flagSaved                          // its meaning is in Keyspace.saved (cut.go)
)

// header begins every entry. Its size keeps what follows 8-aligned.
type header struct {
	kind   Kind
	flags  uint8
	freq   uint16 // LFU: logarithmic counter in the low byte
	access uint32 // seconds (of Unix time) of the last access
	keyLen uint32 // in an objectEntry with the bit keyElsewhere
	valLen uint32
}

// due follows the header where flagDeadline is set, and in every objectEntry.
type due struct {
	at   int64  // Unix milliseconds, 0 = none
	node uint32 // place in the shard's timing wheel, 0 = none
	db   uint16 // the key's database, for the wheel
	bin  uint8  // in an objectEntry: the bin in which its length is counted
}

const (
	headerSize = unsafe.Sizeof(header{})
	dueSize    = unsafe.Sizeof(due{})
)

// keyElsewhere marks the length of a key that is not in the entry itself. A key
// and its length never change while others can see the entry (see Touch).
const keyElsewhere = 1 << 31

// objectEntry is an entry whose value has pointers.
type objectEntry struct {
	header
	due
	key string
	obj any
}

// bigString holds strings above inlineStringMax bytes, which grow by append.
type bigString struct {
	b []byte
	// shared is how many others use the bytes (Share). While there are any, only the room behind the bytes is written
	// in place.
	shared int
}

// inlineStringMax is the largest string kept inside its entry. A longer one is an object, so that a growing string
// (APPEND, SETRANGE, SETBIT) is not copied at every step.
const inlineStringMax = 1024

var noBytes = []byte{}

// Entry is a handle on a key's entry, valid while its shard is locked and
// until the next write to the key. The zero Entry is a missing key.
type Entry struct{ h *header }

// Ok tells whether the key exists.
func (e Entry) Ok() bool { return e.h != nil }

// Kind is the kind of the value, KindNone for a missing key.
func (e Entry) Kind() Kind {
	if e.h == nil {
		return KindNone
	}
	return e.h.kind
}

func (e Entry) object() *objectEntry { return (*objectEntry)(unsafe.Pointer(e.h)) }

func (e Entry) payload() unsafe.Pointer {
	off := headerSize
	if e.h.flags&flagDeadline != 0 {
		off += dueSize
	}
	return unsafe.Add(unsafe.Pointer(e.h), off)
}

func (e Entry) dueRef() *due {
	switch {
	case e.h.flags&flagObject != 0:
		return &e.object().due
	case e.h.flags&flagDeadline != 0:
		return (*due)(unsafe.Add(unsafe.Pointer(e.h), headerSize))
	}
	return nil
}

// Key is the key's name. It aliases the entry.
func (e Entry) Key() []byte {
	if e.h.flags&flagObject != 0 {
		return unsafe.Slice(unsafe.StringData(e.object().key), len(e.object().key))
	}
	if e.h.keyLen == 0 {
		return noBytes // a pointer past the allocation must not be made
	}
	return unsafe.Slice((*byte)(e.payload()), e.h.keyLen)
}

// Deadline is when the key expires in Unix milliseconds, 0 if never. As in
// Redis the key lives through that millisecond.
func (e Entry) Deadline() int64 {
	if e.h == nil {
		return 0
	}
	if d := e.dueRef(); d != nil {
		return d.at
	}
	return 0
}

// Object is the value of a key for reading: the object, or a structure over the value's plain bytes. It is nil for
// other plain bytes.
func (e Entry) Object() any {
	switch {
	case e.h == nil || !e.InBytes():
		return e.ObjectIn(nil)
	case e.h.kind == KindHash:
		return e.Hash(new(hash.Hash))
	}
	return e.ZSet(new(zset.Set))
}

// ObjectIn is Object, but makes a structure over plain bytes in work: for callers that look at many entries.
func (e Entry) ObjectIn(work *Work) any {
	switch {
	case e.h == nil:
		return nil
	case e.h.flags&flagObject != 0:
		return e.object().obj
	case e.h.kind.fitsBytes():
		x := work.of(e.h.kind)
		x.Over(e.raw())
		return x
	}
	return nil
}

// Int is the value of a string that is held as an integer.
func (e Entry) Int() (n int64, ok bool) {
	if e.h.flags&flagInt == 0 {
		return 0, false
	}
	return *e.intRef(), true
}

// intRef points at the integer, which follows the key at the next multiple of 8.
func (e Entry) intRef() *int64 {
	off := (uintptr(e.h.keyLen) + 7) &^ 7
	return (*int64)(unsafe.Add(e.payload(), off))
}

// raw is the value of a plain-bytes entry that is not an integer.
func (e Entry) raw() []byte {
	if e.h.flags&flagObject != 0 {
		if big, ok := e.object().obj.(*bigString); ok {
			return big.b
		}
		return e.object().obj.(*limiter.Named).State()
	}
	if e.h.valLen == 0 {
		return noBytes
	}
	return unsafe.Slice((*byte)(unsafe.Add(e.payload(), e.h.keyLen)), e.h.valLen)
}

// Bytes is the value of a string, limiter or other plain-bytes entry. It
// aliases the entry, or scratch where the value is held as an integer.
func (e Entry) Bytes(scratch []byte) []byte {
	if e.h == nil {
		return nil
	}
	if n, ok := e.Int(); ok {
		return strconv.AppendInt(scratch[:0], n, 10)
	}
	return e.raw()
}

// ElementBytes is how many bytes of a string take as much time as one element of another value.
const ElementBytes = 512

// Len is the length in bytes of what Bytes returns, or how many elements an
// object has.
func (e Entry) Len() int {
	if e.h == nil {
		return 0
	}
	if n, ok := e.Int(); ok {
		return digits(n)
	}
	if e.h.flags&flagObject == 0 {
		if e.h.kind.fitsBytes() {
			return e.plainLen()
		}
		return int(e.h.valLen)
	}
	return lenOf(e.object().obj)
}

func lenOf(obj any) int {
	switch x := obj.(type) {
	case *bigString:
		return len(x.b)
	case interface{ Len() int }:
		return x.Len()
	}
	return 0
}

// Names of the encodings of strings, as OBJECT ENCODING replies them.
const (
	encodingInt    = "int"
	encodingEmbstr = "embstr"
	encodingRaw    = "raw"
	embstrMax      = 44
)

// StringEncoding is what OBJECT ENCODING replies for a string.
func (e Entry) StringEncoding() string {
	switch {
	case e.h.flags&flagInt != 0:
		return encodingInt
	case e.h.flags&flagRaw == 0 && e.Len() <= embstrMax:
		return encodingEmbstr
	}
	return encodingRaw
}

// LastAccess is the Unix time in seconds when the key was last used.
func (e Entry) LastAccess() int64 { return int64(e.h.access) }

// SetLastAccess sets what LastAccess returns (RESTORE IDLETIME).
func (e Entry) SetLastAccess(unixSeconds int64) { e.h.access = uint32(unixSeconds) }

// Memory is the size of the entry in bytes, without the object behind it.
func (e Entry) Memory() int {
	if e.h.flags&flagObject != 0 {
		n := int(unsafe.Sizeof(objectEntry{})) + len(e.object().key)
		if s, ok := e.object().obj.(*bigString); ok {
			n += cap(s.b) + int(unsafe.Sizeof(*s))
		}
		return n
	}
	n := int(headerSize) + int(e.h.keyLen)
	if e.h.flags&flagDeadline != 0 {
		n += int(dueSize)
	}
	if e.h.flags&flagInt != 0 {
		return (n+7)&^7 + 8
	}
	return n + int(e.h.valLen)
}

// newBytesEntry allocates a pointer-free entry. withDue makes room for a
// deadline; valLen bytes of value are left zero.
func newBytesEntry(kind Kind, key []byte, valLen int, isInt, withDue bool) Entry {
	size := headerSize
	if withDue {
		size += dueSize
	}
	if isInt {
		size += (uintptr(len(key)) + 7) &^ 7
		size += 8
	} else {
		size += uintptr(len(key)) + uintptr(valLen)
	}
	return layBytes(make([]uint64, (size+7)/8), kind, key, valLen, isInt, withDue)
}

// layBytes makes an entry in zeroed memory, which is large enough for it.
func layBytes(words []uint64, kind Kind, key []byte, valLen int, isInt, withDue bool) Entry {
	h := (*header)(unsafe.Pointer(unsafe.SliceData(words)))
	h.kind = kind
	if withDue {
		h.flags |= flagDeadline
	}
	if isInt {
		h.flags |= flagInt
	}
	h.keyLen = uint32(len(key))
	h.valLen = uint32(valLen)
	e := Entry{h}
	copy(e.Key(), key)
	return e
}

func newObjectEntry(kind Kind, key []byte, obj any) Entry {
	o := new(objectEntry)
	if kind.hasParts() {
		o = &new(partedEntry).objectEntry
	}
	o.key, o.obj, o.kind = string(key), obj, kind
	o.flags = flagObject
	o.keyLen = uint32(len(key)) | keyElsewhere
	return Entry{&o.header}
}

// parseCanonicalInt reads an int64 that is written exactly as Redis would
// print it (no plus sign, no leading zeros), so text and number are the same.
func parseCanonicalInt(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	c := b[0]
	if c == '0' {
		return 0, len(b) == 1
	}
	i := 0
	neg := c == '-'
	if neg {
		i = 1
		if len(b) == 1 || b[1] == '0' {
			return 0, false
		}
	}
	var n uint64
	for ; i < len(b); i++ {
		d := b[i] - '0'
		if d > 9 {
			return 0, false
		}
		if n > (1<<63)/10 {
			return 0, false
		}
		n = n*10 + uint64(d)
	}
	if neg {
		if n > 1<<63 {
			return 0, false
		}
		return -int64(n), true
	}
	if n > 1<<63-1 {
		return 0, false
	}
	return int64(n), true
}
