package luavm

// The rewriting of expressions, see rewrite.go.

import (
	"math"
	"slices"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/precise"
	"github.com/limitkv/limitkv/luavm/syntax"
)

func (r *rewriter) exprs(list []ast.Expr) {
	for i, e := range list {
		list[i] = r.expr(e)
	}
}

func (r *rewriter) expr(e ast.Expr) ast.Expr {
	r.number(e)
	switch e := e.(type) {
	case *ast.IdentExpr:
		return r.ident(e)
	case *ast.AttrGetExpr:
		return r.attr(e)
	case *ast.TableExpr:
		return r.table(e)
	case *ast.FuncCallExpr:
		r.funcCall(e)
	case *ast.LogicalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.RelationalOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
	case *ast.StringConcatOpExpr:
		return r.concat(e)
	case *ast.ArithmeticOpExpr:
		e.Lhs, e.Rhs = r.expr(e.Lhs), r.expr(e.Rhs)
		switch {
		case e.Operator == "%" || e.Operator == "^":
			return r.remainderOrPower(e)
		case (e.Operator == "*" || e.Operator == "/") && (r.isNegated(e.Lhs) || r.isNegated(e.Rhs)):
			// The result may be -0, which gopher-lua's own operators turn to 0.
			return r.call(map[string]string{"*": hiddenMul, "/": hiddenDiv}[e.Operator], e, e.Lhs, e.Rhs)
		}
	case *ast.UnaryMinusOpExpr:
		e.Expr = r.expr(e.Expr)
	case *ast.UnaryNotOpExpr:
		e.Expr = r.expr(e.Expr)
	case *ast.UnaryLenOpExpr:
		e.Expr = r.object(e.Expr)
		if k, ok := e.Expr.(*ast.StringExpr); ok && r.isArguments(k) {
			return e // of these the library knows the length, see arguments.set
		}
		return r.call(hiddenLen, e, e.Expr)
	case *ast.FunctionExpr:
		r.function(e)
	}
	return e
}

// isArguments tells whether a constant is KEYS or ARGV.
func (r *rewriter) isArguments(k *ast.StringExpr) bool {
	return k.Value == r.hide+hiddenKeys || k.Value == r.hide+hiddenArgv
}

// table rewrites a constructor.
func (r *rewriter) table(e *ast.TableExpr) ast.Expr {
	var values []ast.Expr
	for _, f := range e.Fields {
		if f.Key != nil {
			f.Key = r.key(f.Key)
		}
		f.Value = r.expr(f.Value)
		if f.Key == nil {
			values = append(values, f.Value)
		}
	}
	n := len(values)
	if n == 0 && len(e.Fields) < 2 {
		return e
	}
	if n >= lua.FieldsPerFlush && n < len(e.Fields) {
		e.Fields = flushable(e.Fields)
	}
	last := e.Fields[len(e.Fields)-1]
	if last.Key != nil {
		oneValue(last.Value) // or the list would be taken to end with all of its values
	}
	open := hasManyValues(last.Value)
	switch fields := len(e.Fields) - n; {
	case fields == 0 && open && (n <= listMax || n <= listMaxFlushed && n%lua.FieldsPerFlush == 1):
		return r.call(hiddenList, e, values...)
	case fields > 1 && fields <= fieldsMax:
		if open {
			n-- // how many that will be is not known
		}
		return r.call(hiddenRecord, e, e, r.literal(n, e), r.literal(fields, e))
	}
	return e
}

// flushable puts the fields of a constructor in an order that is compiled right. Of list items the library stores fifty
// at a time, and does so again after a keyed field that follows, when their registers hold something else. So that field
// comes before the last of the fifty.
func flushable(fields []*ast.Field) []*ast.Field {
	ordered := make([]*ast.Field, 0, len(fields))
	items, last := 0, 0
	for _, f := range fields {
		switch {
		case f.Key == nil:
			last = len(ordered)
			ordered = append(ordered, f)
			items++
		case items > 0 && items%lua.FieldsPerFlush == 0:
			oneValue(ordered[last].Value) // it was not the last before
			ordered = slices.Insert(ordered, last, f)
			last++
		default:
			ordered = append(ordered, f)
		}
	}
	return ordered
}

// oneValue makes an expression give one value.
func oneValue(e ast.Expr) {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		e.AdjustRet = true
	case *ast.Comma3Expr:
		e.AdjustRet = true
	}
}

// literal makes a number for the rewriter's own use.
func (r *rewriter) literal(n int, at ast.PositionHolder) ast.Expr {
	return like(syntax.Number(float64(n)), at)
}

// isNegated tells whether an expression has a minus in front, or is a product or a quotient of such.
func (r *rewriter) isNegated(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.UnaryMinusOpExpr:
		return true
	case *ast.FuncCallExpr:
		f, ok := e.Func.(*ast.StringExpr)
		return ok && (f.Value == r.hide+hiddenMul || f.Value == r.hide+hiddenDiv)
	}
	return false
}

// remainderOrPower turns a%b and a^b into calls, unless the result is known.
func (r *rewriter) remainderOrPower(e *ast.ArithmeticOpExpr) ast.Expr {
	name, compute := hiddenMod, modulo
	if e.Operator == "^" {
		name, compute = hiddenPow, precise.Pow
	}
	a, ok1 := e.Lhs.(*ast.NumberExpr)
	b, ok2 := e.Rhs.(*ast.NumberExpr)
	if ok1 && ok2 {
		x, _ := arg.ParseNumber(a.Value)
		y, _ := arg.ParseNumber(b.Value)
		if v := compute(x, y); v > 0 && v <= math.MaxFloat64 { // what can be written as a literal
			return like(syntax.Number(v), e)
		}
	}
	return r.call(name, e, e.Lhs, e.Rhs)
}

func (r *rewriter) function(f *ast.FunctionExpr, self ...string) {
	r.scope = &functionScope{outer: r.scope}
	r.declare(self...)
	r.declare(f.ParList.Names...)
	if f.ParList.HasVargs {
		r.declare("arg")
	}
	f.Stmts = r.block(f.Stmts)
	r.scope = r.scope.outer
}

func (r *rewriter) ident(e *ast.IdentExpr) ast.Expr {
	r.seen[e.Value]++
	kind := r.resolve(e.Value)
	r.names.kinds[e] = kind
	if kind != kindGlobal {
		return e
	}
	switch e.Value {
	case "KEYS", "ARGV":
		r.escapes = true
		return e
	case "_G", "load", "loadstring": // by which KEYS can be reached unseen
		r.escapes = true
	}
	if _, known := constantGlobals()[e.Value]; known && !r.plain {
		return r.constant(e.Value, e)
	}
	return e
}

// constant stands a hidden constant in for an expression.
func (r *rewriter) constant(name string, e ast.Expr) ast.Expr {
	c := r.hidden(name, e)
	r.names.shown[c] = e
	return c
}

func (r *rewriter) attr(e *ast.AttrGetExpr) ast.Expr {
	if path := r.libraryPath(e); path != "" {
		object := e.Object.(*ast.IdentExpr)
		r.seen[object.Value]++
		r.names.kinds[object] = kindGlobal
		return r.constant(path, e)
	}
	e.Object, e.Key = r.object(e.Object), r.key(e.Key)
	return e
}

// libraryPath returns "lib.name" if an expression is a known library function.
func (r *rewriter) libraryPath(e *ast.AttrGetExpr) string {
	lib, ok := e.Object.(*ast.IdentExpr)
	if !ok {
		return ""
	}
	key, ok := e.Key.(*ast.StringExpr)
	if !ok || r.resolve(lib.Value) != kindGlobal {
		return ""
	}
	path := lib.Value + "." + key.Value
	if _, known := constantGlobals()[path]; !known || r.plain {
		return ""
	}
	return path
}

// key rewrites an index. Strings in that place are compiled by their text, so a constant cannot stand there.
func (r *rewriter) key(e ast.Expr) ast.Expr {
	if _, ok := e.(*ast.StringExpr); ok {
		r.number(e)
		return e
	}
	k := r.expr(e)
	if _, folded := k.(*ast.StringExpr); folded {
		return e
	}
	return k
}

func isKeysOrArgv(name string) bool { return name == "KEYS" || name == "ARGV" }

// object rewrites an expression that is only looked into: KEYS there may be a constant.
func (r *rewriter) object(e ast.Expr) ast.Expr {
	id, ok := e.(*ast.IdentExpr)
	if !ok || !isKeysOrArgv(id.Value) || r.resolve(id.Value) != kindGlobal {
		return r.expr(e)
	}
	r.number(e)
	r.seen[id.Value]++
	r.names.kinds[id] = kindGlobal
	if !r.fold {
		return e
	}
	if id.Value == "KEYS" {
		return r.constant(hiddenKeys, e)
	}
	return r.constant(hiddenArgv, e)
}

// readers are functions that keep nothing of their first argument and do not change it.
var readers = map[string]bool{
	"unpack": true, "type": true, "next": true, "table.concat": true, "table.getn": true, "table.maxn": true,
	"cjson.encode": true, "cmsgpack.pack": true,
}

func (r *rewriter) funcCall(e *ast.FuncCallExpr) {
	first := r.expr
	if e.Func != nil {
		if readers[r.globalPath(e.Func)] {
			first = r.object
		}
		e.Func = r.expr(e.Func)
	} else {
		e.Receiver = r.expr(e.Receiver)
	}
	for i, a := range e.Args {
		if i == 0 {
			e.Args[i] = first(a)
		} else {
			e.Args[i] = r.expr(a)
		}
	}
}

// globalPath returns the name of a global function or library function, before it is rewritten.
func (r *rewriter) globalPath(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.IdentExpr:
		if r.resolve(e.Value) == kindGlobal {
			return e.Value
		}
	case *ast.AttrGetExpr:
		return r.libraryPath(e)
	}
	return ""
}

// iterator rewrites what a generic for runs over: there ipairs does not keep its table for longer than the loop.
func (r *rewriter) iterator(e ast.Expr) ast.Expr {
	c, ok := e.(*ast.FuncCallExpr)
	if !ok || c.Func == nil || len(c.Args) != 1 {
		return r.expr(e)
	}
	if path := r.globalPath(c.Func); path != "ipairs" && path != "pairs" {
		return r.expr(e)
	}
	r.number(e)
	c.Func, c.Args[0] = r.expr(c.Func), r.object(c.Args[0])
	return c
}

// bound rewrites a bound of a numeric for.
func (r *rewriter) bound(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.NumberExpr, *ast.UnaryLenOpExpr, *ast.UnaryMinusOpExpr, *ast.ArithmeticOpExpr:
		return r.expr(e)
	case *ast.FuncCallExpr:
		if e.Func != nil && r.globalPath(e.Func) == "tonumber" {
			e.AdjustRet = true
			return r.expr(e)
		}
	}
	e2 := r.expr(e)
	return r.call(hiddenFor, e, e2)
}

// concat turns a chain of concatenations into one call.
func (r *rewriter) concat(e *ast.StringConcatOpExpr) ast.Expr {
	operands := []ast.Expr{e.Lhs}
	rest := e.Rhs
	for {
		inner, ok := rest.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		r.number(inner)
		operands = append(operands, inner.Lhs)
		rest = inner.Rhs
	}
	operands = joinLiterals(append(operands, rest))
	r.exprs(operands)
	if len(operands) == 1 {
		r.names.shown[operands[0]] = e
		return operands[0]
	}
	for len(operands) > concatMax {
		from := len(operands) - concatMax
		tail := r.call(hiddenConcat, e, append([]ast.Expr(nil), operands[from:]...)...)
		operands = append(operands[:from:from], tail)
	}
	for _, o := range operands {
		if c, ok := o.(*ast.FuncCallExpr); ok {
			c.AdjustRet = true
		}
		if c, ok := o.(*ast.Comma3Expr); ok {
			c.AdjustRet = true
		}
	}
	return r.call(hiddenConcat, e, operands...)
}

// joinLiterals makes one literal of string literals that stand side by side.
func joinLiterals(operands []ast.Expr) []ast.Expr {
	out := operands[:1]
	for _, o := range operands[1:] {
		last, ok1 := out[len(out)-1].(*ast.StringExpr)
		next, ok2 := o.(*ast.StringExpr)
		if ok1 && ok2 {
			out[len(out)-1] = like(&ast.StringExpr{Value: last.Value + next.Value}, next)
			continue
		}
		out = append(out, o)
	}
	return out
}
