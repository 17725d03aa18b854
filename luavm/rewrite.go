package luavm

// Changes to the syntax tree between parsing and compiling. They put right what gopher-lua does otherwise than Lua
// 5.1 and cannot be reached from outside:
//
//   - a..b and a%b become calls (numbers in concatenations are %.14g; the remainder is a-floor(a/b)*b), with
//     literals folded;
//   - #t becomes a call, and constructors go through one where Lua makes room for their fields at once (see package
//     tables);
//   - the bounds of a numeric for go through a call unless they are surely numbers: strings count;
//   - an assignment to locals of several values, or of a logical expression, goes through temporaries (gopher-lua
//     assigns as it goes, so that a,b = b,a does not swap, and not at all where a = f() and x stops at f);
//   - an assignment to a global always fails, so it gets a name that no global has;
//   - known functions (redis.call, tonumber, …) are constants, which saves their lookups. They can be: globals and
//     libraries are read-only. So are KEYS and ARGV if the script only reads them.
//
// The calls' functions are string constants of a text that is not in the script; link replaces them. On the way every
// node gets a number in place of its line, from which compiled instructions are led back to nodes.

import (
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// Names of hidden constants that are not library functions.
const (
	hiddenConcat = "(concat)"
	hiddenMod    = "(mod)"
	hiddenPow    = "(pow)"
	hiddenMul    = "(mul)"
	hiddenDiv    = "(div)"
	hiddenFor    = "(for)"
	hiddenLen    = "(len)"
	hiddenList   = "(list)"
	hiddenRecord = "(record)"
	hiddenKeys   = "(keys)"
	hiddenArgv   = "(argv)"
	readonlyName = "(readonly)" // the global that assignments to globals are turned to
)

// concatMax is how many operands one call of the concatenation takes; longer chains nest.
const concatMax = 100

// listMax is how many elements a constructor may have to become a call. Longer ones stay, up to listMaxFlushed except
// where the library would store what the last one gives over others.
const (
	listMax        = 50
	listMaxFlushed = 151
)

// fieldsMax is how many keyed fields of a constructor are counted.
const fieldsMax = 1<<16 - 1

type numbered struct {
	line int
	node ast.PositionHolder
}

// functionScope is a function being rewritten: the names of its active local variables.
type functionScope struct {
	outer  *functionScope
	locals []string
}

type rewriter struct {
	hide    string
	nodes   []numbered
	names   *names
	scope   *functionScope
	seen    map[string]int // how often each name occurred
	fold    bool           // KEYS and ARGV may be constants
	escapes bool           // they may not, it has turned out
	plain   bool           // globals are looked up as they are written: none is known
	temps   int
}

func newRewriter(hide string, fold bool) *rewriter {
	return &rewriter{
		hide: hide, fold: fold,
		nodes: make([]numbered, 1, 64), // number 0: no node
		names: newNames(),
		seen:  map[string]int{},
	}
}

// number gives a node numbers in place of its lines.
func (r *rewriter) number(n ast.PositionHolder) {
	last := n.LastLine()
	if last == 0 {
		last = n.Line()
	}
	r.nodes = append(r.nodes, numbered{n.Line(), n}, numbered{last, n})
	n.SetLine(len(r.nodes) - 2)
	n.SetLastLine(len(r.nodes) - 1)
}

// like gives a new node the numbers of the one that it stands for.
func like[T ast.PositionHolder](n T, old ast.PositionHolder) T {
	n.SetLine(old.Line())
	n.SetLastLine(old.LastLine())
	return n
}

func (r *rewriter) hidden(name string, at ast.PositionHolder) ast.Expr {
	return like(&ast.StringExpr{Value: r.hide + name}, at)
}

// call makes a call of a hidden function that gives one value. It is a node of its own, at the line of the old one.
func (r *rewriter) call(name string, old ast.PositionHolder, args ...ast.Expr) *ast.FuncCallExpr {
	c := &ast.FuncCallExpr{Args: args, AdjustRet: true}
	c.SetLine(r.nodes[old.Line()].line)
	r.number(c)
	c.Func = r.hidden(name, c)
	return c
}

// Scopes.

func (r *rewriter) chunk(stmts []ast.Stmt) []ast.Stmt {
	r.scope = &functionScope{}
	return r.block(stmts)
}

func (r *rewriter) declare(names ...string) { r.scope.locals = append(r.scope.locals, names...) }

// resolve tells what kind of variable a name is.
func (r *rewriter) resolve(name string) string {
	kind := kindLocal
	for f := r.scope; f != nil; f = f.outer {
		for i := len(f.locals) - 1; i >= 0; i-- {
			if f.locals[i] == name {
				return kind
			}
		}
		kind = kindUpvalue
	}
	return kindGlobal
}

func (r *rewriter) block(stmts []ast.Stmt) []ast.Stmt {
	active := len(r.scope.locals)
	stmts = r.stmts(stmts)
	r.scope.locals = r.scope.locals[:active]
	return stmts
}

func (r *rewriter) stmts(stmts []ast.Stmt) []ast.Stmt {
	for i, s := range stmts {
		stmts[i] = r.stmt(s)
	}
	return stmts
}

// Statements.

func (r *rewriter) stmt(s ast.Stmt) ast.Stmt {
	r.number(s)
	switch s := s.(type) {
	case *ast.AssignStmt:
		return r.assign(s)
	case *ast.LocalAssignStmt:
		r.localAssign(s)
	case *ast.FuncCallStmt:
		s.Expr = r.expr(s.Expr)
	case *ast.DoBlockStmt:
		s.Stmts = r.block(s.Stmts)
	case *ast.WhileStmt:
		s.Condition = r.expr(s.Condition)
		s.Stmts = r.padded(s, r.block(s.Stmts))
	case *ast.RepeatStmt:
		active := len(r.scope.locals)
		s.Stmts = r.padded(s, r.stmts(s.Stmts))
		s.Condition = r.expr(s.Condition)
		r.scope.locals = r.scope.locals[:active]
	case *ast.IfStmt:
		s.Condition = r.expr(s.Condition)
		s.Then = r.block(s.Then)
		s.Else = r.block(s.Else)
	case *ast.NumberForStmt:
		s.Init, s.Limit = r.bound(s.Init), r.bound(s.Limit)
		if s.Step != nil {
			s.Step = r.bound(s.Step)
		}
		s.Stmts = r.loop(s.Stmts, s.Name)
	case *ast.GenericForStmt:
		for i, e := range s.Exprs {
			s.Exprs[i] = r.iterator(e)
		}
		s.Stmts = r.padded(s, r.loop(s.Stmts, s.Names...))
	case *ast.FuncDefStmt:
		r.funcDef(s)
	case *ast.ReturnStmt:
		r.exprs(s.Exprs)
	}
	return s
}

func (r *rewriter) loop(stmts []ast.Stmt, names ...string) []ast.Stmt {
	active := len(r.scope.locals)
	r.declare(names...)
	stmts = r.block(stmts)
	r.scope.locals = r.scope.locals[:active]
	return stmts
}

func (r *rewriter) localAssign(s *ast.LocalAssignStmt) {
	f, isFunction := ast.Expr(nil), false
	if len(s.Names) == 1 && len(s.Exprs) > 0 {
		f, isFunction = s.Exprs[0].(*ast.FunctionExpr)
	}
	switch {
	case isFunction && len(s.Exprs) == 1: // local function f: the name is visible in the body
		r.declare(s.Names...)
		r.exprs(s.Exprs)
		return
	case isFunction && isNil(s.Exprs[1:]):
		// local f = function: it is not. The parser has added a nil, for gopher-lua takes it for the former otherwise.
		// It can go unless the body has that name.
		before := r.seen[s.Names[0]]
		s.Exprs[0] = r.expr(f)
		if r.seen[s.Names[0]] == before {
			s.Exprs = s.Exprs[:1]
		} else {
			s.Exprs[1] = r.expr(s.Exprs[1])
		}
	default:
		r.exprs(s.Exprs)
	}
	r.declare(s.Names...)
}

func isNil(list []ast.Expr) bool {
	if len(list) != 1 {
		return false
	}
	_, ok := list[0].(*ast.NilExpr)
	return ok
}

func (r *rewriter) funcDef(s *ast.FuncDefStmt) {
	if s.Name.Func != nil {
		s.Name.Func = r.target(s.Name.Func)
	} else {
		s.Name.Receiver = r.expr(s.Name.Receiver)
		r.names.receivers[s.Name.Receiver] = true
	}
	var self []string
	if s.Name.Func == nil {
		self = append(self, "self")
	}
	r.number(s.Func)
	r.function(s.Func, self...)
}

// target rewrites what is assigned to.
func (r *rewriter) target(e ast.Expr) ast.Expr {
	r.number(e)
	switch e := e.(type) {
	case *ast.IdentExpr:
		r.seen[e.Value]++
		kind := r.resolve(e.Value)
		r.names.kinds[e] = kind
		if kind == kindGlobal {
			e.Value = readonlyName
		}
	case *ast.AttrGetExpr:
		e.Object, e.Key = r.expr(e.Object), r.key(e.Key)
	}
	return e
}

func (r *rewriter) assign(s *ast.AssignStmt) ast.Stmt {
	locals := 0
	for i, e := range s.Lhs {
		s.Lhs[i] = r.target(e)
		if id, ok := e.(*ast.IdentExpr); ok && r.names.kinds[id] == kindLocal {
			locals++
		}
	}
	r.exprs(s.Rhs)
	if len(s.Lhs) == 1 && len(s.Rhs) == 1 {
		// a = (f(a)): gopher-lua would put f where a is before it has read a. Without the parentheses it does not, and they
		// mean nothing here.
		if c, ok := s.Rhs[0].(*ast.FuncCallExpr); ok {
			c.AdjustRet = false
		}
		if locals == 1 && keepsOldValue(s.Rhs[0]) {
			return r.throughTemporaries(s)
		}
		return s
	}
	if locals == 0 {
		return s
	}
	if len(s.Rhs) == 1 && locals == len(s.Lhs) && hasManyValues(s.Rhs[0]) {
		return s // all values are there before the first is assigned
	}
	return r.throughTemporaries(s)
}

// hasManyValues tells whether an expression gives as many values as wanted.
func hasManyValues(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.FuncCallExpr:
		return !e.AdjustRet
	case *ast.Comma3Expr:
		return !e.AdjustRet
	}
	return false
}

// throughTemporaries turns a, t[k] = x, y into
// do local o, q = t, k; local v, w = x, y; o[q] = w; a = v end.
func (r *rewriter) throughTemporaries(s *ast.AssignStmt) ast.Stmt {
	places := like(&ast.LocalAssignStmt{}, s)
	values := like(&ast.LocalAssignStmt{Exprs: s.Rhs}, s)
	temp := func(into *ast.LocalAssignStmt, shown ast.Expr) *ast.IdentExpr {
		r.temps++
		id := like(&ast.IdentExpr{Value: "(" + strconv.Itoa(r.temps) + ")"}, shown)
		into.Names = append(into.Names, id.Value)
		r.names.shown[id] = shown
		return id
	}
	assigns := make([]ast.Stmt, len(s.Lhs))
	for i, e := range s.Lhs {
		if t, ok := e.(*ast.AttrGetExpr); ok {
			object, key := t.Object, t.Key
			t.Object = temp(places, object)
			places.Exprs = append(places.Exprs, object)
			if _, literal := key.(*ast.StringExpr); !literal {
				t.Key = temp(places, key)
				places.Exprs = append(places.Exprs, key)
			}
		}
		value := temp(values, e)
		assigns[len(s.Lhs)-1-i] = like(&ast.AssignStmt{Lhs: []ast.Expr{e}, Rhs: []ast.Expr{value}}, s)
	}
	block := like(&ast.DoBlockStmt{}, s)
	if len(places.Names) > 0 {
		block.Stmts = append(block.Stmts, places)
	}
	block.Stmts = append(append(block.Stmts, values), assigns...)
	return block
}
