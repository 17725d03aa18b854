package arg_test

import (
	"testing"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/syntax"
)

// newState is a state with a table lib of functions that each ask for one kind of argument.
func newState() *lua.LState {
	L := lua.NewState()
	lib := L.NewTable()
	for name, fn := range map[string]lua.LGFunction{
		"str":   func(L *lua.LState) int { L.Push(lua.LString(arg.String(L, 1))); return 1 },
		"num":   func(L *lua.LState) int { L.Push(lua.LString(arg.FormatNumber(arg.Number(L, 1)))); return 1 },
		"int":   func(L *lua.LState) int { L.Push(lua.LNumber(arg.Integer(L, 1))); return 1 },
		"cint":  func(L *lua.LState) int { L.Push(lua.LNumber(arg.Int(L, 1))); return 1 },
		"opt":   func(L *lua.LState) int { L.Push(lua.LNumber(arg.OptInteger(L, 2, 7))); return 1 },
		"tab":   func(L *lua.LState) int { L.Push(arg.Table(L, 1)); return 1 },
		"fun":   func(L *lua.LState) int { L.Push(arg.Function(L, 1)); return 1 },
		"any":   func(L *lua.LState) int { L.Push(arg.Any(L, 1)); return 1 },
		"which": func(L *lua.LState) int { L.Push(lua.LNumber(arg.Option(L, 1, "on", []string{"off", "on"}))); return 1 },
		"self":  func(L *lua.LState) int { L.Push(lua.LString(arg.String(L, 2))); return 1 },
		"oops":  func(L *lua.LState) int { arg.Raise(L, "oops %d", 1); return 0 },
	} {
		lib.RawSetString(name, L.NewFunction(fn))
	}
	L.SetGlobal("lib", lib)
	return L
}

func run(t *testing.T, script string) string {
	t.Helper()
	L := newState()
	defer L.Close()
	f, _, err := syntax.Compile(script, &syntax.Options{Chunk: "user_script", Name: "user_script"})
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	L.Push(L.NewFunctionFromProto(&f.FunctionProto))
	if err := L.PCall(0, 1, nil); err != nil {
		return "error " + err.(*lua.ApiError).Object.String()
	}
	return L.Get(-1).String()
}

// The texts are those that a Lua 5.1 gives for functions asking the same.
func TestChecks(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{`return lib.str('a')`, "a"},
		{`return lib.str(1e15)`, "1e+15"},
		{`return lib.str(0.1+0.2)`, "0.3"},
		{`return lib.num('0x10')`, "16"},
		{`return lib.num(' 1e2 ')`, "100"},
		{`return lib.num(1.5)`, "1.5"},
		{`return lib.int('-1.9')`, "-1"},
		{`return lib.cint(4294967297)`, "1"},
		{`return lib.opt(1)`, "7"},
		{`return lib.opt(1, nil)`, "7"},
		{`return lib.opt(1, '3')`, "3"},
		{`return lib.any(nil)`, "nil"},
		{`return lib.which()`, "1"},
		{`return lib.which('off')`, "0"},

		{`return lib.str()`, "error user_script:1: bad argument #1 to 'str' (string expected, got no value)"},
		{`return lib.str(nil)`, "error user_script:1: bad argument #1 to 'str' (string expected, got nil)"},
		{"\n\nlocal x = lib.str({})", "error user_script:3: bad argument #1 to 'str' (string expected, got table)"},
		{`return lib.str(true)`, "error user_script:1: bad argument #1 to 'str' (string expected, got boolean)"},
		{`return lib.num('1_0')`, "error user_script:1: bad argument #1 to 'num' (number expected, got string)"},
		{`return lib.num(lib.num)`, "error user_script:1: bad argument #1 to 'num' (number expected, got function)"},
		{`return lib.opt(1, {})`, "error user_script:1: bad argument #2 to 'opt' (number expected, got table)"},
		{`return lib.tab('x')`, "error user_script:1: bad argument #1 to 'tab' (table expected, got string)"},
		{`return lib.fun('x')`, "error user_script:1: bad argument #1 to 'fun' (function expected, got string)"},
		{`return lib.any()`, "error user_script:1: bad argument #1 to 'any' (value expected)"},
		{`return lib.which('up')`, "error user_script:1: bad argument #1 to 'which' (invalid option 'up')"},
		{`return lib.oops()`, "error user_script:1: oops 1"},

		// The name is the one the caller used.
		{`local f = lib.str f({})`, "error user_script:1: bad argument #1 to 'f' (string expected, got table)"},
		{`local f = lib.str local g = function() f() end g()`, "error user_script:1: bad argument #1 to 'f' (string expected, got no value)"},
		{`lib['str'](nil)`, "error user_script:1: bad argument #1 to 'str' (string expected, got nil)"},
		{`local k = 'str' lib[k](nil)`, "error user_script:1: bad argument #1 to '?' (string expected, got nil)"},
		{`(lib.str or 1)(nil)`, "error user_script:1: bad argument #1 to '?' (string expected, got nil)"},
		{`local f = lib.str for a in f do end`, "error user_script:1: bad argument #1 to '(for generator)' (string expected, got nil)"},
		{`local t = setmetatable({}, {__unm = lib.num}) return -t`, "error user_script:1: bad argument #1 to '?' (number expected, got table)"},
		// If the caller is not a Lua function, there is neither a name nor a position.
		{`local ok, e = pcall(lib.str) return e`, "bad argument #1 to '?' (string expected, got no value)"},
		{`local ok, e = pcall(lib.oops) return e`, "oops 1"},
		// A method's object is not counted.
		{`lib:self({})`, "error user_script:1: bad argument #1 to 'self' (string expected, got table)"},
		{`lib:self(lib.str('x') and nil)`, "error user_script:1: bad argument #1 to 'self' (string expected, got nil)"},
		{`lib:num(1)`, "error user_script:1: calling 'num' on bad self (number expected, got table)"},
		{`lib.self(lib, {})`, "error user_script:1: bad argument #2 to 'self' (string expected, got table)"},
		{`return lib:self({}), 1`, "error user_script:1: bad argument #1 to 'self' (string expected, got table)"},
		{`return lib:self(nil)`, "error user_script:1: bad argument #1 to 'self' (string expected, got nil)"},
	} {
		if got := run(t, c.script); got != c.want {
			t.Errorf("%s\n  got  %s\n  want %s", c.script, got, c.want)
		}
	}
}
