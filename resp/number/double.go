package number

// Redis prints doubles with Grisu2 (Florian Loitsch, "Printing Floating-Point
// Numbers Quickly and Accurately with Integers", 2010). Its digits always read
// back as the same number, but in one case of a thousand they are not the
// shortest possible: strconv, which always finds the shortest, would differ from
// Redis there. So this is Grisu2 too, with the rounding of its products, the
// choice among its cached powers and the layout of the exponent as in Redis.

import (
	"math"
	"math/bits"
	"strconv"
)

// extended is a binary floating-point number with 64 bits of mantissa: m × 2^e.
type extended struct {
	m uint64
	e int
}

const (
	powerFirst = -348 // the decimal exponent of powersOfTen[0]
	powerStep  = 8
	powerCount = 87

	// The exponent of a scaled number lies between these two, so that its integer
	// part fits 32 bits.
	scaledMin = -60
	scaledMax = -32

	log10of2 = 0.30102999566398114
)

// AppendDouble appends f as Redis does in replies: integers up to 2^62 without
// point or exponent, then the digits that identify f; "inf", "-inf", "nan".
func AppendDouble(dst []byte, f float64) []byte {
	switch {
	case f != f:
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case f == 0:
		if math.Signbit(f) {
			return append(dst, "-0"...)
		}
		return append(dst, '0')
	}
	if f >= -(1<<62) && f <= 1<<62 {
		if i := int64(f); float64(i) == f {
			return strconv.AppendInt(dst, i, 10)
		}
	}
	return AppendFinite(dst, f)
}

// AppendFinite appends the digits that identify f, which must be finite. It does so for integers too:
// beyond 2^53 their digits can differ from those of AppendDouble.
func AppendFinite(dst []byte, f float64) []byte {
	if math.Signbit(f) {
		dst = append(dst, '-')
		f = -f
	}
	if f == 0 {
		return append(dst, '0')
	}
	var buf [20]byte
	n, exp10 := grisu2(f, &buf)
	return appendDigits(dst, buf[:n], exp10)
}

// grisu2 writes the digits of f > 0 to buf and returns how many there are and
// the power of ten of the last one.
func grisu2(f float64, buf *[20]byte) (n, exp10 int) {
	b := math.Float64bits(f)
	frac, exp := b&(1<<52-1), int(b>>52&0x7ff)
	w := extended{frac, exp - 1075}
	if exp != 0 {
		w.m |= 1 << 52
	} else {
		w.e = -1074
	}
	// upper and lower lie half way to the next doubles. Both get upper's exponent.
	upper := normalize(extended{w.m<<1 + 1, w.e - 1})
	var lower extended
	if w.m == 1<<52 { // the double below is at half the distance
		lower = extended{w.m<<2 - 1, w.e - 2}
	} else {
		lower = extended{w.m<<1 - 1, w.e - 1}
	}
	lower.m <<= uint(lower.e - upper.e)
	lower.e = upper.e
	w = normalize(w)

	power, k := cachedPower(upper.e)
	w, upper, lower = multiply(w, power), multiply(upper, power), multiply(lower, power)
	lower.m++
	upper.m--
	n, exp10 = generate(w, upper, lower, buf)
	return n, exp10 - k
}

func normalize(x extended) extended {
	s := bits.LeadingZeros64(x.m)
	return extended{x.m << uint(s), x.e - s}
}

// multiply keeps the upper half of the product, rounded half up.
func multiply(a, b extended) extended {
	hi, lo := bits.Mul64(a.m, b.m)
	return extended{hi + lo>>63, a.e + b.e + 64}
}

// cachedPower returns a power of ten that brings an exponent into range, and its
// decimal exponent. Two can be in range: Redis's estimate decides which is found.
func cachedPower(exp int) (extended, int) {
	estimate := int(-float64(exp+powerCount) * log10of2)
	for i := (estimate - powerFirst) / powerStep; ; {
		switch scaled := exp + powersOfTen[i].e + 64; {
		case scaled < scaledMin:
			i++
		case scaled > scaledMax:
			i--
		default:
			return powersOfTen[i], powerFirst + i*powerStep
		}
	}
}

var smallPowers = [...]uint64{1, 10, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10,
	1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19}

// generate writes digits of upper until the rest lies within the interval,
// then lowers the last digit towards w.
func generate(w, upper, lower extended, buf *[20]byte) (n, exp10 int) {
	distance := upper.m - w.m
	delta := upper.m - lower.m
	shift := uint(-upper.e)
	one := uint64(1) << shift
	whole, part := uint32(upper.m>>shift), upper.m&(one-1)

	// The loop starts at the first digit of whole, or at a 0 before it, which is not written.
	for kappa := bits.Len32(whole) * 1233 >> 12; kappa >= 0; kappa-- { // 1233 / 4096 is log10(2), nearly
		unit := smallPowers[kappa]
		digit := whole / uint32(unit)
		if digit != 0 || n > 0 {
			buf[n] = '0' + byte(digit)
			n++
		}
		whole -= digit * uint32(unit)
		if rest := uint64(whole)<<shift + part; rest <= delta {
			roundLast(buf, n, delta, rest, unit<<shift, distance)
			return n, kappa
		}
	}
	for kappa := -1; ; kappa-- {
		part *= 10
		delta *= 10
		buf[n] = '0' + byte(part>>shift)
		n++
		part &= one - 1
		if part < delta {
			var scale uint64
			if -kappa < len(smallPowers) {
				scale = smallPowers[-kappa]
			}
			roundLast(buf, n, delta, part, one, distance*scale)
			return n, kappa
		}
	}
}

// roundLast lowers the last digit as long as the result comes closer to the number,
// which lies distance below the upper bound.
func roundLast(buf *[20]byte, n int, delta, rest, unit, distance uint64) {
	for rest < distance && delta-rest >= unit &&
		(rest+unit < distance || distance-rest > rest+unit-distance) {
		buf[n-1]--
		rest += unit
	}
}

// appendDigits appends digits × 10^exp10: without an exponent if that needs few
// zeros, else as d.ddde+x.
func appendDigits(dst, digits []byte, exp10 int) []byte {
	const zeros = "00000000000000000000"
	n := len(digits)
	exp := exp10 + n - 1 // of the first digit
	abs := max(exp, -exp)
	switch {
	case exp10 >= 0 && abs < n+7:
		return append(append(dst, digits...), zeros[:exp10]...)
	case exp10 < 0 && (exp10 > -7 || abs < 4):
		point := n + exp10
		if point <= 0 {
			dst = append(append(dst, "0."...), zeros[:-point]...)
			return append(dst, digits...)
		}
		dst = append(append(dst, digits[:point]...), '.')
		return append(dst, digits[point:]...)
	}
	dst = append(dst, digits[0])
	if n > 1 {
		dst = append(append(dst, '.'), digits[1:]...)
	}
	if exp < 0 {
		dst = append(dst, 'e', '-')
	} else {
		dst = append(dst, 'e', '+')
	}
	return strconv.AppendInt(dst, int64(abs), 10)
}
