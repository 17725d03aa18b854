package syntax

import (
	"fmt"
	"strings"

	"github.com/limitkv/limitkv/luavm/arg"
)

// token is a byte for one-character tokens, else one of the constants below.
type token int

const (
	tkAnd token = iota + 257
	tkBreak
	tkDo
	tkElse
	tkElseif
	tkEnd
	tkFalse
	tkFor
	tkFunction
	tkIf
	tkIn
	tkLocal
	tkNil
	tkNot
	tkOr
	tkRepeat
	tkReturn
	tkThen
	tkTrue
	tkUntil
	tkWhile
	tkConcat
	tkDots
	tkEq
	tkGe
	tkLe
	tkNe
	tkNumber
	tkName
	tkString
	tkEOF
)

// tokenTexts are the tokens as errors show them, in the order of the constants.
var tokenTexts = [...]string{
	"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not", "or",
	"repeat", "return", "then", "true", "until", "while",
	"..", "...", "==", ">=", "<=", "~=", "<number>", "<name>", "<string>", "<eof>",
}

var keywords = func() map[string]token {
	m := map[string]token{}
	for t := tkAnd; t <= tkWhile; t++ {
		m[tokenTexts[t-tkAnd]] = t
	}
	return m
}()

func (t token) String() string {
	switch {
	case t >= tkAnd:
		return tokenTexts[t-tkAnd]
	case t < ' ' || t == 0x7f:
		return fmt.Sprintf("char(%d)", int(t))
	}
	return string([]byte{byte(t)})
}

// lexeme is a token with what it carries.
type lexeme struct {
	token token
	text  string  // of a name or string
	value float64 // of a number
}

// lexer cuts a source into tokens.
type lexer struct {
	src    string
	pos    int
	chunk  string // the name of the source in errors
	line   int    // of the token read last
	raw    []byte // that token as errors show it, if it is a name, number or string
	peeked bool
	next   lexeme // the token after the current one, if peeked
}

// Error is a syntax error. Its text is Lua 5.1's.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

// fail raises a syntax error, which Parse catches. near is the token that the error shows, 0 for none.
func (lx *lexer) fail(near token, format string, args ...any) {
	text := fmt.Sprintf("%s:%d: ", lx.chunk, lx.line) + fmt.Sprintf(format, args...)
	if near != 0 {
		shown := near.String()
		if near == tkName || near == tkString || near == tkNumber {
			shown = arg.CString(string(lx.raw))
		}
		text += " near '" + shown + "'"
	}
	panic(&Error{text})
}

// ahead returns the byte i places further, -1 at the end.
func (lx *lexer) ahead(i int) int {
	if lx.pos+i < len(lx.src) {
		return int(lx.src[lx.pos+i])
	}
	return -1
}

// scan reads the next token.
func (lx *lexer) scan() lexeme {
	if lx.peeked {
		lx.peeked = false
		return lx.next
	}
	for {
		lx.raw = lx.raw[:0]
		c := lx.ahead(0)
		switch {
		case c < 0:
			return lexeme{token: tkEOF}
		case c == '\n' || c == '\r':
			lx.newline()
		case isSpace(c):
			lx.pos++
		case c == '-' && lx.ahead(1) == '-':
			lx.comment()
		case c == '[':
			level, ok := lx.longBracket()
			if !ok {
				if level == 0 {
					lx.pos++
					return lexeme{token: '['}
				}
				lx.raw = append(lx.raw, lx.src[lx.pos:lx.pos+1+level]...)
				lx.fail(tkString, "invalid long string delimiter")
			}
			return lexeme{token: tkString, text: lx.longString(level, true)}
		case c == '"' || c == '\'':
			return lexeme{token: tkString, text: lx.quoted(byte(c))}
		case isDigit(c) || c == '.' && isDigit(lx.ahead(1)):
			return lx.number()
		case isLetter(c):
			start := lx.pos
			for isLetter(lx.ahead(0)) || isDigit(lx.ahead(0)) {
				lx.pos++
			}
			text := lx.src[start:lx.pos]
			if t := keywords[text]; t != 0 {
				return lexeme{token: t}
			}
			lx.raw = append(lx.raw, text...)
			return lexeme{token: tkName, text: text}
		default:
			return lexeme{token: lx.symbol(byte(c))}
		}
	}
}

// peek reads the token after the current one and keeps it.
func (lx *lexer) peek() token {
	lx.next = lx.scan()
	lx.peeked = true
	return lx.next.token
}

func (lx *lexer) symbol(c byte) token {
	two := func(second byte, t token) token {
		if lx.ahead(1) == int(second) {
			lx.pos += 2
			return t
		}
		lx.pos++
		return token(c)
	}
	switch c {
	case '=':
		return two('=', tkEq)
	case '<':
		return two('=', tkLe)
	case '>':
		return two('=', tkGe)
	case '~':
		return two('=', tkNe)
	case '.':
		if lx.ahead(1) == '.' && lx.ahead(2) == '.' {
			lx.pos += 3
			return tkDots
		}
		return two('.', tkConcat)
	}
	lx.pos++
	return token(c)
}

// newline steps over a line end of one or two bytes.
func (lx *lexer) newline() {
	first := lx.src[lx.pos]
	lx.pos++
	if c := lx.ahead(0); (c == '\n' || c == '\r') && byte(c) != first {
		lx.pos++
	}
	lx.line++
}

func (lx *lexer) comment() {
	lx.pos += 2
	if lx.ahead(0) == '[' {
		if level, ok := lx.longBracket(); ok {
			lx.longString(level, false)
			return
		}
	}
	for c := lx.ahead(0); c >= 0 && c != '\n' && c != '\r'; c = lx.ahead(0) {
		lx.pos++
	}
}

// longBracket looks at a bracket and counts the equals signs behind it. ok tells whether the same bracket follows.
func (lx *lexer) longBracket() (level int, ok bool) {
	for lx.ahead(1+level) == '=' {
		level++
	}
	return level, lx.ahead(1+level) == lx.ahead(0)
}

// longString reads a long string or comment from its opening bracket on.
func (lx *lexer) longString(level int, isString bool) string {
	lx.pos += level + 2
	if c := lx.ahead(0); c == '\n' || c == '\r' {
		lx.newline()
	}
	var text []byte
	for {
		switch c := lx.ahead(0); c {
		case -1:
			what := "comment"
			if isString {
				what = "string"
			}
			lx.fail(tkEOF, "unfinished long %s", what)
		case ']':
			if n, ok := lx.longBracket(); ok && n == level {
				lx.pos += level + 2
				if isString {
					bracket := strings.Repeat("=", level)
					lx.raw = append(lx.raw, "["+bracket+"["...)
					lx.raw = append(append(lx.raw, text...), "]"+bracket+"]"...)
				}
				return string(text)
			}
			text = append(text, ']')
			lx.pos++
		case '\n', '\r':
			text = append(text, '\n')
			lx.newline()
		default:
			text = append(text, byte(c))
			lx.pos++
		}
	}
}

// quoted reads a string in quotes.
func (lx *lexer) quoted(quote byte) string {
	lx.raw = append(lx.raw, quote)
	lx.pos++
	for {
		switch c := lx.ahead(0); c {
		case int(quote):
			lx.pos++
			lx.raw = append(lx.raw, quote)
			return string(lx.raw[1 : len(lx.raw)-1])
		case -1:
			lx.fail(tkEOF, "unfinished string")
		case '\n', '\r':
			lx.fail(tkString, "unfinished string")
		case '\\':
			lx.pos++
			lx.escape()
		default:
			lx.raw = append(lx.raw, byte(c))
			lx.pos++
		}
	}
}

func (lx *lexer) escape() {
	c := lx.ahead(0)
	switch {
	case c < 0:
		return // the caller meets the end again
	case c == '\n' || c == '\r':
		lx.raw = append(lx.raw, '\n')
		lx.newline()
	case isDigit(c):
		n := 0
		for i := 0; i < 3 && isDigit(lx.ahead(0)); i++ {
			n = n*10 + lx.ahead(0) - '0'
			lx.pos++
		}
		if n > 255 {
			lx.fail(tkString, "escape sequence too large")
		}
		lx.raw = append(lx.raw, byte(n))
	default:
		if at := strings.IndexByte("abfnrtv", byte(c)); at >= 0 {
			c = int("\a\b\f\n\r\t\v"[at])
		}
		lx.raw = append(lx.raw, byte(c))
		lx.pos++
	}
}

// number takes all that could belong to a number and then looks whether it is one.
func (lx *lexer) number() lexeme {
	start := lx.pos
	for isDigit(lx.ahead(0)) || lx.ahead(0) == '.' {
		lx.pos++
	}
	if c := lx.ahead(0); c == 'e' || c == 'E' {
		lx.pos++
		if c := lx.ahead(0); c == '+' || c == '-' {
			lx.pos++
		}
	}
	for isLetter(lx.ahead(0)) || isDigit(lx.ahead(0)) {
		lx.pos++
	}
	text := lx.src[start:lx.pos]
	lx.raw = append(lx.raw, text...)
	value, ok := arg.ParseNumber(text)
	if !ok {
		lx.fail(tkNumber, "malformed number")
	}
	return lexeme{token: tkNumber, value: value}
}

func isSpace(c int) bool { return c == ' ' || c >= '\t' && c <= '\r' }

func isDigit(c int) bool { return c >= '0' && c <= '9' }

func isLetter(c int) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
