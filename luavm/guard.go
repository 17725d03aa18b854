package luavm

// pcall as the main loop carries it out: without a loop of its own for what is called, and for the errors of error,
// redis.call and of the index of what is no table without a panic. Its frame stays on the stack as that of any Go function
// does, so that coroutines and the places of errors find what they always find. That the loop is the one which catches is
// noted in the frame's Pc, which Go functions have no use for: 1 + how deep calls through Go nested.
//
// So it is with functions that resume a coroutine which has yielded: the loop goes on in the coroutine's state, and comes back
// where that yields or ends. In the frame of resume, which catches errors as pcall does, stands the same; in that of a function of
// wrap, which does not, the same below zero.
//
// All that is not simple, as functions with a list of further arguments, is left to the function itself.

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/boxes"
	"github.com/limitkv/limitkv/luavm/bytecode"
)

// loop runs the function of the newest frame until that has returned. It is gopher-lua's main loop.
func (vm *VM) loop(L *lua.LState, base unsafe.Pointer) {
	if ls := inside(L); ls.currentFrame == nil || ls.currentFrame.Fn.IsG {
		vm.theirLoop(L, base)
		return
	}
	var failed lua.LValue
	for done := false; !done; {
		failed, done = vm.guarded(L, base, failed)
	}
}

// guarded runs the loop until it is done or a pcall that it carries out has caught an error, with which it goes on. Coroutines
// that the loop has resumed have come back by then, or end.
func (vm *VM) guarded(L *lua.LState, base unsafe.Pointer, failed lua.LValue) (caught lua.LValue, done bool) {
	defer func() {
		if done {
			return
		}
		final := vm.killed || vm.inHost // nothing in the script catches this
		if L.G.CurrentThread == L && (final || inside(L).guard(base) == nil) {
			return
		}
		r := recover()
		e, ok := r.(*lua.ApiError)
		if !ok || final {
			for L.G.CurrentThread != L {
				vm.drop(L.G.CurrentThread)
			}
			panic(r)
		}
		caught = e.Object
		for L.G.CurrentThread != L {
			current := L.G.CurrentThread
			if guard := inside(current).guard(nil); guard != nil {
				vm.unwind(current, guard)
				return
			}
			caught = vm.fails(current, caught)
		}
		guard := inside(L).guard(base)
		if guard == nil {
			panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: caught})
		}
		vm.unwind(L, guard)
	}()
	vm.run(L, base, failed)
	return nil, true
}

// guard returns the frame of the newest pcall or resume that the loop which began at a frame carries out, nil if there is none.
func (ls *luaState) guard(base unsafe.Pointer) *luaFrame {
	frames := ls.frames()
	for i := frames.sp - 1; i >= 0; i-- {
		f := &frames.array[i]
		if f.Fn.IsG && f.Pc > 0 {
			return f
		}
		if unsafe.Pointer(f) == base {
			break
		}
	}
	return nil
}

// unwind makes the frame of a pcall or resume the newest one.
func (vm *VM) unwind(L *lua.LState, guard *luaFrame) {
	ls := inside(L)
	vm.closeUpvalues(L, guard.LocalBase)
	ls.frames().sp, ls.currentFrame = guard.Idx+1, guard
	vm.highest = max(vm.highest, ls.reg.top)
	ls.reg.top = guard.LocalBase
	vm.ccalls, guard.Pc = guard.Pc-1, 0
}

// endFailed ends the pcall or resume whose frame is the newest with an error.
func (vm *VM) endFailed(L *lua.LState, errv lua.LValue) {
	ls := inside(L)
	f := ls.currentFrame
	n := 2
	if f.Fn == vm.shortcuts.resume {
		L.Push(lua.LFalse)
		L.Push(errv)
	} else {
		n = vm.pushFailure(L, errv)
	}
	ls.frames().sp--
	ls.currentFrame = f.Parent
	ls.reg.returned(f.ReturnBase, f.NRet, n)
}

// raise raises an error where the loop can go on with the pcall that catches it. It returns false, having done nothing, if
// there is none.
func (vm *VM) raise(L *lua.LState, base unsafe.Pointer, value func() lua.LValue) bool {
	guard := inside(L).guard(base)
	if guard == nil {
		return false
	}
	errv := value()
	vm.fault = vm.placeOf(inside(L).currentFrame)
	vm.unwind(L, guard)
	vm.endFailed(L, errv)
	return true
}

// raiseError is a call of the function error. It returns false, having done nothing, if the function has to be called.
func (vm *VM) raiseError(L *lua.LState, loose *boxes.Loose, base unsafe.Pointer, at int, inst instruction) bool {
	ls := inside(L)
	if ls.guard(base) == nil || !vm.enterGo(ls, loose, vm.shortcuts.error, at, inst) {
		return false
	}
	return vm.raise(L, base, func() lua.LValue { return vm.errorValue(L) })
}

// raiseFailed raises the error of the command that redis.call has called.
func (vm *VM) raiseFailed(L *lua.LState, loose *boxes.Loose, base unsafe.Pointer, at int, inst instruction) bool {
	ls := inside(L)
	if vm.failed == nil || ls.guard(base) == nil || !vm.enterGo(ls, loose, vm.shortcuts.call, at, inst) {
		return false
	}
	return vm.raise(L, base, func() lua.LValue {
		reply := vm.failed
		vm.failed = nil
		return decodeError(L, reply)
	})
}

// raiseIndex raises the error of an index into what has none.
func (vm *VM) raiseIndex(L *lua.LState, base unsafe.Pointer, object int) bool {
	f := inside(L).currentFrame
	switch register(L, f, object).(type) {
	case *lua.LNilType, lua.LBool, lua.LNumber:
		return vm.raise(L, base, func() lua.LValue { return lua.LString(where(L, 0) + typeError(L, f, "index", object)) })
	}
	return false
}

// protectHere carries out a call of pcall: it begins that of a function in Lua, or does that of a Go function. It returns
// false, having done nothing, if the function has to be called.
func (vm *VM) protectHere(L *lua.LState, loose *boxes.Loose, base unsafe.Pointer, at int, inst instruction) bool {
	ls := inside(L)
	reg, frames := ls.reg, ls.frames()
	args, _, ok := reg.arguments(at, inst)
	if !ok || frames.sp == len(frames.array) || vm.ccalls >= ccallsMax-1 {
		return false
	}
	f, ok := args[0].(*lua.LFunction)
	if !ok || f.IsG && f.Proto == nil {
		return false
	}
	inner := bytecode.ABC(lua.OP_CALL, 0, max(inst.B()-1, 0), 0)
	caller, guard := ls.currentFrame, &frames.array[frames.sp]
	guard.Idx, guard.Fn, guard.Parent, guard.Pc = frames.sp, vm.shortcuts.pcall, caller, 1+vm.ccalls
	guard.Base, guard.LocalBase, guard.ReturnBase = at, at+1, at
	guard.NArgs, guard.NRet, guard.TailCall = len(args), inst.C()-1, 0
	frames.sp++
	ls.currentFrame = guard
	vm.ccalls++
	switch {
	case !f.IsG:
		vm.budget.Use(1)
		if vm.callLua(ls, f, at+1, inner) != nil {
			return true
		}
	case f == vm.shortcuts.error:
		if vm.raiseError(L, loose, base, at+1, inner) {
			return true
		}
	case vm.callDirectly(L, loose, f, at+1, inner):
		vm.endProtected(ls, guard, reg.top-(at+1))
		return true
	}
	guard.Pc = 0
	frames.sp--
	ls.currentFrame = caller
	vm.ccalls--
	return false
}

// endProtected ends a pcall that has succeeded, with n results behind the place of its own first one.
func (vm *VM) endProtected(ls *luaState, guard *luaFrame, n int) {
	reg, at, want := ls.reg, guard.ReturnBase, guard.NRet
	ls.frames().sp, ls.currentFrame = guard.Idx, guard.Parent
	vm.ccalls, guard.Pc = guard.Pc-1, 0
	top := at + 1 + n
	if want != 0 {
		reg.array[at] = lua.LTrue
	}
	if want < 0 {
		want = 1 + n
	}
	for i := top; i < at+want; i++ {
		reg.array[i] = lua.LNil
	}
	vm.highest = max(vm.highest, reg.top)
	reg.top = at + want
}
