package bytecode

// Names of values in errors: "local 'x'", "field 'y'". They are found as Lua finds them. A register that is a local variable
// has the name of the variable. For another register, the last instruction that filled it gives the name. The search goes
// through the code from its beginning and follows every forward jump that does not go past the failed instruction.

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Names of the hidden constants for the tables KEYS and ARGV.
const (
	HiddenKeys = "(keys)"
	HiddenArgv = "(argv)"
)

// ReadonlyName is the name that assignments to globals get in compiled code: no global has it.
const ReadonlyName = "(readonly)"

// setsA are the instructions that fill their register A.
var setsA = func() (sets [lua.OP_NOP + 1]bool) {
	for op := range sets {
		switch op {
		case lua.OP_SETGLOBAL, lua.OP_SETUPVAL, lua.OP_SETTABLE, lua.OP_SETTABLEKS, lua.OP_JMP, lua.OP_EQ, lua.OP_LT,
			lua.OP_LE, lua.OP_RETURN, lua.OP_TFORLOOP, lua.OP_SETLIST, lua.OP_CLOSE, lua.OP_NOP:
		default:
			sets[op] = true
		}
	}
	return sets
}()

// setBy returns the last instruction that filled a register before pc. If none did, it returns the last instruction of
// the function, a return.
func (f *Function) setBy(pc, reg int) Instruction {
	last := len(f.Code) - 1
	for i := 0; i < pc; i++ {
		inst := Instruction(f.Code[i])
		a := inst.A()
		if setsA[inst.Op()] && a == reg {
			last = i
		}
		switch inst.Op() {
		case lua.OP_LOADNIL:
			if a <= reg && reg <= inst.B() {
				last = i
			}
		case lua.OP_SELF:
			if reg == a+1 {
				last = i
			}
		case lua.OP_CALL, lua.OP_TAILCALL:
			if reg >= a {
				last = i
			}
		case lua.OP_TFORLOOP:
			if reg >= a+2 {
				last = i
			}
		case lua.OP_JMP, lua.OP_FORLOOP, lua.OP_FORPREP:
			if to := i + 1 + inst.Jump(); i < to && to <= pc {
				i = to - 1
			}
		case lua.OP_SETLIST:
			if inst.C() == 0 {
				i++
			}
		case lua.OP_CLOSURE:
			i += int(f.FunctionPrototypes[inst.Bx()].NumUpvalues)
		}
	}
	return Instruction(f.Code[last])
}

// local returns the name of the local variable in a register at pc, empty if there is none.
func (f *Function) local(pc, reg int) string {
	for _, v := range f.Locals {
		if int(v.From) > pc {
			break
		}
		if pc < int(v.To) {
			if reg == 0 {
				return v.Name
			}
			reg--
		}
	}
	return ""
}

// Name returns kind and name of an operand of the instruction at pc, both empty if Lua has no name for it.
func (f *Function) Name(pc, operand int) (kind, name string) {
	if operand&ConstantBit != 0 {
		return f.hiddenName(int32(operand &^ ConstantBit))
	}
	reg := operand
	for {
		if name := f.local(pc, reg); name != "" {
			return "local", name
		}
		switch i := f.setBy(pc, reg); i.Op() {
		case lua.OP_GETGLOBAL:
			return "global", string(f.Constants[i.Bx()].(lua.LString))
		case lua.OP_LOADK:
			return f.hiddenName(int32(i.Bx()))
		case lua.OP_MOVE:
			if i.B() >= i.A() {
				return "", ""
			}
			reg = i.B()
			continue
		case lua.OP_GETTABLE, lua.OP_GETTABLEKS:
			return "field", f.key(i.C())
		case lua.OP_GETUPVAL:
			return "upvalue", f.DbgUpvalues[i.B()]
		case lua.OP_SELF:
			return "method", f.key(i.C())
		}
		return "", ""
	}
}

// hiddenName returns kind and name of a hidden constant as the script wrote it.
func (f *Function) hiddenName(index int32) (kind, name string) {
	for _, h := range f.Hidden {
		if h.Index != index {
			continue
		}
		switch h.Name {
		case HiddenKeys:
			return "global", "KEYS"
		case HiddenArgv:
			return "global", "ARGV"
		}
		if _, field, ok := strings.Cut(h.Name, "."); ok {
			return "field", field
		}
		return "global", h.Name
	}
	return "", ""
}

// key is the name of a field.
func (f *Function) key(operand int) string {
	if operand&ConstantBit != 0 {
		if s, ok := f.Constants[operand&^ConstantBit].(lua.LString); ok {
			return string(s)
		}
	}
	return "?"
}

// Called returns kind and name of the function that the instruction before pc calls. Both are empty if the function has no
// name, or if the instruction is not a call, as with a metamethod.
func (f *Function) Called(pc int) (kind, name string) {
	if pc < 1 || pc > len(f.Code) {
		return "", ""
	}
	switch i := Instruction(f.Code[pc-1]); i.Op() {
	case lua.OP_CALL, lua.OP_TAILCALL, lua.OP_TFORLOOP:
		return f.Name(pc-1, i.A())
	}
	return "", ""
}
