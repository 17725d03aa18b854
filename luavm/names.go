package luavm

// What errors call the values they are about: "local 'x'", "field 'y'".

import (
	"github.com/yuin/gopher-lua/ast"
)

// Kinds of variables.
const (
	kindLocal   = "local"
	kindUpvalue = "upvalue"
	kindGlobal  = "global"
)

// names is what the rewriter knows of the expressions of a chunk.
type names struct {
	kinds     map[*ast.IdentExpr]string // of each name where it is used
	shown     map[ast.Expr]ast.Expr     // what the script had where the rewriter put something else
	receivers map[ast.Expr]bool         // objects t of function t:method
}

func newNames() *names {
	return &names{map[*ast.IdentExpr]string{}, map[ast.Expr]ast.Expr{}, map[ast.Expr]bool{}}
}

// original is the expression that the script had.
func (n *names) original(e ast.Expr) ast.Expr {
	for {
		o, ok := n.shown[e]
		if !ok {
			return e
		}
		e = o
	}
}

// describe returns kind and name of an expression, both empty if Lua has no name for it.
func (n *names) describe(e ast.Expr) (kind, name string) {
	switch e := n.original(e).(type) {
	case *ast.IdentExpr:
		name = e.Value
		if name == readonlyName {
			name = "?"
		}
		return n.kinds[e], name
	case *ast.AttrGetExpr:
		if key, ok := n.original(e.Key).(*ast.StringExpr); ok {
			return "field", key.Value
		}
		return "field", "?"
	case *ast.LogicalOpExpr:
		return n.describeLogical(e)
	}
	return "", ""
}

// called returns the name under which a function is called, "?" if it has none.
func (n *names) called(c *ast.FuncCallExpr) string {
	if c.Func == nil {
		return c.Method
	}
	if kind, name := n.describe(c.Func); kind != "" {
		return name
	}
	return "?"
}

// describeLogical names the value of x and y, x or y. Lua looks for the instruction that set the register last, and in
// doing so takes every jump forward that it comes by: so the first test in x counts as met.
func (n *names) describeLogical(e *ast.LogicalOpExpr) (kind, name string) {
	if n.firstJump(e.Lhs, e.Operator == "and") {
		return "", ""
	}
	return n.describe(e.Rhs)
}

// firstJump tells whether the first jump in a condition's code leads out of it. ifFalse tells whether it is left when the
// condition is false, or when it is true.
func (n *names) firstJump(e ast.Expr, ifFalse bool) bool {
	if l, ok := n.original(e).(*ast.LogicalOpExpr); ok {
		decided := l.Operator == "and" // and: by a false left side
		if n.firstJump(l.Lhs, decided) {
			return decided == ifFalse
		}
		return n.firstJump(l.Rhs, ifFalse)
	}
	t := n.constantTruth(e)
	return !(t == truthTrue && ifFalse || t == truthFalse && !ifFalse)
}

type truth int

const (
	truthUnknown truth = iota
	truthTrue
	truthFalse
)

// constantTruth tells what a constant counts as.
func (n *names) constantTruth(e ast.Expr) truth {
	switch e := n.original(e).(type) {
	case *ast.TrueExpr, *ast.NumberExpr, *ast.StringExpr:
		return truthTrue
	case *ast.FalseExpr, *ast.NilExpr:
		return truthFalse
	case *ast.UnaryNotOpExpr:
		return map[truth]truth{truthTrue: truthFalse, truthFalse: truthTrue}[n.constantTruth(e.Expr)]
	case *ast.UnaryMinusOpExpr:
		if n.isNumber(e) {
			return truthTrue
		}
	case *ast.ArithmeticOpExpr:
		if n.isNumber(e) {
			return truthTrue
		}
	case *ast.LogicalOpExpr:
		switch lhs := n.constantTruth(e.Lhs); {
		case lhs == truthUnknown:
		case (lhs == truthTrue) == (e.Operator == "or"):
			return lhs
		default:
			return n.constantTruth(e.Rhs)
		}
	}
	return truthUnknown
}

// isNumber tells whether an expression is computed when it is compiled.
func (n *names) isNumber(e ast.Expr) bool {
	switch e := n.original(e).(type) {
	case *ast.NumberExpr:
		return true
	case *ast.UnaryMinusOpExpr:
		return n.isNumber(e.Expr)
	case *ast.ArithmeticOpExpr:
		if zero, ok := n.original(e.Rhs).(*ast.NumberExpr); ok && zero.Value == "0" && (e.Operator == "/" || e.Operator == "%") {
			return false // Lua leaves a division by zero to the processor
		}
		return n.isNumber(e.Lhs) && n.isNumber(e.Rhs)
	}
	return false
}
