// Package syntax reads Lua 5.1 and nothing else.
//
// It gives the syntax tree of gopher-lua, which has a parser of its own; that one takes goto and labels, reads numbers
// by Go's rules, and its errors and line numbers are not Lua's. Here the texts and lines of errors are those that a
// real Lua 5.1 gives, and the limits on nesting, local variables and upvalues are enforced with its words. The parser is a plain
// recursive descent over the published grammar; a node's line is the line to which Lua attributes the operation when
// it fails, mostly that of its last token.
package syntax

import (
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

const (
	levelsMax   = 200 // nested blocks and expressions
	localsMax   = 200 // active local variables of a function
	upvaluesMax = 60  // different outer variables in a function
)

// Parse parses a source. chunk is its name in errors. The error is an *Error.
func Parse(src, chunk string) (stmts []ast.Stmt, err error) {
	p := &parser{lexer: lexer{src: src, chunk: chunk, line: 1}}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Error:
			stmts, err = nil, r
		default:
			panic(r)
		}
	}()
	p.fn = &function{vararg: true}
	p.advance()
	stmts = p.block()
	p.check(tkEOF)
	return stmts, nil
}

// function is what the parser keeps of a function being read: its variables, for the limits.
type function struct {
	outer    *function
	line     int // where it is defined, 0 for the main chunk
	vararg   bool
	loops    int
	locals   []*variable
	upvalues map[*variable]bool
}

type variable struct{ name string }

type parser struct {
	lexer
	current  lexeme
	lastLine int // line of the token before the current one
	level    int
	fn       *function
}

func (p *parser) advance() {
	p.lastLine = p.line
	p.current = p.scan()
}

func (p *parser) at(t token) bool { return p.current.token == t }

// accept steps over a token if it is the current one.
func (p *parser) accept(t token) bool {
	if !p.at(t) {
		return false
	}
	p.advance()
	return true
}

// syntaxError fails at the current token.
func (p *parser) syntaxError(format string, args ...any) { p.fail(p.current.token, format, args...) }

func (p *parser) check(t token) {
	if !p.at(t) {
		p.syntaxError("'%s' expected", t)
	}
}

func (p *parser) expect(t token) {
	p.check(t)
	p.advance()
}

// closing steps over the token that closes what opened at a line.
func (p *parser) closing(t, open token, line int) {
	if p.accept(t) {
		return
	}
	if line == p.line {
		p.check(t)
	}
	p.syntaxError("'%s' expected (to close '%s' at line %d)", t, open, line)
}

func (p *parser) name() string {
	p.check(tkName)
	s := p.current.text
	p.advance()
	return s
}

func (p *parser) enter() {
	p.level++
	if p.level > levelsMax {
		p.fail(0, "chunk has too many syntax levels")
	}
}

func (p *parser) leave() { p.level-- }

// Variables.

func (p *parser) limit(n, most int, what string) {
	if n <= most {
		return
	}
	if p.fn.line == 0 {
		p.fail(0, "main function has more than %d %s", most, what)
	}
	p.fail(0, "function at line %d has more than %d %s", p.fn.line, most, what)
}

// declared checks the limit when the n-th variable of a list has been read; declare then makes them visible.
func (p *parser) declared(n int) { p.limit(len(p.fn.locals)+n, localsMax, "local variables") }

func (p *parser) declare(names ...string) {
	for _, name := range names {
		p.fn.locals = append(p.fn.locals, &variable{name})
	}
}

// use counts a name as an upvalue of every function between its use and its definition.
func (p *parser) use(name string) {
	var v *variable
	owner := p.fn
search:
	for ; owner != nil; owner = owner.outer {
		for i := len(owner.locals) - 1; i >= 0; i-- {
			if owner.locals[i].name == name {
				v = owner.locals[i]
				break search
			}
		}
	}
	if v == nil || owner == p.fn {
		return
	}
	p.capture(p.fn, owner, v)
}

func (p *parser) capture(f, owner *function, v *variable) {
	if f.outer != owner {
		p.capture(f.outer, owner, v)
	}
	if f.upvalues == nil {
		f.upvalues = map[*variable]bool{}
	}
	if !f.upvalues[v] {
		inner := p.fn
		p.fn = f
		p.limit(len(f.upvalues)+1, upvaluesMax, "upvalues")
		p.fn = inner
		f.upvalues[v] = true
	}
}

// Statements.

// scope reads a block and forgets its variables.
func (p *parser) scope() []ast.Stmt {
	active := len(p.fn.locals)
	stmts := p.block()
	p.fn.locals = p.fn.locals[:active]
	return stmts
}

// blockEnds tells whether the current token ends a block.
func (p *parser) blockEnds() bool {
	switch p.current.token {
	case tkElse, tkElseif, tkEnd, tkUntil, tkEOF:
		return true
	}
	return false
}

func (p *parser) block() []ast.Stmt {
	p.enter()
	stmts := []ast.Stmt{}
	for last := false; !last && !p.blockEnds(); {
		var s ast.Stmt
		s, last = p.statement()
		stmts = append(stmts, s)
		p.accept(';')
	}
	p.leave()
	return stmts
}

// statement reads a statement. last is true for return and break.
func (p *parser) statement() (s ast.Stmt, last bool) {
	line := p.line
	switch p.current.token {
	case tkIf:
		s = p.ifStatement(tkIf, line)
		p.closing(tkEnd, tkIf, line)
		s.SetLastLine(p.lastLine)
		return s, false
	case tkWhile:
		return p.whileStatement(line), false
	case tkDo:
		p.advance()
		s = &ast.DoBlockStmt{Stmts: p.scope()}
		p.closing(tkEnd, tkDo, line)
		return lined(s, line, p.lastLine), false
	case tkFor:
		return p.forStatement(line), false
	case tkRepeat:
		return p.repeatStatement(line), false
	case tkFunction:
		return p.functionStatement(line), false
	case tkLocal:
		p.advance()
		if p.accept(tkFunction) {
			p.declared(1)
			name := p.name()
			p.declare(name)
			s = &ast.LocalAssignStmt{Names: []string{name}, Exprs: []ast.Expr{p.functionBody(p.line, false)}}
			return lined(s, line, p.lastLine), false
		}
		return p.localStatement(line), false
	case tkReturn:
		p.advance()
		r := &ast.ReturnStmt{}
		if !p.blockEnds() && !p.at(';') {
			r.Exprs = p.exprList()
		}
		return lined[ast.Stmt](r, line, p.lastLine), true
	case tkBreak:
		p.advance()
		if p.fn.loops == 0 {
			p.syntaxError("no loop to break")
		}
		return lined[ast.Stmt](&ast.BreakStmt{}, line, p.lastLine), true
	}
	return p.expressionStatement(line), false
}

func lined[T ast.PositionHolder](node T, line, lastLine int) T {
	node.SetLine(line)
	node.SetLastLine(lastLine)
	return node
}

func (p *parser) ifStatement(opening token, line int) *ast.IfStmt {
	p.advance() // if or elseif
	s := lined(&ast.IfStmt{}, line, line)
	s.Condition = p.expr()
	p.expect(tkThen)
	s.Then = p.scope()
	switch {
	case p.at(tkElseif):
		s.Else = []ast.Stmt{p.ifStatement(tkElseif, p.line)}
	case p.accept(tkElse):
		s.Else = p.scope()
	}
	s.SetLastLine(p.line)
	return s
}

func (p *parser) whileStatement(line int) ast.Stmt {
	p.advance()
	s := &ast.WhileStmt{Condition: p.expr()}
	p.expect(tkDo)
	p.fn.loops++
	s.Stmts = p.scope()
	p.fn.loops--
	p.closing(tkEnd, tkWhile, line)
	return lined(s, line, p.lastLine)
}

func (p *parser) repeatStatement(line int) ast.Stmt {
	p.advance()
	active := len(p.fn.locals)
	p.fn.loops++
	s := &ast.RepeatStmt{Stmts: p.block()}
	p.closing(tkUntil, tkRepeat, line)
	p.fn.loops--
	s.Condition = p.expr() // the block's variables are visible in it
	p.fn.locals = p.fn.locals[:active]
	return lined(s, line, p.lastLine)
}

func (p *parser) forStatement(line int) ast.Stmt {
	p.advance()
	active := len(p.fn.locals)
	first := p.name()
	var s ast.Stmt
	switch p.current.token {
	case '=':
		s = p.numericFor(first, line)
	case ',', tkIn:
		s = p.genericFor(first)
	default:
		p.syntaxError("'=' or 'in' expected")
	}
	p.closing(tkEnd, tkFor, line)
	p.fn.locals = p.fn.locals[:active]
	s.SetLastLine(p.lastLine)
	return s
}

func (p *parser) numericFor(name string, line int) ast.Stmt {
	p.declared(4) // three hidden ones and the name
	p.advance()
	s := lined(&ast.NumberForStmt{Name: name}, line, line)
	s.Init = p.expr()
	p.expect(',')
	s.Limit = p.expr()
	if p.accept(',') {
		s.Step = p.expr()
	}
	s.SetLine(p.line) // the bounds are checked where the body begins
	s.Stmts = p.forBody(name)
	return s
}

func (p *parser) genericFor(first string) ast.Stmt {
	names := []string{first}
	p.declared(4)
	for p.accept(',') {
		names = append(names, p.name())
		p.declared(3 + len(names))
	}
	p.expect(tkIn)
	s := &ast.GenericForStmt{Names: names}
	s.SetLine(p.line)
	s.Exprs = p.exprList()
	s.Stmts = p.forBody(names...)
	return s
}

func (p *parser) forBody(names ...string) []ast.Stmt {
	p.expect(tkDo)
	p.declare("(for 1)", "(for 2)", "(for 3)")
	p.declare(names...)
	p.fn.loops++
	stmts := p.scope()
	p.fn.loops--
	return stmts
}

func (p *parser) functionStatement(line int) ast.Stmt {
	p.advance()
	name := &ast.FuncName{Func: p.variable()}
	for p.at('.') {
		p.advance()
		name.Func = p.field(name.Func)
	}
	isMethod := p.accept(':')
	if isMethod {
		name.Receiver, name.Func, name.Method = name.Func, nil, p.name()
	}
	s := &ast.FuncDefStmt{Name: name, Func: p.functionBody(line, isMethod)}
	if name.Func != nil {
		name.Func.SetLine(line) // the definition happens in the first line
	}
	return lined(s, line, p.lastLine)
}

func (p *parser) localStatement(line int) ast.Stmt {
	s := &ast.LocalAssignStmt{Exprs: []ast.Expr{}}
	for {
		name := p.name()
		s.Names = append(s.Names, name)
		p.declared(len(s.Names))
		if !p.accept(',') {
			break
		}
	}
	if p.accept('=') {
		s.Exprs = p.exprList()
	}
	if len(s.Names) == 1 && len(s.Exprs) == 1 {
		// The tree has one form for "local function f" and "local f = function". An added nil, which is dropped when it
		// runs, tells them apart: only in the former is the name visible in the body.
		if f, ok := s.Exprs[0].(*ast.FunctionExpr); ok {
			s.Exprs = append(s.Exprs, lined(&ast.NilExpr{}, f.LastLine(), f.LastLine()))
		}
	}
	p.declare(s.Names...)
	return lined(s, line, p.lastLine)
}

func (p *parser) expressionStatement(line int) ast.Stmt {
	e, kind := p.suffixed()
	if kind == kindCall {
		return lined(&ast.FuncCallStmt{Expr: e}, line, p.lastLine)
	}
	s := &ast.AssignStmt{}
	for {
		if kind != kindVariable {
			p.syntaxError("syntax error")
		}
		s.Lhs = append(s.Lhs, e)
		if !p.accept(',') {
			break
		}
		e, kind = p.suffixed()
		p.limit(len(s.Lhs), levelsMax-p.level, "variables in assignment")
	}
	p.expect('=')
	s.Rhs = p.exprList()
	for _, e := range s.Lhs {
		if _, ok := e.(*ast.AttrGetExpr); ok {
			e.SetLine(p.lastLine) // that is where the value is stored
		}
	}
	return lined(s, line, p.lastLine)
}

// functionBody reads parameters and block of a function.
func (p *parser) functionBody(line int, isMethod bool) *ast.FunctionExpr {
	f := &ast.FunctionExpr{ParList: &ast.ParList{Names: []string{}}}
	p.fn = &function{outer: p.fn, line: line}
	p.expect('(')
	if isMethod {
		p.declared(1)
		p.declare("self")
	}
	if !p.at(')') {
		for {
			switch p.current.token {
			case tkName:
				p.declared(len(f.ParList.Names) + 1)
				f.ParList.Names = append(f.ParList.Names, p.name())
			case tkDots:
				p.advance()
				f.ParList.HasVargs, p.fn.vararg = true, true
			default:
				p.syntaxError("<name> or '...' expected")
			}
			if p.fn.vararg || !p.accept(',') {
				break
			}
		}
	}
	p.declare(f.ParList.Names...)
	if p.fn.vararg {
		p.declare("arg")
	}
	p.expect(')')
	f.Stmts = p.block()
	f.SetLine(line)
	f.SetLastLine(p.line)
	p.closing(tkEnd, tkFunction, line)
	p.fn = p.fn.outer
	return f
}

// Number returns the literal of a number that is not negative.
func Number(v float64) *ast.NumberExpr {
	if i := int64(v); float64(i) == v && i > -1<<53 && i < 1<<53 {
		return &ast.NumberExpr{Value: strconv.FormatInt(i, 10)}
	}
	return &ast.NumberExpr{Value: strconv.FormatFloat(v, 'g', -1, 64)}
}
