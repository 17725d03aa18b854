package syntax

// Statements being compiled.

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/bytecode"
)

func (c *compiler) enterBlock(loop bool) {
	c.f.blocks = append(c.f.blocks, block{breaks: noJump, active: len(c.f.active), loop: loop})
}

func (c *compiler) leaveBlock() {
	f := c.f
	last := len(f.blocks) - 1
	b := f.blocks[last]
	f.blocks = f.blocks[:last]
	f.hide(b.active)
	if b.captive {
		f.emitABC(lua.OP_CLOSE, b.active, 0, 0)
	}
	f.free = len(f.active)
	f.leadHere(b.breaks)
}

// chunkOf compiles the statements of a block.
func (c *compiler) chunkOf() {
	c.enter()
	for last := false; !last && !c.blockEnds(); {
		last = c.statement()
		c.accept(';')
		c.f.free = len(c.f.active)
	}
	c.leave()
}

func (c *compiler) scope() {
	c.enterBlock(false)
	c.chunkOf()
	c.leaveBlock()
}

// statement compiles a statement. last is true for return and break.
func (c *compiler) statement() (last bool) {
	line := c.line
	switch c.current.token {
	case tkIf:
		c.ifStatement(line)
	case tkWhile:
		c.whileStatement(line)
	case tkDo:
		c.advance()
		c.scope()
		c.closing(tkEnd, tkDo, line)
	case tkFor:
		c.forStatement(line)
	case tkRepeat:
		c.repeatStatement(line)
	case tkFunction:
		c.functionStatement(line)
	case tkLocal:
		c.advance()
		if c.accept(tkFunction) {
			c.localFunction()
		} else {
			c.localStatement()
		}
	case tkReturn:
		c.returnStatement()
		return true
	case tkBreak:
		c.advance()
		c.breakStatement()
		return true
	default:
		c.expressionStatement()
	}
	return false
}

// condition compiles a condition and returns the jumps that are taken if it is false.
func (c *compiler) condition() int {
	e := c.expr()
	if e.form == formNil {
		e.form = formFalse
	}
	c.f.goIfTrue(&e)
	return e.onFalse
}

// branch compiles "if c then b" and returns the jumps that are taken if c is false.
func (c *compiler) branch() int {
	c.advance() // if or elseif
	otherwise := c.condition()
	c.expect(tkThen)
	c.scope()
	return otherwise
}

func (c *compiler) ifStatement(line int) {
	f := c.f
	end := noJump
	otherwise := c.branch()
	for c.at(tkElseif) {
		end = f.join(end, f.jump())
		f.leadHere(otherwise)
		otherwise = c.branch()
	}
	if c.at(tkElse) {
		end = f.join(end, f.jump())
		f.leadHere(otherwise)
		c.advance()
		c.scope()
	} else {
		end = f.join(end, otherwise)
	}
	f.leadHere(end)
	c.closing(tkEnd, tkIf, line)
}

func (c *compiler) whileStatement(line int) {
	f := c.f
	c.advance()
	begin := f.here()
	otherwise := c.condition()
	c.enterBlock(true)
	c.expect(tkDo)
	c.scope()
	f.leadTo(f.jump(), begin)
	c.closing(tkEnd, tkWhile, line)
	c.leaveBlock()
	f.leadHere(otherwise)
}

func (c *compiler) repeatStatement(line int) {
	f := c.f
	begin := f.here()
	c.enterBlock(true)
	c.enterBlock(false)
	c.advance()
	c.chunkOf()
	c.closing(tkUntil, tkRepeat, line)
	otherwise := c.condition() // the body's variables are visible in it
	if !f.blocks[len(f.blocks)-1].captive {
		c.leaveBlock()
		f.leadTo(otherwise, begin)
	} else {
		c.breakStatement()
		f.leadHere(otherwise)
		c.leaveBlock()
		f.leadTo(f.jump(), begin)
	}
	c.leaveBlock()
}

func (c *compiler) breakStatement() {
	f := c.f
	i, captive := len(f.blocks)-1, false
	for i >= 0 && !f.blocks[i].loop {
		captive = captive || f.blocks[i].captive
		i--
	}
	if i < 0 {
		c.syntaxError("no loop to break")
	}
	b := &f.blocks[i]
	if captive {
		f.emitABC(lua.OP_CLOSE, b.active, 0, 0)
	}
	b.breaks = f.join(b.breaks, f.jump())
}

func (c *compiler) forStatement(line int) {
	c.enterBlock(true)
	c.advance()
	name := c.name()
	switch c.current.token {
	case '=':
		c.numericFor(name, line)
	case ',', tkIn:
		c.genericFor(name)
	default:
		c.syntaxError("'=' or 'in' expected")
	}
	c.closing(tkEnd, tkFor, line)
	c.leaveBlock()
}

func (c *compiler) numericFor(name string, line int) {
	f := c.f
	base := f.free
	c.declare(1, "(for index)")
	c.declare(2, "(for limit)")
	c.declare(3, "(for step)")
	c.declare(4, name)
	c.advance()
	c.exprIntoNext()
	c.expect(',')
	c.exprIntoNext()
	if c.accept(',') {
		c.exprIntoNext()
	} else {
		f.emit(bytecode.ABx(lua.OP_LOADK, f.free, f.numberConstant(1)))
		f.reserve(1)
	}
	f.show(3, 1)
	c.expect(tkDo)
	begin := f.emit(bytecode.AJump(lua.OP_FORPREP, base, noJump))
	c.forBody(1)
	f.leadHere(begin)
	end := f.emit(bytecode.AJump(lua.OP_FORLOOP, base, noJump))
	f.fixLine(line)
	f.leadTo(end, begin+1)
}

func (c *compiler) genericFor(name string) {
	f := c.f
	base := f.free
	c.declare(1, "(for generator)")
	c.declare(2, "(for state)")
	c.declare(3, "(for control)")
	c.declare(4, name)
	n := 1
	for c.accept(',') {
		n++
		c.declare(3+n, c.name())
	}
	c.expect(tkIn)
	line := c.line
	e, values := c.exprList()
	if values == 1 && e.form == formCall && c.iterations > 0 && c.iterates == f && c.iteratesAt == e.index {
		c.iterations-- // the loop does not store the table
	}
	c.adjust(3, values, &e)
	f.room(3)
	f.show(3, n)
	c.expect(tkDo)
	begin := f.jump()
	c.forBody(n)
	f.leadHere(begin)
	f.emitABC(lua.OP_TFORLOOP, base, 0, n)
	f.fixLine(line)
	f.leadTo(f.jump(), begin+1)
}

// forBody compiles the block of a loop with n variables.
func (c *compiler) forBody(n int) {
	c.enterBlock(false)
	c.f.show(n, 0)
	c.f.reserve(n)
	c.scope()
	c.leaveBlock()
}

func (c *compiler) functionStatement(line int) {
	f := c.f
	c.advance()
	to := c.variable()
	for c.at('.') {
		c.fieldOf(&to)
	}
	isMethod := c.at(':')
	if isMethod {
		c.fieldOf(&to)
	}
	e := c.function(line, isMethod)
	f.store(&to, &e)
	f.fixLine(line) // the definition happens in the first line
}

func (c *compiler) localFunction() {
	f := c.f
	name := c.name()
	c.declare(1, name)
	to := operandOf(formLocal, f.free)
	f.reserve(1)
	f.show(1, 0) // the name is visible in the body
	e := c.function(c.line, false)
	f.store(&to, &e)
	f.made.Locals[f.active[len(f.active)-1]].From = int32(len(f.instructions))
}

func (c *compiler) localStatement() {
	n := 0
	for {
		n++
		c.declare(n, c.name())
		if !c.accept(',') {
			break
		}
	}
	e, values := operandOf(formVoid, 0), 0
	if c.accept('=') {
		e, values = c.exprList()
	}
	c.adjust(n, values, &e)
	c.f.show(n, 0)
}

// adjust makes the number of values equal to the number of variables. e is the last expression of the list.
func (c *compiler) adjust(variables, values int, e *operand) {
	f := c.f
	missing := variables - values
	if e.hasManyValues() {
		missing = max(missing+1, 0)
		f.wants(e, missing)
		if missing > 1 {
			f.reserve(missing - 1)
		}
		return
	}
	if e.form != formVoid {
		f.intoNext(e)
	}
	if missing > 0 {
		from := f.free
		f.reserve(missing)
		f.loadNil(from, missing)
	}
}

func (c *compiler) returnStatement() {
	f := c.f
	c.advance()
	first, n := 0, 0
	if !c.blockEnds() && !c.at(';') {
		var e operand
		e, n = c.exprList()
		switch {
		case e.hasManyValues():
			f.wants(&e, -1)
			if e.form == formCall && n == 1 {
				f.at(e.index).SetOp(lua.OP_TAILCALL)
			}
			first, n = len(f.active), -1
		case n == 1:
			first = f.intoAny(&e)
		default:
			f.intoNext(&e)
			first = len(f.active)
		}
	}
	f.emitABC(lua.OP_RETURN, first, n+1, 0)
}

func (c *compiler) expressionStatement() {
	f := c.f
	e := c.suffixed()
	if e.form == formCall {
		f.at(e.index).SetC(1) // no results
		return
	}
	c.unknown(&e)
	c.assignment(e)
}

// assignment compiles an assignment after its first variable has been read.
func (c *compiler) assignment(first operand) {
	f := c.f
	var few [4]operand
	to := append(few[:0], first)
	for {
		switch to[len(to)-1].form {
		case formLocal, formUpvalue, formGlobal, formIndexed:
		default:
			c.syntaxError("syntax error")
		}
		if !c.accept(',') {
			break
		}
		e := c.suffixed()
		c.unknown(&e)
		if e.form == formLocal {
			f.keepOperands(to, e.index)
		}
		c.limit(f, len(to), levelsMax-c.level, "variables in assignment")
		to = append(to, e)
	}
	c.expect('=')
	e, values := c.exprList()
	last := len(to) - 1
	if values == len(to) {
		f.wantsOne(&e)
		f.store(&to[last], &e)
		last--
	} else {
		c.adjust(len(to), values, &e)
		if values > len(to) {
			f.free -= values - len(to)
		}
	}
	for ; last >= 0; last-- {
		e := operandOf(formRegister, f.free-1)
		f.store(&to[last], &e)
	}
}

// keepOperands copies a local variable that is assigned to if an earlier target of the same assignment uses it as table or key.
func (f *code) keepOperands(to []operand, local int) {
	copied := f.free
	conflict := false
	for i := range to {
		e := &to[i]
		if e.form != formIndexed {
			continue
		}
		if e.index == local {
			e.index, conflict = copied, true
		}
		if e.key == local {
			e.key, conflict = copied, true
		}
	}
	if conflict {
		f.emitABC(lua.OP_MOVE, copied, local, 0)
		f.reserve(1)
	}
}
