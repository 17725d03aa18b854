package number

// INCRBYFLOAT and HINCRBYFLOAT compute in C's long double, which on x86 has 64 bits of mantissa, and print 17 decimals.
// 0.1 + 0.2 is 0.3 there and 0.30000000000000004 in float64. So this file implements the type: it reads, adds and prints with
// the same rounding (to nearest, ties to even). It computes with 128-bit integers for numbers of the usual size, and with
// math/big for others. Denormals have full precision here, unlike in C, which makes no difference: all of them print as 0.

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// LongDouble is m × 2^exp, m with its highest bit set unless it is 0. The zero
// value is 0.
type LongDouble struct {
	m     uint64
	exp   int32
	neg   bool
	class longClass
}

type longClass uint8

const (
	finite longClass = iota
	infinite
	notANumber
)

const (
	longExpMax = 16383 - 63 // of m, for the largest number
	longExpMin = -16445     // of the smallest denormal, with m = 1

	// longTextMax is the longest text read as a long double.
	longTextMax = 5*1024 - 1

	// decimals is how many AppendHuman prints.
	decimals = 17
)

// Finite tells whether a is neither infinite nor the result of inf - inf.
func (a LongDouble) Finite() bool { return a.class == finite }

// Neg returns -a.
func (a LongDouble) Neg() LongDouble {
	a.neg = !a.neg
	return a
}

// MaxLongDouble returns the largest number.
func MaxLongDouble() LongDouble { return LongDouble{m: math.MaxUint64, exp: longExpMax} }

// Less tells whether a < b. It is false if a or b is not a number.
func (a LongDouble) Less(b LongDouble) bool {
	switch {
	case a.class == notANumber || b.class == notANumber:
		return false
	case a.class == infinite && b.class == infinite:
		return a.neg && !b.neg
	case a.class == infinite:
		return a.neg
	case b.class == infinite:
		return !b.neg
	}
	d := b.Add(a.Neg()) // exact in its sign
	return d.m != 0 && !d.neg
}

// rounded returns (hi + lo/2^64) × 2^exp, rounded; sticky says that there is more
// below lo.
func rounded(hi, lo uint64, exp int, sticky, neg bool) LongDouble {
	if hi == 0 {
		if lo == 0 {
			return LongDouble{neg: neg}
		}
		hi, lo, exp = lo, 0, exp-64
	}
	s := uint(bits.LeadingZeros64(hi))
	hi, lo, exp = hi<<s|lo>>(64-s), lo<<s, exp-int(s)
	const half = 1 << 63
	if lo > half || lo == half && (sticky || hi&1 == 1) {
		if hi++; hi == 0 {
			hi, exp = 1<<63, exp+1
		}
	}
	switch {
	case exp > longExpMax:
		return LongDouble{class: infinite, neg: neg}
	case exp+63 < longExpMin-1 || exp+63 == longExpMin-1 && hi == 1<<63:
		return LongDouble{neg: neg}
	}
	return LongDouble{m: hi, exp: int32(exp), neg: neg}
}

// Add returns a + b.
func (a LongDouble) Add(b LongDouble) LongDouble {
	switch {
	case a.class != finite || b.class != finite:
		if a.class == notANumber || b.class == notANumber || a.class == b.class && a.neg != b.neg {
			return LongDouble{class: notANumber}
		}
		if a.class == infinite {
			return a
		}
		return b
	case a.m == 0 && b.m == 0:
		return LongDouble{neg: a.neg && b.neg}
	case a.m == 0:
		return b
	case b.m == 0:
		return a
	}
	if a.exp < b.exp || a.exp == b.exp && a.m < b.m {
		a, b = b, a
	}
	// (hi, lo) is b in units of a's last bit, with 64 bits behind the point; sticky says that lower bits are set.
	var hi, lo uint64
	sticky := false
	switch d := uint(a.exp - b.exp); {
	case d < 64:
		hi, lo = b.m>>d, b.m<<(64-d)
	case d < 128:
		lo, sticky = b.m>>(d-64), b.m<<(128-d) != 0
	default:
		sticky = true
	}
	if a.neg == b.neg {
		sum, carry := bits.Add64(a.m, hi, 0)
		if carry == 0 {
			return rounded(sum, lo, int(a.exp), sticky, a.neg)
		}
		return rounded(1<<63|sum>>1, sum<<63|lo>>1, int(a.exp)+1, sticky || lo&1 == 1, a.neg)
	}
	below := uint64(0)
	if sticky {
		below = 1
	}
	dlo, borrow := bits.Sub64(0, lo, below)
	dhi, _ := bits.Sub64(a.m, hi, borrow)
	if dhi == 0 && dlo == 0 {
		return LongDouble{}
	}
	return rounded(dhi, dlo, int(a.exp), sticky, a.neg)
}

// ParseLongDouble reads an increment of INCRBYFLOAT: like ParseDouble, but in the range of a
// long double, and at most 5,119 bytes.
func ParseLongDouble(b []byte) (v LongDouble, ok bool) {
	if len(b) > longTextMax {
		return v, false
	}
	l := scan(b)
	switch {
	case l.kind == notNumber:
		return v, false
	case l.kind == infinity:
		return LongDouble{class: infinite, neg: l.neg}, true
	case l.zero:
		return LongDouble{neg: l.neg}, true
	case l.kind == hexadecimal:
		v = l.hexLong()
	default:
		v = l.decimalLong()
	}
	return v, v.class == finite && v.m != 0
}

// expLimit is the largest exponent that is stored, so that an int cannot overflow. Any text of at most
// longTextMax bytes with this exponent is far out of range.
const expLimit = 1 << 20

// exponent reads the exponent at the end of digits.
func exponent(digits []byte) int {
	neg := false
	if len(digits) > 0 && (digits[0] == '-' || digits[0] == '+') {
		neg = digits[0] == '-'
		digits = digits[1:]
	}
	n := 0
	for _, c := range digits {
		n = min(n*10+int(c-'0'), expLimit)
	}
	if neg {
		return -n
	}
	return n
}

func (l literal) hexLong() LongDouble {
	var m uint64
	exp, point := 0, false
	for i, c := range l.digits {
		if c == '.' {
			point = true
			continue
		}
		if c|0x20 == 'p' {
			exp += exponent(l.digits[i+1:])
			break
		}
		d := uint64(c - '0')
		if d > 9 {
			d = uint64(c|0x20-'a') + 10
		}
		if m>>60 == 0 {
			m = m<<4 | d
			if point {
				exp -= 4
			}
			continue
		}
		return l.hexLongBig()
	}
	return rounded(m, 0, exp, false, l.neg)
}

// hexLongBig is hexLong for more than 64 bits.
func (l literal) hexLongBig() LongDouble {
	text := make([]byte, 0, len(l.digits))
	exp, point := 0, false
	for i, c := range l.digits {
		if c == '.' {
			point = true
			continue
		}
		if c|0x20 == 'p' {
			exp += exponent(l.digits[i+1:])
			break
		}
		if point {
			exp -= 4
		}
		text = append(text, c)
	}
	n, _ := new(big.Int).SetString(string(text), 16)
	return fromBig(n, exp, false, l.neg)
}

// fromBig returns n × 2^exp, rounded; sticky says that there is more below.
func fromBig(n *big.Int, exp int, sticky, neg bool) LongDouble {
	if drop := n.BitLen() - 128; drop > 0 {
		sticky = sticky || n.TrailingZeroBits() < uint(drop)
		n = new(big.Int).Rsh(n, uint(drop))
		exp += drop
	}
	lo := new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	hi := new(big.Int).Rsh(n, 64).Uint64()
	return rounded(hi, lo, exp+64, sticky, neg)
}

var powersOfFive = func() (p [28]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 5 * p[i-1]
	}
	return p
}()

func (l literal) decimalLong() LongDouble {
	var m uint64
	exp, point, long := 0, false, false
	for i, c := range l.digits {
		if c == '.' {
			point = true
			continue
		}
		if c|0x20 == 'e' {
			exp += exponent(l.digits[i+1:])
			break
		}
		if m > (math.MaxUint64-9)/10 {
			long = true
			if !point {
				exp++
			}
			continue
		}
		m = m*10 + uint64(c-'0')
		if point {
			exp--
		}
	}
	switch {
	case long || exp < -27 || exp > 27:
		return l.decimalLongBig()
	case exp >= 0:
		hi, lo := bits.Mul64(m, powersOfFive[exp])
		return rounded(hi, lo, exp+64, false, l.neg)
	}
	// m / 5^k / 2^k: with the highest bit set in both m and 5^k, the quotient has 64 bits.
	k := -exp
	y := powersOfFive[k]
	s, t := bits.LeadingZeros64(m), bits.LeadingZeros64(y)
	y <<= uint(t)
	hi, lo, e := m<<uint(s), uint64(0), t-s-k-64
	if hi >= y {
		hi, lo, e = hi>>1, hi<<63, e+1
	}
	q, rem := bits.Div64(hi, lo, y)
	var below uint64 // the remainder as a fraction, exact only in whether it is 0, below, at or above a half
	switch d := y - rem; {
	case rem > d:
		below = 1<<63 + 1
	case rem == d:
		below = 1 << 63
	case rem > 0:
		below = 1
	}
	return rounded(q, below, e, false, l.neg)
}

// decimalLongBig is decimalLong for many digits or a large exponent.
func (l literal) decimalLongBig() LongDouble {
	text := make([]byte, 0, len(l.digits))
	exp, point := 0, false
	for i, c := range l.digits {
		if c == '.' {
			point = true
			continue
		}
		if c|0x20 == 'e' {
			exp += exponent(l.digits[i+1:])
			break
		}
		if point {
			exp--
		}
		if len(text) > 0 || c != '0' {
			text = append(text, c)
		}
	}
	switch first := exp + len(text); { // the first digit is worth 10^(first-1)
	case first > 4940:
		return LongDouble{class: infinite, neg: l.neg}
	case first < -4960:
		return LongDouble{neg: l.neg}
	}
	n, _ := new(big.Int).SetString(string(text), 10)
	if exp >= 0 {
		five := new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(exp)), nil)
		return fromBig(n.Mul(n, five), exp, false, l.neg)
	}
	five := new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(-exp)), nil)
	shift := max(five.BitLen()-n.BitLen()+130, 0)
	rem := new(big.Int)
	n.QuoRem(n.Lsh(n, uint(shift)), five, rem)
	return fromBig(n, exp-shift, rem.Sign() != 0, l.neg)
}

// AppendHuman appends a as INCRBYFLOAT, HINCRBYFLOAT and GEOPOS print it: 17
// decimals, zeros at the end removed.
func (a LongDouble) AppendHuman(dst []byte) []byte {
	switch {
	case a.class == notANumber:
		return append(dst, "nan"...)
	case a.class == infinite && a.neg:
		return append(dst, "-inf"...)
	case a.class == infinite:
		return append(dst, "inf"...)
	case a.m == 0:
		return append(dst, '0')
	}
	var whole, fraction uint64
	switch s := uint(-a.exp); {
	case a.exp > 0:
		n := new(big.Int).SetUint64(a.m)
		n.Lsh(n, uint(a.exp))
		if a.neg {
			dst = append(dst, '-')
		}
		return n.Append(dst, 10)
	case s < 64:
		whole = a.m >> s
		hi, lo := bits.Mul64(a.m&(1<<s-1), 1e17)
		fraction = shiftRounded(hi, lo, s)
	case s < 128:
		hi, lo := bits.Mul64(a.m, 1e17)
		fraction = shiftRounded(hi, lo, s)
	}
	if fraction == 1e17 {
		whole, fraction = whole+1, 0
	}
	if whole == 0 && fraction == 0 {
		return append(dst, '0')
	}
	if a.neg {
		dst = append(dst, '-')
	}
	dst = strconv.AppendUint(dst, whole, 10)
	if fraction == 0 {
		return dst
	}
	digits := decimals
	for fraction%10 == 0 {
		fraction /= 10
		digits--
	}
	dst = append(dst, ".00000000000000000"[:digits+1]...)
	for i := len(dst) - 1; fraction > 0; i-- {
		dst[i] = '0' + byte(fraction%10)
		fraction /= 10
	}
	return dst
}

// shiftRounded returns (hi × 2^64 + lo) / 2^s rounded to nearest, ties to even.
func shiftRounded(hi, lo uint64, s uint) uint64 {
	var q, frac uint64 // the quotient and its fraction
	sticky := false
	switch {
	case s == 0:
		return lo
	case s < 64:
		q, frac = hi<<(64-s)|lo>>s, lo<<(64-s)
	default:
		q, frac, sticky = hi>>(s-64), hi<<(128-s)|lo>>(s-64), lo<<(128-s) != 0
		if s == 64 {
			frac, sticky = lo, false
		}
	}
	const half = 1 << 63
	if frac > half || frac == half && (sticky || q&1 == 1) {
		q++
	}
	return q
}
