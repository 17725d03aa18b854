// Package boxes, internal to the server, makes Lua values of strings and numbers.
//
// A lua.LValue is an interface, so each string costs two allocations, one for its bytes and one for its header, and each
// number costs one. A script of one microsecond spends a tenth of its time there. This package cuts values off blocks
// instead. A block stays in memory as long as one of its values. So blocks are small, and long strings get their own
// memory: a value that a function library stores then does not keep much else alive.
package boxes

import (
	"math"
	"sync/atomic"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

const (
	blockBytes   = 1024 // of text in a block
	blockStrings = 32   // headers in a block
	blockNumbers = 64   // numbers in a block
	ownBytes     = 128  // strings from this length on get their own memory
)

// Boxes makes values. The zero value is ready to use, by one goroutine at a time.
type Boxes struct {
	text    []byte
	strings []lua.LString
	numbers []lua.LNumber
}

// boxed is the memory layout of an interface.
type boxed struct{ kind, value unsafe.Pointer }

func kindOf(v lua.LValue) unsafe.Pointer { return (*boxed)(unsafe.Pointer(&v)).kind }

var (
	stringKind = kindOf(lua.LString(""))
	numberKind = kindOf(lua.LNumber(0.5))
)

// smallInts are the integers from 0 on as floats: replies, counters and loop variables are mostly small. An element is filled
// in at its first use, so that unused parts need no physical memory; 0 is right from the start.
var smallInts [1 << 16]uint64

var empty lua.LValue = lua.LString("")

// small boxes an integer that is one of smallInts.
func small(i uint) (v lua.LValue) {
	bits := &smallInts[i]
	if i != 0 && atomic.LoadUint64(bits) == 0 { // other goroutines may read it, so it is written once only
		atomic.CompareAndSwapUint64(bits, 0, math.Float64bits(float64(i)))
	}
	*(*boxed)(unsafe.Pointer(&v)) = boxed{numberKind, unsafe.Pointer(bits)}
	return v
}

// Lasting boxes a number that is used for long, such as a constant, without a block.
func Lasting(f float64) lua.LValue {
	if i := int(f); isSmall(i, f) {
		return small(uint(i))
	}
	return lua.LNumber(f)
}

func isSmall(i int, f float64) bool {
	return uint(i) < uint(len(smallInts)) && float64(i) == f && (i != 0 || !math.Signbit(f))
}

// Int boxes an integer.
func (b *Boxes) Int(n int64) lua.LValue {
	if uint64(n) < uint64(len(smallInts)) {
		return small(uint(n))
	}
	return b.number(float64(n))
}

// Number boxes a number. It keeps the sign of -0.
func (b *Boxes) Number(f float64) lua.LValue {
	if i := int(f); isSmall(i, f) {
		return small(uint(i))
	}
	return b.number(f)
}

func (b *Boxes) number(f float64) (v lua.LValue) {
	if len(b.numbers) == cap(b.numbers) {
		b.numbers = make([]lua.LNumber, 0, blockNumbers)
	}
	n := len(b.numbers)
	b.numbers = b.numbers[:n+1]
	b.numbers[n] = lua.LNumber(f)
	*(*boxed)(unsafe.Pointer(&v)) = boxed{numberKind, unsafe.Pointer(&b.numbers[n])}
	return v
}

// String boxes a copy of s.
func (b *Boxes) String(s []byte) (v lua.LValue) {
	switch {
	case len(s) == 0:
		return empty
	case len(s) >= ownBytes:
		return lua.LString(s)
	case len(s) > cap(b.text)-len(b.text):
		b.text = make([]byte, 0, blockBytes)
	}
	start := len(b.text)
	b.text = append(b.text, s...)
	return b.header(unsafe.String(&b.text[start], len(s)))
}

// Part boxes a part of a larger string. It copies a short part, so that this does not keep the larger string alive.
func (b *Boxes) Part(s string) lua.LValue {
	if len(s) < ownBytes {
		return b.String(unsafe.Slice(unsafe.StringData(s), len(s)))
	}
	return b.header(s)
}

func (b *Boxes) header(s string) (v lua.LValue) {
	if len(b.strings) == cap(b.strings) {
		b.strings = make([]lua.LString, 0, blockStrings)
	}
	n := len(b.strings)
	b.strings = b.strings[:n+1]
	b.strings[n] = lua.LString(s)
	*(*boxed)(unsafe.Pointer(&v)) = boxed{stringKind, unsafe.Pointer(&b.strings[n])}
	return v
}
