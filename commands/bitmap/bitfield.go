package bitmap

// BITFIELD: integers of any width up to 64 bits, anywhere in a string.

import (
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) bitfieldRow() *command.Command {
	return &command.Command{
		Name: "bitfield", Arity: -2, Group: command.GroupBitmap, Since: "3.2.0",
		Flags:      command.Write | command.DenyOOM,
		ACL:        bitmapACL,
		Keys:       []command.KeySpec{{Flags: command.RW | command.Update | command.Access | command.VariableFlags, Index: 1, Step: 1, Notes: "This command allows both access and modification of the key"}},
		Summary:    "Reads, writes and increments integers inside a string.",
		Complexity: "O(1) for each operation",
		KeyFlags:   bitfieldKeyFlags,
		Syntax:     "key [operation=(GET get-block={encoding:string offset:integer} | write={[OVERFLOW overflow-block=(WRAP | SAT | FAIL)] write-operation=(SET set-block={encoding:string offset:integer value:integer} | INCRBY incrby-block={encoding:string offset:integer increment:integer})})...]",
		Run:        func(c *command.Ctx) { f.bitfield(c, false) },
	}
}

// bitfieldKeyFlags are the flags of BITFIELD's key: the command changes the key only if a SET or INCRBY is among the
// operations.
func bitfieldKeyFlags(args [][]byte, _ int) command.KeyFlags {
	for _, a := range args[2:] {
		if command.EqualFold(a, "SET") || command.EqualFold(a, "INCRBY") {
			return command.RW | command.Access | command.Update
		}
	}
	return command.RO | command.Access
}

func (f *family) bitfieldROrow() *command.Command {
	return &command.Command{
		Name: "bitfield_ro", Arity: -2, Group: command.GroupBitmap, Since: "6.0.0",
		Flags:      command.ReadOnly | command.Fast,
		ACL:        bitmapACL,
		Keys:       []command.KeySpec{command.Key(1, readKey)},
		Summary:    "Reads integers inside a string.",
		Complexity: "O(1) for each operation",
		Syntax:     "key [GET get-block={encoding:string offset:integer}...+]",
		Run:        func(c *command.Ctx) { f.bitfield(c, true) },
	}
}

// overflow is how a number that does not fit is handled.
type overflow uint8

const (
	wrap overflow = iota
	saturate
	fail
)

// field is an integer's place and form.
type field struct {
	at     int64
	width  uint
	signed bool
}

type fieldOp struct {
	field
	kind     byte // 'g', 's', 'i'
	value    int64
	overflow overflow
}

func (f *family) parseOps(c *command.Ctx) (ops []fieldOp, ok bool) {
	a := c.Cursor(2)
	over := wrap
	for a.More() {
		op := fieldOp{overflow: over}
		switch {
		case a.IsWith("GET", 2):
			op.kind = 'g'
		case a.IsWith("SET", 3):
			op.kind = 's'
		case a.IsWith("INCRBY", 3):
			op.kind = 'i'
		case a.IsWith("OVERFLOW", 1):
			switch {
			case a.Is("WRAP"):
				over = wrap
			case a.Is("SAT"):
				over = saturate
			case a.Is("FAIL"):
				over = fail
			default:
				a.Fail("ERR Invalid OVERFLOW type specified")
			}
			continue
		default:
			a.Syntax()
			continue
		}
		op.signed, op.width = fieldType(&a)
		op.at = f.offset(c, &a, int64(op.width))
		if op.kind != 'g' {
			op.value = a.Int()
		}
		ops = append(ops, op)
	}
	return ops, !a.Failed(c)
}

// fieldType reads i1 to i64 or u1 to u63.
func fieldType(a *command.Args) (signed bool, width uint) {
	b := a.Bytes()
	if a.Err() != "" {
		return false, 0
	}
	widest := int64(0)
	if len(b) > 0 && b[0] == 'i' {
		signed, widest = true, 64
	} else if len(b) > 0 && b[0] == 'u' {
		widest = 63
	}
	if widest > 0 {
		if n, ok := number.ParseInt(b[1:]); ok && n >= 1 && n <= widest {
			return signed, uint(n)
		}
	}
	a.Fail("ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.")
	return false, 0
}

func (f *family) bitfield(c *command.Ctx, readOnly bool) {
	ops, ok := f.parseOps(c)
	if !ok {
		return
	}
	key := c.Args[1]
	last := int64(-1) // the last bit that is written
	for _, op := range ops {
		if op.kind != 'g' {
			last = max(last, op.at+int64(op.width)-1)
		}
	}
	if readOnly && last >= 0 {
		c.Error("ERR BITFIELD_RO only supports the GET subcommand")
		return
	}
	var scratch [20]byte
	var b []byte
	grown := false
	if last < 0 {
		e, ok := c.Lookup(key, engine.KindString)
		if !ok {
			return
		}
		b = e.Bytes(scratch[:])
	} else {
		e, ok := c.LookupWrite(key, engine.KindString)
		if !ok {
			return
		}
		n := max(e.Len(), int(last>>3)+1)
		grown = n != e.Len()
		b = c.EditString(key, 0, n)
	}
	changed := false
	c.Array(len(ops))
	for _, op := range ops {
		old := op.get(b)
		if op.kind == 'g' {
			c.Int(old)
			continue
		}
		value, fits := op.fit(op.value)
		if op.kind == 'i' {
			value, fits = op.sum(old, op.value)
		}
		if !fits && op.overflow == fail {
			c.Null()
			continue
		}
		op.set(b, value)
		changed = changed || grown || old != value
		if op.kind == 'i' {
			old = value
		}
		c.Int(old)
	}
	if changed {
		c.Changed(key, engine.EventString, "setbit")
	} else if grown { // Redis does not replicate this, so its replicas lack the zeros
		c.ForceEffect()
	}
}

// get reads the integer. Bits beyond the end of the string are zeros.
func (f field) get(b []byte) int64 {
	var u uint64
	for i := range int64(f.width) {
		u = u<<1 | uint64(bitAt(b, f.at+i))
	}
	return f.extend(u)
}

func (f field) set(b []byte, v int64) {
	for i := range int64(f.width) {
		at := f.at + i
		bit := byte(uint64(v) >> (int64(f.width) - 1 - i) & 1)
		shift := 7 - at&7
		b[at>>3] = b[at>>3]&^(1<<shift) | bit<<shift
	}
}

// extend interprets the low bits of u, with a sign or without.
func (f field) extend(u uint64) int64 {
	if f.signed {
		return int64(u<<(64-f.width)) >> (64 - f.width)
	}
	if f.width < 64 {
		u &= 1<<f.width - 1
	}
	return int64(u)
}

// limits are the least and the greatest number of the form.
func (f field) limits() (lo, hi int64) {
	if f.signed {
		return math.MinInt64 >> (64 - f.width), math.MaxInt64 >> (64 - f.width)
	}
	return 0, 1<<f.width - 1
}

// fit makes a new value fit. For an unsigned field a negative number counts as too large.
func (op fieldOp) fit(v int64) (fitted int64, fits bool) {
	lo, hi := op.limits()
	if v >= lo && v <= hi {
		return v, true
	}
	if op.overflow == saturate {
		// Redis first computes how far v is below hi. For numbers near -2^63 that difference overflows, so they count as too
		// large.
		if op.signed && v < lo && v >= hi-math.MaxInt64 {
			return lo, false
		}
		return hi, false
	}
	return op.extend(uint64(v)), false
}

// sum adds to a field and makes the result fit.
func (op fieldOp) sum(old, by int64) (sum int64, fits bool) {
	lo, hi := op.limits()
	switch {
	case by > 0 && old > hi-by:
		if op.overflow == saturate {
			return hi, false
		}
	case by < 0 && (op.signed && old < lo-by || !op.signed && old+by < 0):
		if op.overflow == saturate {
			return lo, false
		}
	default:
		return old + by, true
	}
	return op.extend(uint64(old) + uint64(by)), false
}
