// Package tables makes gopher-lua's tables look like those of Lua 5.1: #, next, and integer keys of any size.
//
// gopher-lua puts every integer key up to MaxArrayIndex into an array, however empty that is: a single t[50000000] = 1
// would fill a gigabyte. So the limit is lowered; keys beyond it live in the map, where the library's own functions do
// not look. And it lists keys in the order of their insertion, where Lua lists them by their hashes. That order shows:
// in what cjson.encode makes of an object, in a script's reply. It is found by laying the keys out as Lua would.
//
// Not known, and so taken as it mostly is: when integers that are in neither sequence nor constructor came and went (they
// are laid out before the other keys, in ascending order, those that are there now), that a field which is nil now was so
// when the table grew (it is laid out, too), and the addresses of tables and functions that are keys.
package tables

import (
	"fmt"
	"math/bits"
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// ArrayKeysMax is the first integer that is not kept in a table's array.
const ArrayKeysMax = 1 << 15

// layout mirrors lua.LTable.
type layout struct {
	Metatable lua.LValue

	array   []lua.LValue
	dict    map[lua.LValue]lua.LValue
	strdict map[string]lua.LValue
	keys    []lua.LValue
	k2i     map[lua.LValue]int
}

func init() {
	lua.MaxArrayIndex = ArrayKeysMax
	theirs, mine := reflect.TypeOf(lua.LTable{}), reflect.TypeOf(layout{})
	for i := range mine.NumField() {
		m := mine.Field(i)
		if t, ok := theirs.FieldByName(m.Name); !ok || t.Offset != m.Offset || t.Type != m.Type {
			panic(fmt.Sprintf("tables: %v.%s is not where this version of tables expects it", theirs, m.Name))
		}
	}
}

func inside(t *lua.LTable) *layout { return (*layout)(unsafe.Pointer(t)) }

// Get is t[i] without metamethods, whichever part of the table i is in.
func Get(t *lua.LTable, i int) lua.LValue {
	if i > 0 && i < ArrayKeysMax {
		return t.RawGetInt(i)
	}
	return t.RawGetH(lua.LNumber(i))
}

// Item is t[i] if that is in the array of the table, else nil.
func Item(t *lua.LTable, i float64) lua.LValue {
	array := inside(t).array
	if at := int(i) - 1; uint(at) < uint(len(array)) && float64(at+1) == i && array[at] != lua.LNil {
		return array[at]
	}
	return nil
}

// defaultRoom is the capacity that gopher-lua gives the array of a table that is made empty.
const defaultRoom = 32

// grownRooms are the capacities that such an array gets as it grows by single values, in ascending order.
var grownRooms = func() (rooms []int) {
	a := make([]lua.LValue, 0, defaultRoom)
	for len(a) < ArrayKeysMax {
		a = append(a, nil)
		if len(rooms) == 0 || rooms[len(rooms)-1] != cap(a) {
			rooms = append(rooms, cap(a))
		}
	}
	return rooms
}()

// hasGrown tells whether an array of that capacity has grown from the default, which means that the table was made
// empty. A constructor's array has as many places as elements.
func hasGrown(room int) bool {
	for _, r := range grownRooms {
		if r >= room {
			return r == room
		}
	}
	return true
}

// List returns a table of values that keeps in mind that it has room for exactly these, as Lua's {...} has.
func List(L *lua.LState, values []lua.LValue) *lua.LTable {
	room := len(values)
	if hasGrown(room) {
		room++
	}
	t := L.CreateTable(room, 0)
	for i, v := range values {
		t.RawSetInt(i+1, v)
	}
	return t
}

// New returns a table for so many list items and keyed fields, for which Lua makes room at once.
func New(L *lua.LState, items, fields int) *lua.LTable {
	room := items
	if room > 0 && hasGrown(room) {
		room++
	}
	t := L.CreateTable(room, fields)
	if fields > 1 {
		MarkConstructed(t, items, fields)
	}
	return t
}

// IsFresh tells whether nothing has been put into a table that was made empty.
func IsFresh(t *lua.LTable) bool {
	in := inside(t)
	return len(in.array) == 0 && len(in.keys) == 0 && len(in.k2i) == 0
}

// Border is #t. If there are holes it is mostly the border that Lua 5.1 finds: there, too, it depends on how much room
// the table's array has, which is as many places as a constructor had elements, else a power of two.
func Border(t *lua.LTable) int {
	array := inside(t).array
	n := len(array)
	if n == 0 {
		return 0
	}
	size := n
	if hasGrown(cap(array)) {
		size = 1 << bits.Len(uint(n-1))
	}
	if array[n-1] != lua.LNil {
		if n == ArrayKeysMax-1 {
			return borderBeyond(t, n)
		}
		if size == n {
			return n
		}
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
	for Get(t, above) != lua.LNil {
		below = above
		above *= 2
	}
	for above-below > 1 {
		if m := (below + above) / 2; Get(t, m) != lua.LNil {
			below = m
		} else {
			above = m
		}
	}
	return below
}

// constructed is the key under which a table keeps in mind how its constructor was written. It is in none of the parts
// of the table that hold values.
var constructed lua.LValue = &lua.LUserData{}

// MarkConstructed keeps in mind that a table was made by a constructor with so many list items and keyed fields, for
// which Lua makes room at once.
func MarkConstructed(t *lua.LTable, items, fields int) {
	in := inside(t)
	if in.k2i == nil {
		in.keys, in.k2i = []lua.LValue{}, map[lua.LValue]int{}
	}
	in.k2i[constructed] = items<<16 | fields
}
