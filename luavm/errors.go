package luavm

// Raising, catching and reporting errors.

import (
	"fmt"
	"runtime/debug"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/tables"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/bytecode"
	"github.com/limitkv/limitkv/resp"
)

// errorPlace is where the last error was raised, as Redis's error handler reports it.
type errorPlace struct {
	source string
	line   int
}

// throw raises an error. It does not return.
func (vm *VM) throw(L *lua.LState, value lua.LValue) {
	vm.fault = vm.placeOf(inside(L).currentFrame)
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: value})
}

// throwf raises an error with a text, which is prefixed by the caller's place as luaL_error does.
func (vm *VM) throwf(L *lua.LState, format string, args ...any) {
	vm.throw(L, lua.LString(where(L, 1)+fmt.Sprintf(format, args...)))
}

// throwError raises an error table with the code ERR. text has neither a code nor a position.
func (vm *VM) throwError(L *lua.LState, text string) { vm.throw(L, errorTable(L, "ERR "+text)) }

// frameAt returns the frame at a level; level 0 is the running function. It is nil if there is none, or if a tail
// call has replaced the frame.
func frameAt(L *lua.LState, level int) *luaFrame {
	f := inside(L).currentFrame
	for ; f != nil && level > 0; f = f.Parent {
		level--
		if !f.Fn.IsG {
			level -= f.TailCall
		}
	}
	if level < 0 {
		return nil
	}
	return f
}

// where is the position in the function at a level of the stack: "user_script:1: ", or empty if that is a Go function.
func where(L *lua.LState, level int) string {
	f := frameAt(L, level)
	if f == nil || f.Fn.IsG {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", f.Fn.Proto.SourceName, lineOf(f))
}

func lineOf(f *luaFrame) int {
	if f.Pc == 0 {
		return f.Fn.Proto.LineDefined
	}
	return f.Fn.Proto.DbgSourcePositions[f.Pc-1]
}

// placeOf is the place that Redis's error handler finds: in the function that raised the error, or in its caller if the
// function is not written in Lua.
func (vm *VM) placeOf(f *luaFrame) errorPlace {
	if f != nil && f.Fn.IsG {
		f = f.Parent
	}
	if f == nil {
		return errorPlace{}
	}
	if f.Fn.IsG {
		return errorPlace{source: "=[C]", line: -1}
	}
	return errorPlace{bytecode.Of(f.Fn.Proto).Source, lineOf(f)}
}

// protect calls the function below its nargs arguments on the stack. If the call fails, it removes the function and everything
// above it from the stack, and returns the error.
func (vm *VM) protect(L *lua.LState, nargs, nret int) (ok bool, errv lua.LValue) {
	ls := inside(L)
	frames := ls.frames()
	sp, frame, base, ccalls := frames.sp, ls.currentFrame, ls.reg.top-nargs-1, vm.ccalls
	defer func() {
		if ok {
			return
		}
		r := recover()
		vm.closeUpvalues(L, base)
		frames.sp = sp
		ls.currentFrame = frame
		floor := 0
		if frame != nil {
			floor = frame.LocalBase
		}
		L.SetTop(base - floor)
		vm.ccalls = ccalls
		if frame == nil && vm.breaks(r) {
			errv = errorTable(L, "ERR internal error")
			return
		}
		errv = vm.caught(r)
		if vm.killed && frame != nil {
			panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: errv}) // the script cannot catch this
		}
	}()
	vm.mustBeCallable(L, L.Get(-nargs-1))
	L.Call(nargs, nret)
	return true, nil
}

// breaks tells whether a panic that has ended a run is a bug of the VM itself. Such a run ends like one with an error: the
// commands that it called have taken effect. The VM must not be used again.
func (vm *VM) breaks(r any) bool {
	if _, ok := r.(*lua.ApiError); ok || vm.inHost || vm.host == nil {
		return false
	}
	vm.broken, vm.fault = true, errorPlace{}
	vm.host.Log(3, fmt.Sprintf("panic in a script: %v\n%s", r, debug.Stack()))
	return true
}

// mustBeCallable raises an error if v can be called neither itself nor through __call.
func (vm *VM) mustBeCallable(L *lua.LState, v lua.LValue) {
	if v.Type() == lua.LTFunction {
		return
	}
	if m := vm.metamethod(v, "__call"); m.Type() != lua.LTFunction {
		vm.throw(L, lua.LString(where(L, 0)+typeErrorText("call", "", v)))
	}
}

// caught returns the error value of a recovered panic. If the panic is not a Lua error, caught panics again.
func (vm *VM) caught(r any) lua.LValue {
	if e, ok := r.(*lua.ApiError); ok && !vm.inHost {
		return e.Object
	}
	panic(r)
}

// operandError raises "attempt to <do> <name> (a <type> value)" about an operand of the running instruction.
func (vm *VM) operandError(L *lua.LState, do string, operand int) {
	vm.throw(L, lua.LString(where(L, 0)+typeError(L, inside(L).currentFrame, do, operand)))
}

func typeErrorText(do, name string, culprit lua.LValue) string {
	if name == "" {
		return fmt.Sprintf("attempt to %s a %s value", do, typeName(culprit))
	}
	return fmt.Sprintf("attempt to %s %s (a %s value)", do, name, typeName(culprit))
}

func typeName(v lua.LValue) string { return v.Type().String() }

// raised is called by gopher-lua with an error on top of the stack: an error of a library, or its own, whose text raised
// changes to that of Lua 5.1.
func (vm *VM) raised(L *lua.LState) {
	v := L.Get(-1)
	f := inside(L).currentFrame
	s, isString := v.(lua.LString)
	if !isString || f == nil {
		vm.throw(L, v)
	}
	if f.Fn.IsG {
		if strings.HasSuffix(string(s), "stack overflow") || strings.HasSuffix(string(s), "registry overflow") {
			v = lua.LString("stack overflow")
		}
		vm.throw(L, v)
	}
	prefix := fmt.Sprintf("%s:%d: ", f.Fn.Proto.SourceName, lineOf(f))
	text := strings.TrimPrefix(string(s), prefix)
	vm.throw(L, lua.LString(prefix+translate(L, f, text)))
}

// errorTable builds what redis.call raises and redis.pcall returns. text is an error reply without the "-".
func errorTable(L *lua.LState, text string) *lua.LTable {
	t := tables.New(0, 2)
	tables.SetString(t, "err", lua.LString(text))
	return t
}

// writeError writes the reply for an error that nothing caught.
func (vm *VM) writeError(out *resp.Writer, errv lua.LValue) Outcome {
	text, counted := "", false
	switch v := errv.(type) {
	case *lua.LTable:
		text = errText(v)
		counted = tables.GetString(v, "ignore_error_stats_update") == lua.LTrue
	default:
		text = "ERR " + arg.CString(tostring(errv))
	}
	if vm.fault.source != "" {
		text = fmt.Sprintf("%s script: %s, on %s:%d.", text, vm.script.SHA, arg.CString(vm.fault.source), vm.fault.line)
	}
	text = oneLine(text)
	out.Error(text)
	return Outcome{Failure: text, Counted: counted}
}

// errText is the text of an error table.
func errText(t *lua.LTable) string {
	if s, ok := arg.ToString(tables.GetString(t, "err")); ok {
		return arg.CString(s)
	}
	return "ERR unknown error"
}

var lineEnds = strings.NewReplacer("\r", " ", "\n", " ")

// oneLine keeps line ends out of a simple reply.
func oneLine(s string) string {
	if strings.ContainsAny(s, "\r\n") {
		return lineEnds.Replace(s)
	}
	return s
}
