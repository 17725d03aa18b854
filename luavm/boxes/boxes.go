// Package boxes makes Lua values of strings and numbers.
//
// A lua.LValue is an interface, so each string costs two allocations, one for its bytes and one for its header, and each
// number one. A script that answers in a microsecond spends a tenth of it there. Here they are cut off blocks: a block
// lives as long as one of its values does. Blocks are small and what is large gets memory of its own, so that a value
// which a function library keeps does not keep much else.
package boxes

import (
	"math"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

const (
	blockBytes   = 1024 // of text in a block
	blockStrings = 32   // headers in a block
	blockNumbers = 64   // numbers in a block
	ownBytes     = 128  // a string as long as that has memory of its own
)

// Boxes is where values come from. The zero value is ready; it is for one goroutine at a time.
type Boxes struct {
	text    []byte
	strings []lua.LString
	numbers []lua.LNumber
}

// boxed is what an interface is made of.
type boxed struct{ kind, value unsafe.Pointer }

func kindOf(v lua.LValue) unsafe.Pointer { return (*boxed)(unsafe.Pointer(&v)).kind }

var (
	stringKind = kindOf(lua.LString(""))
	numberKind = kindOf(lua.LNumber(0.5))
)

// smallInts are boxed in advance: replies and counters are mostly small.
var smallInts = func() (a [1024]lua.LValue) {
	for i := range a {
		a[i] = lua.LNumber(i)
	}
	return
}()

var empty lua.LValue = lua.LString("")

// Int boxes an integer.
func (b *Boxes) Int(n int64) lua.LValue {
	if uint64(n) < uint64(len(smallInts)) {
		return smallInts[n]
	}
	return b.number(float64(n))
}

// Number boxes a number. -0 stays what it is.
func (b *Boxes) Number(f float64) lua.LValue {
	if i := int(f); uint(i) < uint(len(smallInts)) && float64(i) == f && (i != 0 || !math.Signbit(f)) {
		return smallInts[i]
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
	if len(b.strings) == cap(b.strings) {
		b.strings = make([]lua.LString, 0, blockStrings)
	}
	n := len(b.strings)
	b.strings = b.strings[:n+1]
	b.strings[n] = lua.LString(unsafe.String(&b.text[start], len(s)))
	*(*boxed)(unsafe.Pointer(&v)) = boxed{stringKind, unsafe.Pointer(&b.strings[n])}
	return v
}
