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
