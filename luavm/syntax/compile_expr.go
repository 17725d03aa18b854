package syntax

// Compiling expressions. The code that computes an operand is made only when its destination is known. Often no such code is
// needed: a local variable is read in place, a constant is part of the instruction, a comparison is a jump.

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/bytecode"
	"github.com/limitkv/limitkv/luavm/precise"
)

// form says what is known about an operand.
type form uint8

const (
	formVoid     form = iota // nothing: an empty list
	formNil                  //
	formTrue                 //
	formFalse                //
	formConstant             // index is the constant
	formNumber               // value
	formLocal                // index is the register
	formUpvalue              // index
	formGlobal               // name
	formIndexed              // index is the register of the table, key an operand
	formJump                 // index is the jump, which is taken if the operand is true
	formOpen                 // index is an instruction whose register A is not chosen yet
	formRegister             // index
	formCall                 // index is the instruction, so that the number of results can be changed
	formVararg               // likewise
)

// operand is an expression whose code may be incomplete.
type operand struct {
	form       form
	text       bool // of a constant: it is a string; of formIndexed: the key is one
	arguments  bool // of formIndexed: the table is KEYS or ARGV as a constant
	index, key int
	// onTrue and onFalse are jumps out of the expression when its value is decided.
	onTrue, onFalse int
	value           float64
	name            string // of a global or of a hidden constant
}

func operandOf(form form, index int) operand {
	return operand{form: form, index: index, onTrue: noJump, onFalse: noJump}
}

func (e *operand) jumps() bool { return e.onTrue != e.onFalse }

func (e *operand) hasManyValues() bool { return e.form == formCall || e.form == formVararg }

func (e *operand) isNumeral() bool {
	return e.form == formNumber && e.onTrue == noJump && e.onFalse == noJump
}

// become makes an operand of another form.
func (e *operand) become(form form, index int) { e.form, e.index = form, index }

// wants sets how many values a call or ... returns; -1: all.
func (f *code) wants(e *operand, n int) {
	switch e.form {
	case formCall:
		f.at(e.index).SetC(n + 1)
	case formVararg:
		i := f.at(e.index)
		i.SetB(n + 1)
		i.SetA(f.free)
		f.reserve(1)
	}
}

// wantsOne makes a call or ... return one value.
func (f *code) wantsOne(e *operand) {
	switch e.form {
	case formCall:
		e.become(formRegister, f.at(e.index).A())
	case formVararg:
		f.at(e.index).SetB(2)
		e.form = formOpen
	}
}

// read makes the code that reads a variable.
func (f *code) read(e *operand) {
	switch e.form {
	case formLocal:
		e.form = formRegister
	case formUpvalue:
		e.become(formOpen, f.emitABC(lua.OP_GETUPVAL, 0, e.index, 0))
	case formGlobal:
		f.c.escaping(e.name)
		e.become(formOpen, f.emit(bytecode.ABx(lua.OP_GETGLOBAL, 0, f.stringConstant(e.name))))
	case formIndexed:
		f.release(e.key)
		f.release(e.index)
		op := lua.OP_GETTABLE
		if e.text {
			op = lua.OP_GETTABLEKS
		}
		e.become(formOpen, f.emitABC(op, 0, e.index, e.key))
		e.arguments = false
	default:
		f.wantsOne(e)
	}
}

// object is read for a table whose fields are only read, where KEYS and ARGV can be constants.
func (f *code) object(e *operand) {
	if e.form == formGlobal && f.c.fold {
		switch e.name {
		case "KEYS":
			e.become(formConstant, f.hidden(bytecode.HiddenKeys))
			e.arguments = true
		case "ARGV":
			e.become(formConstant, f.hidden(bytecode.HiddenArgv))
			e.arguments = true
		}
	}
}

// put makes the code that puts an operand without jumps into a register.
func (f *code) put(e *operand, reg int) {
	f.read(e)
	switch e.form {
	case formNil:
		f.loadNil(reg, 1)
	case formFalse:
		f.emitABC(lua.OP_LOADBOOL, reg, 0, 0)
	case formTrue:
		f.emitABC(lua.OP_LOADBOOL, reg, 1, 0)
	case formConstant:
		f.emit(bytecode.ABx(lua.OP_LOADK, reg, e.index))
	case formNumber:
		f.emit(bytecode.ABx(lua.OP_LOADK, reg, f.numberConstant(e.value)))
	case formOpen:
		f.at(e.index).SetA(reg)
	case formRegister:
		if e.index != reg {
			f.emitABC(lua.OP_MOVE, reg, e.index, 0)
		}
	default: // a jump has no value yet
		return
	}
	e.become(formRegister, reg)
}

// into makes the code that puts an operand into a register.
func (f *code) into(e *operand, reg int) {
	f.put(e, reg)
	if e.form == formJump {
		e.onTrue = f.join(e.onTrue, e.index)
	}
	if e.jumps() {
		ifFalse, ifTrue := noJump, noJump
		if f.needsValue(e.onTrue) || f.needsValue(e.onFalse) {
			over := noJump
			if e.form != formJump {
				over = f.jump()
			}
			f.here()
			ifFalse = f.emitABC(lua.OP_LOADBOOL, reg, 0, 1)
			f.here()
			ifTrue = f.emitABC(lua.OP_LOADBOOL, reg, 1, 0)
			f.leadHere(over)
		}
		end := f.here()
		f.settle(e.onFalse, end, reg, ifFalse)
		f.settle(e.onTrue, end, reg, ifTrue)
	}
	e.onTrue, e.onFalse = noJump, noJump
	e.become(formRegister, reg)
}

// releaseOperand frees the register of an operand.
func (f *code) releaseOperand(e *operand) {
	if e.form == formRegister {
		f.release(e.index)
	}
}

// intoNext puts an operand into the next free register.
func (f *code) intoNext(e *operand) {
	f.read(e)
	f.releaseOperand(e)
	f.reserve(1)
	f.into(e, f.free-1)
}

// intoAny puts an operand into a register, unless it is already in one.
func (f *code) intoAny(e *operand) int {
	f.read(e)
	if e.form == formRegister {
		if !e.jumps() {
			return e.index
		}
		if e.index >= len(f.active) {
			f.into(e, e.index)
			return e.index
		}
	}
	f.intoNext(e)
	return e.index
}

// settled makes the code of an operand, except the choice of its register.
func (f *code) settled(e *operand) {
	if e.jumps() {
		f.intoAny(e)
	} else {
		f.read(e)
	}
}

// asOperand returns an operand in the form of instructions: a register or one of the first constants.
func (f *code) asOperand(e *operand) int {
	f.settled(e)
	switch e.form {
	case formNumber, formTrue, formFalse, formNil:
		if len(f.constants) > bytecode.MaxConstant {
			break
		}
		switch e.form {
		case formNumber:
			e.index = f.numberConstant(e.value)
		case formNil:
			e.index = f.single(0, lua.LNil)
		case formTrue:
			e.index = f.single(1, lua.LTrue)
		case formFalse:
			e.index = f.single(2, lua.LFalse)
		}
		e.form = formConstant
		return e.index | bytecode.ConstantBit
	case formConstant:
		if e.index <= bytecode.MaxConstant {
			return e.index | bytecode.ConstantBit
		}
	}
	return f.intoAny(e)
}

// store makes the code that assigns a value to a variable.
func (f *code) store(to, value *operand) {
	switch to.form {
	case formLocal:
		f.releaseOperand(value)
		f.into(value, to.index)
		return
	case formUpvalue:
		f.emitABC(lua.OP_SETUPVAL, f.intoAny(value), to.index, 0)
	case formGlobal: // the assignment fails when it runs
		f.emit(bytecode.ABx(lua.OP_SETGLOBAL, f.intoAny(value), f.stringConstant(bytecode.ReadonlyName)))
	case formIndexed:
		if to.arguments {
			f.c.escapes = true
		}
		f.emitABC(setOp(to), to.index, to.key, f.asOperand(value))
	}
	f.releaseOperand(value)
}

// setOp is the instruction that sets a field.
func setOp(to *operand) int {
	if to.text {
		return lua.OP_SETTABLEKS
	}
	return lua.OP_SETTABLE
}

// method makes the code that gets a method of an object.
func (f *code) method(e *operand, name string) {
	key := f.textOperand(name)
	f.intoAny(e)
	f.releaseOperand(e)
	base := f.free
	f.reserve(2)
	f.emitABC(lua.OP_SELF, base, e.index, f.asOperand(&key))
	f.releaseOperand(&key)
	e.become(formRegister, base)
}

func (f *code) textOperand(s string) operand {
	e := operandOf(formConstant, f.stringConstant(s))
	e.text = true
	return e
}

// field changes an operand from a table to the field of that table.
func (f *code) field(e *operand, key *operand) {
	e.text = key.form == formConstant && key.text && !key.jumps()
	e.key = f.asOperand(key)
	e.form = formIndexed
}

// Conditions.

// jumpWhen emits a jump that is taken if the operand counts as true, or as false.
func (f *code) jumpWhen(e *operand, isTrue bool) int {
	want, inverted := 0, 1
	if isTrue {
		want, inverted = 1, 0
	}
	if e.form == formOpen {
		if i := *f.at(e.index); i.Op() == lua.OP_NOT {
			f.drop()
			return f.jumpIf(lua.OP_TEST, i.B(), 0, inverted)
		}
	}
	if e.form != formRegister {
		f.reserve(1)
		f.put(e, f.free-1)
	}
	f.releaseOperand(e)
	return f.jumpIf(lua.OP_TESTSET, anyRegister, e.index, want)
}

// invert inverts the condition of a comparison's jump.
func (f *code) invert(e *operand) {
	i := f.test(e.index)
	i.SetA(1 - i.A())
}

// goIfTrue makes the code continue if the operand is true, and jump otherwise.
func (f *code) goIfTrue(e *operand) {
	f.read(e)
	out := noJump
	switch e.form {
	case formConstant, formNumber, formTrue:
	case formJump:
		f.invert(e)
		out = e.index
	default:
		out = f.jumpWhen(e, false)
	}
	e.onFalse = f.join(e.onFalse, out)
	f.leadHere(e.onTrue)
	e.onTrue = noJump
}

// goIfFalse makes the code continue if the operand is false, and jump otherwise.
func (f *code) goIfFalse(e *operand) {
	f.read(e)
	out := noJump
	switch e.form {
	case formNil, formFalse:
	case formJump:
		out = e.index
	default:
		out = f.jumpWhen(e, true)
	}
	e.onTrue = f.join(e.onTrue, out)
	f.leadHere(e.onFalse)
	e.onFalse = noJump
}

func (f *code) not(e *operand) {
	f.read(e)
	switch e.form {
	case formNil, formFalse:
		e.form = formTrue
	case formConstant, formNumber, formTrue:
		e.form = formFalse
	case formJump:
		f.invert(e)
	default:
		if e.form == formOpen {
			f.reserve(1)
			f.put(e, f.free-1)
		}
		f.releaseOperand(e)
		e.become(formOpen, f.emitABC(lua.OP_NOT, 0, e.index, 0))
	}
	e.onTrue, e.onFalse = e.onFalse, e.onTrue
	f.valueless(e.onFalse)
	f.valueless(e.onTrue)
}

// Operators.

// fold computes an operator of two constant numbers at compile time, if it can.
func fold(op int, a, b *operand) bool {
	if !a.isNumeral() || !b.isNumeral() {
		return false
	}
	x, y := a.value, b.value
	switch op {
	case lua.OP_ADD:
		x += y
	case lua.OP_SUB:
		x -= y
	case lua.OP_MUL:
		x *= y
	case lua.OP_DIV, lua.OP_MOD:
		if y == 0 {
			return false // computed at run time
		}
		if op == lua.OP_DIV {
			x /= y
		} else {
			x = Modulo(x, y)
		}
	case lua.OP_POW:
		x = precise.Pow(x, y)
	case lua.OP_UNM:
		x = -x
	default:
		return false
	}
	if x != x {
		return false
	}
	a.value = x
	return true
}

// Modulo is Lua 5.1's %, which is not quite C's fmod: the quotient is rounded to a double.
func Modulo(a, b float64) float64 { return a - float64(math.Floor(a/b)*b) }

// arithmetic makes the code of an operator.
func (f *code) arithmetic(op int, a, b *operand) {
	if fold(op, a, b) {
		return
	}
	right := f.asOperand(b)
	left := f.asOperand(a)
	if left > right {
		f.releaseOperand(a)
		f.releaseOperand(b)
	} else {
		f.releaseOperand(b)
		f.releaseOperand(a)
	}
	a.become(formOpen, f.emitABC(op, 0, left, right))
}

// unary makes the code of - and #.
func (f *code) unary(op int, e *operand) {
	if op == lua.OP_UNM {
		if e.isNumeral() {
			zero := operandOf(formNumber, 0)
			fold(op, e, &zero)
			return
		}
	} else {
		f.object(e)
	}
	f.intoAny(e)
	f.releaseOperand(e)
	e.become(formOpen, f.emitABC(op, 0, e.index, 0))
}

func (f *code) compare(op int, isTrue bool, a, b *operand) {
	left := f.asOperand(a)
	right := f.asOperand(b)
	f.releaseOperand(b)
	f.releaseOperand(a)
	want := 1
	if !isTrue {
		want = 0
		if op != lua.OP_EQ { // a > b is b < a
			left, right, want = right, left, 1
		}
	}
	a.become(formJump, f.jumpIf(op, want, left, right))
}

// begin prepares the left side of an operator, before its right side is read.
func (f *code) begin(op token, e *operand) {
	switch op {
	case tkAnd:
		f.goIfTrue(e)
	case tkOr:
		f.goIfFalse(e)
	case tkConcat:
		f.intoNext(e)
	case '+', '-', '*', '/', '%', '^':
		if !e.isNumeral() {
			f.asOperand(e)
		}
	default:
		f.asOperand(e)
	}
}

// arithmeticOps are the instructions of operators.
var arithmeticOps = [128]int{
	'+': lua.OP_ADD, '-': lua.OP_SUB, '*': lua.OP_MUL, '/': lua.OP_DIV, '%': lua.OP_MOD, '^': lua.OP_POW,
}

// finish makes the code of an operator after its right side has been read.
func (f *code) finish(op token, a, b *operand) {
	switch op {
	case tkAnd:
		f.read(b)
		b.onFalse = f.join(b.onFalse, a.onFalse)
		*a = *b
	case tkOr:
		f.read(b)
		b.onTrue = f.join(b.onTrue, a.onTrue)
		*a = *b
	case tkConcat:
		f.concatenate(a, b)
	case tkEq:
		f.compare(lua.OP_EQ, true, a, b)
	case tkNe:
		f.compare(lua.OP_EQ, false, a, b)
	case '<':
		f.compare(lua.OP_LT, true, a, b)
	case tkLe:
		f.compare(lua.OP_LE, true, a, b)
	case '>':
		f.compare(lua.OP_LT, false, a, b)
	case tkGe:
		f.compare(lua.OP_LE, false, a, b)
	default:
		f.arithmetic(arithmeticOps[op], a, b)
	}
}

// concatenate makes one instruction for a whole chain of concatenations.
func (f *code) concatenate(a, b *operand) {
	f.settled(b)
	if b.form == formOpen {
		if i := f.at(b.index); i.Op() == lua.OP_CONCAT {
			f.releaseOperand(a)
			i.SetB(a.index)
			a.become(formOpen, b.index)
			return
		}
	}
	f.intoNext(b)
	f.releaseOperand(b)
	f.releaseOperand(a)
	a.become(formOpen, f.emitABC(lua.OP_CONCAT, 0, a.index, b.index))
}
