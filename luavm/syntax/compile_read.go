package syntax

// Reading expressions and compiling them at the same time. Chains that grow to the left are read in loops. Only parentheses,
// brackets, blocks and the right sides of operators need recursion, whose depth is limited.

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/bytecode"
)

// precedence says how strongly the binary operators bind to the left and to the right.
var precedence = func() (of [tkEOF + 1]struct{ left, right uint8 }) {
	for _, p := range []struct {
		ops         []token
		left, right uint8
	}{
		{[]token{tkOr}, 1, 1},
		{[]token{tkAnd}, 2, 2},
		{[]token{'<', '>', tkLe, tkGe, tkEq, tkNe}, 3, 3},
		{[]token{tkConcat}, 5, 4},
		{[]token{'+', '-'}, 6, 6},
		{[]token{'*', '/', '%'}, 7, 7},
		{[]token{'^'}, 10, 9},
	} {
		for _, op := range p.ops {
			of[op].left, of[op].right = p.left, p.right
		}
	}
	return of
}()

const unaryPrecedence = 8

func (c *compiler) expr() operand { return c.operators(0) }

// exprIntoNext compiles an expression into the next register.
func (c *compiler) exprIntoNext() {
	e := c.expr()
	c.f.intoNext(&e)
}

// exprList compiles a list of expressions, all but the last into registers.
func (c *compiler) exprList() (last operand, n int) {
	last, n = c.expr(), 1
	for c.accept(',') {
		c.f.intoNext(&last)
		last = c.expr()
		n++
	}
	return last, n
}

// operators compiles an expression up to an operator that binds no stronger than limit.
func (c *compiler) operators(limit uint8) (e operand) {
	f := c.f
	c.enter()
	switch op := c.current.token; op {
	case tkNot, '-', '#':
		c.advance()
		e = c.operators(unaryPrecedence)
		switch op {
		case tkNot:
			f.not(&e)
		case '-':
			f.unary(lua.OP_UNM, &e)
		case '#':
			f.unary(lua.OP_LEN, &e)
		}
	default:
		e = c.simple()
	}
	for {
		op := c.current.token
		p := precedence[op]
		if p.left == 0 || p.left <= limit {
			break
		}
		c.advance()
		f.begin(op, &e)
		right := c.operators(p.right)
		f.finish(op, &e, &right)
	}
	c.leave()
	return e
}

func (c *compiler) simple() (e operand) {
	switch c.current.token {
	case tkNumber:
		e = operandOf(formNumber, 0)
		e.value = c.current.value
	case tkString:
		e = c.f.textOperand(c.current.text)
	case tkNil:
		e = operandOf(formNil, 0)
	case tkTrue:
		e = operandOf(formTrue, 0)
	case tkFalse:
		e = operandOf(formFalse, 0)
	case tkDots:
		if !c.f.vararg {
			c.syntaxError("cannot use '...' outside a vararg function")
		}
		c.f.made.IsVarArg &^= lua.VarArgNeedsArg
		e = operandOf(formVararg, c.f.emitABC(lua.OP_VARARG, 0, 1, 0))
	case '{':
		return c.constructor()
	case tkFunction:
		c.advance()
		return c.function(c.line, false)
	default:
		e = c.suffixed()
		c.known(&e)
		return e
	}
	c.advance()
	return e
}

// fieldOf compiles the name behind a dot or colon.
func (c *compiler) fieldOf(e *operand) {
	f := c.f
	f.object(e)
	f.intoAny(e)
	c.advance()
	key := f.textOperand(c.name())
	f.field(e, &key)
}

// index compiles an index in brackets.
func (c *compiler) index() operand {
	c.advance()
	e := c.expr()
	c.f.settled(&e)
	c.expect(']')
	return e
}

// suffixed compiles a variable or a parenthesis and the fields, indexes and calls behind it.
func (c *compiler) suffixed() (e operand) {
	f := c.f
	switch line := c.line; c.current.token {
	case '(':
		c.advance()
		e = c.expr()
		c.closing(')', '(', line)
		f.read(&e) // parentheses cut several values to one
	case tkName:
		e = c.variable()
	default:
		c.syntaxError("unexpected symbol")
	}
	for {
		switch c.current.token {
		case '.':
			if c.isLibrary(&e) && c.peek() == tkName && c.knownField(&e, c.next.text) {
				c.advance()
				c.advance()
				continue
			}
			c.fieldOf(&e)
		case '[':
			f.object(&e)
			f.intoAny(&e)
			key := c.index()
			f.field(&e, &key)
		case ':':
			c.advance()
			name := c.name()
			f.method(&e, name)
			c.arguments(&e, "")
		case '(', tkString, '{':
			c.known(&e)
			callee := ""
			if e.form == formConstant {
				callee = e.name
			}
			f.intoNext(&e)
			c.arguments(&e, callee)
		default:
			return e
		}
	}
}

// readers are functions that neither store nor change their first argument.
var readers = map[string]bool{
	"unpack": true, "type": true, "next": true, "table.concat": true, "table.getn": true, "table.maxn": true,
	"cjson.encode": true, "cmsgpack.pack": true,
}

// arguments compiles the arguments of a call. callee is the name of the function if it is a known function.
func (c *compiler) arguments(e *operand, callee string) {
	f := c.f
	line := c.line
	last, iterates := operandOf(formVoid, 0), false
	switch c.current.token {
	case '(':
		if line != c.lastLine {
			c.syntaxError("ambiguous syntax (function call x new statement)")
		}
		c.advance()
		if !c.at(')') {
			last = c.expr()
			if last.form == formGlobal && callee != "" {
				iterates = c.firstArgument(&last, callee)
			}
			for c.accept(',') {
				f.intoNext(&last)
				last = c.expr()
			}
		}
		c.closing(')', '(', line)
	case '{':
		last = c.constructor()
	case tkString:
		last = f.textOperand(c.current.text)
		c.advance()
	default:
		c.syntaxError("function arguments expected")
	}
	base := e.index
	n := -1
	if last.hasManyValues() {
		f.wants(&last, -1)
	} else {
		if last.form != formVoid {
			f.intoNext(&last)
		}
		n = f.free - (base + 1)
	}
	*e = operandOf(formCall, f.emitABC(lua.OP_CALL, base, n+1, 2))
	if iterates {
		c.iterations++
		c.iterates, c.iteratesAt = f, e.index
	}
	f.fixLine(line)
	f.free = base + 1
}

// firstArgument makes KEYS or ARGV as the first argument a constant if the function only reads it. iterates tells that this
// holds only if a loop runs over the results of the call.
func (c *compiler) firstArgument(e *operand, callee string) (iterates bool) {
	if readers[callee] {
		c.f.object(e)
		return false
	}
	if (callee == "ipairs" || callee == "pairs") && c.at(')') {
		c.f.object(e)
		return e.form == formConstant
	}
	return false
}

// constructor compiles a table constructor.
func (c *compiler) constructor() operand {
	f := c.f
	line := c.line
	pc := f.emitABC(lua.OP_NEWTABLE, 0, 0, 0)
	t := operandOf(formOpen, pc)
	f.intoNext(&t)
	c.expect('{')
	item := operandOf(formVoid, 0) // the list item read last
	items, fields, kept := 0, 0, 0 // kept: items in registers
	for !c.at('}') {
		if item.form != formVoid {
			f.intoNext(&item)
			item.form = formVoid
			if kept == listFlush {
				f.setList(t.index, items, kept)
				kept = 0
			}
		}
		if c.at('[') || c.at(tkName) && c.peek() == '=' {
			c.keyedField(t.index)
			fields++
		} else {
			item = c.expr()
			items++
			kept++
		}
		if !c.accept(',') && !c.accept(';') {
			break
		}
	}
	c.closing('}', '{', line)
	if kept > 0 {
		if item.hasManyValues() {
			f.wants(&item, -1)
			f.setList(t.index, items, -1)
			items--
		} else {
			if item.form != formVoid {
				f.intoNext(&item)
			}
			f.setList(t.index, items, kept)
		}
	}
	i := f.at(pc)
	i.SetB(bytecode.SizeOf(items))
	i.SetC(bytecode.SizeOf(fields))
	return t
}

func (c *compiler) keyedField(table int) {
	f := c.f
	free := f.free
	var key operand
	if c.at(tkName) {
		key = f.textOperand(c.name())
	} else {
		key = c.index()
	}
	to := operandOf(formRegister, table)
	c.expect('=')
	f.field(&to, &key)
	value := c.expr()
	f.emitABC(setOp(&to), table, to.key, f.asOperand(&value))
	f.free = free
}

// setList makes the code that stores list items. items is the number of the last one; kept is how many of them are in registers,
// -1: as many as the last expression returns.
func (f *code) setList(table, items, kept int) {
	batch := (items-1)/listFlush + 1
	if batch <= bytecode.MaxC {
		f.emitABC(lua.OP_SETLIST, table, max(kept, 0), batch)
	} else {
		f.emitABC(lua.OP_SETLIST, table, max(kept, 0), 0)
		f.emit(bytecode.Instruction(batch))
	}
	f.free = table + 1
}

// function compiles parameters and block of a function.
func (c *compiler) function(line int, isMethod bool) operand {
	c.open(line)
	f := c.f
	c.expect('(')
	if isMethod {
		c.declare(1, "self")
		f.show(1, 0)
	}
	n := 0
	if !c.at(')') {
		for {
			switch c.current.token {
			case tkName:
				n++
				c.declare(n, c.name())
			case tkDots:
				c.advance()
				n++
				c.declare(n, "arg")
				f.vararg = true
				f.made.IsVarArg = lua.VarArgHasArg | lua.VarArgIsVarArg | lua.VarArgNeedsArg
			default:
				c.syntaxError("<name> or '...' expected")
			}
			if f.vararg || !c.accept(',') {
				break
			}
		}
	}
	f.show(n, 0)
	parameters := len(f.active)
	if f.vararg {
		parameters--
	}
	f.made.NumParameters = uint8(parameters)
	f.reserve(len(f.active))
	c.expect(')')
	c.chunkOf()
	f.made.LastLineDefined = c.line
	c.closing(tkEnd, tkFunction, line)
	c.close()
	outer := c.f
	if len(outer.made.FunctionPrototypes) >= constantsMax {
		panic(&Error{"constant table overflow"})
	}
	outer.made.FunctionPrototypes = append(outer.made.FunctionPrototypes, &f.made.FunctionProto)
	e := operandOf(formOpen, outer.emit(bytecode.ABx(lua.OP_CLOSURE, 0, len(outer.made.FunctionPrototypes)-1)))
	for _, v := range f.upvalues {
		op := lua.OP_GETUPVAL
		if v.local {
			op = lua.OP_MOVE
		}
		outer.emitABC(op, 0, v.index, 0)
	}
	return e
}
