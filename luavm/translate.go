package luavm

// gopher-lua's own errors in the words of Lua 5.1. The instruction that failed tells what was done, its operands tell
// to what, and the syntax tree tells what that is called.

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/limitkv/limitkv/luavm/arg"
)

// instruction is one of gopher-lua's: operation, A, C, B from the top.
type instruction uint32

func (i instruction) op() int { return int(i >> 26) }
func (i instruction) a() int  { return int(i>>18) & 0xff }
func (i instruction) b() int  { return int(i & 0x1ff) }
func (i instruction) c() int  { return int(i>>9) & 0x1ff }

// constantBit marks an operand that is a constant.
const constantBit = 1 << 8

// register returns a register of a frame, or a constant.
func register(L *lua.LState, f *luaFrame, n int) lua.LValue {
	if n&constantBit != 0 {
		return f.Fn.Proto.Constants[n&^constantBit]
	}
	if v := inside(L).reg.array[f.LocalBase+n]; v != nil {
		return v
	}
	return lua.LNil
}

// nodeAt returns what the instruction that a frame is at was compiled from, and the names around it.
func (vm *VM) nodeAt(f *luaFrame) (ast.PositionHolder, *names) {
	d := vm.debug[&f.Fn.Proto.Code[0]]
	if d == nil || f.Pc == 0 {
		return nil, nil
	}
	return d.nodes[f.Pc-1], d.names
}

// operandName returns how errors call an operand of what a frame is doing, empty if it has no name.
func (vm *VM) operandName(f *luaFrame, operand int) string {
	node, names := vm.nodeAt(f)
	var e ast.Expr
	switch n := node.(type) {
	case *ast.ArithmeticOpExpr:
		e = [2]ast.Expr{n.Lhs, n.Rhs}[operand]
	case *ast.UnaryMinusOpExpr:
		e = n.Expr
	case *ast.UnaryLenOpExpr:
		e = n.Expr
	case *ast.FuncCallExpr:
		if operand < len(n.Args) {
			e = n.Args[operand]
		}
	}
	return nameOf(names, e)
}

// nameOf returns "local 'x'" and the like.
func nameOf(names *names, e ast.Expr) string {
	if e == nil || names == nil {
		return ""
	}
	kind, name := names.describe(e)
	if kind == "" {
		return ""
	}
	return kind + " '" + arg.CString(name) + "'"
}

// translate words an error that gopher-lua raised at the instruction that a frame is at.
func (vm *VM) translate(L *lua.LState, f *luaFrame, text string) string {
	node, names := vm.nodeAt(f)
	inst := instruction(f.Fn.Proto.Code[f.Pc-1])
	switch {
	case strings.HasPrefix(text, "attempt to index a non-table object("):
		return indexError(L, f, inst, node, names, text)
	case strings.HasPrefix(text, "cannot perform "):
		return vm.arithmeticError(L, f, inst)
	case text == "__unm undefined":
		return typeErrorText("perform arithmetic on", vm.operandName(f, 0), register(L, f, inst.b()))
	case text == "__len undefined":
		return typeErrorText("get length of", vm.operandName(f, 0), register(L, f, inst.b()))
	case strings.HasPrefix(text, "attempt to compare "):
		return compareError(L, f, inst, text)
	case text == "attempt to call a non-function object":
		return callError(L, f, inst, node, names)
	case strings.HasPrefix(text, "for statement "):
		return forError(L, f, inst)
	case text == "too many recursions in gettable":
		return "loop in gettable"
	case text == "too many recursions in settable":
		return "loop in settable"
	case text == "registry overflow":
		return "stack overflow"
	}
	return text
}

func indexError(L *lua.LState, f *luaFrame, inst instruction, node ast.PositionHolder, names *names, text string) string {
	var e ast.Expr
	object := -1
	switch inst.op() {
	case lua.OP_GETTABLE, lua.OP_GETTABLEKS, lua.OP_SELF:
		object = inst.b()
	case lua.OP_SETTABLE, lua.OP_SETTABLEKS:
		object = inst.a()
	}
	switch n := node.(type) {
	case *ast.AttrGetExpr:
		e = n.Object
		if names.receivers[n] { // function a.b:c(): the receiver itself is indexed
			e = n
		}
	case *ast.FuncCallExpr:
		e = n.Receiver
	case *ast.IdentExpr: // function t:c()
		e = n
	}
	kind := text[len("attempt to index a non-table object("):]
	kind = kind[:strings.IndexByte(kind, ')')]
	if object >= 0 {
		if v := register(L, f, object); typeName(v) == kind && v.Type() != lua.LTTable {
			return typeErrorText("index", nameOf(names, e), v)
		}
	}
	return fmt.Sprintf("attempt to index a %s value", kind) // an __index that cannot be indexed itself
}

func (vm *VM) arithmeticError(L *lua.LState, f *luaFrame, inst instruction) string {
	a, b := register(L, f, inst.b()), register(L, f, inst.c())
	if m := vm.binaryMetamethod(a, b, events["+-*/%^"[inst.op()-lua.OP_ADD]]); m != lua.LNil {
		return typeErrorText("call", "", m) // gopher-lua does not call what is no function
	}
	culprit, operand := a, 0
	if _, ok := arg.ToNumber(culprit); ok {
		culprit, operand = b, 1
	}
	return typeErrorText("perform arithmetic on", vm.operandName(f, operand), culprit)
}

func compareError(L *lua.LState, f *luaFrame, inst instruction, text string) string {
	if inst.op() != lua.OP_LT && inst.op() != lua.OP_LE {
		return text
	}
	return compareText(register(L, f, inst.b()), register(L, f, inst.c()))
}

// compareText is what comparing two values raises. Lua tells types apart by their third letter here, so a string and a
// thread are "two string values".
func compareText(a, b lua.LValue) string {
	t1, t2 := typeName(a), typeName(b)
	if t1[2] == t2[2] {
		return fmt.Sprintf("attempt to compare two %s values", t1)
	}
	return fmt.Sprintf("attempt to compare %s with %s", t1, t2)
}

func callError(L *lua.LState, f *luaFrame, inst instruction, node ast.PositionHolder, names *names) string {
	v := register(L, f, inst.a())
	call, ok := node.(*ast.FuncCallExpr)
	switch {
	case inst.op() == lua.OP_TFORLOOP:
		v = register(L, f, inst.a()+3)
	case ok && call.Func != nil:
		return typeErrorText("call", nameOf(names, call.Func), v)
	case ok:
		return typeErrorText("call", "method '"+call.Method+"'", v)
	}
	return typeErrorText("call", "", v)
}

func forError(L *lua.LState, f *luaFrame, inst instruction) string {
	for i, what := range []string{"initial value", "limit", "step"} {
		if _, ok := register(L, f, inst.a()+i).(lua.LNumber); !ok {
			return "'for' " + what + " must be a number"
		}
	}
	return "'for' step must be a number"
}
