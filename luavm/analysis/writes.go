package analysis

// Writes into tables within a loop, to know that a table does not grow while it is walked.

import "github.com/yuin/gopher-lua/ast"

// writes reports whether the statements of a loop may write into the table that v holds, which nobody else knows. With
// any, v (which may be nil) is some table that others may know too, and only writes into tables that are certainly
// others are allowed, and no calls of functions that might write.
func (b *bounds) writes(stmts []ast.Stmt, v *variable, any bool) bool {
	w := &writeFinder{b: b, v: v, any: any}
	w.stmts(stmts)
	return w.found
}

type writeFinder struct {
	b     *bounds
	v     *variable
	any   bool
	found bool
}

func (w *writeFinder) target(object ast.Expr) {
	v := w.b.local(object)
	if v != nil && v == w.v || w.any && (v == nil || w.b.of(v).aliased) {
		w.found = true
	}
}

func (w *writeFinder) stmts(stmts []ast.Stmt) {
	for _, s := range stmts {
		if w.found {
			return
		}
		w.stmt(s)
	}
}

func (w *writeFinder) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		for _, e := range s.Lhs {
			if t, ok := e.(*ast.AttrGetExpr); ok {
				w.target(t.Object)
				w.expr(t.Object)
				w.expr(t.Key)
			}
		}
		w.exprs(s.Rhs)
	case *ast.LocalAssignStmt:
		w.exprs(s.Exprs)
	case *ast.FuncCallStmt:
		w.expr(s.Expr)
	case *ast.DoBlockStmt:
		w.stmts(s.Stmts)
	case *ast.WhileStmt:
		w.expr(s.Condition)
		w.stmts(s.Stmts)
	case *ast.RepeatStmt:
		w.stmts(s.Stmts)
		w.expr(s.Condition)
	case *ast.IfStmt:
		w.expr(s.Condition)
		w.stmts(s.Then)
		w.stmts(s.Else)
	case *ast.NumberForStmt:
		w.expr(s.Init)
		w.expr(s.Limit)
		w.stmts(s.Stmts)
	case *ast.GenericForStmt:
		w.exprs(s.Exprs)
		w.stmts(s.Stmts)
	case *ast.FuncDefStmt:
		w.found = w.found || w.any || s.Name.Func == nil
	case *ast.ReturnStmt:
		w.exprs(s.Exprs)
	}
}

func (w *writeFinder) exprs(list []ast.Expr) {
	for _, e := range list {
		w.expr(e)
	}
}

func (w *writeFinder) expr(e ast.Expr) {
	switch e := e.(type) {
	case *ast.AttrGetExpr:
		w.expr(e.Object)
		w.expr(e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			w.expr(f.Key)
			w.expr(f.Value)
		}
	case *ast.FunctionExpr:
		w.found = w.found || w.any
	case *ast.FuncCallExpr:
		if e.Func != nil {
			switch callee := w.b.a.callees[e]; {
			case callee.kind == kindBuiltin && callee.name == "table.insert" && len(e.Args) > 0:
				w.target(e.Args[0])
			case callee.kind == kindFunc && w.any:
				w.found = true
			}
			w.expr(e.Func)
		} else {
			w.expr(e.Receiver)
		}
		for _, x := range e.Args {
			if w.any && w.b.a.results[x].kind == kindFunc {
				w.found = true
			}
			w.expr(x)
		}
	case *ast.LogicalOpExpr:
		w.expr(e.Lhs)
		w.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		w.expr(e.Lhs)
		w.expr(e.Rhs)
	case *ast.StringConcatOpExpr:
		w.expr(e.Lhs)
		w.expr(e.Rhs)
	case *ast.ArithmeticOpExpr:
		w.expr(e.Lhs)
		w.expr(e.Rhs)
	case *ast.UnaryMinusOpExpr:
		w.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		w.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		w.expr(e.Expr)
	}
}
