package precise

// NaNs. A script sees the sign of one, in its text, and all its bits once it is packed. Which NaN a function of the C
// library gives follows from how it is computed there; Go's own are of other bits.

import "math"

var (
	// NegativeNaN is what an invalid operation gives on amd64.
	NegativeNaN = math.Float64frombits(0xfff8000000000000)
	// PositiveNaN is what some functions of the C library make of a number that they do not take.
	PositiveNaN = math.Float64frombits(0x7ff8000000000000)
)

// powNaN is pow where an operand is no number: it squares the first one, turning the sign for an odd power of a
// negative number, and adds where the second is no finite number.
func powNaN(x, y float64) float64 {
	switch {
	case x == x:
		return y
	case math.Signbit(x) && math.Abs(math.Mod(y, 2)) == 1:
		return -x
	}
	return x
}
