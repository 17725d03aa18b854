package luavm

// How the main loop executes pcall: without another main loop for the called function, and without a panic for common
// errors: those of error and redis.call, and an index into a value that is not a table. The frame of pcall stays on the stack
// like that of any Go function, so that coroutines and error positions find the usual frames. The frame's Pc, which Go
// functions do not use, says that the main loop catches the errors: it is 1 + the depth of nested calls through Go.
//
// The main loop also executes functions that resume a coroutine that has yielded: it continues in the coroutine's state, and
// returns when the coroutine yields or ends. resume catches errors, so its frame has the same Pc as that of pcall. A function
// of wrap does not, so the Pc of its frame is the negative of that.
//
// The Go functions themselves execute everything that is not simple, such as functions with varargs.

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/boxes"
	"github.com/limitkv/limitkv/luavm/bytecode"
)

// loop runs the function of the newest frame until it has returned. It replaces gopher-lua's main loop.
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

// guarded runs the loop until it is done, or until a pcall that the loop executes has caught an error; the next call continues
// with that error. By then the coroutines that the loop resumed have returned or are ended here.
func (vm *VM) guarded(L *lua.LState, base unsafe.Pointer, failed lua.LValue) (caught lua.LValue, done bool) {
	defer func() {
		if done {
			return
		}
		final := vm.killed || vm.inHost // the script cannot catch this
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

// guard returns the frame of the newest pcall or resume that the loop begun at base executes, nil if there is none.
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

// endFailed ends the pcall or resume of the newest frame with an error.
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

// raise raises an error without a panic if the loop executes a pcall that catches it. It returns false, and does nothing, if
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

// raiseError executes a call of the function error. It returns false, and does nothing, if the function must be called.
func (vm *VM) raiseError(L *lua.LState, loose *boxes.Loose, base unsafe.Pointer, at int, inst instruction) bool {
	ls := inside(L)
	if ls.guard(base) == nil || !vm.enterGo(ls, loose, vm.shortcuts.error, at, inst) {
		return false
	}
	return vm.raise(L, base, func() lua.LValue { return vm.errorValue(L) })
}

// raiseFailed raises the error of the command that redis.call has run.
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

// raiseIndex raises the error of an index into nil, a boolean or a number.
func (vm *VM) raiseIndex(L *lua.LState, base unsafe.Pointer, object int) bool {
	f := inside(L).currentFrame
	switch register(L, f, object).(type) {
	case *lua.LNilType, lua.LBool, lua.LNumber:
		return vm.raise(L, base, func() lua.LValue { return lua.LString(where(L, 0) + typeError(L, f, "index", object)) })
	}
	return false
}

// protectHere executes a call of pcall: it begins the call of a Lua function, or completes the call of a Go function. It
// returns false, and does nothing, if the function pcall must be called.
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

// endProtected ends a pcall that has succeeded. The n results of the called function are already behind the place of pcall's
// first result.
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
