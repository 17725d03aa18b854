package analysis

// How large a number can be: a constant, or a constant beyond the size of some data that is there.

import (
	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/yuin/gopher-lua/ast"
)

// limit is a bound of a number: c, or c plus a few times the size of some data.
type limit struct {
	ok, data bool
	c        float64
}

func (l limit) plus(m limit) limit {
	return limit{ok: l.ok && m.ok, data: l.data || m.data, c: l.c + m.c}
}

func (l limit) minus(m limit) limit {
	return limit{ok: l.ok && m.ok, data: l.data || m.data, c: l.c - m.c}
}

// upper is a number that e is never above. A limit that has data counts as above all constants.
func (b *bounds) upper(e ast.Expr) limit { return b.measure(e, true) }

// lower is a number that e is never below.
func (b *bounds) lower(e ast.Expr) limit { return b.measure(e, false) }

func (b *bounds) measure(e ast.Expr, up bool) limit {
	switch e := e.(type) {
	case *ast.NumberExpr:
		c, ok := arg.ParseNumber(e.Value)
		return limit{ok: ok && c >= -1e15 && c <= 1e15, c: c}
	case *ast.UnaryMinusOpExpr:
		l := b.measure(e.Expr, !up)
		l.c = -l.c
		return l
	case *ast.UnaryLenOpExpr:
		return limit{ok: true, data: up}
	case *ast.IdentExpr:
		if v := b.a.ident[e]; v != nil {
			return b.measureVariable(v, up)
		}
	case *ast.ArithmeticOpExpr:
		return b.measureArithmetic(e, up)
	case *ast.FuncCallExpr:
		return b.measureCall(e, up)
	}
	return limit{}
}

func (b *bounds) measureVariable(v *variable, up bool) limit {
	f := b.of(v)
	if !f.measured {
		f.measured = true
		if f.stores == 0 {
			switch {
			case f.init != nil:
				f.upper, f.lower = b.upper(f.init), b.lower(f.init)
			case f.loop != nil:
				b.measureLoop(f)
			}
		}
	}
	if up {
		return f.upper
	}
	return f.lower
}

// measureLoop bounds the variable of a numeric for, which runs from its first value to its limit.
func (b *bounds) measureLoop(f *facts) {
	step := 1.0
	if f.loop.Step != nil {
		var ok bool
		if step, ok = b.constant(f.loop.Step); !ok {
			return
		}
	}
	first, last := f.loop.Init, f.loop.Limit
	if step < 0 {
		first, last = last, first
	}
	f.lower, f.upper = b.lower(first), b.upper(last)
}

// constant is the value of a literal, its negation, or a variable that always holds one.
func (b *bounds) constant(e ast.Expr) (float64, bool) {
	switch e := e.(type) {
	case *ast.NumberExpr:
		return arg.ParseNumber(e.Value)
	case *ast.UnaryMinusOpExpr:
		if n, ok := e.Expr.(*ast.NumberExpr); ok {
			c, ok := arg.ParseNumber(n.Value)
			return -c, ok
		}
	case *ast.IdentExpr:
		if s, ok := b.a.results[e].sole(); ok && b.a.results[e].number {
			return arg.ParseNumber(s)
		}
	}
	return 0, false
}

func (b *bounds) measureArithmetic(e *ast.ArithmeticOpExpr, up bool) limit {
	switch e.Operator {
	case "+":
		return b.measure(e.Lhs, up).plus(b.measure(e.Rhs, up))
	case "-":
		return b.measure(e.Lhs, up).minus(b.measure(e.Rhs, !up))
	case "*", "/", "%":
		l := b.measure(e.Lhs, up)
		c, ok := b.constant(e.Rhs)
		if !ok || c < 1 || c > 1e6 {
			return limit{}
		}
		switch e.Operator {
		case "*":
			if l.data && c > 8 {
				return limit{}
			}
			l.c *= c
		case "/":
			l.c /= c
		case "%": // between 0 and the divisor, whatever is divided
			l = limit{ok: true}
			if up {
				l.c = c
			}
		}
		return l
	}
	return limit{}
}

func (b *bounds) measureCall(e *ast.FuncCallExpr, up bool) limit {
	callee := b.a.callees[e]
	if callee.kind != kindBuiltin || len(e.Args) == 0 {
		return limit{}
	}
	switch callee.name {
	case "table.getn", "string.len":
		return limit{ok: true, data: up}
	case "math.floor":
		l := b.measure(e.Args[0], up)
		if !up {
			l.c--
		}
		return l
	case "math.ceil":
		l := b.measure(e.Args[0], up)
		if up {
			l.c++
		}
		return l
	case "math.min", "math.max":
		if multiple(e.Args[len(e.Args)-1]) && !b.a.isSingle(e.Args[len(e.Args)-1]) {
			return limit{}
		}
		var best limit
		for _, x := range e.Args {
			l := b.measure(x, up)
			if (callee.name == "math.min") == up {
				// One bound is enough, and a constant is the better one.
				if l.ok && (!best.ok || best.data && !l.data || best.data == l.data && (l.c < best.c) == up) {
					best = l
				}
				continue
			}
			// All are needed, and the farthest counts.
			if !l.ok {
				return limit{}
			}
			if !best.ok {
				best = l
				continue
			}
			best.data = best.data || l.data
			if (l.c > best.c) == up {
				best.c = l.c
			}
		}
		return best
	}
	return limit{}
}
