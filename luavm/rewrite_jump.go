package luavm

// Two mistakes of gopher-lua's compiler with and, or and constant conditions.
//
// Loops that begin with a jump: it leads jumps to jumps straight to where those go, but where a loop jumps back
// to an instruction that it has already done so with, it takes a distance for a label and jumps just anywhere: the
// script hangs, or the interpreter reads behind the end of its code. So loops of all kinds that jump back must not begin
// with a jump. Those that may do get an instruction without effect in front.
//
// An and that is assigned to a local variable: see keepsOldValue. It goes through another variable.

import "github.com/yuin/gopher-lua/ast"

// padded makes sure that a loop does not begin with a jump. A while begins with its condition, unless that is constant;
// where the condition begins with a jump it goes into the body: while true do if c then else break end ... end.
func (r *rewriter) padded(loop ast.Stmt, body []ast.Stmt) []ast.Stmt {
	if w, ok := loop.(*ast.WhileStmt); ok {
		switch literal(w.Condition) {
		case literalFalse:
			return body // it never jumps back
		case literalNone:
			if !conditionBeginsWithJump(w.Condition) {
				return body
			}
			leave := like(&ast.IfStmt{Condition: w.Condition, Else: []ast.Stmt{like(&ast.BreakStmt{}, w)}}, w)
			w.Condition = like(&ast.TrueExpr{}, w)
			body = append([]ast.Stmt{leave}, body...)
		}
	}
	if !beginsWithJump(body) {
		return body
	}
	// In a block of its own, so that it takes no register from the body.
	nothing := like(&ast.LocalAssignStmt{Names: []string{"(nothing)"}, Exprs: []ast.Expr{like(&ast.TrueExpr{}, loop)}}, loop)
	block := like(&ast.DoBlockStmt{Stmts: []ast.Stmt{nothing}}, loop)
	return append([]ast.Stmt{block}, body...)
}

// beginsWithJump tells whether the first instruction of statements may be a jump, or whether there may be none at all,
// which lets what follows be the first.
func beginsWithJump(stmts []ast.Stmt) bool {
	if len(stmts) == 0 {
		return true
	}
	switch s := stmts[0].(type) {
	case *ast.LocalAssignStmt:
		return len(s.Exprs) > 0 && exprBeginsWithJump(s.Exprs[0])
	case *ast.AssignStmt:
		for _, e := range s.Lhs {
			if t, ok := e.(*ast.AttrGetExpr); ok && (exprBeginsWithJump(t.Object) || exprBeginsWithJump(t.Key)) {
				return true
			}
		}
		return exprBeginsWithJump(s.Rhs[0])
	case *ast.FuncCallStmt:
		return exprBeginsWithJump(s.Expr)
	case *ast.ReturnStmt:
		return len(s.Exprs) > 0 && exprBeginsWithJump(s.Exprs[0])
	case *ast.IfStmt:
		return conditionBeginsWithJump(s.Condition)
	case *ast.NumberForStmt:
		return exprBeginsWithJump(s.Init)
	case *ast.GenericForStmt:
		return exprBeginsWithJump(s.Exprs[0])
	case *ast.FuncDefStmt:
		return false
	}
	return true // another loop, a block, break
}

// conditionBeginsWithJump is for conditions of if, of which constants emit a jump or nothing.
func conditionBeginsWithJump(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.UnaryNotOpExpr:
		return conditionBeginsWithJump(e.Expr)
	case *ast.LogicalOpExpr:
		return conditionBeginsWithJump(e.Lhs)
	}
	return literal(e) != literalNone || exprBeginsWithJump(e)
}

// exprBeginsWithJump tells whether the first instruction of an expression may be a jump: it is where the left side of
// an and or or is constant.
func exprBeginsWithJump(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.LogicalOpExpr:
		return literal(e.Lhs) != literalNone || exprBeginsWithJump(e.Lhs)
	case *ast.RelationalOpExpr:
		return exprBeginsWithJump(e.Lhs) || emitsNothing(e.Lhs) && exprBeginsWithJump(e.Rhs)
	case *ast.ArithmeticOpExpr:
		return exprBeginsWithJump(e.Lhs) || emitsNothing(e.Lhs) && exprBeginsWithJump(e.Rhs)
	case *ast.StringConcatOpExpr:
		return exprBeginsWithJump(e.Lhs)
	case *ast.UnaryMinusOpExpr:
		return exprBeginsWithJump(e.Expr)
	case *ast.UnaryNotOpExpr:
		return exprBeginsWithJump(e.Expr)
	case *ast.UnaryLenOpExpr:
		return exprBeginsWithJump(e.Expr)
	case *ast.AttrGetExpr:
		return exprBeginsWithJump(e.Object) || emitsNothing(e.Object) && exprBeginsWithJump(e.Key)
	case *ast.FuncCallExpr:
		if e.Func != nil {
			return exprBeginsWithJump(e.Func)
		}
		return exprBeginsWithJump(e.Receiver)
	}
	return false
}

// emitsNothing tells whether an operand may take no instruction: constants and local variables are read in place.
func emitsNothing(e ast.Expr) bool {
	switch e.(type) {
	case *ast.IdentExpr, *ast.NumberExpr, *ast.StringExpr, *ast.TrueExpr, *ast.FalseExpr, *ast.NilExpr:
		return true
	}
	return false
}

// keepsOldValue tells whether a local variable that is assigned this keeps its old value where the new one is false or
// nil: the left side of an and, unless it is a local variable itself, is tested and not stored.
func keepsOldValue(e ast.Expr) bool {
	_, logical := e.(*ast.LogicalOpExpr)
	return logical
}

// What a literal counts as in a condition.
const (
	literalNone = iota // it is none
	literalTrue
	literalFalse
)

func literal(e ast.Expr) int {
	switch e.(type) {
	case *ast.TrueExpr, *ast.NumberExpr, *ast.StringExpr:
		return literalTrue
	case *ast.FalseExpr, *ast.NilExpr:
		return literalFalse
	}
	return literalNone
}
