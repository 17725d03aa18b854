package luavm

// Tables: reading and writing by integer, and their border.
//
// gopher-lua puts every integer key up to MaxArrayIndex into an array, however empty that is: a single t[50000000] = 1
// would fill a gigabyte. So the limit is lowered; keys beyond it live in the map, where the library's own # does not
// look. That is why # is a call (see rewrite.go), and why integers are read here.

import (
	"math/bits"

	lua "github.com/yuin/gopher-lua"
)

// arrayKeysMax is the first integer that is not kept in a table's array.
const arrayKeysMax = 1 << 15

func init() { lua.MaxArrayIndex = arrayKeysMax }

// rawGetInt is t[i], whichever part of the table i is in.
func rawGetInt(t *lua.LTable, i int) lua.LValue {
	if i > 0 && i < arrayKeysMax {
		return t.RawGetInt(i)
	}
	return t.RawGetH(lua.LNumber(i))
}

// grownCap tells whether an array of this capacity has grown from gopher-lua's default, which means that the table was
// made empty. A constructor's array has as many places as elements.
func grownCap(n int) bool {
	switch n {
	case 32, 64, 128, 256, 512:
		return true
	}
	return n > 512
}

// border is #t. If there are holes it is mostly the border that Lua 5.1 finds: there, too, it depends on how much room
// the table's array has, which is as many places as a constructor had elements, else a power of two.
func border(t *lua.LTable) int {
	array := insideTable(t).array
	n := len(array)
	if n == 0 {
		return 0
	}
	size := n
	if grownCap(cap(array)) {
		size = 1 << bits.Len(uint(n-1))
	}
	if size == n && array[n-1] != lua.LNil {
		if n == arrayKeysMax-1 {
			return borderBeyond(t, n)
		}
		return n
	}
	if n == arrayKeysMax-1 && array[n-1] != lua.LNil {
		return borderBeyond(t, n)
	}
	below, above := 0, size // t[below] is not nil, or below is 0; t[above] is nil
	for above-below > 1 {
		if m := (below + above) / 2; m <= n && array[m-1] != lua.LNil {
			below = m
		} else {
			above = m
		}
	}
	return below
}

// borderBeyond looks for the border in the map, in ever larger steps, then by halves.
func borderBeyond(t *lua.LTable, n int) int {
	below, above := n, n+1
	for rawGetInt(t, above) != lua.LNil {
		below = above
		above *= 2
	}
	for above-below > 1 {
		if m := (below + above) / 2; rawGetInt(t, m) != lua.LNil {
			below = m
		} else {
			above = m
		}
	}
	return below
}

// list is {...} and {a, f()}: a table of all arguments, with room for exactly these.
func (vm *VM) list(L *lua.LState) int {
	ls := inside(L)
	values := ls.reg.array[ls.currentFrame.LocalBase:ls.reg.top]
	room := len(values)
	if grownCap(room) {
		room++
	}
	t := L.CreateTable(room, 0)
	for i, v := range values {
		t.RawSetInt(i+1, v)
	}
	L.Push(t)
	return 1
}
