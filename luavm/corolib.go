package luavm

// The library coroutine. A coroutine is a thread of gopher-lua; the code here makes, resumes and suspends it.

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/boxes"
)

const (
	// coroutineDepthMax is how deep calls may nest in a coroutine. It is less than for the script itself, since all of the
	// call stack, 80 kB, is allocated at once. When there are more than manyCoroutines, new ones get only
	// coroutineDepthMany: otherwise 10,000 idle coroutines would take 800 MB.
	coroutineDepthMax  = 1000
	manyCoroutines     = 500
	coroutineDepthMany = 200
	coroutineRegisters = 256
	coroutineStep      = 1 << 10 // how many registers a coroutine's stack grows by
	// spareStacksMax is how many stacks are stored for new coroutines; one of them outlives the run.
	spareStacksMax = 16
	// coroutinesMax is how many coroutines of a run may exist that have not ended.
	coroutinesMax = 10_000
)

func (vm *VM) coroutineFunctions() functions {
	co := &coroutines{vm}
	return functions{
		"create": co.luaCreate, "resume": co.luaResume, "running": coroutineRunning, "status": co.luaStatus,
		"wrap": co.luaWrap, "yield": co.luaYield,
	}
}

// coroutines is the library in a VM.
type coroutines struct{ vm *VM }

// coroutineStack is the memory that a coroutine runs on.
type coroutineStack struct {
	frames    []luaFrame
	registers []lua.LValue
	loose     boxes.Loose
}

// start makes a coroutine of the function in argument 1.
func (co *coroutines) start(L *lua.LState) *lua.LState {
	fn, ok := L.Get(1).(*lua.LFunction)
	if !ok || fn.IsG {
		arg.Error(L, 1, "Lua function expected")
	}
	vm := co.vm
	if vm.coroutines == coroutinesMax {
		vm.throw(L, lua.LString("not enough memory"))
	}
	vm.coroutines++
	vm.madeCoroutines = true
	return newThread(vm.L, fn, vm.coroutineStack())
}

// coroutineStack returns a stack for a coroutine: a spare one of an ended coroutine, or a new one.
func (vm *VM) coroutineStack() (s coroutineStack) {
	if last := len(vm.spareStacks) - 1; last >= 0 {
		s = vm.spareStacks[last]
		vm.spareStacks[last] = coroutineStack{} // so that this slice does not keep the stack alive
		vm.spareStacks = vm.spareStacks[:last]
		return s
	}
	depth := coroutineDepthMax
	if vm.coroutines > manyCoroutines {
		depth = coroutineDepthMany
	}
	return coroutineStack{frames: make([]luaFrame, depth), registers: make([]lua.LValue, coroutineRegisters)}
}

// ended takes the stack of an ended coroutine for reuse.
func (vm *VM) ended(L *lua.LState) {
	vm.coroutines--
	t := (*coroutine)(unsafe.Pointer(L))
	ls := inside(L)
	vm.closeUpvalues(L, 0)
	s := coroutineStack{t.frames.array, t.registry.array, t.loose}
	t.frames, t.registry.array, t.registry.top, t.loose, ls.currentFrame = luaFrames{}, nil, 0, boxes.Loose{}, nil
	if len(s.frames) == coroutineDepthMax && len(s.registers) == coroutineRegisters && len(vm.spareStacks) < cap(vm.spareStacks) {
		vm.spareStacks = append(vm.spareStacks, s)
	}
}

// forgetCoroutines drops the values that the coroutines of a run have left.
func (vm *VM) forgetCoroutines() {
	if !vm.madeCoroutines {
		return
	}
	vm.coroutines, vm.madeCoroutines = 0, false
	if len(vm.spareStacks) > 0 {
		clear(vm.spareStacks[0].frames)
		clear(vm.spareStacks[0].registers)
		clear(vm.spareStacks[1:])
		vm.spareStacks = vm.spareStacks[:1]
	}
}

func (co *coroutines) luaCreate(L *lua.LState) int {
	L.Push(co.start(L))
	return 1
}

func (co *coroutines) luaWrap(L *lua.LState) int {
	thread := co.start(L)
	f := &resumer{thread: thread}
	resume := func(L *lua.LState) int {
		n := co.run(L, thread, argumentsOf(L))
		reg := inside(L).reg
		if isTrue(reg.array[reg.top-n]) {
			return n - 1
		}
		co.vm.throw(L, placed(L, L.Get(-1)))
		return 0
	}
	f.LFunction = lua.LFunction{IsG: true, Env: inside(L).Env, Proto: &ofResumer.FunctionProto, GFunction: resume}
	L.Push(&f.LFunction)
	return 1
}

// resumer is a function of wrap.
type resumer struct {
	lua.LFunction
	thread *lua.LState
}

var ofResumer = direct{resumes: true}

// placed is a coroutine's error in the form in which the function that resumed it raises it: with the position once more.
// Numbers get it too, and so become text.
func placed(L *lua.LState, errv lua.LValue) lua.LValue {
	switch v := errv.(type) {
	case lua.LString:
		return lua.LString(where(L, 1)) + v
	case lua.LNumber:
		return lua.LString(where(L, 1) + arg.FormatNumber(float64(v)))
	}
	return errv
}

func (co *coroutines) threadArg(L *lua.LState) *lua.LState {
	thread, ok := L.Get(1).(*lua.LState)
	if !ok {
		arg.Error(L, 1, "coroutine expected")
	}
	return thread
}

func (co *coroutines) luaResume(L *lua.LState) int {
	thread := co.threadArg(L)
	return co.run(L, thread, argumentsOf(L)[1:])
}

// run resumes a coroutine. It pushes true and the yielded or returned values, or false and the error.
func (co *coroutines) run(L, thread *lua.LState, args []lua.LValue) int {
	vm := co.vm
	if thread == L || thread.Dead || thread.Parent != nil {
		L.Push(lua.LFalse)
		L.Push(lua.LString("cannot resume " + co.status(L, thread) + " coroutine"))
		return 2
	}
	if vm.ccalls >= ccallsMax { // one level more than for calls
		L.Push(lua.LFalse)
		L.Push(lua.LString("C stack overflow"))
		return 2
	}
	ccalls, top := vm.ccalls, L.GetTop()
	vm.ccalls++
	vm.settleOpen(L)
	errv := vm.resume(L, thread, args)
	vm.settleOpen(thread)
	vm.ccalls = ccalls
	if errv != nil {
		L.SetTop(top)
		L.Push(lua.LFalse)
		L.Push(errv)
	}
	if thread.Dead {
		vm.ended(thread)
	}
	return L.GetTop() - top
}

// resume runs a coroutine until it yields or ends, and pushes true and the values. If it fails, resume returns the error.
func (vm *VM) resume(L, thread *lua.LState, args []lua.LValue) (errv lua.LValue) {
	ls := inside(thread)
	begun := ls.currentFrame != nil
	thread.Parent, L.G.CurrentThread = L, thread
	done := false
	defer func() {
		L.G.CurrentThread, thread.Parent = L, nil
		if done {
			return
		}
		thread.Dead = true
		if vm.killed || vm.inHost { // the script cannot catch this
			vm.ended(thread)
			return
		}
		errv = vm.caught(recover())
	}()
	if begun {
		pass(thread, args)
		vm.loop(thread, nil)
	} else {
		t := (*coroutine)(unsafe.Pointer(thread))
		thread.Push(t.body)
		t.body = nil
		for _, v := range args {
			thread.Push(v)
		}
		thread.Call(len(args), lua.MultRet)
	}
	done = true
	return nil
}

// pass makes the call of yield in a coroutine return values. Further wanted results are nil.
func pass(thread *lua.LState, values []lua.LValue) {
	for _, v := range values {
		thread.Push(v)
	}
	f := inside(thread).currentFrame
	want := instruction(f.Fn.Proto.Code[f.Pc-1]).C() - 1
	for i := len(values); i < want; i++ {
		thread.Push(lua.LNil)
	}
}

// resumeHere makes the loop continue with a coroutine that has yielded. The frame of the function that resumes it stays on the
// stack, see guard.go. It returns false, and does nothing, if the function must be called.
func (vm *VM) resumeHere(on *running, f *lua.LFunction, at int, inst instruction) bool {
	var thread *lua.LState
	mark, first := -1-vm.ccalls, at+1
	if f != vm.shortcuts.resume {
		thread = (*resumer)(unsafe.Pointer(f)).thread
	} else {
		args, _, ok := on.reg.arguments(at, inst)
		if !ok {
			return false
		}
		if thread, ok = args[0].(*lua.LState); !ok {
			return false
		}
		mark, first = 1+vm.ccalls, first+1
	}
	if thread.Dead || thread.Parent != nil || inside(thread).currentFrame == nil || vm.ccalls >= ccallsMax || !vm.enterGo(on.ls, on.loose, f, at, inst) {
		return false
	}
	on.ls.currentFrame.Pc = mark
	vm.ccalls++
	vm.settleOpen(on.L)
	thread.Parent, thread.G.CurrentThread = on.L, thread
	pass(thread, on.reg.array[first:on.reg.top])
	on.in(vm, thread, nil)
	return true
}

// comeBack makes the loop, which began in the state home, continue with the caller of a coroutine that has yielded or
// ended. It returns false if the loop did not resume that coroutine. The values are on the caller's stack already, behind true.
func (vm *VM) comeBack(on *running, home *lua.LState, base unsafe.Pointer) bool {
	thread := on.L
	if thread == home {
		return false
	}
	if thread.Parent != nil { // else gopher-lua has done this
		thread.G.CurrentThread, thread.Parent = thread.Parent, nil
	}
	L := thread.G.CurrentThread
	vm.settleOpen(thread)
	if thread.Dead {
		vm.ended(thread)
	}
	if L != home {
		base = nil
	}
	on.in(vm, L, base)
	f := on.ls.currentFrame
	n, mark := on.reg.top-(f.LocalBase+f.NArgs), f.Pc
	if mark < 0 {
		n, mark = n-1, -mark
	}
	vm.ccalls, f.Pc = mark-1, 0
	on.frames.sp--
	on.ls.currentFrame = f.Parent
	on.reg.returned(f.ReturnBase, f.NRet, n)
	return true
}

// drop ends a coroutine that the loop has resumed, after an error in it. It returns the state that resumed it.
func (vm *VM) drop(thread *lua.LState) (L *lua.LState) {
	L = thread.Parent
	thread.G.CurrentThread, thread.Parent, thread.Dead = L, nil, true
	vm.ended(thread)
	return L
}

// fails drops a coroutine, and returns the error in the form that its caller sees.
func (vm *VM) fails(thread *lua.LState, errv lua.LValue) lua.LValue {
	L := vm.drop(thread)
	if f := inside(L).currentFrame; f.Pc < 0 {
		errv = placed(L, errv)
		vm.fault, f.Pc = vm.placeOf(f), 0
	}
	return errv
}

// yieldHere executes a call of yield in a coroutine that this loop runs, and suspends it. It returns false, and does nothing,
// if the function yield must be called.
func (vm *VM) yieldHere(L *lua.LState, loose *boxes.Loose, base unsafe.Pointer, at int, inst instruction) bool {
	ls := inside(L)
	if L == vm.L || base != nil && base != unsafe.Pointer(&ls.frames().array[0]) || crossesGo(ls.currentFrame) {
		return false
	}
	reg, end := ls.reg, at+inst.B()
	if inst.B() == 0 {
		end = reg.top
	}
	loose.Settle(reg.array[at+1:end], at+1, &vm.boxes)
	parent := L.Parent
	parent.Push(lua.LTrue)
	for _, v := range reg.array[at+1 : end] {
		parent.Push(v)
	}
	reg.top = at
	return true
}

func (co *coroutines) luaYield(L *lua.LState) int {
	if L == co.vm.L || crossesGo(inside(L).currentFrame) {
		co.vm.throw(L, lua.LString("attempt to yield across metamethod/C-call boundary"))
	}
	return -1
}

// crossesGo tells whether the frames from the beginning of a coroutine up to f include Go code: a function such as pcall, or
// an instruction that calls a metamethod or an iterator.
func crossesGo(f *luaFrame) bool {
	for ; f.Parent != nil; f = f.Parent {
		p := f.Parent
		if p.Fn.IsG {
			return true
		}
		if op := instruction(p.Fn.Proto.Code[p.Pc-1]).Op(); op != lua.OP_CALL && op != lua.OP_TAILCALL {
			return true
		}
	}
	return false
}

func (co *coroutines) status(L, thread *lua.LState) string {
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

func (co *coroutines) luaStatus(L *lua.LState) int {
	L.Push(lua.LString(co.status(L, co.threadArg(L))))
	return 1
}

func coroutineRunning(L *lua.LState) int {
	if L == L.G.MainThread {
		L.Push(lua.LNil)
	} else {
		L.Push(L)
	}
	return 1
}
