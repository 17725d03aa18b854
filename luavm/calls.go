package luavm

// Calls that the main loop executes without gopher-lua: of redis.call, tonumber and the iterators, of other Go functions, and
// of Lua functions.

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/boxes"
	"github.com/limitkv/limitkv/luavm/tables"
)

// results stores the result of a call where the function was, and nil for further wanted results. If the next instruction
// takes all results, it drops the values above.
func (r *luaRegistry) results(at, want int, v lua.LValue) {
	top := at
	if want != 0 {
		r.array[at] = v
		top++
	}
	for ; want > 1; want-- {
		r.array[top] = lua.LNil
		top++
	}
	if want < 0 && top < r.top {
		clear(r.array[top:r.top])
		r.top = top
	} else if top > r.top {
		r.top = top
	}
}

// callShortly executes redis.call. It returns false if the function must be called.
func (vm *VM) callShortly(reg *luaRegistry, at int, inst instruction) bool {
	args, want, ok := reg.arguments(at, inst)
	if !ok {
		return false
	}
	v := vm.callQuietly(args, want != 0)
	if v == nil {
		return false
	}
	reg.results(at, want, v)
	return true
}

// arguments returns the arguments of a call. ok is false if there is none, or no room for the results.
func (r *luaRegistry) arguments(at int, inst instruction) (args []lua.LValue, want int, ok bool) {
	end := at + inst.B()
	if inst.B() == 0 {
		end = r.top
	}
	want = inst.C() - 1
	if max(end, at+want) > len(r.array) || end <= at+1 {
		return nil, 0, false
	}
	return r.array[at+1 : end], want, true
}

// convert executes a call of tonumber. It returns false, and does nothing, if the function must be called.
func (vm *VM) convert(reg *luaRegistry, loose *boxes.Loose, at int, inst instruction) bool {
	args, want, ok := reg.arguments(at, inst)
	if !ok || len(args) != 1 {
		return false
	}
	loose.Settle(args, at+1, &vm.boxes)
	var v lua.LValue = lua.LNil
	switch s := args[0].(type) {
	case lua.LNumber:
		v = args[0] // s would be boxed again
	case lua.LString:
		if n, ok := arg.ParseNumber(string(s)); ok {
			v = vm.boxes.Number(n)
		}
	}
	reg.results(at, want, v)
	return true
}

// returnOne is the instruction that returns the value in register A. registerA masks the operand A.
const (
	returnOne = instruction(lua.OP_RETURN)<<26 | 2
	registerA = instruction(0xff) << 18
)

// passOnCall executes return redis.call(...) at the end of the script. It stores the value that represents the reply where the
// function was. It returns false if the function must be called.
func (vm *VM) passOnCall(reg *luaRegistry, at int, inst instruction) bool {
	end := at + inst.B()
	if inst.B() == 0 {
		end = reg.top
	}
	if vm.proto != 2 || end > len(reg.array) || end <= at || vm.takeArgs(reg.array[at+1:end]) != "" {
		return false
	}
	reply := vm.callHost()
	if reply[0] == '-' {
		vm.failed = reply
		return false
	}
	vm.passed, reg.array[at] = reply, vm.passedOn
	return true
}

// enterGo makes the frame of a Go function, as gopher-lua does. It returns false, and does nothing, if the stack must grow
// first.
func (vm *VM) enterGo(ls *luaState, loose *boxes.Loose, f *lua.LFunction, at int, inst instruction) bool {
	reg, frames := ls.reg, ls.frames()
	end, want := at+inst.B(), inst.C()-1
	if inst.B() == 0 {
		end = reg.top
	}
	if frames.sp == len(frames.array) || max(end, at+want) > len(reg.array) || end > reg.top {
		return false
	}
	loose.Settle(reg.array[at+1:end], at+1, &vm.boxes)
	frame := &frames.array[frames.sp]
	frame.Idx, frame.Fn, frame.Parent, frame.Pc = frames.sp, f, ls.currentFrame, 0
	frame.Base, frame.LocalBase, frame.ReturnBase = at, at+1, at
	frame.NArgs, frame.NRet, frame.TailCall = end-at-1, want, 0
	frames.sp++
	ls.currentFrame = frame
	vm.highest = max(vm.highest, reg.top)
	reg.top = end
	return true
}

// callDirectly calls a Go function in a new frame. It returns false, and does nothing, if the stack must grow first.
func (vm *VM) callDirectly(L *lua.LState, loose *boxes.Loose, f *lua.LFunction, at int, inst instruction) bool {
	ls := inside(L)
	caller := ls.currentFrame
	if !vm.enterGo(ls, loose, f, at, inst) {
		return false
	}
	n := f.GFunction(L)
	ls.frames().sp--
	ls.currentFrame = caller
	ls.reg.returned(at, inst.C()-1, n)
	return true
}

// returned moves the n results of a Go function, which are on top of the stack, to where the function was.
func (r *luaRegistry) returned(at, want, n int) {
	top := r.top
	switch {
	case want == 1 && n > 0:
		r.array[at] = r.array[top-n]
		clear(r.array[at+1 : top])
		r.top = at + 1
		return
	case want < 0:
		want = n
	}
	kept := min(n, want)
	copy(r.array[at:at+kept], r.array[top-n:])
	for i := at + kept; i < at+want; i++ {
		r.array[i] = lua.LNil
	}
	if r.top = at + want; r.top < top {
		clear(r.array[r.top:top])
	}
}

// nextItem is a step of a loop over ipairs; the table and the index are in the registers behind the iterator. ok is false if
// the case is not simple.
func (vm *VM) nextItem(reg *luaRegistry, loose *boxes.Loose, at, want int) (more, ok bool) {
	t, isTable := reg.array[at+1].(*lua.LTable)
	i, isNumber := reg.array[at+2].(lua.LNumber)
	if !isTable || !isNumber || t.Metatable != lua.LNil || want < 1 || at+3+want > len(reg.array) {
		return false, false
	}
	v := tables.Item(t, float64(i)+1)
	if v == nil {
		v = tables.GetInt(t, int(i)+1) // it may be in the hash part
		if v == lua.LNil || float64(int(i)) != float64(i) {
			reg.results(at+3, want, lua.LNil)
			return false, true
		}
	}
	next := float64(i) + 1
	boxes.Put(&reg.array[at+2], loose.At(at+2), next)
	boxes.Put(&reg.array[at+3], loose.At(at+3), next)
	if want > 1 {
		reg.results(at+4, want-1, v)
	}
	return true, true
}

// callLua begins a call of a Lua function, as gopher-lua does, and returns its frame. It returns nil, and does nothing, if
// gopher-lua must do it: the stack must grow, calls nest too deep, or the function has varargs.
func (vm *VM) callLua(ls *luaState, f *lua.LFunction, at int, inst instruction) *luaFrame {
	reg, frames, proto := ls.reg, ls.frames(), f.Proto
	first, nargs := at+1, inst.B()-1
	if nargs < 0 {
		nargs = reg.top - first
	}
	end := first + max(nargs, int(proto.NumUsedRegisters))
	if proto.IsVarArg != 0 || frames.sp == len(frames.array) || end > len(reg.array) {
		return nil
	}
	frame := &frames.array[frames.sp]
	// Field by field, since Go builds a composite literal elsewhere first and then copies it.
	frame.Idx, frame.Fn, frame.Parent, frame.Pc = frames.sp, f, ls.currentFrame, 0
	frame.Base, frame.LocalBase, frame.ReturnBase = at, first, at
	frame.NArgs, frame.NRet, frame.TailCall = nargs, inst.C()-1, 0
	frames.sp++
	ls.currentFrame = frame
	for i := nargs; i < int(proto.NumParameters); i++ {
		reg.array[first+i] = lua.LNil
	}
	reg.top = end
	return frame
}

// returnLua returns from a Lua function to a Lua function, and returns the frame of that caller. If the caller is a pcall that
// the loop executes, it ends the pcall and caller is nil. For other callers it returns false and does nothing.
func (vm *VM) returnLua(L *lua.LState, ls *luaState, loose *boxes.Loose, inst instruction) (caller *luaFrame, done bool) {
	frames := ls.frames()
	if frames.sp < 2 {
		return nil, false
	}
	cf := &frames.array[frames.sp-1]
	caller = &frames.array[frames.sp-2]
	if caller.Fn.IsG && caller.Pc == 0 {
		return nil, false
	}
	for uv := ls.uvcache; uv != nil; uv = uv.next {
		if uv.index >= cf.LocalBase {
			vm.closeUpvalues(L, cf.LocalBase)
			break
		}
	}
	reg := ls.reg
	from, to, n := cf.LocalBase+inst.A(), cf.ReturnBase, inst.B()-1
	if n < 0 {
		n = reg.top - from
	}
	want := cf.NRet
	if want < 0 {
		want = n
	}
	if to+want > len(reg.array) {
		return nil, false
	}
	vm.highest = max(vm.highest, reg.top)
	for i := range min(n, want) { // upwards, since they move down
		if v, number := &reg.array[from+i], loose.At(from+i); boxes.Has(v, number) {
			boxes.Put(&reg.array[to+i], loose.At(to+i), float64(*number))
		} else {
			reg.array[to+i] = *v
		}
	}
	for i := n; i < want; i++ {
		reg.array[to+i] = lua.LNil
	}
	if caller.Fn.IsG {
		vm.endProtected(ls, caller, want)
		return nil, true
	}
	frames.sp--
	ls.currentFrame = caller
	if reg.top = to + want; cf.NRet >= 0 { // else the next instruction takes the values below the top
		reg.top = caller.LocalBase + int(caller.Fn.Proto.NumUsedRegisters)
	}
	return caller, true
}

// running is the state of the loop. It is a struct since separate variables would take processor registers that the
// instructions need.
type running struct {
	L      *lua.LState
	ls     *luaState
	reg    *luaRegistry
	frames *luaFrames
	loose  *boxes.Loose
	base   unsafe.Pointer // the frame that the loop began with; nil in a coroutine that the loop has resumed
}

// in switches to a state.
func (on *running) in(vm *VM, L *lua.LState, base unsafe.Pointer) {
	// Field by field, as in callLua.
	on.L, on.ls, on.loose, on.base = L, inside(L), vm.looseOf(L), base
	on.reg, on.frames = on.ls.reg, on.ls.frames()
}

// plainly is the NArgs of a frame whose call can end in the simple way, see leave: the called function contains no other
// function, so that nothing can have captured its variables, and the caller is a Lua function that wants one result at most.
// NArgs is not otherwise needed in such a frame. gopher-lua overwrites it when a tail call puts another function into the frame.
const plainly = -1

// enter is callLua for calls that pass all parameters of the function.
func (on *running) enter(cf *luaFrame, f *lua.LFunction, a int, inst instruction) *luaFrame {
	proto, frames := f.Proto, on.frames
	first, nargs, sp := cf.LocalBase+a+1, inst.B()-1, frames.sp
	end := first + int(proto.NumUsedRegisters)
	if proto.IsVarArg != 0 || nargs < int(proto.NumParameters) || uint(sp) >= uint(len(frames.array)) || end > len(on.reg.array) {
		return nil
	}
	want := inst.C() - 1
	if uint(want) <= 1 && len(proto.FunctionPrototypes) == 0 {
		nargs = plainly
	}
	frames.sp, on.reg.top = sp+1, end
	frame := &frames.array[sp]
	frame.Idx, frame.Fn, frame.Parent, frame.Pc = sp, f, cf, 0
	frame.Base, frame.LocalBase, frame.ReturnBase = first-1, first, first-1
	frame.NArgs, frame.NRet, frame.TailCall = nargs, want, 0
	on.ls.currentFrame = frame
	return frame
}

// leave ends a call whose frame has plainly as NArgs, and returns the caller.
func (on *running) leave(cf *luaFrame) *luaFrame {
	caller := cf.Parent
	on.frames.sp--
	on.ls.currentFrame = caller
	on.reg.top = caller.LocalBase + int(caller.Fn.Proto.NumUsedRegisters)
	return caller
}
