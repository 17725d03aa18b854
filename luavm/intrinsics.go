package luavm

// What compiled code calls in place of operators that gopher-lua does otherwise, and the arithmetic of strings.

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/precise"
	"github.com/limitkv/limitkv/luavm/tables"
)

var infinity = math.Inf(1)

// concat is a..b..c: right to left, all neighbours that are strings or numbers at once.
func (vm *VM) concat(L *lua.LState) int {
	values := argumentsOf(L)
	if s, ok := vm.join(L, values); ok {
		L.Push(s)
		return 1
	}
	// The values are in the stack, which moves when metamethods are called.
	values = append([]lua.LValue(nil), values...)
	n := len(values)
	result := values[n-1]
	for i := n - 2; i >= 0; i-- {
		if joined, ok := vm.join(L, []lua.LValue{values[i], result}); ok {
			result = joined
			continue
		}
		op := vm.binaryMetamethod(values[i], result, "__concat")
		if op == lua.LNil {
			culprit, at := result, i+1
			if _, ok := arg.ToString(values[i]); !ok {
				culprit, at = values[i], i
			}
			if at > i && i+2 < n {
				at = -1 // the result of a concatenation has no name
			}
			vm.operandError(L, "concatenate", culprit, at)
		}
		result = vm.callMetamethod(L, op, values[i], result)
	}
	L.Push(result)
	return 1
}

// join concatenates values that are all strings or numbers.
func (vm *VM) join(L *lua.LState, values []lua.LValue) (lua.LValue, bool) {
	size := 0
	for _, v := range values {
		switch v := v.(type) {
		case lua.LString:
			size += len(v)
		case lua.LNumber:
			size += 24
		default:
			return nil, false
		}
	}
	vm.room(L, size)
	vm.budget.Bytes(size)
	b := vm.scratch[:0]
	for _, v := range values {
		switch v := v.(type) {
		case lua.LString:
			b = append(b, v...)
		case lua.LNumber:
			b = arg.AppendNumber(b, float64(v))
		}
	}
	if cap(b) <= scratchMax {
		vm.scratch = b
	}
	return vm.boxes.String(b), true
}

// operator makes a function of an arithmetic operator.
func (vm *VM) operator(op byte) *lua.LFunction {
	return vm.L.NewFunction(func(L *lua.LState) int { return vm.arithmetic(L, op) })
}

// events are the metamethods of the arithmetic operators.
var events = map[byte]string{'+': "__add", '-': "__sub", '*': "__mul", '/': "__div", '%': "__mod", '^': "__pow"}

// arithmetic applies an operator to the two arguments: numbers, strings that spell numbers, or by metamethod.
func (vm *VM) arithmetic(L *lua.LState, op byte) int {
	a, b := L.Get(1), L.Get(2)
	x, ok1 := arg.ToNumber(a)
	y, ok2 := arg.ToNumber(b)
	if !ok1 || !ok2 {
		if m := vm.binaryMetamethod(a, b, events[op]); m != lua.LNil {
			L.Push(vm.callMetamethod(L, m, a, b))
			return 1
		}
		culprit, at := b, 1
		if !ok1 {
			culprit, at = a, 0
		}
		vm.operandError(L, "perform arithmetic on", culprit, at)
	}
	var r float64
	switch op {
	case '+':
		r = x + y
	case '-':
		r = x - y
	case '*':
		r = x * y
	case '/':
		r = x / y
	case '%':
		r = modulo(x, y)
	case '^':
		r = precise.Pow(x, y)
	}
	L.Push(vm.boxes.Number(r))
	return 1
}

// binaryMetamethod is the metamethod of a script's own for two operands. Those of strings are our own doing.
func (vm *VM) binaryMetamethod(a, b lua.LValue, event string) lua.LValue {
	for _, v := range [2]lua.LValue{a, b} {
		if m := vm.metamethod(v, event); m != lua.LNil {
			return m
		}
	}
	return lua.LNil
}

// metamethod is that of a table or userdata.
func (vm *VM) metamethod(v lua.LValue, event string) lua.LValue {
	var mt lua.LValue
	switch v := v.(type) {
	case *lua.LTable:
		mt = v.Metatable
	case *lua.LUserData:
		mt = v.Metatable
	default:
		return lua.LNil
	}
	if t, ok := mt.(*lua.LTable); ok {
		return t.RawGetString(event)
	}
	return lua.LNil
}

// callMetamethod calls a metamethod for one result.
func (vm *VM) callMetamethod(L *lua.LState, m lua.LValue, args ...lua.LValue) lua.LValue {
	vm.call(L, m, 1, args...)
	v := L.Get(-1)
	L.Pop(1)
	return v
}

// call calls a value from Go, as a C function would: such calls may only nest so deep.
func (vm *VM) call(L *lua.LState, fn lua.LValue, nret int, args ...lua.LValue) {
	L.Push(fn)
	for _, a := range args {
		L.Push(a)
	}
	vm.callStacked(L, len(args), nret)
}

// callStacked calls the function below its arguments on the stack.
func (vm *VM) callStacked(L *lua.LState, nargs, nret int) {
	vm.enter(L)
	vm.mustBeCallable(L, L.Get(-nargs-1))
	L.Call(nargs, nret)
	vm.ccalls--
}

// ccallsMax is how deep calls through Go may nest, as LUAI_MAXCCALLS limits those through C.
const ccallsMax = 199

func (vm *VM) enter(L *lua.LState) {
	vm.ccalls++
	if vm.ccalls >= ccallsMax {
		vm.ccalls--
		vm.throw(L, lua.LString(where(L, 0)+"C stack overflow"))
	}
}

// forBound converts a bound of a numeric for: a string that spells a number is one.
func forBound(L *lua.LState) int {
	v := L.Get(1)
	if s, ok := v.(lua.LString); ok {
		if n, ok := arg.ParseNumber(string(s)); ok {
			v = lua.LNumber(n)
		}
	}
	L.Push(v)
	return 1
}

// length is #v. Lua 5.1 does not ask tables for __len.
func (vm *VM) length(L *lua.LState) int {
	switch v := L.Get(1).(type) {
	case lua.LString:
		L.Push(luaInt(int64(len(v))))
	case *lua.LTable:
		t, _ := vm.behind(v)
		L.Push(luaInt(int64(tables.Border(t))))
	default:
		if m := vm.metamethod(v, "__len"); m != lua.LNil {
			L.Push(vm.callMetamethod(L, m, v))
			return 1
		}
		vm.operandError(L, "get length of", v, 0)
	}
	return 1
}

// stringMetatable gives strings their methods and their arithmetic: gopher-lua's own conversion takes what Lua does
// not (0b1, 1_0) and reads 010 as eight.
func (vm *VM) stringMetatable() *lua.LTable {
	mt := vm.L.CreateTable(0, 8)
	mt.RawSetString("__index", vm.strings)
	for op, event := range events {
		mt.RawSetString(event, vm.operator(op))
	}
	mt.RawSetString("__unm", vm.L.NewFunction(func(L *lua.LState) int {
		x, ok := arg.ToNumber(L.Get(1))
		if !ok {
			vm.operandError(L, "perform arithmetic on", L.Get(1), 0)
		}
		L.Push(lua.LNumber(-x))
		return 1
	}))
	return mt
}

// list is {...} and {a, f()}: a table of all arguments.
func (vm *VM) list(L *lua.LState) int {
	L.Push(tables.List(L, argumentsOf(L)))
	return 1
}

// constructed is a constructor with keyed fields, behind which stand the numbers of list items and of fields.
func constructed(L *lua.LState) int {
	t := L.Get(1).(*lua.LTable)
	tables.MarkConstructed(t, int(L.Get(2).(lua.LNumber)), int(L.Get(3).(lua.LNumber)))
	L.Push(t)
	return 1
}
