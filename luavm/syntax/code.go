package syntax

// Code of a function being compiled: instructions, jumps, registers, constants.

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/boxes"
	"github.com/limitkv/limitkv/luavm/bytecode"
	"github.com/limitkv/limitkv/luavm/tables"
)

const (
	registersMax = 250       // of a function, as in Lua
	constantsMax = 1<<18 - 1 // likewise; also the limit of functions in a function
	declaredMax  = 1<<15 - 1 // local variables that a function declares in all its blocks
	searchMax    = 16        // up to so many constants are searched one by one
	anyRegister  = bytecode.MaxA
)

// code is a function being compiled.
type code struct {
	c      *compiler
	outer  *code
	blocks []block            // the open blocks, inner ones last
	made   *bytecode.Function // the result
	line   int                // where it is defined, 0 for the main chunk

	instructions []uint32
	lines        []int
	target       int // the last instruction that is the target of a settled jump
	pending      int // list of jumps to the next instruction
	free         int // the first free register
	registers    int // how many registers the function needs

	constants []lua.LValue
	strings   map[string]int // numbers of the constants, once these are many
	numbers   map[float64]int
	singles   [3]int // 1 + the constant of nil, true and false; 0: none yet

	active   []int // the visible local variables, by register: indexes into made.Locals
	upvalues []upvalue
	vararg   bool
}

// upvalue is a variable of an outer function: a register of the directly enclosing function, or an upvalue of that.
type upvalue struct {
	local bool
	index int
	name  string
}

// block is a block being compiled.
type block struct {
	breaks  int // jumps out of it
	active  int // visible variables outside
	captive bool
	loop    bool
}

// emit adds an instruction. It gets the line of the token read last.
func (f *code) emit(i bytecode.Instruction) int {
	pc := len(f.instructions)
	if f.pending != noJump {
		f.settle(f.pending, pc, anyRegister, pc)
		f.pending = noJump
	}
	f.instructions = append(f.instructions, uint32(i))
	f.lines = append(f.lines, f.c.lastLine)
	return pc
}

func (f *code) emitABC(op, a, b, c int) int { return f.emit(bytecode.ABC(op, a, b, c)) }

// at returns an instruction, so that it can be changed.
func (f *code) at(pc int) *bytecode.Instruction {
	return (*bytecode.Instruction)(&f.instructions[pc])
}

// fixLine changes the line of the last instruction.
func (f *code) fixLine(line int) { f.lines[len(f.lines)-1] = line }

// drop removes the last instruction.
func (f *code) drop() {
	f.instructions = f.instructions[:len(f.instructions)-1]
	f.lines = f.lines[:len(f.lines)-1]
}

// loadNil fills registers with nil. It extends the previous instruction if that fills adjacent registers with nil.
func (f *code) loadNil(from, n int) {
	if last := len(f.instructions) - 1; last >= f.target && last >= 0 && f.pending == noJump {
		i := f.at(last)
		if i.Op() == lua.OP_LOADNIL && i.A() <= from && from <= i.B()+1 {
			i.SetB(max(i.B(), from+n-1))
			return
		}
	}
	f.emitABC(lua.OP_LOADNIL, from, from+n-1, 0)
}

// Jumps. While their target is not known, jumps to the same place form a list: each holds the distance to the next one.

const noJump = -1

// jump emits a jump. Pending jumps to it join its list, so that they go directly to its target.
func (f *code) jump() int {
	pending := f.pending
	f.pending = noJump
	j := f.emit(bytecode.AJump(lua.OP_JMP, 0, noJump))
	return f.join(j, pending)
}

// jumpIf emits a test and the jump behind it.
func (f *code) jumpIf(op, a, b, c int) int {
	f.emitABC(op, a, b, c)
	return f.jump()
}

// here returns the place of the next instruction, as a target of backward jumps.
func (f *code) here() int {
	f.target = len(f.instructions)
	return f.target
}

// next returns the next jump in the list of a jump.
func (f *code) next(pc int) int {
	d := f.at(pc).Jump()
	if d == noJump {
		return noJump
	}
	return pc + 1 + d
}

// lead sets the target of a jump.
func (f *code) lead(pc, to int) {
	d := to - (pc + 1)
	if d > bytecode.MaxJump || d < -bytecode.MaxJump {
		f.c.syntaxError("control structure too long")
	}
	f.at(pc).SetJump(d)
}

// join makes one list of two. Its time is proportional to the shorter one, since in a long chain the lists grow by one jump at
// a time.
func (f *code) join(a, b int) int {
	if a == noJump {
		return b
	}
	if b == noJump {
		return a
	}
	for i, j := a, b; ; {
		nextI, nextJ := f.next(i), f.next(j)
		if nextJ == noJump {
			f.lead(j, a)
			return b
		}
		if nextI == noJump {
			f.lead(i, b)
			return a
		}
		i, j = nextI, nextJ
	}
}

// test returns the instruction that decides on a jump: the one before it, or the jump itself if there is none.
func (f *code) test(pc int) *bytecode.Instruction {
	if pc > 0 {
		switch i := f.at(pc - 1); i.Op() {
		case lua.OP_EQ, lua.OP_LT, lua.OP_LE, lua.OP_TEST, lua.OP_TESTSET, lua.OP_TFORLOOP:
			return i
		}
	}
	return f.at(pc)
}

// needsValue tells whether a jump of a list leaves no value behind.
func (f *code) needsValue(list int) bool {
	for ; list != noJump; list = f.next(list) {
		if f.test(list).Op() != lua.OP_TESTSET {
			return true
		}
	}
	return false
}

// keepIn makes the test before a jump store its value in a register; anyRegister: in none. It returns false if the test
// is not a TESTSET.
func (f *code) keepIn(jump, reg int) bool {
	i := f.test(jump)
	if i.Op() != lua.OP_TESTSET {
		return false
	}
	if reg != anyRegister && reg != i.B() {
		i.SetA(reg)
	} else {
		*i = bytecode.ABC(lua.OP_TEST, i.B(), 0, i.C())
	}
	return true
}

// valueless makes the jumps of a list leave no values behind.
func (f *code) valueless(list int) {
	for ; list != noJump; list = f.next(list) {
		f.keepIn(list, anyRegister)
	}
}

// settle sets the targets of the jumps in a list: jumps with a value store it in a register and go to one place, jumps without
// a value go to another.
func (f *code) settle(list, to, reg, without int) {
	for list != noJump {
		next := f.next(list)
		if f.keepIn(list, reg) {
			f.lead(list, to)
		} else {
			f.lead(list, without)
		}
		list = next
	}
}

// leadTo sets the target of all jumps in a list.
func (f *code) leadTo(list, to int) {
	if to == len(f.instructions) {
		f.leadHere(list)
		return
	}
	f.settle(list, to, anyRegister, to)
}

// leadHere makes the next instruction the target of all jumps in a list.
func (f *code) leadHere(list int) {
	f.here()
	f.pending = f.join(f.pending, list)
}

// Registers.

// room makes sure that there are n free registers.
func (f *code) room(n int) {
	if top := f.free + n; top > f.registers {
		if top >= registersMax {
			f.c.syntaxError("function or expression too complex")
		}
		f.registers = top
	}
}

func (f *code) reserve(n int) {
	f.room(n)
	f.free += n
}

// release frees a register unless it belongs to a variable.
func (f *code) release(operand int) {
	if operand&bytecode.ConstantBit == 0 && operand >= len(f.active) {
		f.free--
	}
}

// Constants.

func (f *code) addConstant(v lua.LValue) int {
	n := len(f.constants)
	if n >= constantsMax {
		panic(&Error{"constant table overflow"})
	}
	f.constants = append(f.constants, v)
	return n
}

// index makes maps of the constants if there are too many to search one by one. It reports whether there are maps.
func (f *code) index() bool {
	if f.strings == nil {
		if len(f.constants) < searchMax {
			return false
		}
		f.strings, f.numbers = map[string]int{}, map[float64]int{}
		for i, v := range f.constants {
			switch v := v.(type) {
			case lua.LString:
				f.strings[string(v)] = i
			case lua.LNumber:
				f.numbers[float64(v)] = i
			}
		}
	}
	return true
}

// nameOfField returns the constant for a string. All functions of a source share it. It was made by tables.Field.
func (c *compiler) nameOfField(s string) lua.LValue {
	v, ok := c.names[s]
	if !ok {
		if c.names == nil {
			c.names = map[string]lua.LValue{}
		}
		v = tables.Field(s)
		c.names[s] = v
	}
	return v
}

func (f *code) stringConstant(s string) int {
	if !f.index() {
		for i, v := range f.constants {
			if k, ok := v.(lua.LString); ok && string(k) == s {
				return i
			}
		}
		return f.addConstant(f.c.nameOfField(s))
	}
	i, ok := f.strings[s]
	if !ok {
		i = f.addConstant(f.c.nameOfField(s))
		f.strings[s] = i
	}
	return i
}

// numberConstant returns the constant for a number. Like Lua it treats 0 and -0 as the same constant, whichever comes first.
func (f *code) numberConstant(n float64) int {
	if !f.index() {
		for i, v := range f.constants {
			if k, ok := v.(lua.LNumber); ok && float64(k) == n {
				return i
			}
		}
		return f.addConstant(boxes.Lasting(n))
	}
	i, ok := f.numbers[n]
	if !ok {
		i = f.addConstant(boxes.Lasting(n))
		f.numbers[n] = i
	}
	return i
}

// single returns the constant nil, true or false.
func (f *code) single(n int, v lua.LValue) int {
	if f.singles[n] == 0 {
		f.singles[n] = f.addConstant(v) + 1
	}
	return f.singles[n] - 1
}

// hidden returns a constant for which each VM has its own value.
func (f *code) hidden(name string) int {
	for _, h := range f.made.Hidden {
		if h.Name == name {
			return int(h.Index)
		}
	}
	i := f.addConstant(lua.LNil)
	f.made.Hidden = append(f.made.Hidden, bytecode.Hidden{Index: int32(i), Name: name})
	return i
}
