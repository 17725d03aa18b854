package precise

// Sine and cosine with a few more digits than a double has, which are enough for nearly every rounding. The angle is split into
// a multiple of 1/64, whose sine and cosine are in a table, and a small rest. The contribution of the rest is so small that its
// rounding error as a double is a ten thousandth of the result's last digit. If that error could change the rounding, the
// caller uses the slow computation, so the result is always the same.

import (
	"math"
	"sync"
)

const (
	tableSteps = 64
	tableSize  = 102 // to π/2
	// quickError bounds the error of sine and cosine relative to the rest r. It comes from a few operations on terms of at most
	// r²/2, which is r/256, each with a relative error of 2^-53. doubleError bounds the error of the table and of sums of two
	// doubles.
	quickError  = 0x1p-57
	doubleError = 0x1p-100
)

type sinCos struct{ sin, cos double }

// sinCosTable is made at its first use, since making it would take a twentieth of the time of a server's start.
var sinCosTable = sync.OnceValue(func() *[tableSize]sinCos {
	t := new([tableSize]sinCos)
	for i := range t {
		t[i].sin, t[i].cos = sinCosDouble(double{float64(i) / tableSteps, 0})
	}
	return t
})

// quickSinCos returns sine and cosine of 0 < x ≤ π/2; off is their largest error.
func quickSinCos(x float64) (sin, cos double, off float64) {
	k := int(x*tableSteps + 0.5)
	r := x - float64(k)/tableSteps // exact: a multiple of x's last digit, and not more than x
	at := &sinCosTable()[k]
	square := r * r
	s := -r * square * (1./6 - square*(1./120-square*(1./5040-square/362880))) // sin r - r
	v := square * (0.5 - square*(1./24-square*(1./720-square/40320)))          // 1 - cos r
	up, down := at.cos.timesFloat(r), at.sin.timesFloat(-r)
	up.lo += at.cos.hi*s - at.sin.hi*v
	down.lo += -at.sin.hi*s - at.cos.hi*v
	return at.sin.plus(up), at.cos.plus(down), math.Abs(r)*quickError + doubleError
}

// rounded returns a as a double. sure tells whether every number within off of a is rounded to the same double.
func (a double) rounded(off float64) (x float64, sure bool) {
	x = a.hi + (a.lo - off)
	return x, x == a.hi+(a.lo+off)
}

// quickSin is the sine of x, if the rounding is sure.
func quickSin(x float64) (sin float64, sure bool) {
	a := math.Abs(x)
	if a > math.Pi/2 {
		return 0, false
	}
	s, _, off := quickSinCos(a)
	sin, sure = s.rounded(off)
	return math.Copysign(sin, x), sure
}

// quickCos is the cosine of x, if the rounding is sure.
func quickCos(x float64) (cos float64, sure bool) {
	a := math.Abs(x)
	if a > math.Pi/2 {
		return 0, false
	}
	_, c, off := quickSinCos(a)
	return c.rounded(off)
}

// quickAsin is the arcsine of x, if the rounding is sure. y is an approximation of it.
func quickAsin(x, y float64) (asin float64, sure bool) {
	a, x := math.Abs(y), math.Abs(x)
	if a > 1.5 { // the cosine is small: errors are large
		return 0, false
	}
	s, c, off := quickSinCos(a)
	step := (x - s.hi - s.lo) / c.hi
	asin, sure = normalized(a, step).rounded(2*off/c.hi + math.Abs(step)*0x1p-50)
	return math.Copysign(asin, y), sure
}
