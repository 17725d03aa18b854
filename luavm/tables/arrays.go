package tables

// Tables of replies. They are cut off blocks, like the values of package boxes, since the table for the reply of a ZRANGE or an
// HMGET is garbage microseconds later.

import (
	"math/bits"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

const (
	blockTables = 8  // tables in a block
	blockItems  = 32 // items in a block
	ownItems    = 8  // arrays from this length on get their own memory
)

// Arrays makes tables that are arrays. The zero value is ready to use.
type Arrays struct {
	tables []lua.LTable
	items  []lua.LValue
}

// New returns a table as if n values had been appended to an empty one, one by one, and the places of these
// values. The caller must fill them in, none of them with nil, before other code uses the table.
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

// Reset empties a table for reuse. If its array is longer than largest, the array's memory is given up.
func Reset(t *lua.LTable, largest int) {
	in := inside(t)
	if len(in.array) > largest {
		in.array = nil
	}
	clear(in.array)
	in.makeNodes(0)
}
