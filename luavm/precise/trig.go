package precise

// The trigonometric functions, correctly rounded, see precise.go. Distances between places are computed with them.

import "math"

var (
	halfPi   = double{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54}
	halfPi3  = -0x1.f1976b7ed8fbcp-110 // the third part
	halfPi4  = 0x1.4cf98e804177dp-164  // the fourth
	trigMost = 0x1p52                  // for larger angles, these digits of π/2 do not suffice
)

// sinCosDouble returns sine and cosine of x for |x| up to trigMost.
func sinCosDouble(x double) (sin, cos double) {
	quadrants := math.RoundToEven(x.hi / halfPi.hi)
	r := x.plus(double{halfPi.hi, 0}.timesFloat(-quadrants)).plus(double{halfPi.lo, 0}.timesFloat(-quadrants))
	r = r.plus(double{halfPi3, 0}.timesFloat(-quadrants)).plus(double{-quadrants * halfPi4, 0})
	// Taylor's series for an eighth of the angle, then doubled three times.
	const halvings = 3
	r = double{math.Ldexp(r.hi, -halvings), math.Ldexp(r.lo, -halvings)}
	square := r.times(r)
	s, v := double{}, double{} // v is 1-cos, which loses no digits when doubled
	for n := 21; n > 0; n -= 2 {
		s = inverseFactorials[n].plus(s.times(square).timesFloat(-1))
		v = inverseFactorials[n+1].plus(v.times(square).timesFloat(-1))
	}
	s, v = s.times(r), v.times(square)
	for range halvings {
		c := double{1, 0}.plus(v.timesFloat(-1))
		s, v = s.times(c).timesFloat(2), s.times(s).timesFloat(2)
	}
	c := double{1, 0}.plus(v.timesFloat(-1))
	switch int64(quadrants) & 3 {
	case 0:
		return s, c
	case 1:
		return c, s.timesFloat(-1)
	case 2:
		return s.timesFloat(-1), c.timesFloat(-1)
	}
	return c.timesFloat(-1), s
}

// plain tells whether x is neither tiny nor huge. For such x, more precision is useful and possible.
func plain(x float64) bool {
	a := math.Abs(x)
	return a > 1e-8 && a < trigMost
}

// Sin is C's sin.
func Sin(x float64) float64 {
	if !plain(x) {
		return math.Sin(x)
	}
	if y, sure := quickSin(x); sure {
		return y
	}
	sin, _ := sinCosDouble(double{x, 0})
	return sin.hi
}

// Cos is C's cos.
func Cos(x float64) float64 {
	if !plain(x) {
		return math.Cos(x)
	}
	if y, sure := quickCos(x); sure {
		return y
	}
	_, cos := sinCosDouble(double{x, 0})
	return cos.hi
}

// Tan is C's tan.
func Tan(x float64) float64 {
	if !plain(x) {
		return math.Tan(x)
	}
	sin, cos := sinCosDouble(double{x, 0})
	return sin.over(cos).hi
}

// The inverse functions start from Go's result and do one step of Newton's method.

// Asin is C's asin.
func Asin(x float64) float64 {
	if a := math.Abs(x); !(a > 1e-8 && a < 1) {
		return math.Asin(x)
	}
	y := math.Asin(x)
	if z, sure := quickAsin(x, y); sure {
		return z
	}
	sin, cos := sinCosDouble(double{y, 0})
	return double{y, 0}.plus(double{x, 0}.plus(sin.timesFloat(-1)).over(cos)).hi
}

// Acos is C's acos.
func Acos(x float64) float64 {
	if !(math.Abs(x) < 1) {
		return math.Acos(x)
	}
	y := math.Acos(x)
	sin, cos := sinCosDouble(double{y, 0})
	return double{y, 0}.plus(cos.plus(double{-x, 0}).over(sin)).hi
}

// Atan is C's atan.
func Atan(x float64) float64 {
	if a := math.Abs(x); !(a > 1e-8 && a < 1e15) {
		return math.Atan(x)
	}
	return Atan2(x, 1)
}

// Atan2 is C's atan2.
func Atan2(y, x float64) float64 {
	switch {
	case x != x:
		return x
	case y != y:
		return y
	}
	a := math.Atan2(y, x)
	most := math.Max(math.Abs(x), math.Abs(y))
	least := math.Min(math.Abs(x), math.Abs(y))
	if !(least > 1e-8*most && most < 1e150 && least > 1e-150) {
		return a
	}
	sin, cos := sinCosDouble(double{a, 0})
	error := cos.timesFloat(y).plus(sin.timesFloat(-x))
	slope := cos.timesFloat(x).plus(sin.timesFloat(y))
	return double{a, 0}.plus(error.over(slope)).hi
}
