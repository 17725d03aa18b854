package cmsgpack

import (
	"math"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/boxes"
	"github.com/limitkv/limitkv/luavm/budget"
	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/tables"
)

// unpacker reads packed values.
type unpacker struct {
	budget *budget.Budget
	boxes  *boxes.Boxes
	L      *lua.LState
	data   string // the bytes not read yet
}

// unpack returns all values of the data.
func unpack(L *lua.LState, from *boxes.Boxes, b *budget.Budget) int {
	return unpackFull(L, from, b, 0, 0)
}

// unpackOne returns the offset behind the value at an offset (0 if not given), and the value.
func unpackOne(L *lua.LState, from *boxes.Boxes, b *budget.Budget) int {
	return unpackFull(L, from, b, 1, arg.OptInteger(L, 2, 0))
}

// unpackLimit is unpackOne for at most as many values as argument 2 says.
func unpackLimit(L *lua.LState, from *boxes.Boxes, b *budget.Budget) int {
	limit := arg.Integer(L, 2)
	return unpackFull(L, from, b, limit, arg.OptInteger(L, 3, 0))
}

// unpackFull returns limit values from the offset on. Before them it returns the offset at which to continue, -1 at the
// end. With both 0 it returns all values, and no offset.
func unpackFull(L *lua.LState, from *boxes.Boxes, b *budget.Budget, limit, offset int64) int {
	data := arg.String(L, 1)
	if offset < 0 || limit < 0 {
		// The text says limit but shows the length, as the original does.
		arg.Raise(L, "Invalid request to unpack with offset of %d and limit of %d.", int32(offset), int32(len(data)))
	}
	if offset > int64(len(data)) {
		arg.Raise(L, "Start offset %d greater than input length %d.", int32(offset), int32(len(data)))
	}
	all := limit == 0 && offset == 0
	if all {
		limit = math.MaxInt32
	}
	u := unpacker{budget: b, boxes: from, L: L, data: data[offset:]}
	base := L.GetTop()
	if !all {
		L.Push(lua.LNumber(-1)) // the offset's place
	}
	count := int64(0)
	for ; u.data != "" && count < limit; count++ {
		L.Push(u.value(1 + int(count)))
	}
	if all {
		return int(count)
	}
	if 1+count+1 > stackMax {
		arg.Raise(L, "stack overflow (in function mp_unpack_full)")
	}
	if u.data != "" {
		L.Replace(base+1, lua.LNumber(len(data)-len(u.data)))
	}
	return int(count) + 1
}

// take returns the next n bytes.
func (u *unpacker) take(n int) string {
	if len(u.data) < n {
		arg.Raise(u.L, "Missing bytes in input.")
	}
	b := u.data[:n]
	u.data = u.data[n:]
	return b
}

// uint returns the next n bytes as an unsigned integer.
func (u *unpacker) uint(n int) uint64 {
	v := uint64(0)
	for _, c := range []byte(u.take(n)) {
		v = v<<8 | uint64(c)
	}
	return v
}

// value reads one value. slots is how many stack slots the original uses at this point.
func (u *unpacker) value(slots int) lua.LValue {
	if u.data == "" {
		u.take(1)
	}
	if slots+1 > stackMax {
		arg.Raise(u.L, "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)")
	}
	u.budget.Use(1)
	c := u.data[0]
	u.data = u.data[1:]
	switch {
	case c < 0x80:
		return u.boxes.Int(int64(c))
	case c >= 0xe0:
		return u.boxes.Int(int64(int8(c)))
	case c < 0x90:
		return u.table(int(c&15), slots)
	case c < 0xa0:
		return u.array(int(c&15), slots)
	case c < 0xc0:
		return u.boxes.Part(u.take(int(c & 31)))
	}
	switch c {
	case 0xc0:
		return lua.LNil
	case 0xc2:
		return lua.LFalse
	case 0xc3:
		return lua.LTrue
	case 0xca:
		return u.boxes.Number(float64(math.Float32frombits(uint32(u.uint(4)))))
	case 0xcb:
		return u.boxes.Number(math.Float64frombits(u.uint(8)))
	case 0xcc:
		return u.boxes.Int(int64(u.uint(1)))
	case 0xcd:
		return u.boxes.Int(int64(u.uint(2)))
	case 0xce:
		return u.boxes.Int(int64(u.uint(4)))
	case 0xcf, 0xd3: // the unsigned type is also read as a signed number
		return u.boxes.Int(int64(u.uint(8)))
	case 0xd0:
		return u.boxes.Int(int64(int8(u.uint(1))))
	case 0xd1:
		return u.boxes.Int(int64(int16(u.uint(2))))
	case 0xd2:
		return u.boxes.Int(int64(int32(u.uint(4))))
	case 0xd9:
		return u.boxes.Part(u.take(int(u.uint(1))))
	case 0xda:
		return u.boxes.Part(u.take(int(u.uint(2))))
	case 0xdb:
		return u.boxes.Part(u.take(int(u.uint(4))))
	case 0xdc:
		return u.array(int(u.uint(2)), slots)
	case 0xdd:
		return u.array(int(u.uint(4)), slots)
	case 0xde:
		return u.table(int(u.uint(2)), slots)
	case 0xdf:
		return u.table(int(u.uint(4)), slots)
	}
	arg.Raise(u.L, "Bad data format in input.")
	return nil
}

func (u *unpacker) array(n, slots int) lua.LValue {
	if slots+2 > stackMax {
		arg.Raise(u.L, "stack overflow (in function mp_decode_to_lua_array)")
	}
	t := tables.New(0, 0)
	for i := 1; i <= n; i++ {
		tables.SetInt(t, i, u.value(slots+2))
	}
	return t
}

func (u *unpacker) table(n, slots int) lua.LValue {
	t := tables.New(0, 0)
	for range n {
		k := u.value(slots + 1)
		v := u.value(slots + 2)
		if n, isNumber := k.(lua.LNumber); isNumber && n != n {
			u.L.Error(lua.LString("table index is NaN"), 0)
		}
		if k == lua.LNil {
			u.L.Error(lua.LString("table index is nil"), 0)
		}
		tables.Set(t, k, v)
	}
	return t
}
