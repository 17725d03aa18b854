// Package bytecode, internal to the server, has the prototypes that the compiler makes for gopher-lua's virtual
// machine, with additional data for Redis-exact errors.
//
// The machine's instructions are those of Lua 5.1 with the operands in other bits. So the code is the same as the real Lua's,
// instruction by instruction, with a few exceptions that names.go knows. That is why the names in errors can
// be found as Lua finds them: from the instruction that filled a register.
package bytecode

import (
	"reflect"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// Instruction is an instruction of the machine: from the top bits, operation, A, C and B; Bx is C and B together.
type Instruction uint32

// Limits of an instruction's operands.
const (
	MaxA    = 1<<8 - 1
	MaxC    = 1<<9 - 1
	MaxBx   = 1<<18 - 1
	MaxJump = MaxBx >> 1 // it is added to jump distances, so that they are stored as positive numbers

	// ConstantBit marks an operand that is a constant. Only the first MaxConstant+1 constants can be operands.
	ConstantBit = 1 << 8
	MaxConstant = ConstantBit - 1
)

// ABC makes an instruction of three operands.
func ABC(op, a, b, c int) Instruction {
	return Instruction(op)<<26 | Instruction(a)<<18 | Instruction(c)<<9 | Instruction(b)
}

// ABx makes an instruction of two operands.
func ABx(op, a, bx int) Instruction {
	return Instruction(op)<<26 | Instruction(a)<<18 | Instruction(bx)
}

// AJump makes an instruction that jumps.
func AJump(op, a, distance int) Instruction { return ABx(op, a, distance+MaxJump) }

// The parts of an instruction.
func (i Instruction) Op() int   { return int(i >> 26) }
func (i Instruction) A() int    { return int(i>>18) & MaxA }
func (i Instruction) B() int    { return int(i & MaxC) }
func (i Instruction) C() int    { return int(i>>9) & MaxC }
func (i Instruction) Bx() int   { return int(i & MaxBx) }
func (i Instruction) Jump() int { return int(i&MaxBx) - MaxJump }

// LeavesMany tells whether an instruction leaves a variable number of values at the top of the stack, which the next one takes.
func (i Instruction) LeavesMany() bool {
	switch i.Op() {
	case lua.OP_CALL, lua.OP_TAILCALL:
		return i.C() == 0
	case lua.OP_VARARG:
		return i.B() == 0
	}
	return false
}

// SetOp, SetA, SetB, SetC and SetJump change a part of an instruction.
func (i *Instruction) SetOp(op int)  { *i = *i&(1<<26-1) | Instruction(op)<<26 }
func (i *Instruction) SetA(a int)    { *i = *i&^(MaxA<<18) | Instruction(a)<<18 }
func (i *Instruction) SetB(b int)    { *i = *i&^MaxC | Instruction(b) }
func (i *Instruction) SetC(c int)    { *i = *i&^(MaxC<<9) | Instruction(c)<<9 }
func (i *Instruction) SetJump(d int) { *i = *i&^MaxBx | Instruction(d+MaxJump) }

// Function is a prototype with additional data. Every prototype in a VM is the first field of a Function, see Of.
type Function struct {
	lua.FunctionProto

	Source string  // the chunk's name in Lua's form: "@user_script", or the code itself
	Locals []Local // in the order in which their scopes begin
	Hidden []Hidden
}

// Local is a local variable. It is visible from one instruction up to, not including, another.
type Local struct {
	Name     string
	From, To int32
}

// Hidden is a constant for which each VM has its own value, such as a library function. Its element of Constants is nil
// until Link.
type Hidden struct {
	Index int32
	Name  string // "tonumber", "redis.call"
}

// Of returns the Function whose first field is p. That is right for all code in a VM, since Compile makes only Functions.
func Of(p *lua.FunctionProto) *Function { return (*Function)(unsafe.Pointer(p)) }

// texts is the offset of the field in which a prototype has its string constants, for instructions that take a string.
var texts = func() uintptr {
	f, ok := reflect.TypeOf(lua.FunctionProto{}).FieldByName("stringConstants")
	if !ok || f.Type != reflect.TypeOf([]string(nil)) {
		panic("bytecode: FunctionProto.stringConstants is not what this version of bytecode expects")
	}
	return f.Offset
}()

// SetConstants gives a prototype its constants.
func (f *Function) SetConstants(constants []lua.LValue) {
	f.Constants = constants
	list := make([]string, len(constants))
	for i, k := range constants {
		if s, ok := k.(lua.LString); ok {
			list[i] = string(s)
		}
	}
	*(*[]string)(unsafe.Add(unsafe.Pointer(&f.FunctionProto), texts)) = list
}

// Link returns a copy of f with the values of its hidden constants, or f itself if it has none. It does the same for the
// functions in f.
func (f *Function) Link(value func(name string) lua.LValue) *Function {
	linked := f
	copied := func() *Function {
		if linked == f {
			c := *f
			linked = &c
		}
		return linked
	}
	if len(f.Hidden) > 0 {
		constants := append([]lua.LValue(nil), f.Constants...)
		for _, h := range f.Hidden {
			constants[h.Index] = value(h.Name)
		}
		copied().Constants = constants
	}
	for i, p := range f.FunctionPrototypes {
		inner := &Of(p).Link(value).FunctionProto
		if inner == p {
			continue
		}
		if l := copied(); len(l.FunctionPrototypes) > 0 && &l.FunctionPrototypes[0] == &f.FunctionPrototypes[0] {
			l.FunctionPrototypes = append([]*lua.FunctionProto(nil), f.FunctionPrototypes...)
		}
		linked.FunctionPrototypes[i] = inner
	}
	return linked
}

// SizeOf encodes how many places a table constructor makes room for, as an instruction stores it: three bits and an
// exponent, rounded up.
func SizeOf(n int) int {
	e := 0
	for n >= 16 {
		n = (n + 1) >> 1
		e++
	}
	if n < 8 {
		return n
	}
	return (e+1)<<3 | (n - 8)
}

// Size decodes a number from SizeOf.
func Size(s int) int {
	if e := s >> 3; e > 0 {
		return (s&7 + 8) << (e - 1)
	}
	return s
}
