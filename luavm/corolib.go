package luavm

// The library coroutine, on gopher-lua's threads.

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
)

// A coroutine's stacks are small at first: most are never deep.
const (
	coroutineDepthMax  = 1024
	coroutineRegisters = 256
	coroutinesMax      = 10_000 // that one run may create
)

func (vm *VM) coroutineFunctions() functions {
	return functions{
		"create": vm.coroutineCreate, "resume": vm.coroutineResume, "running": vm.coroutineRunning,
		"status": vm.coroutineStatus, "wrap": vm.coroutineWrap, "yield": vm.coroutineYield,
	}
}

func (vm *VM) newCoroutine(L *lua.LState) *lua.LState {
	fn, ok := L.Get(1).(*lua.LFunction)
	if !ok || fn.IsG {
		arg.Error(L, 1, "Lua function expected")
	}
	vm.coroutines++
	if vm.coroutines > coroutinesMax {
		vm.throw(L, lua.LString("not enough memory"))
	}
	options := L.Options
	L.Options.CallStackSize, L.Options.RegistrySize, L.Options.MinimizeStackMemory = coroutineDepthMax, coroutineRegisters, true
	thread, _ := L.NewThread()
	L.Options = options
	thread.Options = options
	vm.bodies[thread] = fn
	return thread
}

func (vm *VM) coroutineCreate(L *lua.LState) int {
	L.Push(vm.newCoroutine(L))
	return 1
}

func (vm *VM) threadArg(L *lua.LState) *lua.LState {
	thread, ok := L.Get(1).(*lua.LState)
	if !ok {
		arg.Error(L, 1, "coroutine expected")
	}
	return thread
}

// resume runs a coroutine with the values on the stack above index from. It leaves the results on the stack.
func (vm *VM) resume(L, thread *lua.LState, from int) (n int, errv lua.LValue) {
	if status := vm.status(L, thread); status != "suspended" {
		return 0, lua.LString("cannot resume " + map[string]string{"dead": "dead", "normal": "non-suspended", "running": "non-suspended"}[status] + " coroutine")
	}
	var args []lua.LValue
	for i := from; i <= L.GetTop(); i++ {
		args = append(args, L.Get(i))
	}
	fn := vm.bodies[thread]
	delete(vm.bodies, thread)
	inside(thread).hasErrorFunc = true
	state, err, values := L.Resume(thread, fn, args...)
	L.G.CurrentThread = L
	if state == lua.ResumeError {
		thread.Dead = true
		return 0, err.(*lua.ApiError).Object
	}
	for _, v := range values {
		L.Push(v)
	}
	return len(values), nil
}

func (vm *VM) coroutineResume(L *lua.LState) int {
	n, errv := vm.resume(L, vm.threadArg(L), 2)
	if errv != nil {
		L.Push(lua.LFalse)
		L.Push(errv)
		return 2
	}
	L.Insert(lua.LTrue, L.GetTop()-n+1)
	return n + 1
}

func (vm *VM) coroutineWrap(L *lua.LState) int {
	thread := vm.newCoroutine(L)
	L.Push(L.NewFunction(func(L *lua.LState) int {
		n, errv := vm.resume(L, thread, 1)
		if errv != nil {
			if s, ok := errv.(lua.LString); ok {
				errv = lua.LString(where(L, 1)) + s
			}
			vm.throw(L, errv)
		}
		return n
	}))
	return 1
}

func (vm *VM) coroutineYield(L *lua.LState) int {
	if L == vm.L {
		vm.throw(L, lua.LString("attempt to yield across metamethod/C-call boundary"))
	}
	return -1
}

func (vm *VM) status(L, thread *lua.LState) string {
	switch {
	case thread == L:
		return "running"
	case thread.Dead:
		return "dead"
	case thread.Parent != nil:
		return "normal"
	}
	return "suspended"
}

func (vm *VM) coroutineStatus(L *lua.LState) int {
	L.Push(lua.LString(vm.status(L, vm.threadArg(L))))
	return 1
}

func (vm *VM) coroutineRunning(L *lua.LState) int {
	if L == vm.L {
		L.Push(lua.LNil)
	} else {
		L.Push(L)
	}
	return 1
}
