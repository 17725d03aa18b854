package analysis

// The proof that a script ends soon. Steps are counted the way the tree is built: a loop a known number of times
// multiplies, a loop over data makes steps per element, and a loop over data within a loop over data is not bounded.
// What could loop in another way - while, repeat, goto, recursion, unknown functions and iterators, a table that grows
// while it is walked - is not bounded, nor is what makes one step long: patterns that backtrack, strings that double.

import (
	"fmt"
	"math"

	"github.com/yuin/gopher-lua/ast"
)

// work is a number of steps: so many, and so many for each element of some data.
type work struct{ fixed, each float64 }

func (w *work) add(v work) {
	w.fixed += v.fixed
	w.each += v.each
}

// What a call of redis.call, and of a library function, counts for.
const (
	redisCallSteps = 20
	builtinSteps   = 5
)

type bounds struct {
	a      *analyzer
	facts  map[*variable]*facts
	costs  map[*function]*work // nil while being counted
	leaked bool                // a function of the script may be anywhere
	data   int                 // how many loops over data we are in
	loops  int                 // how many loops we are in
	fn     *function
	line   int
	reason string
}

func newBounds(a *analyzer) *bounds {
	return &bounds{a: a, facts: map[*variable]*facts{}, costs: map[*function]*work{}}
}

// fail notes a reason why the script is not bounded; the first in the source counts.
func (b *bounds) fail(line int, format string, args ...any) {
	if b.reason == "" || line < b.line {
		b.line, b.reason = line, fmt.Sprintf(format, args...)
	}
}

func (b *bounds) run() {
	if b.a.globalReason != "" {
		b.fail(b.a.globalLine, "%s", b.a.globalReason)
		return
	}
	for _, f := range b.a.funcs {
		b.leaked = b.leaked || f.leaked
	}
	b.collect()
	for _, f := range b.a.funcs {
		w := b.function(f, f.line)
		if f.expr == nil {
			b.limit(w, 1)
		}
	}
	b.growth()
}

// limit checks the steps of a whole, or of a loop.
func (b *bounds) limit(w work, line int) {
	if w.fixed > WorkMax {
		b.fail(line, "too many steps")
	} else if w.each > WorkPerElementMax {
		b.fail(line, "too many steps for each element")
	}
}

// function counts what a call of f takes.
func (b *bounds) function(f *function, line int) work {
	if w, begun := b.costs[f]; begun {
		if w == nil {
			b.fail(line, "recursion")
			return work{}
		}
		return *w
	}
	b.costs[f] = nil
	fn, data, loops := b.fn, b.data, b.loops
	b.fn, b.data, b.loops = f, 0, 0
	w := b.stmts(f.stmts)
	b.fn, b.data, b.loops = fn, data, loops
	b.costs[f] = &w
	return w
}

// call adds a call of f to the work.
func (b *bounds) call(w *work, f *function, line int) {
	cost := b.function(f, line)
	if cost.each > 0 && b.data > 0 {
		b.fail(line, "calls a function that loops over data inside a loop over data")
	}
	w.add(cost)
}

func (b *bounds) stmts(stmts []ast.Stmt) (w work) {
	for _, s := range stmts {
		w.add(b.stmt(s))
	}
	return w
}

func (b *bounds) stmt(s ast.Stmt) (w work) {
	w.fixed = 1
	switch s := s.(type) {
	case *ast.AssignStmt:
		b.exprs(&w, s.Lhs)
		b.exprs(&w, s.Rhs)
	case *ast.LocalAssignStmt:
		b.exprs(&w, s.Exprs)
	case *ast.FuncCallStmt:
		b.expr(&w, s.Expr)
	case *ast.DoBlockStmt:
		w.add(b.stmts(s.Stmts))
	case *ast.WhileStmt:
		b.fail(s.Line(), "while")
		b.expr(&w, s.Condition)
		w.add(b.stmts(s.Stmts))
	case *ast.RepeatStmt:
		b.fail(s.Line(), "repeat")
		w.add(b.stmts(s.Stmts))
		b.expr(&w, s.Condition)
	case *ast.IfStmt:
		b.expr(&w, s.Condition)
		w.add(b.stmts(s.Then))
		w.add(b.stmts(s.Else))
	case *ast.NumberForStmt:
		b.expr(&w, s.Init)
		b.expr(&w, s.Limit)
		if s.Step != nil {
			b.expr(&w, s.Step)
		}
		b.loop(&w, b.iterations(s), s.Stmts, s.Line())
	case *ast.GenericForStmt:
		b.genericFor(&w, s)
	case *ast.FuncDefStmt:
		if s.Name.Func != nil {
			b.expr(&w, s.Name.Func)
		} else {
			b.expr(&w, s.Name.Receiver)
		}
	case *ast.ReturnStmt:
		b.exprs(&w, s.Exprs)
	case *ast.LabelStmt, *ast.GotoStmt:
		b.fail(s.Line(), "goto")
	}
	return w
}

// loop adds a loop of so many iterations.
func (b *bounds) loop(w *work, n limit, body []ast.Stmt, line int) {
	if !n.ok {
		b.fail(line, "a loop with a limit that is not known to be small")
	}
	if n.data {
		if b.data > 0 {
			b.fail(line, "loops over data inside a loop over data")
		}
		b.data++
	}
	b.loops++
	once := b.stmts(body)
	b.loops--
	once.fixed++
	count := max(n.c, 1)
	sum := work{fixed: once.fixed * count, each: once.each * count}
	if n.data {
		b.data--
		sum.each += once.fixed
	}
	b.limit(sum, line)
	w.add(sum)
}

// genericFor adds a loop with an iterator, which must be one that ends.
func (b *bounds) genericFor(w *work, s *ast.GenericForStmt) {
	for _, e := range s.Exprs {
		b.expr(w, e)
	}
	call, name := b.callOf(s.Exprs)
	switch {
	case (name == "ipairs" || name == "pairs") && len(call.Args) > 0:
		if b.data == 0 && !b.steady(call.Args[0], s) {
			b.fail(s.Line(), "%s over a table that may grow in the loop", name)
		}
	case name == "string.gmatch", len(s.Exprs) == 1 && b.isMethod(s.Exprs[0], "gmatch"):
	default:
		b.fail(s.Line(), "a loop with an iterator that is not known")
	}
	b.loop(w, limit{ok: true, data: true}, s.Stmts, s.Line())
}

func (b *bounds) isMethod(e ast.Expr, name string) bool {
	call, ok := e.(*ast.FuncCallExpr)
	return ok && call.Func == nil && call.Method == name
}

// steady reports whether the table that e is cannot get new elements in the loop.
func (b *bounds) steady(e ast.Expr, s *ast.GenericForStmt) bool {
	if or, ok := e.(*ast.LogicalOpExpr); ok && or.Operator == "or" {
		return b.steady(or.Lhs, s) && b.steady(or.Rhs, s)
	}
	if b.fresh(e) {
		return true
	}
	if b.a.isTable(e, kindKeys) {
		return !b.a.keysTouched
	}
	if b.a.isTable(e, kindArgs) {
		return !b.a.argsTouched
	}
	v := b.local(e)
	if v != nil && !b.of(v).aliased {
		for f := range b.of(v).writers {
			if f != b.fn {
				return false
			}
		}
		if v.owner != b.fn {
			return len(b.of(v).writers) == 0
		}
		return !b.writes(s.Stmts, v, false)
	}
	// It may be any table: then only tables that are certainly others may be written to.
	return !b.writes(s.Stmts, v, true)
}

// iterations is how often a numeric for runs at most.
func (b *bounds) iterations(s *ast.NumberForStmt) limit {
	step := 1.0
	if s.Step != nil {
		var ok bool
		if step, ok = b.constant(s.Step); !ok || step == 0 {
			return limit{}
		}
	}
	var n limit
	from, to := b.lower(s.Init), b.upper(s.Limit)
	if step < 0 {
		from, to, step = b.lower(s.Limit), b.upper(s.Init), -step
	}
	n = to.minus(from)
	// Where numbers are so large that adding the step may not change them, the loop may never end.
	if n.data && step < 1 || step < 1e-3 || math.Abs(from.c) > 1e9 || math.Abs(to.c) > 1e9 {
		return limit{}
	}
	n.c = n.c/step + 1
	return n
}

// exprs and expr count the steps of expressions and check the calls among them.
func (b *bounds) exprs(w *work, list []ast.Expr) {
	for _, e := range list {
		b.expr(w, e)
	}
}

func (b *bounds) expr(w *work, e ast.Expr) {
	w.fixed++
	switch e := e.(type) {
	case *ast.AttrGetExpr:
		b.expr(w, e.Object)
		b.expr(w, e.Key)
	case *ast.TableExpr:
		for _, f := range e.Fields {
			if f.Key != nil {
				b.expr(w, f.Key)
			}
			b.expr(w, f.Value)
		}
	case *ast.FuncCallExpr:
		b.callExpr(w, e)
	case *ast.LogicalOpExpr:
		b.expr(w, e.Lhs)
		b.expr(w, e.Rhs)
	case *ast.RelationalOpExpr:
		b.expr(w, e.Lhs)
		b.expr(w, e.Rhs)
	case *ast.StringConcatOpExpr:
		b.expr(w, e.Lhs)
		b.expr(w, e.Rhs)
	case *ast.ArithmeticOpExpr:
		b.expr(w, e.Lhs)
		b.expr(w, e.Rhs)
	case *ast.UnaryMinusOpExpr:
		b.expr(w, e.Expr)
	case *ast.UnaryNotOpExpr:
		b.expr(w, e.Expr)
	case *ast.UnaryLenOpExpr:
		b.expr(w, e.Expr)
	}
}

// stringMethods are the methods of strings.
var stringMethods = map[string]bool{
	"byte": true, "find": true, "format": true, "gmatch": true, "gsub": true, "len": true, "lower": true, "match": true,
	"rep": true, "reverse": true, "sub": true, "upper": true,
}

func (b *bounds) callExpr(w *work, e *ast.FuncCallExpr) {
	if e.Func == nil {
		b.expr(w, e.Receiver)
		b.exprs(w, e.Args)
		w.fixed += builtinSteps
		if !stringMethods[e.Method] || b.leaked {
			b.fail(e.Line(), "calls a method that is not known to be a string's")
			return
		}
		b.stringCall(w, "string."+e.Method, append([]ast.Expr{e.Receiver}, e.Args...), e.Line())
		return
	}
	b.expr(w, e.Func)
	b.exprs(w, e.Args)
	switch callee := b.a.callees[e]; callee.kind {
	case kindCall:
		w.fixed += redisCallSteps
	case kindFunc:
		b.call(w, callee.fn, e.Line())
	case kindBuiltin:
		w.fixed += builtinSteps
		b.builtinCall(w, callee.name, e)
	case kindNone: // an error when it runs
	default:
		b.fail(e.Line(), "calls a function that is not known")
	}
}

// builtinCall checks a call of a library function: what it calls in turn, and whether it may take long by itself.
func (b *bounds) builtinCall(w *work, name string, e *ast.FuncCallExpr) {
	switch name {
	case "pcall":
		b.passed(w, e, 0, false)
	case "xpcall":
		b.passed(w, e, 0, false)
		b.passed(w, e, 1, false)
	case "table.sort":
		if len(e.Args) > 1 {
			b.passed(w, e, 1, true)
		}
	case "table.foreach", "table.foreachi", "string.dump":
		b.fail(e.Line(), "calls %s", name)
	default:
		b.stringCall(w, name, e.Args, e.Line())
	}
}

// passed adds what is called when a library function calls its argument i, once or for each element.
func (b *bounds) passed(w *work, e *ast.FuncCallExpr, i int, each bool) {
	if i >= len(e.Args) {
		return // an error when it runs
	}
	b.passedValue(w, b.a.valueOf(e.Args[i]), e.Line(), each)
}

func (b *bounds) passedValue(w *work, v value, line int, each bool) {
	switch v.kind {
	case kindNone:
	case kindCall:
		w.fixed += redisCallSteps
	case kindFunc:
		if !each {
			b.call(w, v.fn, line)
			return
		}
		cost := b.function(v.fn, line)
		if b.data > 0 || cost.each > 0 {
			b.fail(line, "calls a function for each element inside a loop over data")
		}
		w.each += cost.fixed
	case kindBuiltin:
		if lib, _, _ := cutDot(v.name); lib == "cjson" || lib == "cmsgpack" || lib == "struct" || v.name == "error" ||
			v.name == "tonumber" || v.name == "tostring" {
			w.fixed += builtinSteps
			return
		}
		b.fail(line, "has %s called", v.name)
	default:
		b.fail(line, "calls a function that is not known")
	}
}

// stringCall checks the string functions that may take long: those with patterns, and string.rep.
func (b *bounds) stringCall(w *work, name string, args []ast.Expr, line int) {
	switch name {
	case "string.rep":
		if len(args) < 2 {
			return
		}
		s, ok := b.a.valueOf(args[0]).sole()
		n := b.upper(args[1])
		if !ok || !n.ok || float64(len(s))*n.c > ConstantRepeatMax {
			b.fail(line, "string.rep may make a long string")
		} else if n.data {
			if b.data > 0 {
				b.fail(line, "string.rep by the size of data inside a loop over data")
			}
			w.each += float64(len(s))
		}
	case "string.find", "string.match", "string.gmatch", "string.gsub":
		if len(args) < 2 {
			return
		}
		p, ok := b.a.valueOf(args[1]).sole()
		if !ok {
			b.fail(line, "%s with a pattern that is not constant", name)
			return
		}
		if name == "string.find" && len(args) == 4 && b.isTrue(args[3]) {
			return
		}
		if !linearPattern(p) {
			b.fail(line, "%s with a pattern that may backtrack", name)
		}
		if name == "string.gsub" && len(args) > 2 {
			b.replacement(w, args[2], line)
		}
	}
}

func (b *bounds) isTrue(e ast.Expr) bool {
	_, ok := e.(*ast.TrueExpr)
	return ok
}

// replacement checks the third argument of gsub.
func (b *bounds) replacement(w *work, e ast.Expr, line int) {
	v := b.a.valueOf(e)
	if s, ok := v.sole(); ok {
		captures := 0
		for i := 0; i+1 < len(s); i++ {
			if s[i] == '%' && s[i+1] >= '0' && s[i+1] <= '9' {
				captures++
			}
		}
		if captures <= 1 && len(s) <= 64 {
			return
		}
	}
	if v.kind == kindFunc {
		b.passedValue(w, v, line, true)
		return
	}
	b.fail(line, "string.gsub with a replacement that may make a long string")
}
