package tables

// Tables of replies. They are cut off blocks, as the values of package boxes are: the reply of a ZRANGE or an HMGET is a
// table that is forgotten microseconds later.

import lua "github.com/yuin/gopher-lua"

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

// New returns a table with room for n items, as a constructor of n items would have made it, and the items, which the
// caller is to fill in before anybody sees the table.
func (a *Arrays) New(n int) (t *lua.LTable, items []lua.LValue) {
	if len(a.tables) == 0 {
		a.tables = make([]lua.LTable, blockTables)
	}
	t, a.tables = &a.tables[0], a.tables[1:]
	t.Metatable = lua.LNil
	switch {
	case n == 0:
		return t, nil
	case n >= ArrayKeysMax: // the last ones are kept elsewhere
		panic("tables: an array of too many items")
	case n >= ownItems:
		items = make([]lua.LValue, n)
	default:
		if len(a.items) < n {
			a.items = make([]lua.LValue, blockItems)
		}
		items, a.items = a.items[:n:n], a.items[n:]
	}
	inside(t).array = items
	return t, items
}
