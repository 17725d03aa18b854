package luavm

// Matching of Lua 5.1's patterns. A pattern ends at its first NUL byte, as it does in C.

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
)

const (
	capturesMax = 32
	// matchDepthMax bounds the recursion, which grows with the pattern's length. The real Lua would exhaust its C stack.
	matchDepthMax = 200_000
)

const (
	captureOpen     = -1
	capturePosition = -2
)

type matcher struct {
	vm       *VM
	L        *lua.LState
	src, pat string
	level    int // captures begun
	depth    int
	tail     int // gsub: where the rest of the subject begins
	captures [capturesMax]struct{ start, length int }
}

// matcherFor prepares the VM's matcher.
func (vm *VM) matcherFor(L *lua.LState, src, pattern string) *matcher {
	if vm.matcher == nil {
		vm.matcher = &matcher{vm: vm}
	}
	m := vm.matcher
	m.L, m.src, m.pat, m.level, m.depth, m.tail = L, src, pattern, 0, 0, 0
	return m
}

func (m *matcher) fail(format string, args ...any) { arg.Raise(m.L, format, args...) }

// p returns a byte of the pattern, 0 at its end.
func (m *matcher) p(i int) byte {
	if i < len(m.pat) {
		return m.pat[i]
	}
	return 0
}

// s returns a byte of the subject, 0 at its end.
func (m *matcher) s(i int) byte {
	if i < len(m.src) {
		return m.src[i]
	}
	return 0
}

// match matches the pattern from p on at s and returns where the match ends, -1 if there is none.
func (m *matcher) match(s, p int) int {
	m.depth++
	if m.depth > matchDepthMax {
		m.fail("pattern too complex")
	}
	end := m.doMatch(s, p)
	m.depth--
	return end
}

func (m *matcher) doMatch(s, p int) int {
	for {
		m.vm.budget.Use(1)
		switch m.p(p) {
		case 0:
			return s
		case '(':
			if m.p(p+1) == ')' {
				return m.open(s, p+2, capturePosition)
			}
			return m.open(s, p+1, captureOpen)
		case ')':
			return m.close(s, p+1)
		case '$':
			if m.p(p+1) == 0 {
				if s == len(m.src) {
					return s
				}
				return -1
			}
		case '%':
			switch c := m.p(p + 1); {
			case c == 'b':
				if s = m.balance(s, p+2); s < 0 {
					return -1
				}
				p += 4
				continue
			case c == 'f':
				p += 2
				if m.p(p) != '[' {
					m.fail("missing '[' after '%%f' in pattern")
				}
				end := m.classEnd(p)
				before := byte(0)
				if s > 0 {
					before = m.src[s-1]
				}
				if m.inSet(before, p, end-1) || !m.inSet(m.s(s), p, end-1) {
					return -1
				}
				p = end
				continue
			case c >= '0' && c <= '9':
				if s = m.backReference(s, c); s < 0 {
					return -1
				}
				p += 2
				continue
			}
		}
		end := m.classEnd(p)
		fits := s < len(m.src) && m.single(m.src[s], p, end)
		switch m.p(end) {
		case '?':
			if fits {
				if r := m.match(s+1, end+1); r >= 0 {
					return r
				}
			}
			p = end + 1
		case '*':
			return m.longest(s, p, end)
		case '+':
			if !fits {
				return -1
			}
			return m.longest(s+1, p, end)
		case '-':
			return m.shortest(s, p, end)
		default:
			if !fits {
				return -1
			}
			s++
			p = end
		}
	}
}

// classEnd returns the position after the single-character class at p.
func (m *matcher) classEnd(p int) int {
	start, c := p, m.p(p)
	p++
	switch c {
	case '%':
		if m.p(p) == 0 {
			m.fail("malformed pattern (ends with '%%')")
		}
		return p + 1
	case '[':
		if m.p(p) == '^' {
			p++
		}
		for first := true; first || m.p(p) != ']'; first = false {
			c := m.p(p)
			if c == 0 {
				m.fail("malformed pattern (missing ']')")
			}
			p++
			if c == '%' && m.p(p) != 0 {
				p++
			}
		}
		m.vm.budget.Use((p - start) >> 4)
		return p + 1
	}
	return p
}

// single tells whether a character is in the class from p to end.
func (m *matcher) single(c byte, p, end int) bool {
	switch m.pat[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.p(p+1))
	case '[':
		return m.inSet(c, p, end-1)
	}
	return m.pat[p] == c
}

// inSet tells whether a character is in the set whose brackets are at p and end.
func (m *matcher) inSet(c byte, p, end int) bool {
	m.vm.budget.Use((end - p) >> 4)
	found := true
	if m.p(p+1) == '^' {
		found = false
		p++
	}
	for p++; p < end; p++ {
		switch {
		case m.p(p) == '%':
			p++
			if inClass(c, m.p(p)) {
				return found
			}
		case m.p(p+1) == '-' && p+2 < end:
			if m.p(p) <= c && c <= m.p(p+2) {
				return found
			}
			p += 2
		case m.p(p) == c:
			return found
		}
	}
	return !found
}

// inClass tells whether a character is in the class of a letter. A capital letter means the complement.
func inClass(c, class byte) bool {
	var in bool
	switch class | 0x20 {
	case 'a':
		in = isAlpha(c)
	case 'c':
		in = c < ' ' || c == 0x7f
	case 'd':
		in = isDigit(c)
	case 'l':
		in = c >= 'a' && c <= 'z'
	case 'p':
		in = c > ' ' && c < 0x7f && !isAlpha(c) && !isDigit(c)
	case 's':
		in = c == ' ' || c >= '\t' && c <= '\r'
	case 'u':
		in = c >= 'A' && c <= 'Z'
	case 'w':
		in = isAlpha(c) || isDigit(c)
	case 'x':
		in = isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f'
	case 'z':
		in = c == 0
	default:
		return class == c
	}
	if !isAlpha(class) {
		return class == c // not a class: the character itself
	}
	return in == (class >= 'a')
}

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// balance matches %bxy, whose characters are at p.
func (m *matcher) balance(s, p int) int {
	if m.p(p) == 0 || m.p(p+1) == 0 {
		m.fail("unbalanced pattern")
	}
	if m.s(s) != m.p(p) {
		return -1
	}
	open, close, nesting := m.p(p), m.p(p+1), 1
	start := s
	for s++; s < len(m.src); s++ {
		switch m.src[s] {
		case close:
			nesting--
			if nesting == 0 {
				m.vm.budget.Use((s - start) >> 4)
				return s + 1
			}
		case open:
			nesting++
		}
	}
	m.vm.budget.Use((s - start) >> 4)
	return -1
}

func (m *matcher) longest(s, p, end int) int {
	n := 0
	for s+n < len(m.src) && m.single(m.src[s+n], p, end) {
		n++
	}
	m.vm.budget.Use(n >> 4)
	for ; n >= 0; n-- {
		if r := m.match(s+n, end+1); r >= 0 {
			return r
		}
	}
	return -1
}

func (m *matcher) shortest(s, p, end int) int {
	for {
		if r := m.match(s, end+1); r >= 0 {
			return r
		}
		if s >= len(m.src) || !m.single(m.src[s], p, end) {
			return -1
		}
		s++
	}
}

func (m *matcher) open(s, p, kind int) int {
	if m.level >= capturesMax {
		m.fail("too many captures")
	}
	m.captures[m.level].start, m.captures[m.level].length = s, kind
	m.level++
	end := m.match(s, p)
	if end < 0 {
		m.level--
	}
	return end
}

func (m *matcher) close(s, p int) int {
	i := m.level - 1
	for i >= 0 && m.captures[i].length != captureOpen {
		i--
	}
	if i < 0 {
		m.fail("invalid pattern capture")
	}
	m.captures[i].length = s - m.captures[i].start
	end := m.match(s, p)
	if end < 0 {
		m.captures[i].length = captureOpen
	}
	return end
}

func (m *matcher) backReference(s int, digit byte) int {
	i := int(digit) - '1'
	if i < 0 || i >= m.level || m.captures[i].length == captureOpen {
		m.fail("invalid capture index")
	}
	c := m.captures[i]
	if c.length < 0 {
		return -1 // a position capture: in C its length is larger than any string
	}
	if text := m.src[c.start : c.start+c.length]; strings.HasPrefix(m.src[s:], text) {
		m.vm.budget.Bytes(c.length)
		return s + c.length
	}
	return -1
}

// capture returns a capture of a match, the whole match if there is none.
func (m *matcher) capture(i, start, end int) lua.LValue {
	if i >= m.level {
		if i != 0 {
			m.fail("invalid capture index")
		}
		return lua.LString(m.src[start:end])
	}
	switch c := m.captures[i]; c.length {
	case captureOpen:
		m.fail("unfinished capture")
		return lua.LNil
	case capturePosition:
		return luaInt(int64(c.start) + 1)
	default:
		return lua.LString(m.src[c.start : c.start+c.length])
	}
}

// pushCaptures pushes all captures; if there is none and whole is set, the whole match.
func (m *matcher) pushCaptures(start, end int, whole bool) int {
	n := m.level
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		m.L.Push(m.capture(i, start, end))
	}
	return n
}
