package luavm

// Operands of the instructions of the main loop: registers and constants by address, and tests of their values.

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/boxes"
	"github.com/limitkv/limitkv/luavm/bytecode"
)

// at returns the address of register or constant i; first is the address of the first one.
func at(first unsafe.Pointer, i int) *lua.LValue {
	return (*lua.LValue)(unsafe.Add(first, uintptr(i)*unsafe.Sizeof(lua.LValue(nil))))
}

// placeAt returns the address of register i's place for a number (see boxes.Loose); first is that of the first register.
func placeAt(first unsafe.Pointer, i int) *lua.LNumber {
	return (*lua.LNumber)(unsafe.Add(first, uintptr(i)*unsafe.Sizeof(lua.LNumber(0))))
}

// placeOf returns the address of a register or a constant.
func placeOf(regs, constants unsafe.Pointer, n int) *lua.LValue {
	if n&bytecode.ConstantBit != 0 {
		regs = constants
	}
	return at(regs, n&^bytecode.ConstantBit)
}

// operandAt returns a register or a constant. It may be a number without a box; to store the value, use boxedOperand.
func operandAt(regs, constants unsafe.Pointer, n int) lua.LValue {
	if n&bytecode.ConstantBit != 0 {
		return *at(constants, n&^bytecode.ConstantBit)
	}
	return *at(regs, n)
}

// boxedOperand returns a register or a constant in a form that may be stored.
func (vm *VM) boxedOperand(regs, places, constants unsafe.Pointer, n int) lua.LValue {
	if n&bytecode.ConstantBit != 0 {
		return *at(constants, n&^bytecode.ConstantBit)
	}
	v := at(regs, n)
	if f := placeAt(places, n); boxes.Has(v, f) {
		return vm.boxes.Number(float64(*f))
	}
	return *v
}

// put assigns to a register; false if the stack must grow first.
func (r *luaRegistry) put(i int, v lua.LValue) bool {
	if uint(i) >= uint(len(r.array)) {
		return false
	}
	r.array[i] = v
	if i >= r.top {
		r.top = i + 1
	}
	return true
}

// operand is a register or a constant.
func (r *luaRegistry) operand(n, local int, constants []lua.LValue) lua.LValue {
	if n&bytecode.ConstantBit != 0 {
		return constants[n&^bytecode.ConstantBit]
	}
	return r.array[local+n]
}

// isTrue tells whether a value counts as true.
func isTrue(v lua.LValue) bool {
	if b, ok := v.(lua.LBool); ok {
		return bool(b)
	}
	_, none := v.(*lua.LNilType)
	return !none
}

// isKey tells whether a value can be a key of a table.
func isKey(v lua.LValue) bool {
	switch v := v.(type) {
	case lua.LNumber:
		return v == v
	case *lua.LNilType:
		return false
	}
	return true
}

// longString is the length up to which comparing strings counts as no more than a step.
const longString = 4 << 10

// compares counts the cost of comparing two long strings.
func (vm *VM) compares(x, y lua.LValue) {
	if x, ok := x.(lua.LString); ok && len(x) > longString {
		if y, ok := y.(lua.LString); ok {
			vm.budget.Bytes(8 * min(len(x), len(y))) // gopher-lua compares byte by byte
		}
	}
}

// equals compares two values; certain is false if a metamethod may be needed.
func (vm *VM) equals(x, y lua.LValue) (equal, certain bool) {
	switch x := x.(type) {
	case lua.LNumber:
		y, ok := y.(lua.LNumber)
		return ok && x == y, true
	case lua.LString:
		y, ok := y.(lua.LString)
		if len(x) > longString && ok && len(x) == len(y) {
			vm.budget.Bytes(len(x))
		}
		return ok && x == y, true
	case lua.LBool:
		y, ok := y.(lua.LBool)
		return ok && x == y, true
	case *lua.LNilType:
		_, ok := y.(*lua.LNilType)
		return ok, true
	}
	return false, false
}
