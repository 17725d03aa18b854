// Package tables, internal to the server, implements the tables of Lua 5.1 within gopher-lua's LTable.
//
// gopher-lua stores a table as an array and two maps, with a list of the keys in the order of their insertion. The difference
// to Lua 5.1 is visible in many places: # of a table with holes, the order of next and of the output of cjson.encode, and
// the cost. So this package uses the memory of an LTable for a table in the form of Lua 5.1: an array, and a hash part with a
// power of two of nodes (hash.go). Their sizes change at the same moments as in Lua.
//
// gopher-lua's own functions must not touch such a table, so luavm executes the instructions on tables itself. There are two
// exceptions. Metamethods are stored in gopher-lua's map, too, where it looks for them. And a table that
// gopher-lua has filled, such as the table arg, is converted when it is first used here.
package tables

import (
	"fmt"
	"reflect"
	"strings"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// layout is the memory of a lua.LTable. Absent values are Go's nil.
type layout struct {
	Metatable lua.LValue

	array  []lua.LValue          // all of it: t[1] to t[len(array)]
	shown  *lua.LTable           // see Show; gopher-lua's dict
	events map[string]lua.LValue // metamethods, for gopher-lua: its strdict
	nodes  *node                 // nodes, size and free are in the place of gopher-lua's slice of keys
	size   int                   // number of nodes
	free   int                   // no node from this number on is free
	filled map[lua.LValue]int    // not nil if gopher-lua has filled the table: its k2i
}

// theirs is the layout of lua.LTable in gopher-lua.
type theirs struct {
	Metatable lua.LValue

	array   []lua.LValue
	dict    map[lua.LValue]lua.LValue
	strdict map[string]lua.LValue
	keys    []lua.LValue
	k2i     map[lua.LValue]int
}

func init() {
	table, mirror := reflect.TypeOf(lua.LTable{}), reflect.TypeOf(theirs{})
	for i := range mirror.NumField() {
		m := mirror.Field(i)
		if t, ok := table.FieldByName(m.Name); !ok || t.Offset != m.Offset || t.Type != m.Type {
			panic(fmt.Sprintf("tables: %v.%s is not where this version of tables expects it", table, m.Name))
		}
	}
	var l layout
	var t theirs
	if unsafe.Sizeof(l) != unsafe.Sizeof(t) || unsafe.Offsetof(l.shown) != unsafe.Offsetof(t.dict) ||
		unsafe.Offsetof(l.nodes) != unsafe.Offsetof(t.keys) || unsafe.Offsetof(l.filled) != unsafe.Offsetof(t.k2i) {
		panic("tables: a layout is not a table's")
	}
}

func inside(t *lua.LTable) *layout {
	in := (*layout)(unsafe.Pointer(t))
	if in.filled != nil {
		in.convert()
	}
	return in
}

// New makes a table with room for the given numbers of array items and of fields, as a constructor does.
func New(items, fields int) *lua.LTable {
	t := &lua.LTable{Metatable: lua.LNil}
	in := (*layout)(unsafe.Pointer(t))
	if items > 0 {
		in.array = make([]lua.LValue, items)
	}
	if fields > 0 {
		in.makeNodes(fields)
	}
	return t
}

// Show makes an empty table a view of t: Behind then returns t for it.
func Show(view, t *lua.LTable) { inside(view).shown = t }

// Behind returns the table behind a view, or t itself if t is not a view.
func Behind(t *lua.LTable) (shown *lua.LTable, isView bool) {
	if shown := inside(t).shown; shown != nil {
		return shown, true
	}
	return t, false
}

// convert converts a table that gopher-lua has filled to our layout.
func (in *layout) convert() {
	old := *(*theirs)(unsafe.Pointer(in))
	in.nodes, in.size, in.free, in.shown, in.events, in.filled = nil, 0, 0, nil, nil, nil
	for i, v := range in.array {
		if v == lua.LNil {
			in.array[i] = nil
		}
	}
	in.makeNodes(len(old.strdict) + len(old.dict))
	t := (*lua.LTable)(unsafe.Pointer(in))
	for _, k := range old.keys {
		if s, ok := k.(lua.LString); ok {
			if v, ok := old.strdict[string(s)]; ok {
				Set(t, k, v)
			}
		} else if v, ok := old.dict[k]; ok {
			Set(t, k, v)
		}
	}
}

// IsNil tells whether a value is Lua's nil. It uses a type assertion, since Go compares interfaces by a call.
func IsNil(v lua.LValue) bool {
	_, is := v.(*lua.LNilType)
	return is
}

// orNil returns the value at v, with Lua's nil for an absent one.
func orNil(v *lua.LValue) lua.LValue {
	if v == nil || *v == nil {
		return lua.LNil
	}
	return *v
}

// Get is t[key] without metamethods.
func Get(t *lua.LTable, key lua.LValue) lua.LValue { return orNil(inside(t).find(key)) }

// GetInt is Get for an integer key.
func GetInt(t *lua.LTable, i int) lua.LValue {
	in := inside(t)
	if uint(i-1) < uint(len(in.array)) {
		return orNil(&in.array[i-1])
	}
	return orNil(in.findNumber(float64(i)))
}

// GetString is Get for a string key.
func GetString(t *lua.LTable, key string) lua.LValue {
	in := inside(t)
	if in.size == 0 {
		return lua.LNil
	}
	return orNil(in.findString(key, hashString(key)))
}

// GetHashed is GetString for a string whose hash is known.
func GetHashed(t *lua.LTable, key string, hash uint32) lua.LValue {
	in := inside(t)
	if in.size == 0 {
		return lua.LNil
	}
	return orNil(in.findString(key, hash))
}

// Items returns the array of a table, with nil for absent values.
func Items(t *lua.LTable) []lua.LValue { return inside(t).array }

// Item is t[i] if that is in the array of the table, else nil.
func Item(t *lua.LTable, i float64) lua.LValue {
	array := inside(t).array
	if at := int(i) - 1; uint(at) < uint(len(array)) && float64(at+1) == i {
		return array[at]
	}
	return nil
}

// SetItem is t[i] = v if t[i] is in the array of the table, and no metamethod can apply, since t[i] has a value or the table
// has no metatable. Otherwise it returns false and does nothing.
func SetItem(t *lua.LTable, i float64, v lua.LValue) bool {
	in := inside(t)
	at := int(i) - 1
	if uint(at) >= uint(len(in.array)) || float64(at+1) != i || in.array[at] == nil && !IsNil(in.Metatable) {
		return false
	}
	if IsNil(v) {
		v = nil
	}
	in.array[at] = v
	return true
}

// Set is t[key] = v without metamethods. The key must be neither nil nor NaN.
func Set(t *lua.LTable, key, v lua.LValue) {
	in := inside(t)
	slot := in.slot(key)
	if v == lua.LNil {
		v = nil
	}
	*slot = v
	if s, ok := key.(lua.LString); ok {
		in.tellLibrary(string(s), v)
	}
}

// SetInt is Set for an integer key.
func SetInt(t *lua.LTable, i int, v lua.LValue) {
	in := inside(t)
	if v == lua.LNil {
		v = nil
	}
	if uint(i-1) < uint(len(in.array)) {
		in.array[i-1] = v
		return
	}
	slot := in.findNumber(float64(i))
	if slot == nil {
		slot = in.newKey(number(i), hashNumber(float64(i)))
	}
	*slot = v
}

// SetString is Set for a string key.
func SetString(t *lua.LTable, key string, v lua.LValue) { Set(t, lua.LString(key), v) }

// Touch makes room for a key as an assignment does before it looks for metamethods, and tells whether the key has a value.
func Touch(t *lua.LTable, key lua.LValue) bool { return *inside(t).slot(key) != nil }

// tellLibrary stores a field that may be a metamethod in gopher-lua's map, too.
func (in *layout) tellLibrary(key string, v lua.LValue) {
	if !strings.HasPrefix(key, "__") {
		return
	}
	if v == nil {
		delete(in.events, key)
		return
	}
	if in.events == nil {
		in.events = map[string]lua.LValue{}
	}
	in.events[key] = v
}

// Fill stores the values of a constructor from first on.
func Fill(t *lua.LTable, first int, values []lua.LValue) {
	in := inside(t)
	if last := first + len(values) - 1; last > len(in.array) {
		in.resize(last, in.size)
	}
	for i, v := range values {
		if v == lua.LNil {
			v = nil
		}
		in.array[first-1+i] = v
	}
}

// integersMax is the largest C int.
const integersMax = 1<<31 - 1

// Border is #t: an n such that t[n+1] has no value, and t[n] has one or n is 0. If there are several such n, the size of the
// array decides.
func Border(t *lua.LTable) int {
	in := inside(t)
	n := len(in.array)
	if n > 0 && in.array[n-1] == nil {
		return borderWithin(0, n, func(i int) bool { return in.array[i-1] != nil })
	}
	if in.size == 0 {
		return n
	}
	has := func(i int) bool { return GetInt(t, i) != lua.LNil }
	below, above := n, n+1
	for has(above) {
		below = above
		if above *= 2; above > integersMax { // a table built to defeat the doubling: now search one by one
			i := 1
			for has(i) {
				i++
			}
			return i - 1
		}
	}
	return borderWithin(below, above, has)
}

// borderWithin is a binary search: below has a value or is 0, above has none.
func borderWithin(below, above int, has func(i int) bool) int {
	for above-below > 1 {
		if m := (below + above) / 2; has(m) {
			below = m
		} else {
			above = m
		}
	}
	return below
}
