package tables

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// Names find what other strings of the same text have stored, and the other way round; a name that is not there, or has no
// value any more, is left to others.
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
