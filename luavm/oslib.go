package luavm

// The library os, which in Redis has only the clock.

import lua "github.com/yuin/gopher-lua"

func (vm *VM) osClock(L *lua.LState) int {
	seconds := 0.0
	if vm.config.CPUSeconds != nil {
		seconds = vm.config.CPUSeconds()
	}
	L.Push(lua.LNumber(seconds))
	return 1
}
