// Package peer, internal to the server's tests, is what the conformance tests are made with: starting limitkv and
// the real Redis beside it, a client that hands replies back exactly as they came over the wire, and a notation
// for replies that people can read and that loses nothing. It shares no code with the server: a parser bug there
// must not hide itself here.
//
// This file is the reply and its notation.
package peer

import (
	"fmt"
	"strconv"
	"strings"
)

// Value is one reply. Kind is its first byte on the wire; Text is the payload of a scalar exactly as sent (numbers are
// not parsed, so ",1.0" and ",1" differ); Items are the elements of an aggregate, for a map keys and values in turn.
// Null marks the three nulls: "$-1", "*-1" and RESP3's "_".
type Value struct {
	Kind  byte
	Text  string
	Items []Value
	Null  bool
}

// IsError says whether the reply is an error, simple or bulk.
func (v Value) IsError() bool { return v.Kind == '-' || v.Kind == '!' }

// Equal says whether both replies were the same bytes on the wire.
func (v Value) Equal(w Value) bool {
	if v.Kind != w.Kind || v.Null != w.Null || v.Text != w.Text || len(v.Items) != len(w.Items) {
		return false
	}
	for i := range v.Items {
		if !v.Items[i].Equal(w.Items[i]) {
			return false
		}
	}
	return true
}

// lineMax is the width up to which an aggregate is written on one line.
const lineMax = 110

// String is the reply in the notation of the recorded files:
//
//	+OK  -ERR text  :12  "bulk"  $-1  *-1  _  ,1.5  #t  (123  ="txt:verbatim"  !"ERR bulk error"
//	["array", :1]  %{"key" => "value"}  ~["set"]  >["push"]
//
// A status or error inside an aggregate is quoted: [+"OK", -"ERR text"]. Long aggregates take several lines.
func (v Value) String() string {
	if !v.Null && (v.Kind == '+' || v.Kind == '-') {
		text := escape(v.Text)
		if bare := strings.TrimSuffix(text, " "); bare != text {
			text = bare + `\x20` // An editor would take a space at the end away.
		}
		return string(v.Kind) + text
	}
	var b strings.Builder
	v.write(&b, "")
	return b.String()
}

// open and close are the brackets of each aggregate.
var brackets = map[byte][2]string{'*': {"[", "]"}, '%': {"%{", "}"}, '~': {"~[", "]"}, '>': {">[", "]"}, '|': {"|{", "}"}}

func (v Value) write(b *strings.Builder, indent string) {
	br, aggregate := brackets[v.Kind]
	switch {
	case v.Null && v.Kind == '_':
		b.WriteByte('_')
	case v.Null:
		b.WriteByte(v.Kind)
		b.WriteString("-1")
	case v.Kind == '$':
		b.WriteString(`"` + escape(v.Text) + `"`)
	case aggregate:
		flat := v.flat()
		if len(flat) <= lineMax {
			b.WriteString(flat)
			return
		}
		b.WriteString(br[0])
		width, fill := 0, !v.keyed() && v.scalars()
		for i := 0; i < len(v.Items); i++ {
			// Scalars fill the lines; anything longer has one of its own.
			if item := v.Items[i].flat(); fill && width > 0 && len(item)+width < lineMax {
				b.WriteString(", " + item)
				width += len(item) + 2
				continue
			} else {
				width = len(item)
			}
			b.WriteString("\n" + indent + "  ")
			v.Items[i].write(b, indent+"  ")
			if v.keyed() && i+1 < len(v.Items) {
				b.WriteString(" => ")
				i++
				v.Items[i].write(b, indent+"  ")
			}
		}
		b.WriteString("\n" + indent + br[1])
	default:
		b.WriteString(v.scalar())
	}
}

// scalars says whether no element is an aggregate itself.
func (v Value) scalars() bool {
	for _, item := range v.Items {
		if _, aggregate := brackets[item.Kind]; aggregate {
			return false
		}
	}
	return true
}

func (v Value) keyed() bool { return v.Kind == '%' || v.Kind == '|' }

// scalar writes the kinds whose payload never holds spaces bare, and the others quoted.
func (v Value) scalar() string {
	switch v.Kind {
	case ':', ',', '#', '(':
		return string(v.Kind) + v.Text
	}
	return string(v.Kind) + `"` + escape(v.Text) + `"`
}

// flat is an aggregate on one line.
func (v Value) flat() string {
	br, aggregate := brackets[v.Kind]
	if v.Null || !aggregate {
		var b strings.Builder
		v.write(&b, "")
		return b.String()
	}
	parts := make([]string, 0, len(v.Items))
	for i := 0; i < len(v.Items); i++ {
		s := v.Items[i].flat()
		if v.keyed() && i+1 < len(v.Items) {
			i++
			s += " => " + v.Items[i].flat()
		}
		parts = append(parts, s)
	}
	return br[0] + strings.Join(parts, ", ") + br[1]
}

// escape makes any bytes printable: \r \n \t \" \\ and \xHH; valid UTF-8 is not kept, so that bytes stay bytes.
func escape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Quote writes an argument as redis-cli reads it: bare where that is unambiguous, else in double quotes.
func Quote(s string) string {
	e := escape(s)
	if s == "" || e != s || strings.ContainsAny(s, " '#@%{<*") {
		return `"` + e + `"`
	}
	return s
}

// ParseValue reads the notation back.
func ParseValue(s string) (Value, error) {
	if (strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-")) && !strings.HasPrefix(s[1:], `"`) {
		text, err := Unescape(s[1:])
		return Value{Kind: s[0], Text: text}, err
	}
	p := notation{s: s}
	v, err := p.value()
	if err == nil {
		p.space()
		if p.i < len(p.s) {
			err = fmt.Errorf("trailing %q", p.s[p.i:])
		}
	}
	return v, err
}

// notation is a cursor over the text of a reply.
type notation struct {
	s string
	i int
}

func (p *notation) space() {
	for p.i < len(p.s) && strings.IndexByte(" \n\t,", p.s[p.i]) >= 0 {
		// A comma separates elements, but one before a number, inf or nan begins a double.
		if p.s[p.i] == ',' && p.i+1 < len(p.s) && strings.IndexByte(" \n", p.s[p.i+1]) < 0 {
			return
		}
		p.i++
	}
}

// bare reads up to the end of an unquoted scalar.
func (p *notation) bare() string {
	start := p.i
	for p.i < len(p.s) && strings.IndexByte(" \n,]}", p.s[p.i]) < 0 {
		p.i++
	}
	return p.s[start:p.i]
}

func (p *notation) value() (Value, error) {
	p.space()
	rest := p.s[p.i:]
	if rest == "" {
		return Value{}, fmt.Errorf("reply ends early")
	}
	for kind, br := range brackets {
		if strings.HasPrefix(rest, br[0]) && (kind != '*' || rest[0] == '[') {
			p.i += len(br[0])
			return p.aggregate(kind, br[1])
		}
	}
	kind := rest[0]
	switch {
	case kind == '_':
		p.i++
		return Value{Kind: '_', Null: true}, nil
	case strings.HasPrefix(rest, "$-1"), strings.HasPrefix(rest, "*-1"):
		p.i += 3
		return Value{Kind: kind, Null: true}, nil
	case kind == '"':
		text, err := p.quoted()
		return Value{Kind: '$', Text: text}, err
	case strings.IndexByte(":,#(", kind) >= 0:
		p.i++
		return Value{Kind: kind, Text: p.bare()}, nil
	case strings.IndexByte("+-=!", kind) >= 0:
		p.i++
		text, err := p.quoted()
		return Value{Kind: kind, Text: text}, err
	}
	return Value{}, fmt.Errorf("no reply begins with %q", rest)
}

func (p *notation) aggregate(kind byte, end string) (Value, error) {
	v := Value{Kind: kind, Items: []Value{}}
	for {
		p.space()
		if strings.HasPrefix(p.s[p.i:], end) {
			p.i += len(end)
			return v, nil
		}
		if strings.HasPrefix(p.s[p.i:], "=>") {
			p.i += 2
			continue
		}
		item, err := p.value()
		if err != nil {
			return v, err
		}
		v.Items = append(v.Items, item)
	}
}

func (p *notation) quoted() (string, error) {
	if p.i >= len(p.s) || p.s[p.i] != '"' {
		return "", fmt.Errorf("a quote is missing at %q", p.s[p.i:])
	}
	for j := p.i + 1; j < len(p.s); j++ {
		if p.s[j] == '\\' {
			j++
		} else if p.s[j] == '"' {
			text, err := Unescape(p.s[p.i+1 : j])
			p.i = j + 1
			return text, err
		}
	}
	return "", fmt.Errorf("unbalanced quotes at %q", p.s[p.i:])
}

// Unescape is the inverse of what String does to bytes, and also knows \a and \b: the escapes of redis-cli.
func Unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'a':
			b.WriteByte('\a')
		case 'b':
			b.WriteByte('\b')
		case 'x':
			if i+2 >= len(s) {
				return "", fmt.Errorf(`\x needs two digits in %q`, s)
			}
			n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
			if err != nil {
				return "", fmt.Errorf(`\x needs two digits in %q`, s)
			}
			b.WriteByte(byte(n))
			i += 2
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}
