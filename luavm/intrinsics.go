package luavm

// Instructions that gopher-lua executes differently from Lua 5.1: arithmetic with strings and with -0, numbers in
// concatenations, the remainder, powers, #, the bounds of a numeric for, varargs, and all instructions on tables
// (tableops.go).

import (
	"math"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/precise"
	"github.com/limitkv/limitkv/luavm/syntax"
	"github.com/limitkv/limitkv/luavm/tables"
)

var infinity = math.Inf(1)

// instructions is gopher-lua's table of functions that execute instructions. A result of 1 ends the loop.
//
//go:linkname instructions github.com/yuin/gopher-lua.jumpTable
var instructions [lua.OP_NOP + 1]func(L *lua.LState, inst uint32, base unsafe.Pointer) int

// operations is the same table with our functions in some places. gopher-lua's own table stays as it is, since a program may
// have other Lua states.
var operations = instructions

func init() {
	for op, carryOut := range map[int]func(vm *VM, L *lua.LState, f *luaFrame, inst instruction){
		lua.OP_ADD: arithmetic, lua.OP_SUB: arithmetic, lua.OP_MUL: arithmetic, lua.OP_DIV: arithmetic,
		lua.OP_MOD: arithmetic, lua.OP_POW: arithmetic, lua.OP_UNM: negate, lua.OP_LEN: length, lua.OP_CONCAT: concat,
		lua.OP_GETGLOBAL: getGlobal, lua.OP_SETGLOBAL: setGlobal, lua.OP_GETTABLE: getTable, lua.OP_GETTABLEKS: getTable,
		lua.OP_SETTABLE: setTable, lua.OP_SETTABLEKS: setTable, lua.OP_SELF: self, lua.OP_NEWTABLE: newTable,
		lua.OP_SETLIST: setList, lua.OP_FORPREP: prepareFor, lua.OP_VARARG: varargs,
	} {
		operations[op] = func(L *lua.LState, inst uint32, _ unsafe.Pointer) int {
			carryOut(vmOf(L), L, inside(L).currentFrame, instruction(inst))
			return 0
		}
	}
}

// vmOf returns the VM of a state.
func vmOf(L *lua.LState) *VM { return L.G.Registry.Metatable.(*lua.LUserData).Value.(*VM) }

// setRegister sets a register of a frame.
func setRegister(L *lua.LState, f *luaFrame, n int, v lua.LValue) {
	if !inside(L).reg.put(f.LocalBase+n, v) {
		panic("luavm: a function with too few registers")
	}
}

// varargs copies the further arguments (...) into registers. gopher-lua's function is wrong for a fixed number of them, as in
// a = ...: it would end the stack behind them, and so lose the local variables in later registers.
func varargs(_ *VM, L *lua.LState, f *luaFrame, inst instruction) {
	if inst.B() == 0 {
		instructions[lua.OP_VARARG](L, uint32(inst), nil)
		return
	}
	params := int(f.Fn.Proto.NumParameters)
	for i := range inst.B() - 1 {
		var v lua.LValue = lua.LNil
		if i < f.NArgs-params {
			v = inside(L).reg.array[f.Base+1+params+i]
		}
		setRegister(L, f, inst.A()+i, v)
	}
}

// concat is a..b..c: from right to left; neighbours that are strings or numbers are joined at once.
func concat(vm *VM, L *lua.LState, f *luaFrame, inst instruction) {
	first := f.LocalBase + inst.B()
	values := inside(L).reg.array[first : f.LocalBase+inst.C()+1]
	if s, ok := vm.join(L, values); ok {
		setRegister(L, f, inst.A(), s)
		return
	}
	// Copied, since the values are in the stack, which can move when metamethods are called.
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
			culprit := i
			if _, ok := arg.ToString(values[i]); ok {
				culprit = i + 1
				setRegister(L, f, inst.B()+culprit, result)
			}
			vm.operandError(L, "concatenate", inst.B()+culprit)
		}
		result = vm.callMetamethod(L, op, values[i], result)
	}
	setRegister(L, f, inst.A(), result)
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
	vm.roomAtOnce(L, size)
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

// events are the metamethods of the arithmetic operators.
var events = [...]string{
	lua.OP_ADD: "__add", lua.OP_SUB: "__sub", lua.OP_MUL: "__mul", lua.OP_DIV: "__div", lua.OP_MOD: "__mod",
	lua.OP_POW: "__pow", lua.OP_UNM: "__unm",
}

// arithmetic applies an operator to numbers, to strings that spell numbers, or by metamethod.
func arithmetic(vm *VM, L *lua.LState, f *luaFrame, inst instruction) {
	vm.compute(L, f, inst, inst.B(), inst.C())
}

func negate(vm *VM, L *lua.LState, f *luaFrame, inst instruction) {
	vm.compute(L, f, inst, inst.B(), inst.B())
}

func (vm *VM) compute(L *lua.LState, f *luaFrame, inst instruction, left, right int) {
	a, b := register(L, f, left), register(L, f, right)
	x, ok1 := arg.ToNumber(a)
	y, ok2 := arg.ToNumber(b)
	if ok1 && ok2 {
		setRegister(L, f, inst.A(), vm.boxes.Number(compute(inst.Op(), x, y)))
		return
	}
	m := vm.binaryMetamethod(a, b, events[inst.Op()])
	if m == lua.LNil {
		if ok1 {
			left = right
		}
		vm.operandError(L, "perform arithmetic on", left)
	}
	setRegister(L, f, inst.A(), vm.callMetamethod(L, m, a, b))
}

func compute(op int, x, y float64) float64 {
	switch op {
	case lua.OP_ADD:
		return x + y
	case lua.OP_SUB:
		return x - y
	case lua.OP_MUL:
		return x * y
	case lua.OP_DIV:
		return x / y
	case lua.OP_MOD:
		return syntax.Modulo(x, y)
	case lua.OP_POW:
		return precise.Pow(x, y)
	}
	return -x
}

// binaryMetamethod is the metamethod for two operands.
func (vm *VM) binaryMetamethod(a, b lua.LValue, event string) lua.LValue {
	for _, v := range [2]lua.LValue{a, b} {
		if m := vm.metamethod(v, event); m != lua.LNil {
			return m
		}
	}
	return lua.LNil
}

// metamethod is the metamethod of a table or userdata.
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
		return tables.GetString(t, event)
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

// call calls a value from Go, as a C function would. The depth of such calls is limited, see ccallsMax.
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

// ccallsMax is how deep calls through Go may nest, as LUAI_MAXCCALLS limits calls through C.
const ccallsMax = 199

func (vm *VM) enter(L *lua.LState) {
	vm.ccalls++
	if vm.ccalls >= ccallsMax {
		vm.ccalls--
		vm.throw(L, lua.LString(where(L, 0)+"C stack overflow"))
	}
}

// prepareFor begins a numeric for. Its bounds may be strings that spell numbers.
func prepareFor(vm *VM, L *lua.LState, f *luaFrame, inst instruction) {
	var bounds [3]float64
	for i, what := range [...]string{"initial value", "limit", "step"} {
		n, ok := arg.ToNumber(register(L, f, inst.A()+i))
		if !ok {
			vm.throw(L, lua.LString(where(L, 0)+"'for' "+what+" must be a number"))
		}
		bounds[i] = n
		setRegister(L, f, inst.A()+i, vm.boxes.Number(n))
	}
	setRegister(L, f, inst.A(), vm.boxes.Number(bounds[0]-bounds[2]))
	f.Pc += inst.Jump()
}

// length is #v. Lua 5.1 does not use __len of tables.
func length(vm *VM, L *lua.LState, f *luaFrame, inst instruction) {
	var n lua.LValue
	switch v := register(L, f, inst.B()).(type) {
	case lua.LString:
		n = vm.boxes.Int(int64(len(v)))
	case *lua.LTable:
		n = vm.boxes.Int(int64(tables.Border(v)))
	default:
		m := vm.metamethod(v, "__len")
		if m == lua.LNil {
			vm.operandError(L, "get length of", inst.B())
		}
		n = vm.callMetamethod(L, m, v)
	}
	setRegister(L, f, inst.A(), n)
}

// stringMetatable gives strings their methods.
func (vm *VM) stringMetatable() *lua.LTable {
	mt := tables.New(0, 1)
	tables.SetString(mt, "__index", vm.strings)
	return mt
}
