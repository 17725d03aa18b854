package luavm

// The one file that looks inside gopher-lua's states (package tables looks inside its tables).
//
// Redis-exact behaviour needs five things that gopher-lua 1.1.2 does not export: the instruction at which a frame
// stopped (error texts name the variable), the registers (likewise), the list of open upvalues (gopher-lua's
// pcall closes too many of them, so a counter captured by a closure would stop counting after a caught error),
// the number of results that a call wants (an unused reply need not be converted), and the main loop, for
// speed (see loop.go).
// The structs below mirror those of gopher-lua. init compares every field by name, kind, size and offset. So with another
// version of gopher-lua every process and test fails at its start, and not silently later.

//lint:file-ignore U1000 The structs have all the fields of those that they mirror.

import (
	"fmt"
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/boxes"
)

type luaRegistry struct {
	array   []lua.LValue
	top     int
	growBy  int
	maxSize int
	alloc   unsafe.Pointer
	handler [2]unsafe.Pointer
}

type luaFrame struct {
	Idx        int
	Fn         *lua.LFunction
	Parent     *luaFrame
	Pc         int
	Base       int
	LocalBase  int
	ReturnBase int
	NArgs      int
	NRet       int
	TailCall   int
}

type luaUpvalue struct {
	next   *luaUpvalue
	reg    *luaRegistry
	index  int
	value  lua.LValue
	closed bool
}

// set gives the variable a value.
func (u *luaUpvalue) set(v lua.LValue) {
	if u.closed || u.reg == nil {
		u.value = v
	} else {
		u.reg.array[u.index] = v
	}
}

type luaState struct {
	G       *lua.Global
	Parent  *lua.LState
	Env     *lua.LTable
	Panic   func(*lua.LState)
	Dead    bool
	Options lua.Options

	stop         int32
	reg          *luaRegistry
	stack        [2]unsafe.Pointer // an interface, see frames
	alloc        unsafe.Pointer
	currentFrame *luaFrame
	wrapped      bool
	uvcache      *luaUpvalue
	hasErrorFunc bool
	mainLoop     mainLoop
}

// mainLoop runs the function of a state's newest frame until base, a frame, has returned.
type mainLoop = func(L *lua.LState, base unsafe.Pointer)

// luaFrames is the call stack of a state. All states here have room for all their frames from the start.
type luaFrames struct {
	array []luaFrame
	sp    int
}

func init() {
	state := reflect.TypeOf(lua.LState{})
	mustMirror(state, reflect.TypeOf(luaState{}))
	reg, _ := state.FieldByName("reg")
	mustMirror(reg.Type.Elem(), reflect.TypeOf(luaRegistry{}))
	frame, _ := state.FieldByName("currentFrame")
	mustMirror(frame.Type.Elem(), reflect.TypeOf(luaFrame{}))
	mustMirror(reflect.TypeOf(lua.Upvalue{}), reflect.TypeOf(luaUpvalue{}))
	stack, _ := state.FieldByName("stack")
	L := lua.NewState(lua.Options{SkipOpenLibs: true})
	frames := reflect.NewAt(stack.Type, unsafe.Pointer(&inside(L).stack)).Elem().Elem()
	mustMirror(frames.Type().Elem(), reflect.TypeOf(luaFrames{}))
}

// mustMirror panics unless every field of mine has the same offset, size and kind in theirs.
func mustMirror(theirs, mine reflect.Type) {
	for i := range mine.NumField() {
		m := mine.Field(i)
		t, ok := theirs.FieldByName(m.Name)
		if !ok || t.Offset != m.Offset || t.Type.Size() != m.Type.Size() {
			panic(fmt.Sprintf("luavm: %v.%s is not where this version of luavm expects it", theirs, m.Name))
		}
		sameKind := t.Type.Kind() == m.Type.Kind() ||
			m.Type.Kind() == reflect.UnsafePointer && t.Type.Kind() == reflect.Pointer ||
			m.Type.Kind() == reflect.Array && t.Type.Kind() == reflect.Interface
		if !sameKind {
			panic(fmt.Sprintf("luavm: %v.%s has another type than this version of luavm expects", theirs, m.Name))
		}
	}
}

func inside(L *lua.LState) *luaState { return (*luaState)(unsafe.Pointer(L)) }

// frames is the call stack itself.
func (ls *luaState) frames() *luaFrames { return (*luaFrames)(ls.stack[1]) }

// coroutine is a coroutine: its state, stack, and numbers without boxes.
type coroutine struct {
	lua.LState
	frames   luaFrames
	registry luaRegistry
	loose    boxes.Loose
	body     *lua.LFunction
}

// newThread makes the state of a coroutine as gopher-lua does, but without the coroutine's own globals, which gopher-lua makes
// and never uses.
func newThread(main *lua.LState, body *lua.LFunction, s coroutineStack) *lua.LState {
	own, made := inside(main), &coroutine{body: body, loose: s.loose}
	L := &made.LState
	*inside(L) = luaState{
		G: own.G, Env: own.Env, Panic: own.Panic, Options: own.Options, alloc: own.alloc, hasErrorFunc: own.hasErrorFunc, mainLoop: own.mainLoop,
		stack: [2]unsafe.Pointer{own.stack[0], unsafe.Pointer(&made.frames)}, reg: &made.registry,
	}
	made.frames = luaFrames{array: s.frames}
	made.registry = luaRegistry{
		array: s.registers, growBy: coroutineStep, maxSize: own.reg.maxSize, alloc: own.reg.alloc,
		handler: [2]unsafe.Pointer{own.reg.handler[0], unsafe.Pointer(L)},
	}
	return L
}

// closeUpvalues gives every open upvalue at or above the register base its own copy of the value, as the end of
// the scope would do, and removes it from the list of open upvalues. The list is sorted by register.
func (vm *VM) closeUpvalues(L *lua.LState, base int) {
	ls := inside(L)
	link := &ls.uvcache
	for *link != nil && (*link).index < base {
		link = &(*link).next
	}
	uv := *link
	*link = nil
	for ; uv != nil; uv = uv.next {
		if !uv.closed {
			vm.settleRegister(L, uv.index)
			uv.value = uv.reg.array[uv.index]
			uv.closed = true
		}
	}
}

// settleOpen gives boxes to the numbers in registers that closures may read, before another coroutine runs.
func (vm *VM) settleOpen(L *lua.LState) {
	for uv := inside(L).uvcache; uv != nil; uv = uv.next {
		vm.settleRegister(L, uv.index)
	}
}

func (vm *VM) settleRegister(L *lua.LState, i int) {
	reg, loose := inside(L).reg, vm.looseOf(L)
	if loose.Size() == len(reg.array) { // else there are no numbers without boxes yet
		loose.Settle(reg.array[i:i+1], i, &vm.boxes)
	}
}

// wantsResults tells whether the caller of the running Go function uses its results.
func wantsResults(L *lua.LState) bool { return inside(L).currentFrame.NRet != 0 }

// bytesOf returns the bytes of a string without a copy. The caller must not write to them, nor store them longer than the string.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// stringOf returns a byte slice as a string without a copy. The bytes must not change while the string is in use.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
