package arg

// Conversion between numbers and text, as in the C library that Redis is built with: printf's %.14g and strtod.
// Go's own conversions differ in the texts that they accept (underscores, hexadecimal only with an exponent) and in how they
// write infinities and NaNs. So the form is handled here, and Go only rounds.

import (
	"math"
	"strconv"
	"strings"
)

// FormatNumber is how Lua 5.1 turns a number into a string everywhere: %.14g, with "inf", "-inf", "nan", "-nan" and "-0".
func FormatNumber(f float64) string {
	if i := int64(f); f == float64(i) && i >= 0 && i < 100 && !(i == 0 && math.Signbit(f)) {
		return strconv.Itoa(int(i)) // no allocation for the commonest numbers
	}
	var buf [32]byte
	return string(AppendNumber(buf[:0], f))
}

// AppendNumber appends what FormatNumber returns.
func AppendNumber(b []byte, f float64) []byte { return AppendPrecision(b, f, 14) }

// AppendPrecision appends f as printf's %.<precision>g does. precision must be at least 1.
func AppendPrecision(b []byte, f float64, precision int) []byte {
	switch {
	case f != f:
		if math.Signbit(f) {
			return append(b, "-nan"...)
		}
		return append(b, "nan"...)
	case f > math.MaxFloat64:
		return append(b, "inf"...)
	case f < -math.MaxFloat64:
		return append(b, "-inf"...)
	case f == 0:
		if math.Signbit(f) {
			return append(b, "-0"...)
		}
		return append(b, '0')
	}
	// Whole numbers that %.14g prints in full.
	if precision == 14 && f > -1e14 && f < 1e14 {
		if i := int64(f); float64(i) == f {
			return strconv.AppendInt(b, i, 10)
		}
	}
	return strconv.AppendFloat(b, f, 'g', precision, 64)
}

// ParseNumber is Lua 5.1's conversion of a string to a number: a number that strtod accepts, with only white space around
// it. As in C, a NUL byte ends the text.
func ParseNumber(s string) (float64, bool) {
	// Nearly all numbers are plain short integers.
	if n := len(s); n > 0 && n <= 15 {
		v := int64(0)
		for i := 0; ; i++ {
			if i == n {
				return float64(v), true
			}
			c := s[i] - '0'
			if c > 9 {
				break
			}
			v = v*10 + int64(c)
		}
	}
	if i := strings.IndexByte(s, 0); i >= 0 {
		s = s[:i]
	}
	v, n := Strtod(s)
	if n == 0 {
		return 0, false
	}
	for ; n < len(s); n++ {
		if !isSpace(s[n]) {
			return 0, false
		}
	}
	return v, true
}

// Strtod is glibc's strtod in the C locale. It returns the number at the start of s, after white space, and how many
// bytes it used, 0 if there is no number. It accepts decimal and hexadecimal forms, and inf, infinity, nan and nan(...)
// in any case; an overflow gives an infinity.
func Strtod(s string) (value float64, n int) {
	i := 0
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	start := i
	neg := false
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		neg = s[i] == '-'
		i++
	}
	if i < len(s) && (s[i]|0x20 == 'i' || s[i]|0x20 == 'n') {
		return strtodWord(s, i, neg)
	}
	if i+1 < len(s) && s[i] == '0' && s[i+1]|0x20 == 'x' {
		if end, exponent := scanDigits(s, i+2, true); end > 0 {
			text := s[start:end]
			if !exponent {
				text += "p0"
			}
			value, _ = strconv.ParseFloat(text, 64) // only a range error is possible, and the value is right then, too
			return value, end
		}
		return math.Copysign(0, sign(neg)), i + 1 // "0x" without digits: the zero
	}
	end, _ := scanDigits(s, i, false)
	if end == 0 {
		return 0, 0
	}
	value, _ = strconv.ParseFloat(s[start:end], 64)
	return value, end
}

// scanDigits returns where a number with point and exponent ends, 0 if it has no digit, and whether it has an
// exponent. An exponent without digits is not part of the number.
func scanDigits(s string, i int, hex bool) (end int, exponent bool) {
	digits := 0
	for point := false; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= '0' && c <= '9', hex && c|0x20 >= 'a' && c|0x20 <= 'f':
			digits++
			continue
		case c == '.' && !point:
			point = true
			continue
		}
		break
	}
	if digits == 0 {
		return 0, false
	}
	mark := byte('e')
	if hex {
		mark = 'p'
	}
	if i < len(s) && s[i]|0x20 == mark {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if j < len(s) && s[j] >= '0' && s[j] <= '9' {
			for j < len(s) && s[j] >= '0' && s[j] <= '9' {
				j++
			}
			return j, true
		}
	}
	return i, false
}

// strtodWord reads inf, infinity, nan and nan(chars) from s[i:].
func strtodWord(s string, i int, neg bool) (float64, int) {
	rest := s[i:]
	switch {
	case hasPrefixFold(rest, "infinity"):
		return math.Inf(int(sign(neg))), i + 8
	case hasPrefixFold(rest, "inf"):
		return math.Inf(int(sign(neg))), i + 3
	case hasPrefixFold(rest, "nan"):
		nan := math.Copysign(math.Float64frombits(0x7ff8<<48), sign(neg)) // glibc's, not Go's
		if j := 3; j < len(rest) && rest[j] == '(' {
			for j++; j < len(rest); j++ {
				c := rest[j]
				if c == ')' {
					return nan, i + j + 1
				}
				if !(c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z') {
					break
				}
			}
		}
		return nan, i + 3
	}
	return 0, 0
}

func sign(neg bool) float64 {
	if neg {
		return -1
	}
	return 1
}

// hasPrefixFold reports whether s begins with the lower-case prefix in any case.
func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// isSpace is C's isspace in the C locale.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// Truncate is C's conversion of a double to a 64-bit integer on x86-64: it truncates towards zero, and returns the smallest
// integer for numbers that do not fit and for NaN.
func Truncate(f float64) int64 {
	if f >= -0x1p63 && f < 0x1p63 {
		return int64(f)
	}
	return math.MinInt64
}
