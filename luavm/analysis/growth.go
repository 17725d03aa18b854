package analysis

// Strings that double. "s = s .. s" forty times makes a terabyte, so where statements run more than once, nothing that
// is carried from one time to the next may go twice into one string or table, or once into what can blow it up. What is
// carried: variables that are assigned again, fields that are written, and what is made of them.

import "github.com/yuin/gopher-lua/ast"

// straightDoublesMax is how many statements that run once may put something carried twice into one string.
const straightDoublesMax = 16

type growth struct {
	b       *bounds
	carried map[*variable]bool
	heap    bool // fields of tables carry
	wrote   bool // something carried was written into a field
	changed bool
	report  bool // tell of what doubles
	repeats int  // how many loops and functions we are in
	doubles int  // in statements that run once
}

// growth checks that no string doubles in a loop.
func (b *bounds) growth() {
	g := &growth{b: b, heap: true}
	if !g.spread() {
		return
	}
	if !g.wrote { // so fields do not carry
		g.heap = false
		if !g.spread() {
			return
		}
	}
	g.report = true
	g.all()
	if g.doubles > straightDoublesMax {
		b.fail(1, "a string may double many times")
	}
}

// spread finds all that carries. It reports false if that is too complex.
func (g *growth) spread() bool {
	g.carried = map[*variable]bool{}
	for v, f := range g.b.facts {
		if f.stores > 0 {
			g.carry(v)
		}
	}
	g.changed = true
	for pass := 0; g.changed; pass++ {
		if pass == PassesMax {
			g.b.fail(1, "too complex to follow")
			return false
		}
		g.changed = false
		g.all()
	}
	return true
}

func (g *growth) all() {
	for _, f := range g.b.a.funcs {
		g.repeats = 0
		if f.expr != nil {
			g.repeats = 1
		}
		g.stmts(f.stmts)
	}
}

// carry marks a variable, unless what it holds is small in any case.
func (g *growth) carry(v *variable) {
	switch v.val.kind {
	case kindNone, kindKey, kindConst, kindBuiltin, kindFunc, kindKeys, kindArgs:
		return
	}
	if !v.val.number && !g.carried[v] {
		g.carried[v] = true
		g.changed = true
	}
}

func (g *growth) stmts(stmts []ast.Stmt) {
	for _, s := range stmts {
		g.stmt(s)
	}
}

func (g *growth) loop(stmts []ast.Stmt) {
	g.repeats++
	g.stmts(stmts)
	g.repeats--
}

func (g *growth) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.AssignStmt:
		n := g.sum(s.Rhs, false)
		for _, target := range s.Lhs {
			if t, ok := target.(*ast.AttrGetExpr); ok {
				g.count(t)
				g.write(s.Rhs)
			} else if v := g.b.local(target); v != nil && n > 0 {
				g.carry(v)
			}
		}
	case *ast.LocalAssignStmt:
		for i, e := range s.Exprs {
			if g.count(e) == 0 {
				continue
			}
			for j, v := range g.b.a.declares[s] {
				if j == i || i == len(s.Exprs)-1 && j > i {
					g.carry(v)
				}
			}
		}
	case *ast.FuncCallStmt:
		g.count(s.Expr)
	case *ast.DoBlockStmt:
		g.stmts(s.Stmts)
	case *ast.WhileStmt:
		g.count(s.Condition)
		g.loop(s.Stmts)
	case *ast.RepeatStmt:
		g.loop(s.Stmts)
		g.count(s.Condition)
	case *ast.IfStmt:
		g.count(s.Condition)
		g.stmts(s.Then)
		g.stmts(s.Else)
	case *ast.NumberForStmt:
		g.loop(s.Stmts)
	case *ast.GenericForStmt:
		n := g.sum(s.Exprs, false)
		if call, name := g.b.callOf(s.Exprs); name == "ipairs" || name == "pairs" {
			// The elements are fields.
			for _, e := range call.Args[:min(1, len(call.Args))] {
				n += g.field(e)
			}
		}
		if n > 0 {
			for _, v := range g.b.a.declares[s] {
				g.carry(v)
			}
		}
		g.loop(s.Stmts)
	case *ast.ReturnStmt:
		g.sum(s.Exprs, false)
	}
}

// write is a write of these values into a field.
func (g *growth) write(values []ast.Expr) {
	if g.sum(values, false) > 0 {
		g.wrote = true
	}
}

// sum is how often something carried goes into the expressions together. Where they become one string or table, twice
// is too often.
func (g *growth) sum(list []ast.Expr, together bool) int {
	n, line := 0, 0
	for _, e := range list {
		if e != nil {
			n += g.count(e)
			line = max(line, e.Line())
		}
	}
	if together {
		n = g.twice(n, line)
	}
	return min(n, 2)
}

func (g *growth) twice(n, line int) int {
	if n >= 2 && g.report {
		if g.repeats > 0 {
			g.b.fail(line, "a string or table may double each time round")
		} else {
			g.doubles++
		}
	}
	return min(n, 2)
}

// count is how often something carried goes into what an expression makes.
func (g *growth) count(e ast.Expr) int {
	switch e := e.(type) {
	case *ast.IdentExpr:
		if v := g.b.a.ident[e]; v != nil && g.carried[v] {
			return 1
		}
	case *ast.AttrGetExpr:
		g.count(e.Key)
		return max(g.count(e.Object), g.field(e.Object))
	case *ast.StringConcatOpExpr:
		return g.twice(g.count(e.Lhs)+g.count(e.Rhs), e.Line())
	case *ast.LogicalOpExpr:
		left, right := g.count(e.Lhs), g.count(e.Rhs)
		if e.Operator == "and" {
			return right
		}
		return max(left, right)
	case *ast.RelationalOpExpr:
		g.count(e.Lhs)
		g.count(e.Rhs)
	case *ast.ArithmeticOpExpr:
		g.count(e.Lhs)
		g.count(e.Rhs)
	case *ast.UnaryMinusOpExpr:
		g.count(e.Expr)
	case *ast.UnaryNotOpExpr:
		g.count(e.Expr)
	case *ast.UnaryLenOpExpr:
		g.count(e.Expr)
	case *ast.TableExpr:
		n := 0
		for _, f := range e.Fields {
			if f.Key != nil {
				n += g.count(f.Key)
			}
			n += g.count(f.Value)
		}
		return g.twice(n, e.Line())
	case *ast.FuncCallExpr:
		return g.call(e)
	}
	return 0
}

// field is whether a field of the table e carries something.
func (g *growth) field(e ast.Expr) int {
	if !g.heap {
		return 0
	}
	switch g.b.a.results[e].kind {
	case kindKeys, kindBuiltin, kindRedis:
		return 0
	case kindArgs:
		if !g.b.a.argsTouched {
			return 0
		}
	}
	if v := g.b.local(e); v != nil {
		if f := g.b.of(v); !f.aliased && len(f.writers) == 0 {
			return 0 // nobody writes there
		}
	} else if g.b.fresh(e) {
		return 0
	}
	return 1
}

func (g *growth) call(e *ast.FuncCallExpr) int {
	if e.Func == nil {
		n := g.sum(append([]ast.Expr{e.Receiver}, e.Args...), true)
		if n > 0 && (e.Method == "gsub" || e.Method == "format" || e.Method == "rep") {
			return g.twice(2, e.Line())
		}
		return n
	}
	g.count(e.Func)
	switch callee := g.b.a.callees[e]; callee.kind {
	case kindCall:
		g.sum(e.Args, false)
		return 0
	case kindBuiltin:
		if numeric[callee.name] {
			g.sum(e.Args, false)
			return 0
		}
		switch callee.name {
		case "table.insert":
			g.write(e.Args[min(1, len(e.Args)):])
			return 0
		case "type", "error", "next", "ipairs", "pairs", "select", "assert", "unpack", "pcall", "xpcall":
			n := g.sum(e.Args, false)
			if n == 0 && callee.name == "unpack" && len(e.Args) > 0 {
				return g.field(e.Args[0])
			}
			return min(n, 1)
		case "table.concat", "cjson.encode", "cmsgpack.pack", "string.gsub", "string.format", "string.rep":
			n := g.sum(e.Args, true)
			if len(e.Args) > 0 {
				n = max(n, g.field(e.Args[0]))
			}
			if n > 0 {
				return g.twice(2, e.Line())
			}
			return 0
		}
		return g.sum(e.Args, true)
	}
	// A function of the script may do anything with it.
	if n := g.sum(e.Args, false); n > 0 {
		return g.twice(2, e.Line())
	}
	return 0
}
