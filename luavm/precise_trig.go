package luavm

// The trigonometric functions, rounded correctly, see precise.go. Distances between places are computed with them.

import "math"

var (
	halfPi   = double{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54}
	halfPi3  = -0x1.f1976b7ed8fbcp-110 // the third part
	trigMost = 1e6                     // beyond, π/2 is not known well enough here
)

// sinCosDouble returns sine and cosine of x for |x| up to trigMost.
func sinCosDouble(x double) (sin, cos double) {
	quadrants := math.RoundToEven(x.hi / halfPi.hi)
	r := x.plus(double{halfPi.hi, 0}.timesFloat(-quadrants)).plus(double{halfPi.lo, 0}.timesFloat(-quadrants))
	r = r.plus(double{-quadrants * halfPi3, 0})
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

// trigonometric makes a function precise for arguments that are neither tiny nor huge.
func trigonometric(rough func(float64) float64, precise func(sin, cos double) double) func(float64) float64 {
	return func(x float64) float64 {
		if a := math.Abs(x); !(a > 1e-8 && a < trigMost) {
			return rough(x)
		}
		sin, cos := sinCosDouble(double{x, 0})
		return precise(sin, cos).hi
	}
}

var (
	sine    = trigonometric(math.Sin, func(sin, cos double) double { return sin })
	cosine  = trigonometric(math.Cos, func(sin, cos double) double { return cos })
	tangent = trigonometric(math.Tan, func(sin, cos double) double { return sin.over(cos) })
)

// The inverse functions take a step of Newton's from Go's result.

func arcSine(x float64) float64 {
	if a := math.Abs(x); !(a > 1e-8 && a < 1) {
		return math.Asin(x)
	}
	y := math.Asin(x)
	sin, cos := sinCosDouble(double{y, 0})
	return double{y, 0}.plus(double{x, 0}.plus(sin.timesFloat(-1)).over(cos)).hi
}

func arcCosine(x float64) float64 {
	if !(math.Abs(x) < 1) {
		return math.Acos(x)
	}
	y := math.Acos(x)
	sin, cos := sinCosDouble(double{y, 0})
	return double{y, 0}.plus(cos.plus(double{-x, 0}).over(sin)).hi
}

func arcTangent(x float64) float64 {
	if a := math.Abs(x); !(a > 1e-8 && a < 1e15) {
		return math.Atan(x)
	}
	return arcTangent2(x, 1)
}

func arcTangent2(y, x float64) float64 {
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
