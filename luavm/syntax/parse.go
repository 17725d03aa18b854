// Package syntax, internal to the server, reads Lua 5.1, in two ways: to compile it and to analyse it.
//
// Compile makes the code that a VM runs. It has the error texts and lines of the real Lua 5.1, and the same
// limits on nesting, local variables, upvalues, registers and constants. Parse makes the syntax tree of gopher-lua, for
// package analysis, by recursive descent over the published grammar. (gopher-lua's own parser accepts goto
// and labels, reads numbers by Go's rules, and its errors and line numbers are not Lua's.)
package syntax

import (
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// Parse parses a source that compiles. It checks only the grammar, and not again the other rules of the compiler. chunk is the
// source's name in errors. The error is an *Error.
func Parse(src, chunk string) (stmts []ast.Stmt, err error) {
	p := &parser{reader: reader{lexer: lexer{src: src, chunk: chunk, line: 1}}}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Error:
			stmts, err = nil, r
		default:
			panic(r)
		}
	}()
	p.advance()
	stmts = p.block()
	p.check(tkEOF)
	return stmts, nil
}

type parser struct{ reader }

// Statements.

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
		s = &ast.DoBlockStmt{Stmts: p.block()}
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
			name := p.name()
			s = &ast.LocalAssignStmt{Names: []string{name}, Exprs: []ast.Expr{p.functionBody(p.line)}}
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
	s.Then = p.block()
	switch {
	case p.at(tkElseif):
		s.Else = []ast.Stmt{p.ifStatement(tkElseif, p.line)}
	case p.accept(tkElse):
		s.Else = p.block()
	}
	s.SetLastLine(p.line)
	return s
}

func (p *parser) whileStatement(line int) ast.Stmt {
	p.advance()
	s := &ast.WhileStmt{Condition: p.expr()}
	p.expect(tkDo)
	s.Stmts = p.block()
	p.closing(tkEnd, tkWhile, line)
	return lined(s, line, p.lastLine)
}

func (p *parser) repeatStatement(line int) ast.Stmt {
	p.advance()
	s := &ast.RepeatStmt{Stmts: p.block()}
	p.closing(tkUntil, tkRepeat, line)
	s.Condition = p.expr() // the block's variables are visible in it
	return lined(s, line, p.lastLine)
}

func (p *parser) forStatement(line int) ast.Stmt {
	p.advance()
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
	s.SetLastLine(p.lastLine)
	return s
}

func (p *parser) numericFor(name string, line int) ast.Stmt {
	p.advance()
	s := lined(&ast.NumberForStmt{Name: name}, line, line)
	s.Init = p.expr()
	p.expect(',')
	s.Limit = p.expr()
	if p.accept(',') {
		s.Step = p.expr()
	}
	s.SetLine(p.line) // the bounds are checked where the body begins
	s.Stmts = p.forBody()
	return s
}

func (p *parser) genericFor(first string) ast.Stmt {
	names := []string{first}
	for p.accept(',') {
		names = append(names, p.name())
	}
	p.expect(tkIn)
	s := &ast.GenericForStmt{Names: names}
	s.SetLine(p.line)
	s.Exprs = p.exprList()
	s.Stmts = p.forBody()
	return s
}

func (p *parser) forBody() []ast.Stmt {
	p.expect(tkDo)
	stmts := p.block()
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
	s := &ast.FuncDefStmt{Name: name, Func: p.functionBody(line)}
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
		if !p.accept(',') {
			break
		}
	}
	if p.accept('=') {
		s.Exprs = p.exprList()
	}
	if len(s.Names) == 1 && len(s.Exprs) == 1 {
		// The tree has the same form for "local function f" and "local f = function", although the name is visible in the body
		// only in the former. So the latter gets an additional value nil, which changes nothing else.
		if f, ok := s.Exprs[0].(*ast.FunctionExpr); ok {
			s.Exprs = append(s.Exprs, lined(&ast.NilExpr{}, f.LastLine(), f.LastLine()))
		}
	}
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
	}
	p.expect('=')
	s.Rhs = p.exprList()
	for _, e := range s.Lhs {
		if _, ok := e.(*ast.AttrGetExpr); ok {
			e.SetLine(p.lastLine) // the value is stored in that line
		}
	}
	return lined(s, line, p.lastLine)
}

// functionBody reads parameters and block of a function.
func (p *parser) functionBody(line int) *ast.FunctionExpr {
	f := &ast.FunctionExpr{ParList: &ast.ParList{Names: []string{}}}
	p.expect('(')
	for !p.at(')') {
		if p.accept(tkDots) {
			f.ParList.HasVargs = true
			break
		}
		f.ParList.Names = append(f.ParList.Names, p.name())
		if !p.accept(',') {
			break
		}
	}
	p.expect(')')
	f.Stmts = p.block()
	f.SetLine(line)
	f.SetLastLine(p.line)
	p.closing(tkEnd, tkFunction, line)
	return f
}

// Number returns the literal of a number that is not negative.
func Number(v float64) *ast.NumberExpr {
	if i := int64(v); float64(i) == v && i > -1<<53 && i < 1<<53 {
		return &ast.NumberExpr{Value: strconv.FormatInt(i, 10)}
	}
	return &ast.NumberExpr{Value: strconv.FormatFloat(v, 'g', -1, 64)}
}
