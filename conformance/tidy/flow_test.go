// What functions change: which parameters' memory they write, through how many pointers, in their own words and through
// those whom they call. It goes by types and assignments alone, over all packages at once.
package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
)

// origin is where a value comes from: from a parameter, by so many pointers (0 is the parameter itself). The first lag of
// the pointers that are followed from here on lead to memory of the function's own.
type origin struct {
	param, derefs, lag int
}

// What is no parameter.
const (
	global = -1 // a variable of the package, or what a function value returned
	shown  = -2 // what an engine.Reader shows
)

// place is where a value is: owned says whether its memory is what the origin leads to, not a variable.
type place struct {
	origin
	owned bool
}

const (
	derefsMax = 3 // further away is all the same
	lagMax    = 2
)

func (p place) follow() place {
	if p.lag > 0 {
		return place{origin{p.param, min(p.derefs+1, derefsMax), p.lag - 1}, false}
	}
	return place{origin{p.param, min(p.derefs+1, derefsMax), 0}, true}
}

func (p place) address() place {
	if p.owned {
		return place{origin{p.param, p.derefs - 1, 0}, false}
	}
	return place{origin{p.param, max(p.derefs-1, -lagMax), min(p.lag+1, lagMax)}, false}
}

func each(all []place, fn func(place) place) []place {
	var out []place
	for _, p := range all {
		if p = fn(p); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// change is that a function changes what a parameter leads to: directly, or by more pointers.
type change uint8

const (
	direct change = 1 << iota
	further
)

// summary is what is known of a function.
type summary struct {
	changes []change   // by parameter, the receiver first
	returns [][]origin // by result
}

// function is a declared function and what its body does.
type function struct {
	unit   *unit
	decl   *ast.FuncDecl
	name   string // with package and receiver
	params []types.Object
	from   map[types.Object][]origin
	events []event
	rets   [][]origin
}

// event is a place in a function that changes something.
type event struct {
	pos   token.Pos
	what  string
	place place
	apart bool // it happens on another goroutine, or later
}

// flow is the analysis of several packages.
type flow struct {
	units     []*unit
	functions []*function
	known     map[string]*summary // by full name
	byMethod  map[string][]*summary
	empty     map[types.Object]bool // variables of packages that have no memory
	// counts says whether a write to a field of a type counts as a change.
	counts func(f *function, owner types.Type) bool
	// stops says that a function's changes are none of its callers' business.
	stops func(f *function) bool
}

func (a *flow) add(u *unit) {
	a.units = append(a.units, u)
	for _, file := range u.files {
		for _, d := range file.Decls {
			if gen, ok := d.(*ast.GenDecl); ok {
				a.variables(u, gen)
			}
			decl, ok := d.(*ast.FuncDecl)
			if !ok || decl.Body == nil {
				continue
			}
			obj := u.info.Defs[decl.Name].(*types.Func)
			f := &function{unit: u, decl: decl, name: strings.ReplaceAll(obj.FullName(), module, ""), from: map[types.Object][]origin{}}
			sig := obj.Signature()
			if r := sig.Recv(); r != nil {
				f.params = append(f.params, r)
			}
			for p := range sig.Params().Variables() {
				f.params = append(f.params, p)
			}
			for i, p := range f.params {
				if isReader(p.Type()) {
					f.from[p] = []origin{{param: shown}}
				} else if pointers(p.Type()) {
					f.from[p] = []origin{{param: i}}
				}
			}
			f.rets = make([][]origin, sig.Results().Len())
			s := &summary{make([]change, len(f.params)), make([][]origin, len(f.rets))}
			a.known[f.name] = s
			if sig.Recv() != nil {
				a.byMethod[decl.Name.Name] = append(a.byMethod[decl.Name.Name], s)
			}
			a.functions = append(a.functions, f)
		}
	}
}

// variables finds those that are slices of no length.
func (a *flow) variables(u *unit, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok || len(v.Values) != len(v.Names) {
			continue
		}
		for i, name := range v.Names {
			lit, ok := v.Values[i].(*ast.CompositeLit)
			if !ok || len(lit.Elts) != 0 {
				continue
			}
			if _, ok := u.info.TypeOf(lit).Underlying().(*types.Slice); ok {
				a.empty[u.info.Defs[name]] = true
			}
		}
	}
}

// run goes on until nothing more is learned.
func (a *flow) run() {
	for learned := true; learned; {
		learned = false
		for _, f := range a.functions {
			if strings.EqualFold(f.decl.Name.Name, "clone") {
				continue // What it changes and returns is a copy; their own tests prove that it shares nothing.
			}
			a.body(f)
			s := a.known[f.name]
			for i, all := range f.rets {
				for _, r := range all {
					if !slices.Contains(s.returns[i], r) {
						s.returns[i], learned = append(s.returns[i], r), true
					}
				}
			}
			if a.stops(f) {
				continue
			}
			for _, e := range f.events {
				if e.place.param < 0 {
					continue
				}
				c := direct
				if e.place.derefs > 1 {
					c = further
				}
				if s.changes[e.place.param]&c == 0 {
					s.changes[e.place.param] |= c
					learned = true
				}
			}
		}
	}
}

// pointers says whether values of a type lead to memory that can be changed.
func pointers(t types.Type) bool { return hasPointers(t, 0) }

func hasPointers(t types.Type, depth int) bool {
	if depth > 10 {
		return true
	}
	switch x := t.Underlying().(type) {
	case *types.Basic:
		return x.Kind() == types.UnsafePointer
	case *types.Array:
		return hasPointers(x.Elem(), depth+1)
	case *types.Struct:
		for f := range x.Fields() {
			if hasPointers(f.Type(), depth+1) {
				return true
			}
		}
		return false
	case *types.Tuple:
		for v := range x.Variables() {
			if hasPointers(v.Type(), depth+1) {
				return true
			}
		}
		return false
	}
	return true
}

func isPointer(t types.Type) bool {
	_, ok := t.Underlying().(*types.Pointer)
	return ok
}

// body finds a function's events, as far as its callees are known.
func (a *flow) body(f *function) {
	for {
		n := 0
		for _, s := range f.from {
			n += len(s)
		}
		f.events = f.events[:0]
		a.walk(f, f.decl.Body, false, false)
		for i := range f.rets {
			r := f.unit.info.Defs[f.decl.Name].(*types.Func).Signature().Results().At(i)
			for _, from := range f.from[r] {
				if !slices.Contains(f.rets[i], from) {
					f.rets[i] = append(f.rets[i], from)
				}
			}
		}
		m := 0
		for _, s := range f.from {
			m += len(s)
		}
		if n == m {
			return
		}
	}
}

// later are methods that call a function at another time.
var later = []string{"At", "AfterFunc", "OnRelease", "OnReleaseOrSlow", "Post", "Gate"}

func (a *flow) walk(f *function, n ast.Node, inside, apart bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncLit:
			for _, field := range x.Type.Params.List {
				for _, name := range field.Names {
					if p := f.unit.info.Defs[name]; p != nil && isReader(p.Type()) {
						f.learn(p, []place{{origin{param: shown}, false}})
					}
				}
			}
			a.walk(f, x.Body, true, apart)
			return false
		case *ast.GoStmt:
			a.call(f, x.Call, true)
			for _, e := range append([]ast.Expr{x.Call.Fun}, x.Call.Args...) {
				a.walk(f, e, inside, true)
			}
			return false
		case *ast.CallExpr:
			a.call(f, x, apart)
			if sel, ok := x.Fun.(*ast.SelectorExpr); ok && slices.Contains(later, sel.Sel.Name) && !apart {
				a.walk(f, x.Fun, inside, apart)
				for _, arg := range x.Args {
					_, is := arg.(*ast.FuncLit)
					a.walk(f, arg, inside, is)
				}
				return false
			}
		case *ast.AssignStmt:
			for i, l := range x.Lhs {
				a.bind(f, l, a.nth(f, x.Rhs, i))
				a.write(f, l, l.Pos(), apart)
			}
		case *ast.ValueSpec:
			for i, l := range x.Names {
				if len(x.Values) > 0 {
					a.bind(f, l, a.nth(f, x.Values, i))
				}
			}
		case *ast.IncDecStmt:
			a.write(f, x.X, x.Pos(), apart)
		case *ast.RangeStmt:
			all := a.value(f, x.X)
			if _, array := f.unit.info.TypeOf(x.X).Underlying().(*types.Array); !array {
				all = each(all, place.follow)
			}
			for _, l := range []ast.Expr{x.Key, x.Value} {
				if l != nil {
					a.bind(f, l, all)
					a.write(f, l, l.Pos(), apart)
				}
			}
		case *ast.TypeSwitchStmt:
			var from []place
			switch s := x.Assign.(type) {
			case *ast.AssignStmt:
				from = a.value(f, s.Rhs[0].(*ast.TypeAssertExpr).X)
			}
			for _, c := range x.Body.List {
				if obj := f.unit.info.Implicits[c]; obj != nil {
					f.learn(obj, from)
				}
			}
		case *ast.ReturnStmt:
			for i := range f.rets {
				if len(x.Results) == 0 || inside {
					break // named results are bound as variables; a literal's are not the function's
				}
				for _, p := range a.nth(f, x.Results, i) {
					if !slices.Contains(f.rets[i], p.origin) {
						f.rets[i] = append(f.rets[i], p.origin)
					}
				}
			}
		}
		return true
	})
}

// nth is where the ith of several values comes from, which may be the results of one call.
func (a *flow) nth(f *function, all []ast.Expr, i int) []place {
	if len(all) > i && (len(all) > 1 || i == 0 && !isTuple(f.unit.info.TypeOf(all[0]))) {
		return a.value(f, all[i])
	}
	if x, ok := ast.Unparen(all[0]).(*ast.CallExpr); ok {
		return a.result(f, x, i)
	}
	if i == 0 {
		return a.value(f, all[0])
	}
	return nil // whether a key is in a map, a value of a type
}

func isTuple(t types.Type) bool {
	_, ok := t.(*types.Tuple)
	return ok
}

// bind notes where a variable's value comes from.
func (a *flow) bind(f *function, l ast.Expr, from []place) {
	id, ok := l.(*ast.Ident)
	if !ok {
		// A local structure has what its field was given.
		for {
			sel, ok := l.(*ast.SelectorExpr)
			if !ok || isPointer(f.unit.info.TypeOf(sel.X)) {
				break
			}
			l = sel.X
		}
		if id, ok = l.(*ast.Ident); !ok {
			return
		}
	}
	obj := f.unit.info.ObjectOf(id)
	if v, ok := obj.(*types.Var); ok && v.Parent() != f.unit.pkg.Scope() {
		f.learn(obj, from)
	}
}

func (f *function) learn(obj types.Object, from []place) {
	if !pointers(obj.Type()) {
		return
	}
	for _, p := range from {
		if !slices.Contains(f.from[obj], p.origin) {
			f.from[obj] = append(f.from[obj], p.origin)
		}
	}
}

// writers are functions of packages that are not looked at that write what their first argument, or receiver, leads to.
func writers(callee *types.Func) bool {
	pkg, name := callee.Pkg().Path(), callee.Name()
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(name, w) })
	}
	switch pkg {
	case "encoding/binary":
		return has("Put")
	case "slices", "sort":
		return has("Sort", "Reverse", "Delete", "Insert", "Slice", "Stable")
	case "sync/atomic":
		return has("Store", "Add", "Swap", "CompareAndSwap", "And", "Or")
	case "github.com/tidwall/btree":
		return has("Set", "Delete", "Load", "Pop", "Clear", "Insert")
	}
	return false
}

// call notes what a call changes.
func (a *flow) call(f *function, x *ast.CallExpr, apart bool) {
	if tv := f.unit.info.Types[x.Fun]; tv.IsBuiltin() {
		if id, ok := x.Fun.(*ast.Ident); ok && (id.Name == "copy" || id.Name == "clear" || id.Name == "delete") {
			a.event(f, x.Args[0], x.Pos(), id.Name, each(a.value(f, x.Args[0]), place.follow), apart)
		}
		return
	}
	args, callee := a.arguments(f, x)
	if callee == nil {
		return
	}
	s := a.summaryOf(callee)
	for i, from := range args { // what a function gets that is called meanwhile comes from the others
		j := i - (len(args) - len(x.Args))
		if j < 0 {
			continue
		}
		if lit, ok := x.Args[j].(*ast.FuncLit); ok {
			for k, other := range args {
				if k != i {
					from = append(from, each(other, place.follow)...)
				}
			}
			for _, field := range lit.Type.Params.List {
				for _, name := range field.Names {
					f.learn(f.unit.info.Defs[name], from)
				}
			}
		}
	}
	if s == nil {
		if callee.Pkg() != nil && writers(callee) && len(args) > 0 {
			at, to := x.Fun, args[0]
			if sel, ok := at.(*ast.SelectorExpr); ok && len(args) > len(x.Args) {
				at = sel.X
			}
			if callee.Pkg().Path() == "encoding/binary" || len(args) == len(x.Args) {
				at, to = x.Args[0], args[len(args)-len(x.Args)]
			}
			a.event(f, at, x.Pos(), callee.Name(), each(to, place.follow), apart)
		}
		return
	}
	for i, c := range s.changes {
		if i >= len(args) {
			break
		}
		once := each(args[i], place.follow)
		if c&direct != 0 {
			f.note(x.Pos(), callee.Name(), once, apart)
		}
		if c&further != 0 {
			f.note(x.Pos(), callee.Name(), each(once, place.follow), apart)
		}
	}
}

// write notes an assignment.
func (a *flow) write(f *function, l ast.Expr, pos token.Pos, apart bool) {
	if id, ok := l.(*ast.Ident); ok {
		if v, ok := f.unit.info.ObjectOf(id).(*types.Var); !ok || v.Parent() != f.unit.pkg.Scope() {
			return
		}
	}
	a.event(f, l, pos, "assignment", a.value(f, l), apart)
}

// event notes a change of what an expression leads to, if it counts.
func (a *flow) event(f *function, l ast.Expr, pos token.Pos, what string, at []place, apart bool) {
	counts := false
	for e := l; e != nil && !counts; {
		switch x := e.(type) {
		case *ast.SelectorExpr:
			counts = f.unit.info.Selections[x] != nil && a.counts(f, f.unit.info.TypeOf(x.X))
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			counts = a.counts(f, f.unit.info.TypeOf(x.X))
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.UnaryExpr:
			e = x.X
		case *ast.CallExpr:
			if sel, ok := x.Fun.(*ast.SelectorExpr); ok {
				counts = f.unit.info.Selections[sel] != nil && a.counts(f, f.unit.info.TypeOf(sel.X))
			}
			e = nil
		default:
			e = nil
		}
	}
	if !counts {
		at = slices.DeleteFunc(slices.Clone(at), func(p place) bool {
			return p.param < 0 || !a.counts(f, f.params[p.param].Type())
		})
	}
	f.note(pos, what, at, apart)
}

func (f *function) note(pos token.Pos, what string, at []place, apart bool) {
	for _, p := range at {
		if p.owned {
			f.events = append(f.events, event{pos, what, p, apart})
		}
	}
}

func (f *function) at(pos token.Pos, root string) string {
	p := f.unit.fset.Position(pos)
	rel, err := filepath.Rel(root, p.Filename)
	if err != nil {
		rel = p.Filename
	}
	return fmt.Sprintf("%s:%d", filepath.ToSlash(rel), p.Line)
}
