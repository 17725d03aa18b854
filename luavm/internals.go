package luavm

// The one file that looks inside gopher-lua's states (package tables looks inside its tables).
//
// Redis-exact behaviour needs five things that gopher-lua 1.1.2 keeps to itself: the instruction a frame
// stopped at (error texts name the variable), the registers (likewise), the list of open upvalues (its own
// pcall closes too many of them, so a counter captured by a closure would stop counting after a caught error),
// the number of results a call wants (a reply that nobody looks at need not be converted), and the main loop, for
// speed (see loop.go).
// The structs below mirror the library's; init compares every field by name, type and offset, so a different
// version of the dependency fails at start, in every test, and not in silence.

//lint:file-ignore U1000 The structs have all the fields of those that they mirror.

import (
	"fmt"
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
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

type luaState struct {
	G       *lua.Global
	Parent  *lua.LState
	Env     *lua.LTable
	Panic   func(*lua.LState)
	Dead    bool
	Options lua.Options

	stop         int32
	reg          *luaRegistry
	stack        [2]unsafe.Pointer
	alloc        unsafe.Pointer
	currentFrame *luaFrame
	wrapped      bool
	uvcache      *luaUpvalue
	hasErrorFunc bool
	mainLoop     mainLoop
}

// mainLoop runs the function of a state's newest frame until base, a frame, has returned.
type mainLoop = func(L *lua.LState, base unsafe.Pointer)

// luaFrames is the call stack of a state that was made to have room for all frames at once.
type luaFrames struct {
	array []luaFrame
	sp    int
}

// frameStack is the part of gopher-lua's call stack that unwinding needs.
type frameStack interface {
	Sp() int
	SetSp(sp int)
	IsFull() bool
}

func init() {
	state := reflect.TypeOf(lua.LState{})
	mustMirror(state, reflect.TypeOf(luaState{}))
	reg, _ := state.FieldByName("reg")
	mustMirror(reg.Type.Elem(), reflect.TypeOf(luaRegistry{}))
	frame, _ := state.FieldByName("currentFrame")
	mustMirror(frame.Type.Elem(), reflect.TypeOf(luaFrame{}))
	mustMirror(reflect.TypeOf(lua.Upvalue{}), reflect.TypeOf(luaUpvalue{}))
}

// mustMirror panics unless every field of mine is at the same place and of the same size and kind in theirs.
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

// stackOf hands out the call stack of a state. It is slow: take it once per state.
func stackOf(L *lua.LState) frameStack {
	f, _ := reflect.TypeOf(lua.LState{}).FieldByName("stack")
	p := unsafe.Add(unsafe.Pointer(L), f.Offset)
	return reflect.NewAt(f.Type, p).Elem().Interface().(frameStack)
}

// framesOf returns the call stack itself.
func framesOf(L *lua.LState) *luaFrames {
	v := reflect.ValueOf(stackOf(L))
	mustMirror(v.Type().Elem(), reflect.TypeOf(luaFrames{}))
	return (*luaFrames)(v.UnsafePointer())
}

// closeUpvalues gives every open upvalue at or above the register base its own copy of the value, as leaving
// the scope would do, and takes it off the list of the open ones. The list is sorted by register.
func closeUpvalues(L *lua.LState, base int) {
	ls := inside(L)
	link := &ls.uvcache
	for *link != nil && (*link).index < base {
		link = &(*link).next
	}
	uv := *link
	*link = nil
	for ; uv != nil; uv = uv.next {
		if !uv.closed {
			uv.value = uv.reg.array[uv.index]
			uv.closed = true
		}
	}
}

// wantsResults tells whether the caller of the running Go function uses its results.
func wantsResults(L *lua.LState) bool { return inside(L).currentFrame.NRet != 0 }

// bytesOf lends the bytes of a string. They must not be written to, nor kept longer than the string.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// stringOf lends a byte slice as a string. The bytes must not change while the string is in use.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
