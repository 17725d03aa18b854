package luavm

// The tables of keys and arguments that a library's function is called with. Most functions only look at their items. Those
// get the same two tables at each call, as scripts do: to make new ones took a sixth of the time of a call.

import (
	lua "github.com/yuin/gopher-lua"
)

// onlyRead tells whether a function does nothing with a parameter but to read its items and its length, so that nobody
// has it afterwards. What it does not know of an instruction counts as something else.
func onlyRead(p *lua.FunctionProto, parameter int) bool {
	if p.IsVarArg != 0 || parameter >= int(p.NumParameters) {
		return false
	}
	for _, code := range p.Code {
		i := instruction(code)
		a, b, c := i.A() == parameter, i.B() == parameter, i.C() == parameter
		used := true
		switch i.Op() {
		case lua.OP_GETTABLE, lua.OP_GETTABLEKS:
			used = a || c
		case lua.OP_LEN:
			used = a
		case lua.OP_JMP:
			used = false
		case lua.OP_LOADK, lua.OP_LOADBOOL, lua.OP_GETUPVAL, lua.OP_GETGLOBAL, lua.OP_SETUPVAL, lua.OP_SETGLOBAL, lua.OP_CLOSURE,
			lua.OP_NEWTABLE, lua.OP_FORPREP, lua.OP_FORLOOP, lua.OP_TFORLOOP, lua.OP_TEST, lua.OP_CLOSE:
			used = a
		case lua.OP_RETURN:
			used = i.B() != 1 && (a || i.B() != 2 && i.A() <= parameter) // one without values has A 0
		case lua.OP_CALL, lua.OP_TAILCALL: // of what is above A
			used = i.A() <= parameter
		case lua.OP_SETLIST: // likewise; without C a word follows that is no instruction
			used = i.A() <= parameter || i.C() == 0
		case lua.OP_CONCAT: // from B to C
			used = a || i.B() <= parameter
		case lua.OP_LOADNIL: // from A to B
			used = i.A() <= parameter
		case lua.OP_MOVE, lua.OP_NOT, lua.OP_UNM, lua.OP_TESTSET:
			used = a || b
		case lua.OP_EQ, lua.OP_LT, lua.OP_LE:
			used = b || c
		case lua.OP_ADD, lua.OP_SUB, lua.OP_MUL, lua.OP_DIV, lua.OP_MOD, lua.OP_POW, lua.OP_SELF,
			lua.OP_SETTABLE, lua.OP_SETTABLEKS:
			used = a || b || c
		}
		if used {
			return false
		}
	}
	return true
}

// lend returns the table of some arguments: one that is used again, if the function only reads it.
func (vm *VM) lend(from *arguments, onlyRead bool, values [][]byte) *lua.LTable {
	if !onlyRead {
		return vm.stringArray(values)
	}
	from.set(values, &vm.boxes)
	return from.table
}
