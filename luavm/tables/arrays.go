package tables

// Tables of replies. They are cut off blocks, as the values of package boxes are: the reply of a ZRANGE or an HMGET is a
// table that is forgotten microseconds later.

import (
	"math/bits"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

const (
	blockTables = 8  // tables in a block
	blockItems  = 32 // items in a block
	ownItems    = 8  // an array as long as that has memory of its own
)

// Arrays is where tables that are made as arrays come from. The zero value is ready.
type Arrays struct {
	tables []lua.LTable
	items  []lua.LValue
}

// New returns a table as it is once n values have been appended to an empty one, one by one, and the places of these
// values, which the caller is to fill in before anybody sees the table. None may be nil.
func (a *Arrays) New(n int) (t *lua.LTable, items []lua.LValue) {
	if len(a.tables) == 0 {
		a.tables = make([]lua.LTable, blockTables)
	}
	t, a.tables = &a.tables[0], a.tables[1:]
	t.Metatable = lua.LNil
	if n == 0 {
		return t, nil
	}
	size := 1 << bits.Len(uint(n-1))
	if size >= ownItems {
		items = make([]lua.LValue, size)
	} else {
		if len(a.items) < size {
			a.items = make([]lua.LValue, blockItems)
		}
		items, a.items = a.items[:size:size], a.items[size:]
	}
	(*layout)(unsafe.Pointer(t)).array = items
	return t, items[:n]
}

// Reset empties a table that is used again, and gives the memory of a large one back.
func Reset(t *lua.LTable, largest int) {
	in := inside(t)
	if len(in.array) > largest {
		in.array = nil
	}
	clear(in.array)
	in.makeNodes(0)
}
