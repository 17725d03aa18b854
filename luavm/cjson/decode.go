package cjson

import (
	"strings"

	"github.com/limitkv/limitkv/luavm/arg"
	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/tables"
)

// token is a kind of token, or an error.
type token uint8

const (
	tokenObjectBegin token = iota
	tokenObjectEnd
	tokenArrayBegin
	tokenArrayEnd
	tokenString
	tokenNumber
	tokenBoolean
	tokenNull
	tokenColon
	tokenComma
	tokenEnd
	tokenError
)

// tokenNames are the names of the tokens in errors.
var tokenNames = [...]string{
	"T_OBJ_BEGIN", "T_OBJ_END", "T_ARR_BEGIN", "T_ARR_END", "T_STRING", "T_NUMBER", "T_BOOLEAN", "T_NULL", "T_COLON",
	"T_COMMA", "T_END", "T_ERROR",
}

// decoder reads one value. As in the original, a NUL byte ends the text.
type decoder struct {
	*config
	L    *lua.LState
	data string
	pos  int
	// The last token: where it begins, or where its error is, and its value.
	index   int
	value   lua.LValue
	problem string // of tokenError
	depth   int
	scratch []byte
}

func (c *config) decode(L *lua.LState) int {
	exactlyOne(L)
	d := decoder{config: c, L: L, data: arg.String(L, 1)}
	if len(d.data) >= 2 && (d.data[0] == 0 || d.data[1] == 0) {
		arg.Raise(L, "JSON parser does not support UTF-16 or UTF-32")
	}
	v := d.read(d.next(), 1)
	if t := d.next(); t != tokenEnd {
		d.unexpected("the end", t)
	}
	L.Push(v)
	return 1
}

// at is the byte at i, NUL behind the end.
func (d *decoder) at(i int) byte {
	if i < len(d.data) {
		return d.data[i]
	}
	return 0
}

func (d *decoder) fail(problem string) token {
	d.index, d.problem = d.pos, problem
	return tokenError
}

// unexpected raises the error about a token that is not what was expected.
func (d *decoder) unexpected(expected string, t token) {
	found := tokenNames[t]
	if t == tokenError {
		found = d.problem
	}
	arg.Raise(d.L, "Expected %s but found %s at character %d", expected, found, d.index+1)
}

// next reads a token.
func (d *decoder) next() token {
	from := d.pos
	c := d.at(d.pos)
	for c == ' ' || c == '\t' || c == '\n' || c == '\r' {
		d.pos++
		c = d.at(d.pos)
	}
	d.index = d.pos
	d.budget.Use(1 + (d.pos-from)>>6)
	switch c {
	case '{':
		d.pos++
		return tokenObjectBegin
	case '}':
		d.pos++
		return tokenObjectEnd
	case '[':
		d.pos++
		return tokenArrayBegin
	case ']':
		d.pos++
		return tokenArrayEnd
	case ',':
		d.pos++
		return tokenComma
	case ':':
		d.pos++
		return tokenColon
	case 0:
		return tokenEnd
	case '"':
		return d.string()
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		if !d.decodeInvalidNumbers && d.invalidNumber() {
			return d.fail("invalid number")
		}
		return d.number()
	case 't', 'f', 'n', 'i', 'I', 'N', '+':
		rest := d.data[d.pos:]
		switch {
		case strings.HasPrefix(rest, "true"):
			d.pos += 4
			d.value = lua.LTrue
			return tokenBoolean
		case strings.HasPrefix(rest, "false"):
			d.pos += 5
			d.value = lua.LFalse
			return tokenBoolean
		case strings.HasPrefix(rest, "null"):
			d.pos += 4
			d.value = Null
			return tokenNull
		case d.decodeInvalidNumbers && d.invalidNumber():
			return d.number()
		}
	}
	return d.fail("invalid token")
}

// invalidNumber reports whether the text here begins with a number that strtod accepts and JSON does not: with a plus, in
// hexadecimal, with a leading zero, an infinity or a NaN.
func (d *decoder) invalidNumber() bool {
	i := d.pos
	if d.at(i) == '+' {
		return true
	}
	if d.at(i) == '-' {
		i++
	}
	switch c := d.at(i); {
	case c == '0':
		next := d.at(i + 1)
		return next|0x20 == 'x' || next >= '0' && next <= '9'
	case c <= '9' || c >= 0x80: // char is signed
		return false
	}
	word := d.data[i:min(i+3, len(d.data))]
	return strings.EqualFold(word, "inf") || strings.EqualFold(word, "nan")
}

func (d *decoder) number() token {
	f, n := arg.Strtod(d.data[d.pos:])
	if n == 0 {
		return d.fail("invalid number")
	}
	d.pos += n
	d.value = lua.LNumber(f)
	return tokenNumber
}

// string reads a string. Most have no escapes and share the text's memory.
func (d *decoder) string() token {
	d.pos++
	start := d.pos
	for {
		switch c := d.at(d.pos); c {
		case '"':
			d.budget.Use((d.pos - start) >> 6)
			d.value = lua.LString(d.data[start:d.pos])
			d.pos++
			return tokenString
		case 0:
			return d.fail("unexpected end of string")
		case '\\':
			return d.escapedString(start)
		}
		d.pos++
	}
}

// unescapes maps the byte behind a backslash to its meaning.
var unescapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 't': '\t', 'n': '\n', 'f': '\f', 'r': '\r', 'u': 'u'}

// escapedString reads a string from its first backslash on.
func (d *decoder) escapedString(start int) token {
	out := append(d.scratch[:0], d.data[start:d.pos]...)
	for {
		c := d.at(d.pos)
		switch c {
		case '"':
			d.budget.Use(len(out) >> 6)
			d.scratch = out
			d.value = lua.LString(out)
			d.pos++
			return tokenString
		case 0:
			return d.fail("unexpected end of string")
		case '\\':
			c = unescapes[d.at(d.pos+1)]
			if c == 0 {
				return d.fail("invalid escape code")
			}
			if c == 'u' {
				code, length := d.unicode()
				if length == 0 {
					return d.fail("invalid unicode escape code")
				}
				out = appendUTF8(out, code)
				d.pos += length
				continue
			}
			d.pos++
		}
		out = append(out, c)
		d.pos++
	}
}

// unicode reads the escape \uXXXX, or two that are a surrogate pair. It returns their length, 0 if they are malformed.
func (d *decoder) unicode() (code, length int) {
	code = d.hex4(d.pos + 2)
	if code < 0 {
		return 0, 0
	}
	if code&0xf800 != 0xd800 {
		return code, 6
	}
	if code&0x400 != 0 || d.at(d.pos+6) != '\\' || d.at(d.pos+7) != 'u' {
		return 0, 0
	}
	low := d.hex4(d.pos + 8)
	if low < 0 || low&0xfc00 != 0xdc00 {
		return 0, 0
	}
	return code&0x3ff<<10 | low&0x3ff + 0x10000, 12
}

// hex4 reads four hexadecimal digits; -1 if these are not such digits.
func (d *decoder) hex4(i int) int {
	v := 0
	for j := i; j < i+4; j++ {
		switch c := d.at(j); {
		case c >= '0' && c <= '9':
			v = v<<4 | int(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			v = v<<4 | int(c|0x20-'a'+10)
		default:
			return -1
		}
	}
	return v
}

// appendUTF8 encodes a code point, also an invalid one, which utf8.AppendRune would replace.
func appendUTF8(out []byte, c int) []byte {
	switch {
	case c <= 0x7f:
		return append(out, byte(c))
	case c <= 0x7ff:
		return append(out, byte(c>>6|0xc0), byte(c&0x3f|0x80))
	case c <= 0xffff:
		return append(out, byte(c>>12|0xe0), byte(c>>6&0x3f|0x80), byte(c&0x3f|0x80))
	}
	return append(out, byte(c>>18|0xf0), byte(c>>12&0x3f|0x80), byte(c>>6&0x3f|0x80), byte(c&0x3f|0x80))
}

// read returns the value that begins with token t. slots is how many stack slots the original uses at this point.
func (d *decoder) read(t token, slots int) lua.LValue {
	switch t {
	case tokenString, tokenNumber, tokenBoolean, tokenNull:
		return d.value
	case tokenObjectBegin:
		return d.object(slots)
	case tokenArrayBegin:
		return d.array(slots)
	}
	d.unexpected("value", t)
	return nil
}

func (d *decoder) descend(slots, more int) {
	d.depth++
	if d.depth > d.decodeDepthMax || slots+more > stackMax {
		arg.Raise(d.L, "Found too many nested data structures (%d) at character %d", d.depth, d.pos)
	}
}

func (d *decoder) object(slots int) lua.LValue {
	d.descend(slots, 3)
	tok := d.next()
	t := tables.New(0, 0)
	if tok == tokenObjectEnd {
		d.depth--
		return t
	}
	for {
		if tok != tokenString {
			d.unexpected("object key string", tok)
		}
		key := d.value
		if tok = d.next(); tok != tokenColon {
			d.unexpected("colon", tok)
		}
		tables.Set(t, key, d.read(d.next(), slots+2))
		switch tok = d.next(); tok {
		case tokenObjectEnd:
			d.depth--
			return t
		case tokenComma:
			tok = d.next()
		default:
			d.unexpected("comma or object end", tok)
		}
	}
}

func (d *decoder) array(slots int) lua.LValue {
	d.descend(slots, 2)
	tok := d.next()
	t := tables.New(0, 0)
	if tok == tokenArrayEnd {
		d.depth--
		return t
	}
	for i := 1; ; i++ {
		tables.SetInt(t, i, d.read(tok, slots+1))
		switch tok = d.next(); tok {
		case tokenArrayEnd:
			d.depth--
			return t
		case tokenComma:
			tok = d.next()
		default:
			d.unexpected("comma or array end", tok)
		}
	}
}
