// Where the values of expressions come from: which parameters, by how many pointers.
package tidy

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// value finds where an expression's value comes from, and where it is.
func (a *flow) value(f *function, e ast.Expr) (all []place) {
	switch x := e.(type) {
	case *ast.Ident:
		obj, ok := f.unit.info.ObjectOf(x).(*types.Var)
		if !ok || obj == nil {
			return nil
		}
		if obj.Parent() == f.unit.pkg.Scope() {
			if a.empty[obj] {
				return nil
			}
			return []place{{origin{param: global}, true}}
		}
		for _, s := range f.from[obj] {
			all = append(all, place{s, false})
		}
		return all
	case *ast.ParenExpr:
		return a.value(f, x.X)
	case *ast.SelectorExpr:
		sel := f.unit.info.Selections[x]
		if sel == nil { // of another package
			if v, ok := f.unit.info.ObjectOf(x.Sel).(*types.Var); ok && pointers(v.Type()) {
				return []place{{origin{param: global}, true}}
			}
			return nil
		}
		all = a.value(f, x.X)
		if sel.Kind() == types.FieldVal && (sel.Indirect() || isPointer(f.unit.info.TypeOf(x.X))) {
			all = each(all, place.follow)
		}
		return all
	case *ast.IndexExpr:
		all = a.value(f, x.X)
		if _, array := f.unit.info.TypeOf(x.X).Underlying().(*types.Array); !array {
			all = each(all, place.follow)
		}
		return all
	case *ast.SliceExpr:
		all = a.value(f, x.X)
		if _, array := f.unit.info.TypeOf(x.X).Underlying().(*types.Array); array {
			all = each(all, place.address)
		}
		return all
	case *ast.StarExpr:
		return each(a.value(f, x.X), place.follow)
	case *ast.UnaryExpr:
		if x.Op == token.AND {
			return each(a.value(f, x.X), place.address)
		}
		return nil
	case *ast.TypeAssertExpr:
		return a.value(f, x.X)
	case *ast.CompositeLit:
		for _, el := range x.Elts {
			if kv, ok := el.(*ast.KeyValueExpr); ok {
				el = kv.Value
			}
			if pointers(f.unit.info.TypeOf(el)) {
				for _, p := range a.value(f, el) {
					all = append(all, place{p.origin, false})
				}
			}
		}
		return all
	case *ast.CallExpr:
		return a.result(f, x, 0)
	}
	return nil
}

// arguments are what a call passes, the receiver first.
func (a *flow) arguments(f *function, x *ast.CallExpr) (args [][]place, callee *types.Func) {
	fun := ast.Unparen(x.Fun)
	if ix, ok := fun.(*ast.IndexExpr); ok {
		fun = ix.X // of a generic function
	}
	switch fn := fun.(type) {
	case *ast.Ident:
		callee, _ = f.unit.info.ObjectOf(fn).(*types.Func)
	case *ast.SelectorExpr:
		callee, _ = f.unit.info.ObjectOf(fn.Sel).(*types.Func)
		if sel := f.unit.info.Selections[fn]; sel != nil && callee != nil {
			from := a.value(f, fn.X)
			at := f.unit.info.TypeOf(fn.X)
			for _, i := range sel.Index()[:len(sel.Index())-1] { // embedded fields on the way
				if p, ok := at.Underlying().(*types.Pointer); ok {
					from, at = each(from, place.follow), p.Elem()
				}
				at = at.Underlying().(*types.Struct).Field(i).Type()
			}
			if isPointer(callee.Signature().Recv().Type()) && !isPointer(at) {
				from = each(from, place.address)
			}
			args = append(args, from)
		}
	}
	for _, arg := range x.Args {
		if pointers(f.unit.info.TypeOf(arg)) {
			args = append(args, a.value(f, arg))
		} else {
			args = append(args, nil)
		}
	}
	return args, callee
}

// summaryOf is what is known of a callee, nil for nothing.
func (a *flow) summaryOf(callee *types.Func) *summary {
	if callee == nil {
		return nil
	}
	callee = callee.Origin()
	if r := callee.Signature().Recv(); r != nil && types.IsInterface(r.Type()) {
		if callee.Pkg() == nil || callee.Pkg().Path() != module+"engine" {
			return nil
		}
		all := &summary{}
		for _, s := range a.byMethod[callee.Name()] {
			for i, c := range s.changes {
				if i == len(all.changes) {
					all.changes = append(all.changes, 0)
				}
				all.changes[i] |= c
			}
		}
		all.returns = [][]origin{{{0, 1, 0}}, {{0, 1, 0}}}
		return all
	}
	return a.known[strings.ReplaceAll(callee.FullName(), module, "")]
}

// result is where the ith result of a call comes from.
func (a *flow) result(f *function, x *ast.CallExpr, i int) (all []place) {
	t := f.unit.info.TypeOf(x)
	if many, ok := t.(*types.Tuple); ok {
		if i >= many.Len() {
			return nil
		}
		t = many.At(i).Type()
	}
	if tv := f.unit.info.Types[x.Fun]; tv.IsType() {
		return a.value(f, x.Args[0])
	}
	if t == nil || !pointers(t) {
		return nil
	}
	if tv := f.unit.info.Types[x.Fun]; tv.IsBuiltin() {
		if id, ok := x.Fun.(*ast.Ident); ok && id.Name == "append" {
			for i, arg := range x.Args {
				if i == 0 || pointers(t.Underlying().(*types.Slice).Elem()) {
					for _, p := range a.value(f, arg) {
						all = append(all, place{p.origin, false})
					}
				}
			}
		} else if ok && (id.Name == "new" || id.Name == "make") || len(x.Args) == 0 {
			return nil
		} else {
			return a.value(f, x.Args[0]) // unsafe's, min and max
		}
		return all
	}
	args, callee := a.arguments(f, x)
	if callee == nil {
		return []place{{origin{param: global}, false}} // a function value
	}
	if s := a.summaryOf(callee); s != nil {
		if i >= len(s.returns) {
			return nil
		}
		for _, r := range s.returns[i] {
			if r.param < 0 {
				all = append(all, place{r, false})
				continue
			}
			if r.param >= len(args) {
				continue
			}
			for _, p := range args[r.param] {
				p.derefs, p.lag = max(min(p.derefs+r.derefs, derefsMax), -lagMax), max(p.lag-r.derefs, 0)+r.lag
				p.lag, p.owned = min(p.lag, lagMax), false
				all = append(all, p)
			}
		}
		return all
	}
	if callee.Name() == "Clone" && callee.Signature().Recv() == nil || len(args) == 0 {
		return nil
	}
	for _, from := range args { // of a package that is not looked at
		for _, p := range from {
			all = append(all, place{p.follow().origin, false})
		}
	}
	return all
}
