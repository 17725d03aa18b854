// Package arg, internal to the server, reads the arguments of Lua library functions and raises
// the errors about them.
//
// The coercions and the texts are those of Lua 5.1's auxiliary library: a number is accepted where a string is expected
// (as %.14g), and a string that spells a number where a number is expected. An error names the argument, the function
// as the caller called it, and the caller's line. gopher-lua's own functions differ in all of this, hence this package.
// The sandbox and every library share it, so each text exists once.
package arg

import (
	"fmt"
	"reflect"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/bytecode"
)

// String returns argument n as a string; a number is written as %.14g. Anything else is an error.
func String(L *lua.LState, n int) string {
	switch v := L.Get(n).(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return FormatNumber(float64(v))
	}
	TypeError(L, n, "string")
	return ""
}

// OptString is String, or def if the argument is nil or missing.
func OptString(L *lua.LState, n int, def string) string {
	if IsNoneOrNil(L, n) {
		return def
	}
	return String(L, n)
}

// Number returns argument n as a number; a string is accepted if ParseNumber accepts it. Anything else is an error.
func Number(L *lua.LState, n int) float64 {
	if v, ok := ToNumber(L.Get(n)); ok {
		return v
	}
	TypeError(L, n, "number")
	return 0
}

// Integer returns argument n as Lua's 64-bit integer: the number truncated towards zero, see Truncate.
func Integer(L *lua.LState, n int) int64 { return Truncate(Number(L, n)) }

// OptInteger is Integer, or def if the argument is nil or missing.
func OptInteger(L *lua.LState, n int, def int64) int64 {
	if IsNoneOrNil(L, n) {
		return def
	}
	return Integer(L, n)
}

// Int returns argument n as a C int: the low 32 bits of Integer.
func Int(L *lua.LState, n int) int { return int(int32(Integer(L, n))) }

// OptInt is Int, or def if the argument is nil or missing.
func OptInt(L *lua.LState, n int, def int) int {
	if IsNoneOrNil(L, n) {
		return def
	}
	return Int(L, n)
}

// Table returns argument n, which must be a table.
func Table(L *lua.LState, n int) *lua.LTable {
	t, ok := L.Get(n).(*lua.LTable)
	if !ok {
		TypeError(L, n, "table")
	}
	return t
}

// Function returns argument n, which must be a function.
func Function(L *lua.LState, n int) *lua.LFunction {
	f, ok := L.Get(n).(*lua.LFunction)
	if !ok {
		TypeError(L, n, "function")
	}
	return f
}

// Any returns argument n, which may be any value, also nil, but must not be missing.
func Any(L *lua.LState, n int) lua.LValue {
	if n > L.GetTop() {
		Error(L, n, "value expected")
	}
	return L.Get(n)
}

// Option returns the index of the option that argument n names. If def is not empty, it replaces a nil or missing argument.
func Option(L *lua.LState, n int, def string, options []string) int {
	var name string
	if def != "" {
		name = OptString(L, n, def)
	} else {
		name = String(L, n)
	}
	name = CString(name)
	for i, o := range options {
		if o == name {
			return i
		}
	}
	Error(L, n, "invalid option '"+name+"'")
	return 0
}

// IsNoneOrNil reports whether argument n is nil or missing.
func IsNoneOrNil(L *lua.LState, n int) bool { return L.Get(n) == lua.LNil }

// ToNumber is lua_tonumber: it accepts numbers, and strings that spell one.
func ToNumber(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return ParseNumber(string(v))
	}
	return 0, false
}

// ToString is lua_tolstring: it accepts strings, and numbers as %.14g.
func ToString(v lua.LValue) (string, bool) {
	switch v := v.(type) {
	case lua.LString:
		return string(v), true
	case lua.LNumber:
		return FormatNumber(float64(v)), true
	}
	return "", false
}

// TypeName is the type of argument n as errors name it: "no value" if it is missing.
func TypeName(L *lua.LState, n int) string {
	if n > L.GetTop() {
		return "no value"
	}
	return L.Get(n).Type().String()
}

// CString cuts s at its first NUL byte, as C's %s does.
func CString(s string) string {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return s[:i]
	}
	return s
}

// TypeError raises "bad argument #n to 'f' (want expected, got type)". It does not return.
func TypeError(L *lua.LState, n int, want string) {
	Error(L, n, want+" expected, got "+TypeName(L, n))
}

// Error raises "bad argument #n to 'f' (message)" with the caller's position. For a method the object does not count
// as an argument. It does not return.
func Error(L *lua.LState, n int, message string) {
	name, method := calledAs(L)
	if method {
		n--
		if n == 0 {
			Raise(L, "calling '%s' on bad self (%s)", name, message)
		}
	}
	Raise(L, "bad argument #%d to '%s' (%s)", n, name, message)
}

// Raise raises an error whose text begins with the caller's "chunk:line: ", if the caller is Lua code. It does not
// return.
func Raise(L *lua.LState, format string, args ...any) {
	L.Error(lua.LString(Where(L, 1)+fmt.Sprintf(format, args...)), 0)
}

// Where is luaL_where: "chunk:line: " of the function level levels up, where 0 is the running function. It is empty if that
// is not Lua code. (gopher-lua's own function continues to the next Lua function instead.)
func Where(L *lua.LState, level int) string {
	dbg, ok := L.GetStack(level)
	if !ok {
		return ""
	}
	if _, err := L.GetInfo("Sl", dbg, lua.LNil); err != nil || dbg.CurrentLine <= 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", dbg.Source, dbg.CurrentLine)
}

// calledAs returns the name by which the running function was called, "?" if there is none, and whether it was
// called as a method. gopher-lua does not export the caller's program counter, so it is read by reflection; this happens
// only when an error is raised.
func calledAs(L *lua.LState) (name string, method bool) {
	up, ok := L.GetStack(1)
	if !ok {
		return "?", false
	}
	v, err := L.GetInfo("f", up, lua.LNil)
	caller, isFunction := v.(*lua.LFunction)
	if err != nil || !isFunction || caller.IsG {
		return "?", false
	}
	pc := int(reflect.ValueOf(up).Elem().FieldByName("frame").Elem().FieldByName("Pc").Int())
	kind, name := bytecode.Of(caller.Proto).Called(pc)
	if kind == "" {
		return "?", false
	}
	return name, kind == "method"
}
