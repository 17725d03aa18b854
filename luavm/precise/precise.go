// Package precise, internal to the server, has the functions of C's math library, with the same rounding. Go's functions are
// sometimes wrong in the last digit, the C library's hardly ever. Users can see it: a script that decays a rate by
// 0.5^(dt/halflife) and stores it shows all 17 digits, and so does a stored distance between places. So these functions
// compute with twice the precision of a double and round once. That takes half a microsecond; simple cases avoid it.
package precise

// exp, log and power.

import "math"

var infinity = math.Inf(1)

// double is an unevaluated sum of two doubles; hi is the rounded sum.
type double struct{ hi, lo float64 }

func twoSum(a, b float64) double {
	s := a + b
	t := s - a
	return double{s, (a - (s - t)) + (b - t)}
}

func normalized(hi, lo float64) double {
	s := hi + lo
	return double{s, lo - (s - hi)}
}

func (a double) plus(b double) double {
	s := twoSum(a.hi, b.hi)
	return normalized(s.hi, s.lo+a.lo+b.lo)
}

func (a double) times(b double) double {
	p := a.hi * b.hi
	e := math.FMA(a.hi, b.hi, -p)
	return normalized(p, e+a.hi*b.lo+a.lo*b.hi)
}

func (a double) timesFloat(b float64) double {
	p := a.hi * b
	return normalized(p, math.FMA(a.hi, b, -p)+a.lo*b)
}

func (a double) over(b double) double {
	q1 := a.hi / b.hi
	r := a.plus(b.timesFloat(-q1))
	q2 := r.hi / b.hi
	r = r.plus(b.timesFloat(-q2))
	return normalized(q1, q2).plus(double{r.hi / b.hi, 0})
}

var (
	ln2 = double{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}
	// inverseFactorials are 1/n!.
	inverseFactorials = func() (f [23]double) {
		f[0] = double{1, 0}
		for n := 1; n < len(f); n++ {
			f[n] = f[n-1].over(double{float64(n), 0})
		}
		return
	}()
)

// expDouble returns e^x as m×2^k, m near 1.
func expDouble(x double) (m double, k int) {
	const halvings, terms = 8, 13
	whole := math.RoundToEven(x.hi / ln2.hi)
	r := x.plus(ln2.timesFloat(-whole))
	r = double{math.Ldexp(r.hi, -halvings), math.Ldexp(r.lo, -halvings)}
	p := inverseFactorials[terms]
	for n := terms - 1; n > 0; n-- {
		p = p.times(r).plus(inverseFactorials[n])
	}
	p = p.times(r) // e^r - 1
	for range halvings {
		p = double{2 * p.hi, 2 * p.lo}.plus(p.times(p))
	}
	return double{1, 0}.plus(p), int(whole)
}

// logDouble returns the logarithm of a positive finite number.
func logDouble(x float64) double {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m *= 2
		e--
	}
	var l double
	if math.Abs(m-1) < 0x1p-6 {
		// 2·artanh(z): no digits are lost near 1.
		z := double{m - 1, 0}.over(twoSum(m, 1))
		square := z.times(z)
		l = double{}
		for n := 23; n > 0; n -= 2 {
			l = l.times(square).plus(double{1, 0}.over(double{float64(n), 0}))
		}
		l = l.times(z)
		l = double{2 * l.hi, 2 * l.lo}
	} else {
		y := math.Log(m) // and one step of Newton's
		inverse, k := expDouble(double{-y, 0})
		t := inverse.timesFloat(math.Ldexp(m, k)).plus(double{-1, 0})
		l = double{y, 0}.plus(t).plus(double{-t.hi * t.hi / 2, 0})
	}
	return l.plus(ln2.timesFloat(float64(e)))
}

// Exp is C's exp.
func Exp(x float64) float64 {
	switch {
	case x != x || math.IsInf(x, 0):
		return math.Exp(x)
	case x > 710:
		return infinity
	case x < -746:
		return 0
	}
	m, k := expDouble(double{x, 0})
	return math.Ldexp(m.hi, k)
}

// Log is C's log.
func Log(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 1) || x == 1 {
		return math.Log(x)
	}
	return logDouble(x).hi
}

// Log10 is C's log10, which is rounded less well: it splits off the exponent and multiplies.
func Log10(x float64) float64 {
	if x != x {
		return x
	}
	if !(x > 0) || math.IsInf(x, 1) {
		return math.Log10(x)
	}
	const (
		inverseLn10 = 4.34294481903251816668e-01
		log2Hi      = 3.01029995663611771306e-01 // log10(2), the upper half of its bits
		log2Lo      = 3.69423907715893078616e-13
	)
	m, e := math.Frexp(x)
	m, e = 2*m, e-1 // 1 ≤ m < 2
	if e < 0 {
		m, e = m/2, e+1
	}
	y := float64(e)
	z := float64(y*log2Lo) + float64(inverseLn10*Log(m))
	return z + float64(y*log2Hi)
}

// Pow is C's pow.
func Pow(x, y float64) float64 {
	switch {
	case y == 0 || x == 1:
		return 1
	case x != x || y != y:
		return powNaN(x, y)
	case x == 0 || math.IsInf(x, 0) || math.IsInf(y, 0):
		return math.Pow(x, y)
	case y == 1:
		return x
	case y == 2:
		return x * x
	case y == -1:
		return 1 / x
	case y == 0.5 && x > 0:
		return math.Sqrt(x)
	}
	if r, ok := integerPower(x, y); ok {
		return r
	}
	sign := 1.0
	if x < 0 {
		if y != math.Trunc(y) {
			return NegativeNaN
		}
		if math.Mod(y, 2) != 0 {
			sign = -1
		}
		x = -x
	}
	log := logDouble(x)
	if rough := log.hi * y; math.IsInf(rough, 0) { // too large to compute with hi and lo
		return sign * math.Exp(rough)
	}
	exponent := log.timesFloat(y)
	switch {
	case exponent.hi > 710:
		return sign * infinity
	case exponent.hi < -746:
		return sign * 0
	}
	m, k := expDouble(exponent)
	return sign * math.Ldexp(m.hi, k)
}

// integerPower multiplies as long as that is exact.
func integerPower(x, y float64) (r float64, ok bool) {
	const exact = 1 << 53
	if y < 0 || y > 53 || y != math.Trunc(y) || x != math.Trunc(x) || math.Abs(x) > exact {
		return 0, false
	}
	r = 1
	for ; y > 0; y-- {
		if r *= x; math.Abs(r) > exact {
			return 0, false
		}
	}
	return r, true
}

// expMinus1 is e^x-1.
func expMinus1(x float64) float64 {
	if a := math.Abs(x); !(a > 1e-8 && a < 700) {
		return math.Expm1(x)
	}
	m, k := expDouble(double{x, 0})
	return double{math.Ldexp(m.hi, k), math.Ldexp(m.lo, k)}.plus(double{-1, 0}).hi
}

// The hyperbolic functions are not rounded correctly in C either; these are its formulas.

// Sinh is C's sinh.
func Sinh(x float64) float64 {
	a := math.Abs(x)
	if !(a > 0x1p-28 && a < 22) {
		return math.Sinh(x)
	}
	h := math.Copysign(0.5, x)
	t := expMinus1(a)
	if a < 1 {
		return h * (2*t - float64(t*t)/(t+1))
	}
	return h * (t + t/(t+1))
}

// Cosh is C's cosh.
func Cosh(x float64) float64 {
	a := math.Abs(x)
	switch {
	case !(a > 0x1p-28 && a < 22):
		return math.Cosh(x)
	case a < 0.5*math.Ln2:
		t := expMinus1(a)
		w := 1 + t
		return 1 + float64(t*t)/(w+w)
	}
	t := Exp(a)
	return float64(0.5*t) + 0.5/t
}

// Tanh is C's tanh.
func Tanh(x float64) float64 {
	a := math.Abs(x)
	var z float64
	switch {
	case !(a > 0x1p-28 && a < 22):
		return math.Tanh(x)
	case a >= 1:
		z = 1 - 2/(expMinus1(2*a)+2)
	default:
		t := expMinus1(-2 * a)
		z = -t / (t + 2)
	}
	return math.Copysign(z, x)
}
