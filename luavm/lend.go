package luavm

// The tables of keys and arguments for calls of a library's function. Most functions only read their items. Such a function
// gets the same two tables at each call, as scripts do: to make new tables took a sixth of the time of a call.

import (
	lua "github.com/yuin/gopher-lua"
)

// onlyRead tells whether a function only reads the items and the length of a parameter, so that nothing refers to the table
// after the call. It returns false if an instruction may do anything else with it.
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
			used = i.B() != 1 && (a || i.B() != 2 && i.A() <= parameter) // a return without values has A 0
		case lua.OP_CALL, lua.OP_TAILCALL: // takes the registers above A
			used = i.A() <= parameter
		case lua.OP_SETLIST: // likewise; if C is 0, the next word is not an instruction
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

// lend returns a table of values: the reused one in from if the function only reads it, else a new one.
func (vm *VM) lend(from *arguments, onlyRead bool, values [][]byte) *lua.LTable {
	if !onlyRead {
		return vm.stringArray(values)
	}
	from.set(values, &vm.boxes)
	return from.table
}
