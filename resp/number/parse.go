package number

// Reading floating-point text: which texts are numbers, and the doubles among them. Redis reads them with C's strtod and with
// fast_float, which differ in what is out of range. Go's strconv accepts texts that those refuse ("0x_1p0") and
// refuses some that they accept ("0x10"). So the form is checked here, and strconv only converts.

import (
	"math"
	"strconv"
	"unsafe"
)

// literal is a number's text taken apart.
type literal struct {
	neg    bool
	kind   literalKind
	digits []byte // without the sign and "0x": digits, at most one point, and the exponent
	zero   bool   // all digits before the exponent are 0
}

type literalKind uint8

const (
	notNumber literalKind = iota
	decimal
	hexadecimal
	infinity
)

// scan splits b into the parts of a literal. All of b must be the number. "nan" is not a number here, since no caller accepts it.
func scan(b []byte) (l literal) {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		l.neg = b[0] == '-'
		b = b[1:]
	}
	if len(b) == 0 {
		return l
	}
	if b[0]|0x20 == 'i' {
		if equalFold(b, "inf") || equalFold(b, "infinity") {
			l.kind = infinity
		}
		return l
	}
	hex := len(b) > 2 && b[0] == '0' && b[1]|0x20 == 'x'
	if hex {
		b = b[2:]
	}
	l.digits, l.zero = b, true
	i, n, points := 0, 0, 0
	for ; i < len(b); i++ {
		c := b[i]
		switch {
		case c-'0' <= 9 || hex && c|0x20 >= 'a' && c|0x20 <= 'f':
			n++
			l.zero = l.zero && c == '0'
			continue
		case c == '.' && points == 0:
			points++
			continue
		}
		break
	}
	if n == 0 {
		return l
	}
	if i < len(b) {
		mark := byte('e')
		if hex {
			mark = 'p'
		}
		if b[i]|0x20 != mark {
			return l
		}
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if i == len(b) {
			return l
		}
		for ; i < len(b); i++ {
			if b[i]-'0' > 9 {
				return l
			}
		}
	}
	l.kind = decimal
	if hex {
		l.kind = hexadecimal
	}
	return l
}

// equalFold compares b, in any case, with a word in lower case.
func equalFold(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i := range b {
		if b[i]|0x20 != word[i] {
			return false
		}
	}
	return true
}

// ParseDouble reads a double as Redis reads scores and increments: all of b,
// decimal or hexadecimal, "inf" and "infinity" in any case and with any sign.
// Blanks, "nan", and numbers too large for a double or so small that they would
// become 0 are refused.
func ParseDouble(b []byte) (f float64, ok bool) {
	if v, ok := smallInt(b); ok {
		return v, true
	}
	l := scan(b)
	f, inRange := l.double()
	return f, l.kind != notNumber && inRange
}

// ParseBound reads a bound of a score range, without the "(" of an exclusive bound. The rules
// of ZRANGEBYSCORE differ from those of ParseDouble: empty text is 0, bytes
// behind a zero byte are ignored, hexadecimal is refused, and a number out of
// range becomes infinite or 0.
func ParseBound(b []byte) (f float64, ok bool) {
	if v, ok := smallInt(b); ok {
		return v, true
	}
	for i, c := range b {
		if c == 0 {
			b = b[:i]
			break
		}
	}
	if len(b) == 0 {
		return 0, true
	}
	l := scan(b)
	if l.kind == notNumber || l.kind == hexadecimal {
		return 0, false
	}
	f, _ = l.double()
	return f, true
}

// smallInt is the fast path for integers of up to 15 digits, which most scores are.
func smallInt(b []byte) (float64, bool) {
	neg := len(b) > 0 && b[0] == '-'
	d := b
	if neg {
		d = b[1:]
	}
	if len(d) == 0 || len(d) > 15 {
		return 0, false
	}
	n := int64(0)
	for _, c := range d {
		if c-'0' > 9 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if neg {
		return -float64(n), true // -0 for "-0"
	}
	return float64(n), true
}

// double converts l; inRange is false if the number is out of range and became infinite or 0.
func (l literal) double() (f float64, inRange bool) {
	switch l.kind {
	case notNumber:
		return 0, false
	case infinity:
		f, inRange = math.Inf(1), true
	default:
		inRange = true
		if !l.zero {
			f = l.convert()
			inRange = f != 0 && !math.IsInf(f, 0)
		}
	}
	if l.neg {
		f = -f
	}
	return f, inRange
}

func (l literal) convert() float64 {
	if l.kind == decimal {
		// The string aliases digits; that is safe, since ParseFloat does not keep it: an error holds a copy.
		f, _ := strconv.ParseFloat(unsafe.String(unsafe.SliceData(l.digits), len(l.digits)), 64)
		return f
	}
	text := append([]byte("0x"), l.digits...)
	exponent := false
	for _, c := range l.digits {
		exponent = exponent || c|0x20 == 'p'
	}
	if !exponent { // strconv wants one
		text = append(text, "p0"...)
	}
	f, _ := strconv.ParseFloat(string(text), 64)
	return f
}
