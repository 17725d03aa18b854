package luavm

// Translation of gopher-lua's errors into the texts of Lua 5.1. The failed instruction says what was attempted, and its
// operands say with which value.

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/bytecode"
)

type instruction = bytecode.Instruction

// register returns a register of a frame, or a constant.
func register(L *lua.LState, f *luaFrame, n int) lua.LValue {
	if n&bytecode.ConstantBit != 0 {
		return f.Fn.Proto.Constants[n&^bytecode.ConstantBit]
	}
	if v := inside(L).reg.array[f.LocalBase+n]; v != nil {
		return v
	}
	return lua.LNil
}

// nameOf returns the name of an operand of a frame's present instruction, such as "local 'x'"; empty if it has none.
func nameOf(f *luaFrame, operand int) string {
	if f.Pc == 0 {
		return ""
	}
	kind, name := bytecode.Of(f.Fn.Proto).Name(f.Pc-1, operand)
	if kind == "" {
		return ""
	}
	return kind + " '" + arg.CString(name) + "'"
}

// typeError is the error text for an operand of the wrong type.
func typeError(L *lua.LState, f *luaFrame, do string, operand int) string {
	return typeErrorText(do, nameOf(f, operand), register(L, f, operand))
}

// translate returns the text of Lua 5.1 for an error that gopher-lua raised at a frame's present instruction.
func translate(L *lua.LState, f *luaFrame, text string) string {
	inst := instruction(f.Fn.Proto.Code[f.Pc-1])
	switch {
	case strings.HasPrefix(text, "attempt to index a non-table object("):
		return indexError(L, f, inst, text)
	case strings.HasPrefix(text, "attempt to compare "):
		return compareError(L, f, inst, text)
	case text == "attempt to call a non-function object":
		return callError(L, f, inst)
	case text == "too many recursions in gettable":
		return "loop in gettable"
	case text == "too many recursions in settable":
		return "loop in settable"
	case text == "registry overflow":
		return "stack overflow"
	}
	return text
}

func indexError(L *lua.LState, f *luaFrame, inst instruction, text string) string {
	object := -1
	switch inst.Op() {
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS, lua.OP_SELF:
		object = inst.B()
	case lua.OP_SETTABLE, lua.OP_SETTABLEKS:
		object = inst.A()
	}
	kind := text[len("attempt to index a non-table object("):]
	kind = kind[:strings.IndexByte(kind, ')')]
	if object >= 0 {
		if v := register(L, f, object); typeName(v) == kind && v.Type() != lua.LTTable {
			return typeError(L, f, "index", object)
		}
	}
	return fmt.Sprintf("attempt to index a %s value", kind) // an __index that cannot be indexed itself
}

func compareError(L *lua.LState, f *luaFrame, inst instruction, text string) string {
	if inst.Op() != lua.OP_LT && inst.Op() != lua.OP_LE {
		return text
	}
	return compareText(register(L, f, inst.B()), register(L, f, inst.C()))
}

// compareText is the error text of comparing two values. Lua distinguishes the types only by their third letter here, so a
// string and a thread are "two string values".
func compareText(a, b lua.LValue) string {
	t1, t2 := typeName(a), typeName(b)
	if t1[2] == t2[2] {
		return fmt.Sprintf("attempt to compare two %s values", t1)
	}
	return fmt.Sprintf("attempt to compare %s with %s", t1, t2)
}

func callError(L *lua.LState, f *luaFrame, inst instruction) string {
	called := inst.A()
	if inst.Op() == lua.OP_TFORLOOP {
		called += 3
	}
	return typeError(L, f, "call", called)
}
