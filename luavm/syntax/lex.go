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

// keyword returns the token of a reserved word, 0 for any other name.
func keyword(name string) token {
	if len(name) < 2 || len(name) > 8 {
		return 0
	}
	switch name {
	case "and":
		return tkAnd
	case "break":
		return tkBreak
	case "do":
		return tkDo
	case "else":
		return tkElse
	case "elseif":
		return tkElseif
	case "end":
		return tkEnd
	case "false":
		return tkFalse
	case "for":
		return tkFor
	case "function":
		return tkFunction
	case "if":
		return tkIf
	case "in":
		return tkIn
	case "local":
		return tkLocal
	case "nil":
		return tkNil
	case "not":
		return tkNot
	case "or":
		return tkOr
	case "repeat":
		return tkRepeat
	case "return":
		return tkReturn
	case "then":
		return tkThen
	case "true":
		return tkTrue
	case "until":
		return tkUntil
	case "while":
		return tkWhile
	}
	return 0
}

func (t token) String() string {
	switch {
	case t >= tkAnd:
		return tokenTexts[t-tkAnd]
	case t < ' ' || t == 0x7f:
		return fmt.Sprintf("char(%d)", int(t))
	}
	return string([]byte{byte(t)})
}

// lexeme is a token with its text or value.
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
	peeked bool
	next   lexeme // the token after the current one, if peeked

	// The token read last as errors show it, if it is a name, number or string: its opening delimiter, also its closing one,
	// and its text.
	open, text string
}

// Error is a syntax error. Its text is Lua 5.1's.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

// fail raises a syntax error, which Parse and Compile catch. near is the token that the error shows, 0 for none.
func (lx *lexer) fail(near token, format string, args ...any) {
	text := fmt.Sprintf("%s:%d: ", lx.chunk, lx.line) + fmt.Sprintf(format, args...)
	if near != 0 {
		shown := near.String()
		if near == tkName || near == tkString || near == tkNumber {
			shown = arg.CString(lx.open + lx.text + strings.ReplaceAll(lx.open, "[", "]"))
		}
		text += " near '" + shown + "'"
	}
	panic(&Error{text})
}

// failIn raises an error in the middle of a token. read is the part of the token read so far.
func (lx *lexer) failIn(read, format string, args ...any) {
	lx.open, lx.text = "", read
	lx.fail(tkString, format, args...)
}

// ahead returns the byte i places further, -1 at the end.
func (lx *lexer) ahead(i int) int {
	if lx.pos+i < len(lx.src) {
		return int(lx.src[lx.pos+i])
	}
	return -1
}

// scan reads the next token into l.
func (lx *lexer) scan(l *lexeme) {
	if lx.peeked {
		lx.peeked = false
		*l = lx.next
		return
	}
	lx.open, lx.text = "", ""
	for lx.pos < len(lx.src) {
		c := lx.src[lx.pos]
		switch classes[c] {
		case classLetter:
			start := lx.pos
			end := start + 1
			for end < len(lx.src) && classes[lx.src[end]] >= classDigit {
				end++
			}
			lx.pos = end
			text := lx.src[start:end]
			if t := keyword(text); t != 0 {
				l.token = t
				return
			}
			lx.text = text
			l.token, l.text = tkName, text
			return
		case classSpace:
			lx.pos++
		case classLineEnd:
			lx.newline()
		case classDigit:
			lx.number(l)
			return
		case classQuote:
			l.token, l.text = tkString, lx.quoted(c)
			return
		default:
			switch {
			case c == '-' && lx.ahead(1) == '-':
				lx.comment()
				continue
			case c == '.' && isDigit(lx.ahead(1)):
				lx.number(l)
				return
			case c == '[':
				level, ok := lx.longBracket()
				if ok {
					l.token, l.text = tkString, lx.longString(level, true)
					return
				}
				if level > 0 {
					lx.failIn(lx.src[lx.pos:lx.pos+1+level], "invalid long string delimiter")
				}
			}
			l.token = lx.symbol(c)
			return
		}
	}
	l.token = tkEOF
}

// Classes of bytes. A name continues with bytes of class classDigit or a later one.
const (
	classSymbol = iota
	classSpace
	classLineEnd
	classQuote
	classDigit
	classLetter
)

var classes = func() (of [256]uint8) {
	for c := range of {
		switch {
		case c == '\n' || c == '\r':
			of[c] = classLineEnd
		case c == ' ' || c >= '\t' && c <= '\r':
			of[c] = classSpace
		case c == '"' || c == '\'':
			of[c] = classQuote
		case isDigit(c):
			of[c] = classDigit
		case isLetter(c):
			of[c] = classLetter
		}
	}
	return of
}()

// peek reads the token after the current one and keeps it.
func (lx *lexer) peek() token {
	lx.scan(&lx.next)
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

// newline skips a line end of one or two bytes.
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
	open := lx.src[lx.pos : lx.pos+level+2]
	lx.pos += level + 2
	if c := lx.ahead(0); c == '\n' || c == '\r' {
		lx.newline()
	}
	var text []byte
	start := lx.pos // of the bytes that are not in text yet
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
				s := lx.src[start:lx.pos]
				if text != nil {
					s = string(append(text, s...))
				}
				lx.pos += level + 2
				if isString {
					lx.open, lx.text = open, s
				}
				return s
			}
			lx.pos++
		case '\r':
			if isString {
				text = append(append(text, lx.src[start:lx.pos]...), '\n')
			}
			lx.newline()
			start = lx.pos
		case '\n':
			from := lx.pos
			lx.newline()
			if lx.pos > from+1 { // with the return behind it
				if isString {
					text = append(append(text, lx.src[start:from]...), '\n')
				}
				start = lx.pos
			}
		default:
			lx.pos++
		}
	}
}

// quoted reads a string in quotes.
func (lx *lexer) quoted(quote byte) string {
	begin := lx.pos
	lx.pos++
	var text []byte
	start := lx.pos // of the bytes that are not in text yet
	for {
		if lx.pos == len(lx.src) {
			lx.fail(tkEOF, "unfinished string")
		}
		switch c := lx.src[lx.pos]; c {
		case quote:
			s := lx.src[start:lx.pos]
			if text != nil {
				s = string(append(text, s...))
			}
			lx.pos++
			lx.open, lx.text = lx.src[begin:begin+1], s
			return s
		case '\n', '\r':
			lx.failIn(string(quote)+string(text)+lx.src[start:lx.pos], "unfinished string")
		case '\\':
			text = append(text, lx.src[start:lx.pos]...)
			lx.pos++
			text = lx.escape(quote, text)
			start = lx.pos
		default:
			lx.pos++
		}
	}
}

// escape reads the escape behind a backslash and appends its meaning to the text read so far.
func (lx *lexer) escape(quote byte, text []byte) []byte {
	c := lx.ahead(0)
	switch {
	case c < 0:
		return text // the caller meets the end again
	case c == '\n' || c == '\r':
		lx.newline()
		return append(text, '\n')
	case isDigit(c):
		n := 0
		for i := 0; i < 3 && isDigit(lx.ahead(0)); i++ {
			n = n*10 + lx.ahead(0) - '0'
			lx.pos++
		}
		if n > 255 {
			lx.failIn(string(quote)+string(text), "escape sequence too large")
		}
		return append(text, byte(n))
	}
	if at := strings.IndexByte("abfnrtv", byte(c)); at >= 0 {
		c = int("\a\b\f\n\r\t\v"[at])
	}
	lx.pos++
	return append(text, byte(c))
}

// number reads all bytes that could belong to a number, and then checks whether they form one.
func (lx *lexer) number(l *lexeme) {
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
	lx.text = lx.src[start:lx.pos]
	l.token = tkNumber
	if len(lx.text) == 1 {
		l.value = float64(lx.text[0] - '0')
		return
	}
	value, ok := arg.ParseNumber(lx.text)
	if !ok {
		lx.fail(tkNumber, "malformed number")
	}
	l.value = value
}

func isDigit(c int) bool { return c >= '0' && c <= '9' }

func isLetter(c int) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
