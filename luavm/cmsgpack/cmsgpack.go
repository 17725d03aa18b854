// Package cmsgpack, internal to the server, is the library cmsgpack of Redis's Lua: MessagePack
// both ways, as lua-cmsgpack 0.4.0 does it.
//
// Whole numbers are packed as integers of the least width, others as float if that is exact, else as double. A table
// whose keys are 1 to n is an array, and so is an empty table. Other tables are maps, with the keys in Lua's order. Values
// that MessagePack cannot represent, and tables nested more than 16 deep, are packed as nil. Unpacking refuses binary and
// extension types, and makes unsigned integers from 2^63 on negative.
package cmsgpack

import (
	"encoding/binary"
	"math"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/boxes"
	"github.com/limitkv/limitkv/luavm/budget"
	"github.com/limitkv/limitkv/luavm/tables"
	lua "github.com/yuin/gopher-lua"
)

const (
	nestingMax = 16   // tables in tables that are packed
	stackMax   = 8000 // values that a C function of Lua 5.1 may have at once
)

// PackedSizeMax is how many bytes one call of pack may make. Redis has no such limit and is killed instead.
const PackedSizeMax = 512 << 20

// Open returns a new table with the functions of the library. from boxes their values, and b counts their steps.
func Open(L *lua.LState, from *boxes.Boxes, b *budget.Budget) *lua.LTable {
	return open(L, from, b, PackedSizeMax)
}

func open(L *lua.LState, from *boxes.Boxes, b *budget.Budget, sizeMax int) *lua.LTable {
	t := tables.New(0, 8)
	tables.SetString(t, "pack", L.NewFunction(func(L *lua.LState) int { return pack(L, from, b, sizeMax) }))
	tables.SetString(t, "unpack", L.NewFunction(func(L *lua.LState) int { return unpack(L, from, b) }))
	tables.SetString(t, "unpack_one", L.NewFunction(func(L *lua.LState) int { return unpackOne(L, from, b) }))
	tables.SetString(t, "unpack_limit", L.NewFunction(func(L *lua.LState) int { return unpackLimit(L, from, b) }))
	tables.SetString(t, "_NAME", lua.LString("cmsgpack"))
	tables.SetString(t, "_VERSION", lua.LString("lua-cmsgpack 0.4.0"))
	tables.SetString(t, "_COPYRIGHT", lua.LString("Copyright (C) 2012, Salvatore Sanfilippo"))
	tables.SetString(t, "_DESCRIPTION", lua.LString("MessagePack C implementation for Lua"))
	return t
}

// packer appends packed values.
type packer struct {
	budget  *budget.Budget
	L       *lua.LState
	out     []byte
	sizeMax int
}

// pack packs all its arguments, one behind the other.
func pack(L *lua.LState, from *boxes.Boxes, b *budget.Budget, sizeMax int) int {
	n := L.GetTop()
	if n == 0 {
		arg.Error(L, 0, "MessagePack pack needs input.")
	}
	if 2*n > stackMax {
		arg.Error(L, 0, "Too many arguments for MessagePack pack.")
	}
	p := packer{budget: b, L: L, out: make([]byte, 0, 64), sizeMax: sizeMax}
	for i := 1; i <= n; i++ {
		p.value(L.Get(i), 0)
	}
	L.Push(from.String(p.out))
	return 1
}

func (p *packer) value(v lua.LValue, level int) {
	p.budget.Use(1)
	switch v := v.(type) {
	case lua.LString:
		p.string(string(v))
	case lua.LBool:
		if v {
			p.out = append(p.out, 0xc3)
		} else {
			p.out = append(p.out, 0xc2)
		}
	case lua.LNumber:
		p.number(float64(v))
	case *lua.LTable:
		if level == nestingMax {
			p.out = append(p.out, 0xc0)
			return
		}
		p.table(v, level)
	default:
		p.out = append(p.out, 0xc0)
	}
}

// checkSize raises an error if the result gets too long: a table that contains itself in many places could otherwise
// fill the memory.
func (p *packer) checkSize(more int) {
	if len(p.out)+more > p.sizeMax {
		arg.Raise(p.L, "not enough memory")
	}
}

func (p *packer) string(s string) {
	p.checkSize(len(s))
	p.budget.Bytes(len(s))
	switch n := len(s); {
	case n < 32:
		p.out = append(p.out, 0xa0|byte(n))
	case n <= 0xff:
		p.out = append(p.out, 0xd9, byte(n))
	case n <= 0xffff:
		p.out = binary.BigEndian.AppendUint16(append(p.out, 0xda), uint16(n))
	default:
		p.out = binary.BigEndian.AppendUint32(append(p.out, 0xdb), uint32(n))
	}
	p.out = append(p.out, s...)
}

func (p *packer) number(f float64) {
	if i := arg.Truncate(f); float64(i) == f {
		p.integer(i)
	} else if single := float32(f); float64(single) == f {
		p.out = binary.BigEndian.AppendUint32(append(p.out, 0xca), math.Float32bits(single))
	} else {
		p.out = binary.BigEndian.AppendUint64(append(p.out, 0xcb), math.Float64bits(f))
	}
}

func (p *packer) integer(i int64) {
	switch {
	case i >= 0 && i <= 127, i < 0 && i >= -32:
		p.out = append(p.out, byte(i))
	case i > 0 && i <= 0xff:
		p.out = append(p.out, 0xcc, byte(i))
	case i > 0 && i <= 0xffff:
		p.out = binary.BigEndian.AppendUint16(append(p.out, 0xcd), uint16(i))
	case i > 0 && i <= 0xffffffff:
		p.out = binary.BigEndian.AppendUint32(append(p.out, 0xce), uint32(i))
	case i > 0:
		p.out = binary.BigEndian.AppendUint64(append(p.out, 0xcf), uint64(i))
	case i >= math.MinInt8:
		p.out = append(p.out, 0xd0, byte(i))
	case i >= math.MinInt16:
		p.out = binary.BigEndian.AppendUint16(append(p.out, 0xd1), uint16(i))
	case i >= math.MinInt32:
		p.out = binary.BigEndian.AppendUint32(append(p.out, 0xd2), uint32(i))
	default:
		p.out = binary.BigEndian.AppendUint64(append(p.out, 0xd3), uint64(i))
	}
}

func (p *packer) table(t *lua.LTable, level int) {
	t, _ = tables.Behind(t)
	n, isArray := p.measure(t)
	if isArray {
		p.header(n, 0x90, 0xdc)
		for i := 1; i <= n; i++ {
			p.value(tables.GetInt(t, i), level+1)
			p.checkSize(0)
		}
		return
	}
	p.header(n, 0x80, 0xde)
	tables.Each(t, func(k, v lua.LValue) bool {
		p.value(k, level+1)
		p.value(v, level+1)
		p.checkSize(0)
		return true
	})
}

// header appends the number of elements: within the byte short, in 2 bytes behind the byte wide, or in 4 behind wide+1.
func (p *packer) header(n int, short, wide byte) {
	switch {
	case n <= 15:
		p.out = append(p.out, short|byte(n))
	case n <= 0xffff:
		p.out = binary.BigEndian.AppendUint16(append(p.out, wide), uint16(n))
	default:
		p.out = binary.BigEndian.AppendUint32(append(p.out, wide+1), uint32(n))
	}
}

// measure counts a table's keys and reports whether they are 1 to that number.
func (p *packer) measure(t *lua.LTable) (count int, isArray bool) {
	highest := 0.0
	isArray = true
	p.budget.Use(tables.Size(t) / 16) // the walk also passes empty places
	tables.Each(t, func(k, _ lua.LValue) bool {
		p.budget.Use(1)
		count++
		n, ok := k.(lua.LNumber)
		if f := float64(n); ok && f > 0 && f <= math.MaxInt32 && f == math.Trunc(f) {
			highest = max(highest, f)
		} else {
			isArray = false
		}
		return true
	})
	return count, isArray && highest == float64(count)
}
