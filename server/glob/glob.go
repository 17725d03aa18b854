// Package glob, internal to the server, matches patterns of KEYS, SCAN, PSUBSCRIBE and CONFIG GET: * ? [a-z] [^a], and \ for
// the next byte itself.
package glob

import "bytes"

// Match tells whether all of s matches the pattern. It takes at most len(pattern)*len(s) steps: after a second star it never
// returns to the first, since the part between them was matched at its earliest place.
func Match(pattern, s []byte) bool { return match(pattern, s, false) }

// MatchFold is Match without regard to the case of ASCII letters.
func MatchFold(pattern, s []byte) bool { return match(pattern, s, true) }

// starsMax is how many stars may come before the rest of a pattern, as in Redis. A pattern with more matches nothing.
const starsMax = 1000

func match(p, s []byte, fold bool) bool {
	starP, starS, stars := -1, 0, 0
	i, j := 0, 0
	for {
		if i < len(p) && p[i] == '*' {
			if starP != i && j < len(s) { // several stars in a row count once
				stars++
			}
			i++
			starP, starS = i, j
			if i == len(p) {
				return true
			}
			if stars > starsMax {
				return false
			}
			continue
		}
		if j == len(s) {
			return i == len(p)
		}
		if i < len(p) {
			if p[i] == s[j] && !special(p[i]) {
				i++
				j++
				continue
			}
			if n, ok := one(p[i:], s[j], fold); ok {
				i += n
				j++
				continue
			}
		}
		if starP < 0 {
			return false
		}
		starS++
		if starP < len(p) && !fold && !special(p[starP]) { // skip to the next byte that the element after the star matches
			at := bytes.IndexByte(s[starS:], p[starP])
			if at < 0 {
				return false
			}
			starS += at
		}
		i, j = starP, starS
	}
}

// special tells whether a byte of a pattern does not match itself.
func special(c byte) bool { return c == '*' || c == '?' || c == '[' || c == '\\' }

// one matches one byte against the first element of the pattern and returns
// how long that element is.
func one(p []byte, c byte, fold bool) (n int, ok bool) {
	switch p[0] {
	case '?':
		return 1, true
	case '[':
		return class(p, c, fold)
	case '\\':
		if len(p) >= 2 {
			return 2, same(p[1], c, fold)
		}
	}
	return 1, same(p[0], c, fold)
}

// class matches a byte against [...]. A class without ] ends with the pattern.
func class(p []byte, c byte, fold bool) (n int, ok bool) {
	i := 1
	not := i < len(p) && p[i] == '^'
	if not {
		i++
	}
	hit := false
	for {
		switch {
		case i >= len(p):
			return len(p), hit != not
		case p[i] == '\\' && i+1 < len(p):
			i++
			hit = hit || same(p[i], c, fold)
		case p[i] == ']':
			return i + 1, hit != not
		case i+2 < len(p) && p[i+1] == '-':
			lo, hi, b := p[i], p[i+2], c
			if lo > hi {
				lo, hi = hi, lo
			}
			if fold {
				lo, hi, b = lowerByte(lo), lowerByte(hi), lowerByte(b)
			}
			hit = hit || lo <= b && b <= hi
			i += 2
		default:
			hit = hit || same(p[i], c, fold)
		}
		i++
	}
}

func same(a, b byte, fold bool) bool {
	return a == b || fold && lowerByte(a) == lowerByte(b)
}

func lowerByte(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
