// Package notation, internal to the server, parses the notation for the arguments of a command in its row: one line, much like a
// usage line written by hand. It is parsed when it is needed, for COMMAND DOCS and HELP. The notation:
//
//	name:type        an argument; types are string integer double key pattern unix-time
//	key, pattern     short for key:key and pattern:pattern
//	name:key@1       a key of the second key spec (default: the first)
//	name~text:type   an argument with another name in usage lines
//	TOKEN name:type  an argument that follows a token
//	TOKEN            a token alone, whose name is the token
//	name=TOKEN       the same with another name
//	name=(a | b)     one of several
//	name={a b}       several together
//	[x]              optional
//	x...   x...+     several times; the latter with the token repeated
//
// Rejected: a table of structs. It takes ten times as many lines, and is harder to read than Redis's own usage lines.
package notation

import (
	"fmt"
	"strconv"
	"strings"
)

// Arg describes an argument.
type Arg struct {
	Name, Type, Token string
	Shown             string // the name in usage lines: Name, unless the row has another one
	// KeySpec is the index of a key's key spec, -1 if the argument is no key.
	KeySpec                           int
	Optional, Multiple, MultipleToken bool
	// Args are the alternatives of a oneof or the parts of a block.
	Args []*Arg
}

// Flags lists the flags as COMMAND DOCS shows them.
func (a *Arg) Flags() (names []string) {
	if a.Optional {
		names = append(names, "optional")
	}
	if a.Multiple {
		names = append(names, "multiple")
	}
	if a.MultipleToken {
		names = append(names, "multiple_token")
	}
	return names
}

var argTypes = map[string]bool{"string": true, "integer": true, "double": true, "key": true, "pattern": true, "unix-time": true}

// Parse parses the notation.
func Parse(s string) ([]*Arg, error) {
	p := syntaxParser{words: syntaxWords(s)}
	args, err := p.list("")
	if err == nil {
		normalize(args)
	}
	if err == nil && len(p.words) > 0 {
		err = fmt.Errorf("unexpected %q", p.words[0])
	}
	if err != nil {
		return nil, fmt.Errorf("syntax %q: %v", s, err)
	}
	return args, nil
}

// normalize makes names lower case and tokens upper case, as Redis shows them.
func normalize(args []*Arg) {
	for _, a := range args {
		a.Name, a.Token = strings.ToLower(a.Name), strings.ToUpper(a.Token)
		if a.Shown == "" {
			a.Shown = a.Name
		}
		normalize(a.Args)
	}
}

// syntaxWords splits the notation into words and brackets. An opening bracket includes the name before it: "name=(".
func syntaxWords(s string) (words []string) {
	for len(s) > 0 {
		if s[0] == ' ' {
			s = s[1:]
			continue
		}
		n := strings.IndexAny(s, " ()[]{}|")
		switch {
		case n < 0:
			n = len(s)
		case n == 0:
			n = 1
			for n < len(s) && strings.ContainsRune("])}", rune(s[0])) && (s[n] == '.' || s[n] == '+') {
				n++
			}
		case s[n-1] == '=' && (s[n] == '(' || s[n] == '{'):
			n++
		}
		words = append(words, s[:n])
		s = s[n:]
	}
	return words
}

type syntaxParser struct{ words []string }

func (p *syntaxParser) peek() string {
	if len(p.words) == 0 {
		return ""
	}
	return p.words[0]
}

func (p *syntaxParser) next() string {
	w := p.peek()
	if w != "" {
		p.words = p.words[1:]
	}
	return w
}

// list parses arguments up to a closing bracket. Alternatives are separated by bars.
func (p *syntaxParser) list(closing string) (args []*Arg, err error) {
	for {
		w := p.peek()
		if w == "" || closing != "" && strings.HasPrefix(w, closing) {
			return args, nil
		}
		if w == "|" {
			if closing != ")" {
				return nil, fmt.Errorf("a bar outside of (…)")
			}
			p.next()
			continue
		}
		a, err := p.arg()
		if err != nil {
			return nil, err
		}
		args = append(args, a)
	}
}

func (p *syntaxParser) arg() (*Arg, error) {
	w := p.next()
	if w == "[" {
		a, err := p.arg()
		if err != nil {
			return nil, err
		}
		end := p.next()
		if !strings.HasPrefix(end, "]") {
			return nil, fmt.Errorf("%q instead of ]", end)
		}
		a.Optional = true
		repeat(a, end)
		return a, nil
	}
	if name, bracket, ok := strings.Cut(w, "="); ok && (bracket == "(" || bracket == "{") {
		return p.group(name, bracket)
	}
	if w == "" || strings.ContainsAny(w[:1], "])}|({") {
		return nil, fmt.Errorf("unexpected %q", w)
	}
	if isArgWord(w) {
		return plainArg(w)
	}
	if next := p.peek(); isArgWord(next) || strings.HasSuffix(next, "=(") || strings.HasSuffix(next, "={") {
		a, err := p.arg()
		if err == nil {
			a.Token = w
		}
		return a, err
	}
	base := strings.TrimSuffix(strings.TrimSuffix(w, "+"), "...")
	a := &Arg{Name: base, Type: "pure-token", Token: base, KeySpec: -1}
	if name, token, ok := strings.Cut(base, "="); ok {
		a.Name, a.Token = name, token
	}
	if strings.HasSuffix(w, "...") {
		repeat(a, w)
	}
	return a, nil
}

// group parses the rest of name=(…) or name={…}.
func (p *syntaxParser) group(name, bracket string) (*Arg, error) {
	a := &Arg{Name: name, Type: "oneof", KeySpec: -1}
	closing := ")"
	if bracket == "{" {
		a.Type, closing = "block", "}"
	}
	args, err := p.list(closing)
	if err != nil {
		return nil, err
	}
	end := p.next()
	if end == "" || len(args) == 0 {
		return nil, fmt.Errorf("%s%s is not closed or empty", name, bracket)
	}
	a.Args = args
	repeat(a, end)
	return a, nil
}

// repeat sets the flags for dots at the end of a word.
func repeat(a *Arg, w string) {
	if strings.HasSuffix(w, "...+") {
		a.Multiple, a.MultipleToken = true, true
	} else if strings.HasSuffix(w, "...") {
		a.Multiple = true
	}
}

// isArgWord tells whether a word is an argument with a type, not a token.
func isArgWord(w string) bool {
	w = strings.TrimSuffix(strings.TrimSuffix(w, "+"), "...")
	name, _, _ := strings.Cut(w, "@")
	if name == "key" || name == "pattern" {
		return true
	}
	_, kind, ok := cutType(name)
	return ok && argTypes[kind]
}

// cutType splits name:type at the last colon, since a shown name may contain a colon.
func cutType(w string) (name, kind string, ok bool) {
	if i := strings.LastIndexByte(w, ':'); i >= 0 {
		return w[:i], w[i+1:], true
	}
	return w, "", false
}

func plainArg(w string) (*Arg, error) {
	a := &Arg{KeySpec: -1}
	repeat(a, w)
	w = strings.TrimSuffix(strings.TrimSuffix(w, "+"), "...")
	w, spec, hasSpec := strings.Cut(w, "@")
	name, kind, ok := cutType(w)
	if !ok {
		kind = name
	}
	name, a.Shown, _ = strings.Cut(name, "~")
	a.Name, a.Type = name, kind
	if kind == "key" {
		a.KeySpec = 0
	}
	if hasSpec {
		n, err := strconv.Atoi(spec)
		if err != nil {
			return nil, err
		}
		a.KeySpec = n
	}
	return a, nil
}

// Line formats arguments as a usage line, with a separator between them.
func Line(args []*Arg, sep string) string {
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteString(sep)
		}
		b.WriteString(a.Line())
	}
	return b.String()
}

func (a *Arg) Line() string {
	var body string
	switch a.Type {
	case "oneof":
		body = Line(a.Args, "|")
		if !a.Optional || a.Token != "" {
			body = "<" + body + ">"
		}
	case "block":
		body = Line(a.Args, " ")
	case "pure-token":
	default:
		body = a.Shown
	}
	once := body
	if a.Token != "" {
		once = strings.TrimSpace(a.Token + " " + body)
	}
	text := once
	switch {
	case a.MultipleToken:
		text += " [" + once + " ...]"
	case a.Multiple:
		text += " [" + body + " ...]"
	}
	if a.Optional {
		text = "[" + text + "]"
	}
	return text
}
