package luavm

// The globals.

import lua "github.com/yuin/gopher-lua"

func (vm *VM) openLibs() {
	L := vm.L
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenTable, lua.OpenString, lua.OpenMath, lua.OpenCoroutine} {
		L.Push(L.NewFunction(open))
		L.Call(0, 0)
	}
	for _, name := range []string{"dofile", "loadfile", "print", "_printregs", "module", "require", "newproxy", "setfenv", "getfenv", "_GOPHER_LUA_VERSION", "package"} {
		vm.env.RawSetString(name, lua.LNil)
	}
	vm.env.RawSetString("redis", vm.openRedis())
	vm.env.RawSetString("pcall", L.NewFunction(vm.pcall))
}

// pcall is Redis's: an error table comes out as its text.
func (vm *VM) pcall(L *lua.LState) int {
	if L.GetTop() == 0 {
		vm.throwf(L, "bad argument #1 to 'pcall' (value expected)")
	}
	ok, errv := vm.protect(L, L.GetTop()-1, lua.MultRet)
	if ok {
		L.Insert(lua.LTrue, 1)
		return L.GetTop()
	}
	if t, is := errv.(*lua.LTable); is {
		if text, is := t.RawGetString("err").(lua.LString); is {
			errv = text
		}
	}
	L.Push(lua.LFalse)
	L.Push(errv)
	return 2
}

// tostring is the conversion of any value to text, metamethods included.
func tostring(L *lua.LState, v lua.LValue) string {
	if n, ok := v.(lua.LNumber); ok {
		return formatNumber(float64(n))
	}
	return v.String()
}
