package number

// Floating-point numbers as commands read them.

import "strconv"

// ParseFloat reads a double as Redis's commands do (strtod over the whole
// argument): decimal and hexadecimal notation, inf and infinity in any case,
// no blanks in front or behind. What overflows is refused; NaN is read, and
// the caller's to refuse.
func ParseFloat(b []byte) (f float64, ok bool) {
	for _, c := range b {
		if c == '_' {
			return 0, false // Go's own notation
		}
	}
	s := string(b)
	f, err := strconv.ParseFloat(s, 64)
	if err == nil {
		return f, true
	}
	if isHexWithoutExponent(s) {
		f, err = strconv.ParseFloat(s+"p0", 64)
		return f, err == nil
	}
	return 0, false
}

// isHexWithoutExponent recognises 0x1f, which Go wants to end in p0.
func isHexWithoutExponent(s string) bool {
	if len(s) > 0 && (s[0] == '-' || s[0] == '+') {
		s = s[1:]
	}
	if len(s) < 3 || s[0] != '0' || s[1]|0x20 != 'x' {
		return false
	}
	for i := range len(s) {
		if s[i]|0x20 == 'p' {
			return false
		}
	}
	return true
}
