package luavm

// The library coroutine, on gopher-lua's threads.

import (
	_ "unsafe" // for go:linkname

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
)

const (
	// coroutineDepthMax is how deep calls may nest in a coroutine. Its stack is allocated at once, so it is less than that
	// of the script itself.
	coroutineDepthMax  = 1000
	coroutineRegisters = 256
	// coroutinesMax is how many coroutines a run may create.
	coroutinesMax = 10_000
)

// coroutineBody is what a coroutine begins with: it makes the errors of its state ours. The tail call leaves no trace.
const coroutineBody = `local f, take = ... return function(...) take() return f(...) end`

// theirCoroutines is the library's own library of coroutines.
//
//go:linkname theirCoroutines github.com/yuin/gopher-lua.coFuncs
var theirCoroutines map[string]lua.LGFunction

func (vm *VM) coroutineFunctions() functions {
	c, err := compileChunk(coroutineBody, "=coroutine", nil, false, nil)
	if err != nil {
		panic(err)
	}
	body := vm.L.NewFunctionFromProto(&c.main.FunctionProto)
	co := &coroutines{vm: vm, create: theirCoroutines["create"], resume: theirCoroutines["resume"], body: body}
	co.take = vm.L.NewFunction(func(L *lua.LState) int { vm.take(L); return 0 })
	return functions{
		"create": co.luaCreate, "resume": co.luaResume, "running": coroutineRunning, "status": co.luaStatus,
		"wrap": co.luaWrap, "yield": co.luaYield,
	}
}

// coroutines is the library in a VM.
type coroutines struct {
	vm             *VM
	create, resume lua.LGFunction // gopher-lua's
	body, take     *lua.LFunction
}

// start makes a coroutine of the function in argument 1.
func (co *coroutines) start(L *lua.LState) *lua.LState {
	fn, ok := L.Get(1).(*lua.LFunction)
	if !ok || fn.IsG {
		arg.Error(L, 1, "Lua function expected")
	}
	vm := co.vm
	vm.coroutines++
	if vm.coroutines > coroutinesMax {
		vm.throw(L, lua.LString("not enough memory"))
	}
	vm.call(L, co.body, 1, fn, co.take)
	body := L.Get(-1)
	L.SetTop(0)
	L.Push(body)
	options := L.Options
	L.Options.CallStackSize, L.Options.RegistrySize = coroutineDepthMax, coroutineRegisters
	co.create(L)
	L.Options = options
	thread := L.Get(-1).(*lua.LState)
	inside(thread).mainLoop = vm.loop
	return thread
}

func (co *coroutines) luaCreate(L *lua.LState) int {
	co.start(L)
	return 1
}

func (co *coroutines) luaWrap(L *lua.LState) int {
	thread := co.start(L)
	L.Push(L.NewFunction(func(L *lua.LState) int {
		L.Insert(thread, 1)
		n := co.run(L, thread)
		if lua.LVAsBool(L.Get(-n)) {
			return n - 1
		}
		errv := L.Get(-1)
		if s, ok := errv.(lua.LString); ok { // the place is added once more
			errv = lua.LString(where(L, 1)) + s
		}
		co.vm.throw(L, errv)
		return 0
	}))
	return 1
}

func (co *coroutines) threadArg(L *lua.LState) *lua.LState {
	thread, ok := L.Get(1).(*lua.LState)
	if !ok {
		arg.Error(L, 1, "coroutine expected")
	}
	return thread
}

func (co *coroutines) luaResume(L *lua.LState) int { return co.run(L, co.threadArg(L)) }

// run resumes the coroutine in argument 1 with the arguments behind it. It pushes true and what was yielded or returned,
// or false and the error.
func (co *coroutines) run(L, thread *lua.LState) int {
	vm := co.vm
	if status := co.status(L, thread); status != "suspended" {
		L.Push(lua.LFalse)
		L.Push(lua.LString("cannot resume " + status + " coroutine"))
		return 2
	}
	if vm.ccalls >= ccallsMax-1 {
		L.Push(lua.LFalse)
		L.Push(lua.LString("C stack overflow"))
		return 2
	}
	ccalls := vm.ccalls
	vm.ccalls++
	n := co.resume(L)
	vm.ccalls = ccalls
	L.G.CurrentThread = L
	thread.Parent = nil
	switch {
	case vm.inHost: // a command panicked, which gopher-lua took for an error of the coroutine
		panic(tostring(L.Get(-1)))
	case vm.killed:
		vm.throw(L, L.Get(-1))
	}
	return n
}

func (co *coroutines) luaYield(L *lua.LState) int {
	if L == co.vm.L || crossesGo(inside(L).currentFrame) {
		co.vm.throw(L, lua.LString("attempt to yield across metamethod/C-call boundary"))
	}
	return -1
}

// crossesGo tells whether Go code is between a frame and the beginning of its coroutine: a function such as pcall, or
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
