package analysis

// The inference: the effect of each statement and expression on the variables, and the check of every redis.call.

import (
	"strconv"
	"strings"

	"github.com/yuin/gopher-lua/ast"
)

// infer finds the values that all variables can hold, then goes over the script once more and notes what prevents the proof.
func (a *analyzer) infer() {
	for pass := 0; ; pass++ {
		if pass == PassesMax {
			a.checking = true
			a.keysFail(1, "too complex to follow")
			return
		}
		a.changed = false
		a.pass()
		if !a.changed {
			break
		}
	}
	a.checking = true
	a.pass()
}

func (a *analyzer) pass() {
	for _, f := range a.funcs {
		a.stmts(f, f.stmts)
	}
}

func (a *analyzer) stmts(f *function, stmts []ast.Stmt) {
	for _, s := range stmts {
		a.stmt(f, s)
	}
}

func (a *analyzer) stmt(f *function, s ast.Stmt) {
	line := s.Line()
	switch s := s.(type) {
	case *ast.AssignStmt:
		values := a.values(f, s.Rhs, len(s.Lhs))
		for i, target := range s.Lhs {
			a.store(f, target, values[i], line)
		}
	case *ast.LocalAssignStmt:
		vars := a.declares[s]
		values := a.values(f, s.Exprs, len(vars))
		for i, v := range vars {
			a.assign(v, values[i], line)
		}
	case *ast.FuncCallStmt:
		a.eval(f, s.Expr)
	case *ast.DoBlockStmt:
		a.stmts(f, s.Stmts)
	case *ast.WhileStmt:
		a.eval(f, s.Condition)
		a.stmts(f, s.Stmts)
	case *ast.RepeatStmt:
		a.stmts(f, s.Stmts)
		a.eval(f, s.Condition)
	case *ast.IfStmt:
		a.eval(f, s.Condition)
		a.stmts(f, s.Then)
		a.stmts(f, s.Else)
	case *ast.NumberForStmt:
		a.use(f, s.Init)
		a.use(f, s.Limit)
		if s.Step != nil {
			a.use(f, s.Step)
		}
		a.assign(a.declares[s][0], aNumber, line)
		a.stmts(f, s.Stmts)
	case *ast.GenericForStmt:
		a.genericFor(f, s)
		a.stmts(f, s.Stmts)
	case *ast.FuncDefStmt:
		fn := value{kind: kindFunc, fn: a.functions[s.Func]}
		if s.Name.Func != nil {
			a.store(f, s.Name.Func, fn, line)
			return
		}
		// function t:m() stores into t.
		receiver := a.eval(f, s.Name.Receiver)
		a.storeInto(receiver, line)
		a.release(fn, line)
	case *ast.ReturnStmt:
		for i, e := range s.Exprs {
			v := a.eval(f, e)
			if i == len(s.Exprs)-1 && multiple(e) {
				v = a.merge(v, a.all(e), line)
			}
			if f.expr == nil && (v.kind == kindKeys || v.kind == kindArgs) {
				continue // the value only goes into the reply
			}
			if v.sensitive() || v.kind == kindFunc || v.kind == kindBuiltin || v.kind == kindArgs {
				a.release(v, line)
				v = anything
			}
			if u := a.merge(f.ret, v, line); !u.same(f.ret) {
				f.ret = u
				a.changed = true
			}
		}
	}
}

// genericFor assigns to the loop's variables: with ipairs and pairs over KEYS, the values are keys.
func (a *analyzer) genericFor(f *function, s *ast.GenericForStmt) {
	line := s.Line()
	index, element := anything, anything
	if call, name := a.callOf(f, s.Exprs); call != nil && (name == "ipairs" || name == "pairs") && len(call.Args) > 0 {
		if v := a.eval(f, call.Args[0]); v.kind == kindKeys {
			element = aKey
		} else if v.kind != kindArgs {
			a.release(v, line)
		}
		for _, e := range call.Args[1:] {
			a.use(f, e)
		}
		if name == "ipairs" {
			index = aNumber
		}
	} else {
		for _, e := range s.Exprs {
			a.use(f, e)
		}
	}
	for i, v := range a.declares[s] {
		switch i {
		case 0:
			a.assign(v, index, line)
		case 1:
			a.assign(v, element, line)
		default:
			a.assign(v, anything, line)
		}
	}
}

// callOf returns the call if exprs is a single call, and the name of the builtin that it calls.
func (a *analyzer) callOf(f *function, exprs []ast.Expr) (*ast.FuncCallExpr, string) {
	if len(exprs) != 1 {
		return nil, ""
	}
	call, ok := exprs[0].(*ast.FuncCallExpr)
	if !ok || call.Func == nil {
		return nil, ""
	}
	v := a.eval(f, call.Func)
	a.callees[call] = v
	if v.kind == kindBuiltin {
		return call, v.name
	}
	return nil, ""
}

// store is an assignment of v to a variable, a field or a global.
func (a *analyzer) store(f *function, target ast.Expr, v value, line int) {
	switch t := target.(type) {
	case *ast.IdentExpr:
		if local := a.ident[t]; local != nil {
			a.assign(local, v, line)
			return
		}
		a.keysFail(line, "the global '%s' is assigned to", t.Value)
	case *ast.AttrGetExpr:
		object := a.eval(f, t.Object)
		a.use(f, t.Key)
		a.storeInto(object, line)
	}
	a.release(v, line)
}

// storeInto is an assignment to a field of a table.
func (a *analyzer) storeInto(object value, line int) {
	switch object.kind {
	case kindKeys:
		a.keysFail(line, "KEYS is changed")
	case kindRedis:
		a.keysFail(line, "the table redis is changed")
	case kindBuiltin:
		a.keysFail(line, "the library '%s' is changed", object.name)
	}
}

// values evaluates the right-hand side of an assignment to n targets. Surplus values come behind the n.
func (a *analyzer) values(f *function, exprs []ast.Expr, n int) []value {
	out := make([]value, max(n, len(exprs)))
	for i, e := range exprs {
		out[i] = a.eval(f, e)
		if i == len(exprs)-1 && multiple(e) {
			further := a.all(e)
			for j := i + 1; j < n; j++ {
				out[j] = further
			}
		}
	}
	return out
}

// multiple reports whether an expression in last place can give several values, or none.
func multiple(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		return !e.AdjustRet
	case *ast.Comma3Expr:
		return !e.AdjustRet
	}
	return false
}

// all returns what each further value of e can be. multiple(e) must be true, and e must have just been evaluated.
func (a *analyzer) all(e ast.Expr) value {
	call, ok := e.(*ast.FuncCallExpr)
	if !ok {
		return anything
	}
	switch callee := a.callees[call]; {
	case callee.kind == kindFunc:
		return callee.fn.ret
	case callee.kind == kindBuiltin && callee.name == "unpack":
		return a.results[call]
	}
	return anything
}

// use evaluates an expression whose value is not followed any further.
func (a *analyzer) use(f *function, e ast.Expr) value {
	v := a.eval(f, e)
	a.release(v, e.Line())
	return v
}

// eval evaluates an expression. The caller must follow the value or drop it; otherwise it must call use instead.
func (a *analyzer) eval(f *function, e ast.Expr) value {
	switch e := e.(type) {
	case *ast.NilExpr, *ast.FalseExpr:
		return value{}
	case *ast.StringExpr:
		return constant(e.Value, false)
	case *ast.NumberExpr:
		if s, ok := wholeNumber(e.Value); ok {
			return constant(s, true)
		}
		return aNumber
	case *ast.IdentExpr:
		return a.name(e)
	case *ast.AttrGetExpr:
		return a.index(f, e)
	case *ast.FuncCallExpr:
		return a.call(f, e)
	case *ast.FunctionExpr:
		return value{kind: kindFunc, fn: a.functions[e]}
	case *ast.LogicalOpExpr:
		left, right := a.eval(f, e.Lhs), a.eval(f, e.Rhs)
		if e.Operator == "and" {
			return right // or left, if that is nil or false
		}
		if id, ok := e.Lhs.(*ast.IdentExpr); ok && a.ident[id] == nil && globals[id.Value] {
			return left // always there
		}
		return a.merge(left, right, e.Line())
	case *ast.RelationalOpExpr:
		a.use(f, e.Lhs)
		a.use(f, e.Rhs)
	case *ast.StringConcatOpExpr:
		a.use(f, e.Lhs)
		a.use(f, e.Rhs)
	case *ast.ArithmeticOpExpr:
		a.use(f, e.Lhs)
		a.use(f, e.Rhs)
		return aNumber
	case *ast.UnaryMinusOpExpr:
		a.use(f, e.Expr)
		return aNumber
	case *ast.UnaryNotOpExpr:
		a.eval(f, e.Expr)
	case *ast.UnaryLenOpExpr:
		a.eval(f, e.Expr)
		return aNumber
	case *ast.TableExpr:
		for _, field := range e.Fields {
			if field.Key != nil {
				a.use(f, field.Key)
			}
			a.use(f, field.Value)
		}
	}
	return anything
}

// wholeNumber returns a literal such as 12 as redis.call passes it on.
func wholeNumber(s string) (string, bool) {
	if n, err := strconv.ParseUint(s, 10, 50); err == nil {
		return s, s[0] != '0' && n > 0 || s == "0"
	}
	return "", false
}

// name is the value of an identifier.
func (a *analyzer) name(e *ast.IdentExpr) value {
	if v := a.ident[e]; v != nil {
		return v.val
	}
	switch e.Value {
	case "KEYS":
		return value{kind: kindKeys}
	case "ARGV":
		return value{kind: kindArgs}
	case "redis":
		return value{kind: kindRedis}
	}
	if !globals[e.Value] {
		a.keysFail(e.Line(), "the global '%s' is not followed", e.Value)
		return anything
	}
	return value{kind: kindBuiltin, name: e.Value}
}

// index is the value of object[key].
func (a *analyzer) index(f *function, e *ast.AttrGetExpr) value {
	object := a.eval(f, e.Object)
	key := a.use(f, e.Key)
	field, known := key.sole()
	known = known && !key.number
	switch object.kind {
	case kindKeys:
		return aKey
	case kindRedis:
		switch {
		case known && (field == "call" || field == "pcall"):
			return value{kind: kindCall}
		case known && redisHarmless[field]:
			return value{kind: kindBuiltin, name: "redis." + field}
		}
		a.keysFail(e.Line(), "a member of redis that is not followed")
	case kindBuiltin:
		if known && object.name == "table" && field == "unpack" {
			return value{} // only later versions of Lua have it
		}
		if known && !strings.Contains(object.name, ".") {
			return value{kind: kindBuiltin, name: object.name + "." + field, number: numeric[object.name+"."+field] && object.name == "math"}
		}
	}
	return anything
}

// call returns the first value of a call, and applies the effects of the call on its arguments.
func (a *analyzer) call(f *function, e *ast.FuncCallExpr) value {
	if e.Func == nil { // object:method()
		a.use(f, e.Receiver)
		a.useAll(f, e.Args)
		return anything
	}
	callee := a.eval(f, e.Func)
	a.callees[e] = callee
	result := anything
	switch callee.kind {
	case kindCall:
		a.redisCall(f, e)
	case kindFunc:
		a.direct(f, callee.fn, e)
		result = callee.fn.ret
	case kindBuiltin:
		result = a.builtin(f, callee.name, e)
	default:
		a.useAll(f, e.Args)
	}
	a.results[e] = result
	return result
}

func (a *analyzer) useAll(f *function, args []ast.Expr) {
	for _, e := range args {
		a.use(f, e)
	}
}

// direct is a call of a function that is known: its parameters get the arguments.
func (a *analyzer) direct(f *function, callee *function, e *ast.FuncCallExpr) {
	values := a.values(f, e.Args, len(callee.params))
	for i, v := range values {
		if i < len(callee.params) {
			a.assign(callee.params[i], v, e.Line())
		} else {
			a.release(v, e.Line())
		}
	}
}

// builtin is a call of a library function.
func (a *analyzer) builtin(f *function, name string, e *ast.FuncCallExpr) value {
	first := value{}
	for i, arg := range e.Args {
		v := a.eval(f, arg)
		if i == 0 {
			first = v
			if readers[name] && (v.kind == kindKeys || v.kind == kindArgs) {
				continue
			}
			if name == "assert" && v.kind == kindKey {
				continue
			}
		}
		if v.kind == kindFunc && callsBack(name, i) {
			a.escape(v.fn)
			continue
		}
		a.release(v, arg.Line())
	}
	switch {
	case name == "unpack" && first.kind == kindKeys:
		return aKey
	case name == "assert" && (first.kind == kindKey || first.number):
		return first
	case numeric[name]:
		return aNumber
	}
	return anything
}

// callsBack reports whether a function calls its argument i and does not store it.
func callsBack(name string, i int) bool {
	switch name {
	case "pcall":
		return i == 0
	case "xpcall":
		return i <= 1
	case "table.sort":
		return i == 1
	case "string.gsub":
		return i == 2
	}
	return false
}

// redisCall checks one call of redis.call.
func (a *analyzer) redisCall(f *function, e *ast.FuncCallExpr) {
	line := e.Line()
	values := make([]value, len(e.Args))
	args := make([]Arg, len(e.Args))
	for i, arg := range e.Args {
		values[i] = a.eval(f, arg)
		a.release(values[i], arg.Line())
		args[i].Value, args[i].Const = values[i].sole()
	}
	if len(args) == 0 {
		return // an error when it runs
	}
	last := len(args) - 1
	if multiple(e.Args[last]) && !a.isSingle(e.Args[last]) {
		args[last] = Arg{Rest: true}
		values[last] = join(values[last], a.all(e.Args[last]))
	}
	if !a.checking {
		return
	}
	name := values[0]
	if name.kind == kindNone && !args[0].Rest {
		return // an error when it runs
	}
	if name.kind != kindConst || name.number {
		a.keysFail(line, "the command's name is not a constant")
		return
	}
	for _, c := range name.consts {
		c = strings.ToLower(c)
		args[0] = Arg{Const: true, Value: c}
		keys, ok := a.keys(c, args)
		if !ok {
			a.keysFail(line, "the keys of '%s' cannot be told", c)
			return
		}
		for _, i := range keys.At {
			if i > 0 && i < len(args) && !isKey(values[i]) {
				a.keysFail(argLine(e, i), "a key of '%s' (argument %d) is not from KEYS", c, i)
			}
		}
		if keys.Rest && args[last].Rest && !isKey(values[last]) {
			a.keysFail(argLine(e, last), "keys of '%s' (from argument %d on) are not from KEYS", c, last)
		}
	}
}

func isKey(v value) bool { return v.kind == kindKey || v.kind == kindNone }

// argLine is the line of an argument, or of the call if the parser has no line for the argument.
func argLine(e *ast.FuncCallExpr, i int) int {
	if line := e.Args[i].Line(); line > 0 {
		return line
	}
	return e.Line()
}

// isSingle reports whether a call that was just evaluated returns exactly one value.
func (a *analyzer) isSingle(e ast.Expr) bool {
	call, ok := e.(*ast.FuncCallExpr)
	if !ok {
		return false
	}
	v := a.callees[call]
	return v.kind == kindCall || v.kind == kindBuiltin && (single[v.name] || numeric[v.name])
}
