package analysis

// What the proof of boundedness asks of variables: how often each is assigned, whether the table it holds can be known
// under another name, and who writes into it.

import "github.com/yuin/gopher-lua/ast"

// facts are about one local variable.
type facts struct {
	stores   int                // assignments besides the declaration
	init     ast.Expr           // what its declaration gives it, where that is one expression for it alone
	loop     *ast.NumberForStmt // the loop whose variable it is
	aliased  bool               // what it holds may be known elsewhere, or is not new
	across   bool               // it is assigned in a function other than its own
	writers  map[*function]bool // who writes into the table that it holds
	measured bool               // upper and lower below are known (or being found)
	upper    limit
	lower    limit
}

func (b *bounds) of(v *variable) *facts {
	f := b.facts[v]
	if f == nil {
		f = &facts{}
		b.facts[v] = f
	}
	return f
}

// collect gathers the facts of all variables.
func (b *bounds) collect() {
	for _, f := range b.a.funcs {
		for _, p := range f.params {
			b.of(p).aliased = true
		}
		b.collectStmts(f, f.stmts)
	}
}

func (b *bounds) collectStmts(f *function, stmts []ast.Stmt) {
	for _, s := range stmts {
		b.collectStmt(f, s)
	}
}

func (b *bounds) collectStmt(f *function, s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		for i, target := range s.Lhs {
			b.collectStore(f, target, s.Lhs, s.Rhs, i)
		}
		b.plainAll(f, s.Rhs)
	case *ast.LocalAssignStmt:
		for i, v := range b.a.declares[s] {
			facts := b.of(v)
			switch {
			case i < len(s.Exprs) && (i < len(s.Exprs)-1 || len(s.Exprs) == len(s.Names)):
				facts.init = s.Exprs[i]
				facts.aliased = facts.aliased || !b.fresh(s.Exprs[i])
			case len(s.Exprs) > 0:
				facts.aliased = true
			}
		}
		b.plainAll(f, s.Exprs)
	case *ast.FuncCallStmt:
		b.plain(f, s.Expr)
	case *ast.DoBlockStmt:
		b.collectStmts(f, s.Stmts)
	case *ast.WhileStmt:
		b.look(f, s.Condition)
		b.collectStmts(f, s.Stmts)
	case *ast.RepeatStmt:
		b.collectStmts(f, s.Stmts)
		b.look(f, s.Condition)
	case *ast.IfStmt:
		b.look(f, s.Condition)
		b.collectStmts(f, s.Then)
		b.collectStmts(f, s.Else)
	case *ast.NumberForStmt:
		b.of(b.a.declares[s][0]).loop = s
		b.look(f, s.Init)
		b.look(f, s.Limit)
		if s.Step != nil {
			b.look(f, s.Step)
		}
		b.collectStmts(f, s.Stmts)
	case *ast.GenericForStmt:
		for _, v := range b.a.declares[s] {
			b.of(v).aliased = true
		}
		if call, name := b.callOf(s.Exprs); name == "ipairs" || name == "pairs" {
			for _, e := range call.Args {
				b.look(f, e)
			}
		} else {
			b.plainAll(f, s.Exprs)
		}
		b.collectStmts(f, s.Stmts)
	case *ast.FuncDefStmt:
		if s.Name.Func != nil {
			b.collectStore(f, s.Name.Func, nil, nil, 0)
		} else {
			b.collectWrite(f, s.Name.Receiver)
		}
	case *ast.ReturnStmt:
		for _, e := range s.Exprs {
			if f.expr == nil {
				b.reply(f, e)
			} else {
				b.plain(f, e)
			}
		}
	}
}

// reply is the use of a value as the script's reply, after which the script does nothing.
func (b *bounds) reply(f *function, e ast.Expr) {
	switch t := e.(type) {
	case *ast.IdentExpr:
	case *ast.TableExpr:
		for _, field := range t.Fields {
			if field.Key != nil {
				b.plain(f, field.Key)
			}
			b.reply(f, field.Value)
		}
	default:
		b.plain(f, e)
	}
}

func (b *bounds) collectStore(f *function, target ast.Expr, lhs, rhs []ast.Expr, i int) {
	switch t := target.(type) {
	case *ast.IdentExpr:
		if v := b.a.ident[t]; v != nil {
			facts := b.of(v)
			facts.stores++
			facts.across = facts.across || v.owner != f
			known := i < len(rhs) && (i < len(rhs)-1 || len(rhs) == len(lhs))
			facts.aliased = facts.aliased || !known || !b.fresh(rhs[i])
		}
	case *ast.AttrGetExpr:
		b.collectWrite(f, t.Object)
		b.look(f, t.Key)
	}
}

// collectWrite is a write into the table that e is.
func (b *bounds) collectWrite(f *function, e ast.Expr) {
	if v := b.local(e); v != nil {
		facts := b.of(v)
		if facts.writers == nil {
			facts.writers = map[*function]bool{}
		}
		facts.writers[f] = true
		return
	}
	b.look(f, e)
}

// local is the local variable that an expression is.
func (b *bounds) local(e ast.Expr) *variable {
	if id, ok := e.(*ast.IdentExpr); ok {
		return b.a.ident[id]
	}
	return nil
}

// look is a use of a value that keeps no hold of it.
func (b *bounds) look(f *function, e ast.Expr) {
	if b.local(e) == nil {
		b.plain(f, e)
	}
}

func (b *bounds) plainAll(f *function, exprs []ast.Expr) {
	for _, e := range exprs {
		b.plain(f, e)
	}
}

// plain is a use of a value after which it may be known elsewhere.
func (b *bounds) plain(f *function, e ast.Expr) {
	switch e := e.(type) {
	case *ast.IdentExpr:
		if v := b.a.ident[e]; v != nil {
			b.of(v).aliased = true
		}
	case *ast.AttrGetExpr:
		b.look(f, e.Object)
		b.look(f, e.Key)
	case *ast.FuncCallExpr:
		b.collectCall(f, e)
	case *ast.LogicalOpExpr:
		if e.Operator == "and" {
			b.look(f, e.Lhs)
		} else {
			b.plain(f, e.Lhs)
		}
		b.plain(f, e.Rhs)
	case *ast.RelationalOpExpr:
		b.look(f, e.Lhs)
		b.look(f, e.Rhs)
	case *ast.StringConcatOpExpr:
		b.look(f, e.Lhs)
		b.look(f, e.Rhs)
	case *ast.ArithmeticOpExpr:
		b.look(f, e.Lhs)
		b.look(f, e.Rhs)
	case *ast.UnaryMinusOpExpr:
		b.look(f, e.Expr)
	case *ast.UnaryNotOpExpr:
		b.look(f, e.Expr)
	case *ast.UnaryLenOpExpr:
		b.look(f, e.Expr)
	case *ast.TableExpr:
		for _, field := range e.Fields {
			if field.Key != nil {
				b.plain(f, field.Key)
			}
			b.plain(f, field.Value)
		}
	}
}

func (b *bounds) collectCall(f *function, e *ast.FuncCallExpr) {
	if e.Func == nil {
		b.plain(f, e.Receiver)
		b.plainAll(f, e.Args)
		return
	}
	b.look(f, e.Func)
	callee := b.a.callees[e]
	for i, arg := range e.Args {
		switch {
		case callee.kind == kindBuiltin && callee.name == "table.insert" && i == 0:
			b.collectWrite(f, arg)
		case callee.kind == kindCall, callee.kind == kindBuiltin && keepsNothing(callee.name):
			b.look(f, arg)
		default:
			b.plain(f, arg)
		}
	}
}

// keepsNothing reports whether a function neither keeps nor returns nor passes on the tables it is given.
func keepsNothing(name string) bool {
	switch name {
	case "tonumber", "tostring", "type", "next", "unpack", "rawequal", "table.concat", "table.getn", "table.maxn",
		"table.remove", "table.sort", "cjson.encode", "cmsgpack.pack":
		return true
	}
	lib, _, _ := cutDot(name)
	return lib == "string" || lib == "math" || lib == "struct" || lib == "bit"
}

func cutDot(name string) (lib, member string, ok bool) {
	for i := range name {
		if name[i] == '.' {
			return name[:i], name[i+1:], true
		}
	}
	return "", name, false
}

// fresh reports whether what an expression evaluates to is no table, or a new one that nobody else knows.
func (b *bounds) fresh(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.TableExpr, *ast.NilExpr, *ast.FalseExpr, *ast.TrueExpr, *ast.NumberExpr, *ast.StringExpr,
		*ast.StringConcatOpExpr, *ast.ArithmeticOpExpr, *ast.RelationalOpExpr, *ast.UnaryLenOpExpr,
		*ast.UnaryMinusOpExpr, *ast.UnaryNotOpExpr:
		return true
	case *ast.FuncCallExpr:
		v := b.a.callees[e]
		if v.kind == kindCall {
			return true
		}
		lib, _, _ := cutDot(v.name)
		return v.kind == kindBuiltin && (lib == "cjson" || lib == "cmsgpack" || lib == "struct" || lib == "string" ||
			numeric[v.name] || single[v.name])
	case *ast.LogicalOpExpr:
		return b.fresh(e.Rhs) && (e.Operator == "and" || b.fresh(e.Lhs))
	}
	return false
}

// callOf returns the call that a single expression is and the name of the builtin that it calls.
func (b *bounds) callOf(exprs []ast.Expr) (*ast.FuncCallExpr, string) {
	if len(exprs) == 1 {
		if call, ok := exprs[0].(*ast.FuncCallExpr); ok && call.Func != nil {
			if v := b.a.callees[call]; v.kind == kindBuiltin {
				return call, v.name
			}
		}
	}
	return nil, ""
}
