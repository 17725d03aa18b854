package luavm

// Raising, catching and reporting errors.

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// errorPlace is where the last error was raised, in the words of Redis's error handler.
type errorPlace struct {
	source string
	line   int
}

// throw raises an error. It does not return.
func (vm *VM) throw(L *lua.LState, value lua.LValue) {
	vm.fault = placeOf(inside(L).currentFrame)
	panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: value})
}

// raised is called by gopher-lua with an error of its own making on top of the stack.
func (vm *VM) raised(L *lua.LState) { vm.throw(L, L.Get(-1)) }

// throwf raises an error with a text, which is prefixed by the caller's place as luaL_error does.
func (vm *VM) throwf(L *lua.LState, format string, args ...any) {
	vm.throw(L, lua.LString(where(L, 1)+fmt.Sprintf(format, args...)))
}

// where is the place of the function at a level of the stack, level 0 being the running one: "user_script:1: ", or
// nothing if that is a Go function.
func where(L *lua.LState, level int) string {
	f := inside(L).currentFrame
	for ; f != nil && level > 0; level-- {
		f = f.Parent
	}
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

// placeOf is what Redis's error handler finds: the function that raised, or its caller if that is not written in Lua.
func placeOf(f *luaFrame) errorPlace {
	if f != nil && f.Fn.IsG {
		f = f.Parent
	}
	if f == nil {
		return errorPlace{}
	}
	if f.Fn.IsG {
		return errorPlace{source: "=[C]", line: -1}
	}
	return errorPlace{source: "@" + f.Fn.Proto.SourceName, line: lineOf(f)}
}

// protect calls the function below its nargs arguments on the stack. If that fails, the stack is as it was below the
// function, and the error is returned.
func (vm *VM) protect(L *lua.LState, nargs, nret int) (ok bool, errv lua.LValue) {
	ls := inside(L)
	stack := vm.stack
	if L != vm.L {
		stack = stackOf(L)
	}
	sp, frame, base := stack.Sp(), ls.currentFrame, ls.reg.top-nargs-1
	defer func() {
		if ok {
			return
		}
		switch r := recover().(type) {
		case *lua.ApiError:
			errv = r.Object
		default:
			panic(r)
		}
		closeUpvalues(L, base)
		stack.SetSp(sp)
		ls.currentFrame = frame
		floor := 0
		if frame != nil {
			floor = frame.LocalBase
		}
		L.SetTop(base - floor)
	}()
	L.Call(nargs, nret)
	return true, nil
}

// errorTable builds what redis.call raises and redis.pcall returns. text is an error reply without the "-".
func errorTable(L *lua.LState, text string) *lua.LTable {
	t := L.CreateTable(0, 2)
	t.RawSetString("err", lua.LString(text))
	return t
}

// throwError raises an error table of Redis's own making: text without a code, no place.
func (vm *VM) throwError(L *lua.LState, text string) { vm.throw(L, errorTable(L, "ERR "+text)) }

// writeError writes the reply for an error that nothing caught.
func (vm *VM) writeError(out Reply, errv lua.LValue) Outcome {
	text, counted := "", false
	switch v := errv.(type) {
	case *lua.LTable:
		text = errText(v)
		counted = lua.LVAsBool(v.RawGetString("ignore_error_stats_update"))
	default:
		text = "ERR " + tostring(vm.L, errv)
	}
	if vm.fault.source != "" {
		text = fmt.Sprintf("%s script: %s, on %s:%d.", text, vm.script.SHA, vm.fault.source, vm.fault.line)
	}
	out.Error(oneLine(text))
	return Outcome{Failed: true, Counted: counted}
}

// errText is the text of an error table.
func errText(t *lua.LTable) string {
	switch v := t.RawGetString("err").(type) {
	case lua.LString:
		return cString(string(v))
	case lua.LNumber:
		return formatNumber(float64(v))
	}
	return "ERR unknown error"
}

// cString cuts a text where C would.
func cString(s string) string {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return s[:i]
	}
	return s
}

var lineEnds = strings.NewReplacer("\r", " ", "\n", " ")

// oneLine keeps line ends out of a simple reply.
func oneLine(s string) string {
	if strings.ContainsAny(s, "\r\n") {
		return lineEnds.Replace(s)
	}
	return s
}
