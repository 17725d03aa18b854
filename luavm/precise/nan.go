package precise

// NaNs. A script can see the sign of a NaN in its text, and all its bits when it packs the NaN. Which NaN a function of the C
// library returns depends on how that computes it; the NaNs of Go's functions have other bits.

import "math"

var (
	// NegativeNaN is the result of an invalid operation on amd64.
	NegativeNaN = math.Float64frombits(0xfff8000000000000)
	// PositiveNaN is the result of some functions of the C library for numbers outside their domain.
	PositiveNaN = math.Float64frombits(0x7ff8000000000000)
)

// powNaN is pow if an operand is NaN. The sign of its result follows from how the C library computes: it squares x, changes the
// sign for an odd power of a negative x, and adds the operands if y is not finite.
func powNaN(x, y float64) float64 {
	switch {
	case x == x:
		return y
	case math.Signbit(x) && math.Abs(math.Mod(y, 2)) == 1:
		return -x
	}
	return x
}
