package syntax

import "github.com/yuin/gopher-lua/ast"

// kind says how an expression can be used in a statement.
type kind int

const (
	kindValue    kind = iota // it cannot
	kindVariable             // it can be assigned to
	kindCall                 // a call is a statement itself
)

func (p *parser) exprList() []ast.Expr {
	list := []ast.Expr{p.expr()}
	for p.accept(',') {
		list = append(list, p.expr())
	}
	return list
}

func (p *parser) expr() ast.Expr { return p.operators(0) }

// binary are the binary operators with how strongly they bind to the left and to the right.
var binary = map[token]struct {
	left, right int
	make        func(lhs, rhs ast.Expr) ast.Expr
}{
	'+':      {6, 6, arithmetic("+")},
	'-':      {6, 6, arithmetic("-")},
	'*':      {7, 7, arithmetic("*")},
	'/':      {7, 7, arithmetic("/")},
	'%':      {7, 7, arithmetic("%")},
	'^':      {10, 9, arithmetic("^")},
	tkConcat: {5, 4, func(l, r ast.Expr) ast.Expr { return &ast.StringConcatOpExpr{Lhs: l, Rhs: r} }},
	tkEq:     {3, 3, relational("==")},
	tkNe:     {3, 3, relational("~=")},
	'<':      {3, 3, relational("<")},
	tkLe:     {3, 3, relational("<=")},
	'>':      {3, 3, relational(">")},
	tkGe:     {3, 3, relational(">=")},
	tkAnd:    {2, 2, logical("and")},
	tkOr:     {1, 1, logical("or")},
}

const unaryPriority = 8

func arithmetic(op string) func(l, r ast.Expr) ast.Expr {
	return func(l, r ast.Expr) ast.Expr { return &ast.ArithmeticOpExpr{Operator: op, Lhs: l, Rhs: r} }
}

func relational(op string) func(l, r ast.Expr) ast.Expr {
	return func(l, r ast.Expr) ast.Expr { return &ast.RelationalOpExpr{Operator: op, Lhs: l, Rhs: r} }
}

func logical(op string) func(l, r ast.Expr) ast.Expr {
	return func(l, r ast.Expr) ast.Expr { return &ast.LogicalOpExpr{Operator: op, Lhs: l, Rhs: r} }
}

// operators reads an expression up to an operator that binds no stronger than limit.
func (p *parser) operators(limit int) (e ast.Expr) {
	p.enter()
	switch p.current.token {
	case tkNot:
		p.advance()
		e = &ast.UnaryNotOpExpr{Expr: p.operators(unaryPriority)}
		lined(e, p.lastLine, p.lastLine)
	case '-':
		p.advance()
		e = &ast.UnaryMinusOpExpr{Expr: p.operators(unaryPriority)}
		lined(e, p.lastLine, p.lastLine)
	case '#':
		p.advance()
		e = &ast.UnaryLenOpExpr{Expr: p.operators(unaryPriority)}
		lined(e, p.lastLine, p.lastLine)
	default:
		e = p.simple()
	}
	for {
		op, ok := binary[p.current.token]
		if !ok || op.left <= limit {
			break
		}
		p.advance()
		e = op.make(e, p.operators(op.right))
		lined(e, p.lastLine, p.lastLine)
	}
	p.leave()
	return e
}

func (p *parser) simple() (e ast.Expr) {
	switch p.current.token {
	case tkNumber:
		e = Number(p.current.value)
	case tkString:
		e = &ast.StringExpr{Value: p.current.text}
	case tkNil:
		e = &ast.NilExpr{}
	case tkTrue:
		e = &ast.TrueExpr{}
	case tkFalse:
		e = &ast.FalseExpr{}
	case tkDots:
		e = &ast.Comma3Expr{}
	case '{':
		return p.constructor()
	case tkFunction:
		p.advance()
		return p.functionBody(p.line)
	default:
		e, _ = p.suffixed()
		return e
	}
	p.advance()
	return lined(e, p.lastLine, p.lastLine)
}

// variable reads the name of a variable.
func (p *parser) variable() ast.Expr {
	return lined(&ast.IdentExpr{Value: p.name()}, p.lastLine, p.lastLine)
}

// field reads the name behind a dot.
func (p *parser) field(object ast.Expr) ast.Expr {
	key := &ast.StringExpr{Value: p.name()}
	lined(key, p.lastLine, p.lastLine)
	return lined(&ast.AttrGetExpr{Object: object, Key: key}, p.lastLine, p.lastLine)
}

// suffixed reads a variable or a parenthesis and the fields, indexes and calls behind it.
func (p *parser) suffixed() (e ast.Expr, k kind) {
	switch line := p.line; p.current.token {
	case '(':
		p.advance()
		e = p.expr()
		p.closing(')', '(', line)
		switch inner := e.(type) { // parentheses cut several values to one
		case *ast.FuncCallExpr:
			inner.AdjustRet = true
		case *ast.Comma3Expr:
			inner.AdjustRet = true
		}
		k = kindValue
	case tkName:
		e, k = p.variable(), kindVariable
	default:
		p.syntaxError("unexpected symbol")
	}
	for {
		switch p.current.token {
		case '.':
			p.advance()
			e, k = p.field(e), kindVariable
		case '[':
			p.advance()
			key := p.expr()
			p.expect(']')
			e, k = lined(&ast.AttrGetExpr{Object: e, Key: key}, p.lastLine, p.lastLine), kindVariable
		case ':':
			p.advance()
			call := &ast.FuncCallExpr{Receiver: e, Method: p.name()}
			p.arguments(call)
			e, k = call, kindCall
		case '(', tkString, '{':
			call := &ast.FuncCallExpr{Func: e}
			p.arguments(call)
			e, k = call, kindCall
		default:
			return e, k
		}
	}
}

// arguments reads the arguments of a call.
func (p *parser) arguments(call *ast.FuncCallExpr) {
	line := p.line
	call.Args = []ast.Expr{}
	switch p.current.token {
	case '(':
		if line != p.lastLine {
			p.syntaxError("ambiguous syntax (function call x new statement)")
		}
		p.advance()
		if !p.at(')') {
			call.Args = p.exprList()
		}
		p.closing(')', '(', line)
	case '{':
		call.Args = append(call.Args, p.constructor())
	case tkString:
		s := &ast.StringExpr{Value: p.current.text}
		p.advance()
		call.Args = append(call.Args, lined(s, p.lastLine, p.lastLine))
	default:
		p.syntaxError("function arguments expected")
	}
	lined(call, line, p.lastLine)
}

func (p *parser) constructor() ast.Expr {
	line := p.line
	t := &ast.TableExpr{Fields: []*ast.Field{}}
	p.expect('{')
	for !p.at('}') {
		f := &ast.Field{}
		switch {
		case p.at(tkName) && p.peek() == '=':
			key := &ast.StringExpr{Value: p.name()}
			f.Key = lined(key, p.lastLine, p.lastLine)
			p.expect('=')
		case p.at('['):
			p.advance()
			f.Key = p.expr()
			p.expect(']')
			p.expect('=')
		}
		f.Value = p.expr()
		t.Fields = append(t.Fields, f)
		if !p.accept(',') && !p.accept(';') {
			break
		}
	}
	p.closing('}', '{', line)
	return lined(t, line, p.lastLine)
}
