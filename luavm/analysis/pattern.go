package analysis

// Which Lua patterns take time in proportion to the subject. Matching tries, at every start, every length that a
// quantified item may take; a pattern is taken for linear only if there is never more than one length worth trying.

// linearPattern reports whether matching the pattern against any subject, at all starts if it is not anchored, takes
// steps in proportion to the subject's length.
func linearPattern(p string) bool {
	items, anchored, ok := parsePattern(p)
	if !ok {
		return false
	}
	quantified := 0
	for i, it := range items {
		if it.quantifier == 0 {
			continue
		}
		quantified++
		if !anchored && i != len(items)-1 {
			return false // each start may run over the whole subject in vain
		}
		if it.quantifier == '?' || i == len(items)-1 {
			continue
		}
		// What follows must not be able to match where this item could go on.
		next := items[i+1]
		if next.quantifier != 0 && next.quantifier != '+' || it.set.meets(&next.set) {
			return false
		}
	}
	if !anchored && quantified > 0 && items[len(items)-1].end {
		return false // x+$ is tried in vain at each x
	}
	return quantified <= 8 && len(items) <= 256
}

type byteSet [4]uint64

func (s *byteSet) add(c byte) { s[c>>6] |= 1 << (c & 63) }
func (s *byteSet) meets(t *byteSet) bool {
	return s[0]&t[0]|s[1]&t[1]|s[2]&t[2]|s[3]&t[3] != 0
}
func (s *byteSet) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}
func (s *byteSet) union(t *byteSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

// patternItem is a set of bytes and how often it may occur: 0 for once, or one of ?*+-.
type patternItem struct {
	set        byteSet
	quantifier byte
	end        bool // $ follows, and is the end of the pattern
}

// parsePattern takes a pattern apart. It reports false for what is malformed and for %b, %f and back references.
func parsePattern(p string) (items []patternItem, anchored, ok bool) {
	i := 0
	if i < len(p) && p[i] == '^' {
		anchored = true
		i++
	}
	for i < len(p) {
		var it patternItem
		switch c := p[i]; {
		case c == 0:
			return nil, false, false
		case c == '(' || c == ')':
			i++
			continue
		case c == '$' && i == len(p)-1:
			if len(items) > 0 {
				items[len(items)-1].end = true
			}
			i++
			continue
		case c == '%':
			if i+1 >= len(p) || p[i+1] == 'b' || p[i+1] == 'f' || p[i+1] >= '0' && p[i+1] <= '9' {
				return nil, false, false
			}
			it.set = classSet(p[i+1])
			i += 2
		case c == '.':
			it.set.invert()
			i++
		case c == '[':
			if i, ok = parseSet(p, i+1, &it.set); !ok {
				return nil, false, false
			}
		default:
			it.set.add(c)
			i++
		}
		if i < len(p) && (p[i] == '?' || p[i] == '*' || p[i] == '+' || p[i] == '-') {
			it.quantifier = p[i]
			i++
		}
		items = append(items, it)
	}
	return items, anchored, true
}

// parseSet reads what follows a [ at i and returns the index behind its ].
func parseSet(p string, i int, set *byteSet) (int, bool) {
	negated := false
	if i < len(p) && p[i] == '^' {
		negated = true
		i++
	}
	for first := true; ; first = false {
		if i >= len(p) || p[i] == 0 {
			return i, false
		}
		if p[i] == ']' && !first {
			break
		}
		switch {
		case p[i] == '%':
			if i+1 >= len(p) {
				return i, false
			}
			class := classSet(p[i+1])
			set.union(&class)
			i += 2
		case i+2 < len(p) && p[i+1] == '-' && p[i+2] != ']':
			for c := int(p[i]); c <= int(p[i+2]); c++ {
				set.add(byte(c))
			}
			i += 3
		default:
			set.add(p[i])
			i++
		}
	}
	if negated {
		set.invert()
	}
	return i + 1, true
}

// classSet is the set of %c: a class of C's ctype, its complement in upper case, or the byte itself.
func classSet(c byte) byteSet {
	var s byteSet
	for b := 0; b < 256; b++ {
		if inClass(byte(b), c|0x20) {
			s.add(byte(b))
		}
	}
	if s == (byteSet{}) || !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
		s = byteSet{}
		s.add(c)
		return s
	}
	if c >= 'A' && c <= 'Z' {
		s.invert()
	}
	return s
}

func inClass(b, class byte) bool {
	letter := b|0x20 >= 'a' && b|0x20 <= 'z'
	digit := b >= '0' && b <= '9'
	switch class {
	case 'a':
		return letter
	case 'c':
		return b < 32 || b == 127
	case 'd':
		return digit
	case 'l':
		return b >= 'a' && b <= 'z'
	case 'p':
		return b > 32 && b < 127 && !letter && !digit
	case 's':
		return b == ' ' || b >= '\t' && b <= '\r'
	case 'u':
		return b >= 'A' && b <= 'Z'
	case 'w':
		return letter || digit
	case 'x':
		return digit || b|0x20 >= 'a' && b|0x20 <= 'f'
	case 'z':
		return b == 0
	}
	return false
}
