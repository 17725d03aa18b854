package tables

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// Names find fields that were stored with other strings of the same text, and the other way round. A name that is absent, or
// no longer has a value, is not found.
func TestFields(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7, 100, 5000} {
		table := New(0, 0)
		names := make([]lua.LValue, n)
		for i := range names {
			text := strings.Repeat("x", i%7) + strings.Repeat("_", i/7)
			names[i] = Field(text)
			if GetField(table, &names[i]) != nil || SetField(table, &names[i], lua.LTrue) {
				t.Fatalf("%q is there already", text)
			}
			if i%2 == 0 {
				Set(table, names[i], lua.LNumber(i))
			} else {
				SetString(table, strings.Clone(text), lua.LNumber(i))
			}
			SetInt(table, i, lua.LFalse) // its hash may be that of a name
		}
		for i := range names {
			if v := GetField(table, &names[i]); v != lua.LNumber(i) {
				t.Errorf("%v of %d is %v", names[i], n, v)
			}
			other := Field(string(names[i].(lua.LString)))
			isEvent := strings.HasPrefix(string(names[i].(lua.LString)), "__")
			if SetField(table, &other, lua.LNumber(-i)) == isEvent || !isEvent && Get(table, names[i]) != lua.LNumber(-i) {
				t.Errorf("%v of %d is not set", names[i], n)
			}
			Set(table, names[i], lua.LNil)
			if v := GetField(table, &names[i]); v != nil || SetField(table, &names[i], lua.LTrue) {
				t.Errorf("%v of %d is %v, having no value any more", names[i], n, v)
			}
		}
	}
	if Field("__index") != Index {
		t.Error("the name of a metamethod is another one")
	}
}

// Near returns only the place of the name itself: not that of another string, whatever its text, not of a key that has moved
// for another one, and none in a table that has no room yet.
func TestNear(t *testing.T) {
	found := 0
	for _, n := range []int{0, 1, 2, 7, 100, 5000} {
		table := New(0, 0)
		names := make([]lua.LValue, n)
		for i := range names {
			names[i] = Field(strings.Repeat("x", i%7) + strings.Repeat("y", i/7))
			if Near(table, &names[i]) != nil {
				t.Fatalf("%v is there already", names[i])
			}
			Set(table, names[i], lua.LNumber(i))
		}
		for i := range names {
			other := Field(strings.Clone(string(names[i].(lua.LString))))
			if Near(table, &other) != nil {
				t.Errorf("%v is found by another string", names[i])
			}
			if near := Near(table, &names[i]); near != nil {
				if found++; *near != lua.LNumber(i) {
					t.Errorf("%v of %d is %v", names[i], n, *near)
				}
				*near = lua.LTrue
				if GetField(table, &names[i]) != lua.LTrue {
					t.Errorf("%v of %d is not where it was said to be", names[i], n)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("%d names were near", found)
	}
	theirs, name := &lua.LTable{Metatable: lua.LNil}, Field("name")
	theirs.RawSetString("name", lua.LTrue)
	if Near(theirs, &name) != nil || GetField(theirs, &name) != lua.LTrue {
		t.Error("a table that the library has filled is not left to be converted")
	}
	if events := Field("__mode"); !IsEvent(&events) || IsEvent(&name) {
		t.Error("a name of a metamethod is not told from others")
	}
}

// Named finds a field by way of tables; the first table that has it counts. If a function is needed or there are too many
// tables, it returns Go's nil.
func TestNamed(t *testing.T) {
	name, other := Field("name"), Field("other")
	lead := func(to lua.LValue) *lua.LTable {
		table, meta := New(0, 0), New(0, 0)
		Set(meta, Index, to)
		table.Metatable = meta
		return table
	}
	last := New(0, 0)
	table := lead(lead(last))
	expect := func(want lua.LValue, most int) {
		t.Helper()
		for _, n := range []lua.LValue{name, Field("name")} {
			if v := Named(table, &n, most); v != want {
				t.Errorf("%v, not %v", v, want)
			}
		}
	}
	expect(lua.LNil, 3)
	expect(nil, 2)
	SetString(last, strings.Clone("name"), lua.LNumber(1))
	expect(lua.LNumber(1), 3)
	Set(table, other, lua.LTrue)
	expect(lua.LNumber(1), 3)
	Set(table, name, lua.LNumber(2))
	expect(lua.LNumber(2), 1)
	Set(table, name, lua.LNil)
	expect(lua.LNumber(1), 3)
	Set(table.Metatable.(*lua.LTable), Index, lua.LNil)
	expect(lua.LNil, 3)
	Set(table.Metatable.(*lua.LTable), Index, &lua.LFunction{})
	expect(nil, 3)
}
