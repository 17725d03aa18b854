// Package bitmap, internal to the server, is the family of bitmaps: strings of bits. Bit 0 is the highest bit of the first
// byte.
package bitmap

import (
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
)

type family struct{ lengthMax *atomic.Int64 }

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{s.Config.MaxBulk()}
	return []*command.Command{
		f.getbitRow(), f.setbitRow(), bitcountRow, bitposRow, bitopRow, f.bitfieldRow(), f.bitfieldROrow(),
	}
}

var bitmapACL = []string{"bitmap"}

const readKey = command.RO | command.Access

// offset reads the number of a bit. With width > 0 it may be #n, the n-th
// integer of that width.
func (f *family) offset(c *command.Ctx, a *command.Args, width int64) int64 {
	const text = "ERR bit offset is not an integer or out of range"
	b := a.Bytes()
	if a.Err() != "" {
		return 0
	}
	unit := int64(1)
	if width > 0 && len(b) > 0 && b[0] == '#' {
		unit = width
		b = b[1:]
	}
	n, ok := number.ParseInt(b)
	n *= unit // may wrap; what matters is the range
	if !ok || n < 0 || n>>3 >= c.StringMax(f.lengthMax.Load()) {
		a.Fail(text)
	}
	return n
}

func (f *family) getbitRow() *command.Command {
	return &command.Command{
		Name: "getbit", Arity: 3, Group: command.GroupBitmap, Since: "2.2.0",
		Flags:      command.ReadOnly | command.Fast,
		ACL:        bitmapACL,
		Keys:       []command.KeySpec{command.Key(1, readKey)},
		Summary:    "Returns a bit of a string.",
		Complexity: "O(1)",
		Syntax:     "key offset:integer",
		Run: func(c *command.Ctx) {
			a := c.Cursor(2)
			at := f.offset(c, &a, 0)
			if a.Failed(c) {
				return
			}
			e, ok := c.Lookup(c.Args[1], engine.KindString)
			if !ok {
				return
			}
			var scratch [20]byte
			c.Int(int64(bitAt(e.Bytes(scratch[:]), at)))
		},
	}
}

func bitAt(b []byte, at int64) byte {
	if at>>3 >= int64(len(b)) {
		return 0
	}
	return b[at>>3] >> (7 - at&7) & 1
}

func (f *family) setbitRow() *command.Command {
	return &command.Command{
		Name: "setbit", Arity: 4, Group: command.GroupBitmap, Since: "2.2.0",
		Flags:      command.Write | command.DenyOOM,
		ACL:        bitmapACL,
		Keys:       []command.KeySpec{command.Key(1, command.RW|command.Access|command.Update)},
		Summary:    "Sets a bit of a string, which grows as needed, and returns the former one.",
		Complexity: "O(1)",
		Syntax:     "key offset:integer value:integer",
		Run:        f.setbit,
	}
}

func (f *family) setbit(c *command.Ctx) {
	a := c.Cursor(2)
	at := f.offset(c, &a, 0)
	const text = "ERR bit is not an integer or out of range"
	bit := a.IntOr(text)
	if bit != 0 && bit != 1 {
		a.Fail(text)
	}
	if a.Failed(c) {
		return
	}
	key := c.Args[1]
	e, ok := c.LookupWrite(key, engine.KindString)
	if !ok {
		return
	}
	had := e.Len()
	n := max(had, int(at>>3)+1)
	b := c.EditString(key, int(at>>3), n)
	old := bitAt(b, at)
	shift := 7 - at&7
	b[at>>3] = b[at>>3]&^(1<<shift) | byte(bit)<<shift
	if n != had || old != byte(bit) {
		c.Changed(key, engine.EventString, "setbit")
	}
	c.Int(int64(old))
}

// span is a range of a bitmap, in bits, both ends inclusive.
type span struct{ from, to int64 }

// rangeOf resolves start and end, in bytes or bits and from the end if
// negative, within n bytes. It is empty if from > to.
func rangeOf(n, start, end int64, isBit bool) span {
	total := n
	if isBit {
		total *= 8
	}
	if start < 0 {
		start = max(start+total, 0)
	}
	if end < 0 {
		end = max(end+total, 0)
	}
	end = min(end, total-1)
	if start > end {
		return span{from: 1} // empty; a start far behind the end would overflow as bits
	}
	if !isBit {
		return span{start * 8, end*8 + 7}
	}
	return span{start, end}
}

// isBitUnit reads BYTE or BIT.
func isBitUnit(a *command.Args) bool {
	switch {
	case a.Is("BIT"):
		return true
	case a.Is("BYTE"):
	default:
		a.Syntax()
	}
	return false
}

var bitcountRow = &command.Command{
	Name: "bitcount", Arity: -2, Group: command.GroupBitmap, Since: "2.6.0",
	Flags:      command.ReadOnly,
	ACL:        bitmapACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Counts the bits that are set.",
	Complexity: "O(N) in the length of the range",
	Syntax:     "key [range={start:integer end:integer [unit=(BYTE | BIT)]}]",
	Run:        bitcount,
}

func bitcount(c *command.Ctx) {
	a := c.Cursor(2)
	start, end, isBit := int64(0), int64(-1), false
	switch a.Left() {
	case 0:
	case 2, 3:
		start, end = a.Int(), a.Int()
		if a.More() {
			isBit = isBitUnit(&a)
		}
	default:
		a.Syntax()
	}
	if a.Failed(c) {
		return
	}
	e, ok := c.Lookup(c.Args[1], engine.KindString)
	if !ok {
		return
	}
	var scratch [20]byte
	b := e.Bytes(scratch[:])
	if start < 0 && end < 0 && start > end || len(b) == 0 {
		c.Int(0)
		return
	}
	s := rangeOf(int64(len(b)), start, end, isBit)
	if s.from > s.to {
		c.Int(0)
		return
	}
	first, last := s.from>>3, s.to>>3
	c.ExpectBytes(int(last - first))
	n := countBits(b[first : last+1])
	n -= bits.OnesCount8(b[first] &^ (0xff >> (s.from & 7)))
	n -= bits.OnesCount8(b[last] & (1<<(7-s.to&7) - 1))
	c.Int(int64(n))
}

var bitposRow = &command.Command{
	Name: "bitpos", Arity: -3, Group: command.GroupBitmap, Since: "2.8.7",
	Flags:      command.ReadOnly,
	ACL:        bitmapACL,
	Keys:       []command.KeySpec{command.Key(1, readKey)},
	Summary:    "Finds the first bit that is set, or that is not.",
	Complexity: "O(N) in the length of the range",
	Syntax:     "key bit:integer [range={start:integer [end-unit-block={end:integer [unit=(BYTE | BIT)]}]}]",
	Run:        bitpos,
}

func bitpos(c *command.Ctx) {
	a := c.Cursor(2)
	bit := a.Int()
	if a.Err() == "" && bit != 0 && bit != 1 {
		a.Fail("ERR The bit argument must be 1 or 0.")
	}
	start, end, endGiven, isBit := int64(0), int64(-1), false, false
	if len(c.Args) > 6 {
		a.Syntax()
	}
	if a.More() {
		start = a.Int()
		if len(c.Args) == 6 { // Redis looks at the unit first
			unit := c.Cursor(5)
			isBit = isBitUnit(&unit)
			if unit.Err() != "" {
				a.Fail(unit.Err())
			}
		}
		if a.More() {
			end, endGiven = a.Int(), true
		}
	}
	if a.Failed(c) {
		return
	}
	e, ok := c.Lookup(c.Args[1], engine.KindString)
	if !ok {
		return
	}
	if !e.Ok() { // a missing key has zeros without end
		c.Int(-bit)
		return
	}
	var scratch [20]byte
	b := e.Bytes(scratch[:])
	s := rangeOf(int64(len(b)), start, end, isBit)
	if len(b) == 0 || s.from > s.to {
		c.Int(-1)
		return
	}
	c.ExpectBytes(int(s.to-s.from) >> 3)
	at := findBit(b, s, byte(bit))
	if at < 0 && bit == 0 && !endGiven {
		at = s.to + 1 // behind the string there are zeros
	}
	c.Int(at)
}

// findBit returns the first bit in the span that has this value, or -1.
func findBit(b []byte, s span, bit byte) int64 {
	skip := byte(0) // a byte of this value has no such bit
	if bit == 0 {
		skip = 0xff
	}
	for at := s.from; at <= s.to; {
		x := b[at>>3]
		if at&7 == 0 && x == skip {
			at += 8 * int64(1+sameBytes(b[at>>3+1:s.to>>3+1], skip))
			continue
		}
		if x>>(7-at&7)&1 == bit {
			return at
		}
		at++
	}
	return -1
}

var bitopRow = &command.Command{
	Name: "bitop", Arity: -4, Group: command.GroupBitmap, Since: "2.6.0",
	Flags:      command.Write | command.DenyOOM,
	ACL:        bitmapACL,
	Keys:       []command.KeySpec{command.Key(2, command.OW|command.Update), command.KeyRange(3, -1, 1, readKey)},
	Summary:    "Combines strings bit by bit and stores the result.",
	Complexity: "O(N) in the length of the strings",
	Syntax:     "operation=(AND | OR | XOR | NOT) destkey:key key@1...",
	Run:        bitop,
}

// results are buffers that BITOP reuses, unless they are longer than resultKeptMax.
var results = sync.Pool{New: func() any { return new([]byte) }}

const resultKeptMax = 1 << 20

func bitop(c *command.Ctx) {
	a := c.Cursor(1)
	var op operation
	switch {
	case a.Is("AND"):
		op = opAnd
	case a.Is("OR"):
		op = opOr
	case a.Is("XOR"):
		op = opXor
	case a.Is("NOT"):
		op = opNot
	default:
		c.Error(command.ErrSyntax)
		return
	}
	if op == opNot && len(c.Args) != 4 {
		c.Error("ERR BITOP NOT must be called with a single source key.")
		return
	}
	sources := make([][]byte, 0, 4)
	longest := 0
	for _, key := range c.Args[3:] {
		e, ok := c.Lookup(key, engine.KindString)
		if !ok {
			return
		}
		b := e.Bytes(nil) // strings of bits are seldom integers, which need room of their own
		sources = append(sources, b)
		longest = max(longest, len(b))
	}
	key := c.Args[2]
	if longest == 0 {
		if c.Delete(key) {
			c.Changed(key, engine.EventGeneric, "del")
		}
		c.Int(0)
		return
	}
	c.ExpectBytes(longest * len(sources))
	buf := results.Get().(*[]byte)
	out := slices.Grow((*buf)[:0], longest)[:longest]
	combineAll(op, out, sources)
	c.PutString(key, out, 0)
	c.EditString(key, longest, longest) // so it is never stored as an integer, as in Redis
	if *buf = out; cap(out) <= resultKeptMax {
		results.Put(buf)
	}
	c.Changed(key, engine.EventString, "set")
	c.Int(int64(longest))
}
