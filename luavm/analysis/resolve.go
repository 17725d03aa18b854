package analysis

// Binding names to variables. One walk over the tree binds every identifier to its local variable, if it has one. The rules
// are those of the compiler: the name of a "local function" is visible inside it, "self" in methods, "arg" in functions with
// "...", and the condition of until sees the locals of its loop.

import "github.com/yuin/gopher-lua/ast"

type resolver struct {
	a      *analyzer
	names  map[string][]*variable // what each name means, the innermost last
	scopes [][]string             // the names declared in each open scope
	fn     *function
	depth  int
	ok     bool
}

// resolve binds all names. It reports false if the script nests too deeply.
func (a *analyzer) resolve(stmts []ast.Stmt) bool {
	a.ident = map[*ast.IdentExpr]*variable{}
	a.declares = map[ast.Stmt][]*variable{}
	a.functions = map[*ast.FunctionExpr]*function{}
	main := &function{stmts: stmts, vararg: true, line: 1}
	a.funcs = append(a.funcs, main)
	r := &resolver{a: a, names: map[string][]*variable{}, fn: main, ok: true}
	r.block(stmts)
	return r.ok
}

func (r *resolver) push() { r.scopes = append(r.scopes, nil) }

func (r *resolver) pop() {
	top := len(r.scopes) - 1
	for _, name := range r.scopes[top] {
		r.names[name] = r.names[name][:len(r.names[name])-1]
	}
	r.scopes = r.scopes[:top]
}

func (r *resolver) declare(name string, at ast.PositionHolder) *variable {
	v := &variable{name: name, owner: r.fn, decl: at}
	r.names[name] = append(r.names[name], v)
	top := len(r.scopes) - 1
	r.scopes[top] = append(r.scopes[top], name)
	return v
}

func (r *resolver) find(name string) *variable {
	if vars := r.names[name]; len(vars) > 0 {
		return vars[len(vars)-1]
	}
	return nil
}

// enter counts nesting; every enter that reports true is followed by a leave.
func (r *resolver) enter(line int) bool {
	if r.depth++; r.depth > NestingMax {
		r.depth--
		if r.ok {
			r.ok, r.a.deepLine = false, line
		}
		return false
	}
	return true
}

func (r *resolver) leave() { r.depth-- }

// block resolves statements in a new scope.
func (r *resolver) block(stmts []ast.Stmt) {
	r.push()
	r.stmts(stmts)
	r.pop()
}

func (r *resolver) stmts(stmts []ast.Stmt) {
	for _, s := range stmts {
		if !r.ok {
			return
		}
		if r.enter(s.Line()) {
			r.stmt(s)
			r.leave()
		}
	}
}

func (r *resolver) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		r.exprs(s.Lhs)
		r.exprs(s.Rhs)
	case *ast.LocalAssignStmt:
		if len(s.Names) == 1 && len(s.Exprs) == 1 {
			if _, ok := s.Exprs[0].(*ast.FunctionExpr); ok {
				r.a.declares[s] = []*variable{r.declare(s.Names[0], s)}
				r.exprs(s.Exprs)
				return
			}
		}
		r.exprs(s.Exprs)
		var vars []*variable
		for _, name := range s.Names {
			vars = append(vars, r.declare(name, s))
		}
		r.a.declares[s] = vars
	case *ast.FuncCallStmt:
		r.expr(s.Expr)
	case *ast.DoBlockStmt:
		r.block(s.Stmts)
	case *ast.WhileStmt:
		r.expr(s.Condition)
		r.block(s.Stmts)
	case *ast.RepeatStmt:
		r.push()
		r.stmts(s.Stmts)
		r.expr(s.Condition)
		r.pop()
	case *ast.IfStmt:
		r.expr(s.Condition)
		r.block(s.Then)
		r.block(s.Else)
	case *ast.NumberForStmt:
		r.expr(s.Init)
		r.expr(s.Limit)
		if s.Step != nil {
			r.expr(s.Step)
		}
		r.push()
		r.a.declares[s] = []*variable{r.declare(s.Name, s)}
		r.stmts(s.Stmts)
		r.pop()
	case *ast.GenericForStmt:
		r.exprs(s.Exprs)
		r.push()
		var vars []*variable
		for _, name := range s.Names {
			vars = append(vars, r.declare(name, s))
		}
		r.a.declares[s] = vars
		r.stmts(s.Stmts)
		r.pop()
	case *ast.FuncDefStmt:
		if s.Name.Func != nil {
			r.expr(s.Name.Func)
			r.function(s.Func, false)
		} else {
			r.expr(s.Name.Receiver)
			r.function(s.Func, true)
		}
	case *ast.ReturnStmt:
		r.exprs(s.Exprs)
	}
}

func (r *resolver) exprs(list []ast.Expr) {
	for _, e := range list {
		r.expr(e)
	}
}

func (r *resolver) expr(e ast.Expr) {
	if e == nil || !r.ok || !r.enter(e.Line()) {
		return
	}
	defer r.leave()
	switch e := e.(type) {
	case *ast.IdentExpr:
		if v := r.find(e.Value); v != nil {
			r.a.ident[e] = v
		}
	case *ast.AttrGetExpr:
		r.expr(e.Object)
		r.expr(e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			r.expr(f.Key)
			r.expr(f.Value)
		}
	case *ast.FuncCallExpr:
		r.expr(e.Func)
		r.expr(e.Receiver)
		r.exprs(e.Args)
	case *ast.LogicalOpExpr:
		r.expr(e.Lhs)
		r.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		r.expr(e.Lhs)
		r.expr(e.Rhs)
	case *ast.StringConcatOpExpr:
		r.expr(e.Lhs)
		r.expr(e.Rhs)
	case *ast.ArithmeticOpExpr:
		r.expr(e.Lhs)
		r.expr(e.Rhs)
	case *ast.UnaryMinusOpExpr:
		r.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		r.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		r.expr(e.Expr)
	case *ast.FunctionExpr:
		r.function(e, false)
	}
}

func (r *resolver) function(e *ast.FunctionExpr, method bool) {
	f := &function{expr: e, stmts: e.Stmts, parent: r.fn, vararg: e.ParList.HasVargs, line: e.Line()}
	r.a.functions[e] = f
	r.a.funcs = append(r.a.funcs, f)
	outer := r.fn
	r.fn = f
	r.push()
	if method {
		f.params = append(f.params, r.declare("self", e))
	}
	for _, name := range e.ParList.Names {
		f.params = append(f.params, r.declare(name, e))
	}
	if f.vararg {
		r.declare("arg", e).val = value{kind: kindAny} // Lua 5.0's table of the further arguments
	}
	r.stmts(e.Stmts)
	r.pop()
	r.fn = outer
}
