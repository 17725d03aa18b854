// Package sequence, internal to the server's tests, sends random commands to two servers and compares what comes
// back: reply by reply, and at the end of each round the whole keyspace. The commands come from templates that read
// like Redis's own syntax lines (see families.go); which values stand for <key> or <int> is in words.go, when two
// replies count as equal in compare.go.
//
// This file turns a template into commands:
//
//	SET <str> <value> [NX|XX] [GET] (EX <seconds>|KEEPTTL)
//	HSET <hash> {<field> <value>}
//
// <word> is a random value of that kind, [a|b] nothing or one of them, (a|b) one of them, {a} one to four times.
package sequence

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// node is a part of a template that writes arguments.
type node interface {
	expand(g *generator, args []string) []string
}

type (
	literal string
	word    string
	all     []node
	choice  struct {
		of       []node
		optional bool
	}
	repeated struct{ node }
)

// repeatMax is how often a part in braces occurs at most.
const repeatMax = 4

func (l literal) expand(_ *generator, args []string) []string { return append(args, string(l)) }

func (w word) expand(g *generator, args []string) []string { return append(args, words[string(w)](g)) }

func (a all) expand(g *generator, args []string) []string {
	for _, n := range a {
		args = n.expand(g, args)
	}
	return args
}

func (c choice) expand(g *generator, args []string) []string {
	if c.optional && g.IntN(2) == 0 {
		return args
	}
	return c.of[g.IntN(len(c.of))].expand(g, args)
}

func (r repeated) expand(g *generator, args []string) []string {
	for range 1 + g.IntN(repeatMax) {
		args = r.node.expand(g, args)
	}
	return args
}

// parser reads one template.
type parser struct {
	s string
	i int
}

// parse reads a template. A template is the project's own text, so an error in it is a panic.
func parse(template string) node {
	p := &parser{s: template}
	n := p.alternatives("")
	if p.i < len(p.s) {
		panic(fmt.Sprintf("template %q: unexpected %q", template, p.s[p.i:]))
	}
	if len(n) != 1 {
		panic(fmt.Sprintf("template %q: alternatives must stand in brackets", template))
	}
	return n[0]
}

// alternatives reads sequences parted by "|" up to the closing bracket.
func (p *parser) alternatives(end string) []node {
	var out []node
	var current all
	for p.i < len(p.s) {
		c := p.s[p.i]
		switch {
		case c == ' ':
			p.i++
		case end != "" && c == end[0]:
			p.i++
			return append(out, current)
		case c == '|':
			p.i++
			out = append(out, current)
			current = nil
		case c == '[':
			p.i++
			current = append(current, choice{of: p.alternatives("]"), optional: true})
		case c == '(':
			p.i++
			current = append(current, choice{of: p.alternatives(")")})
		case c == '{':
			p.i++
			current = append(current, repeated{choice{of: p.alternatives("}")}})
		default:
			current = append(current, p.atom())
		}
	}
	if end != "" {
		panic(fmt.Sprintf("template %q: %s is missing", p.s, end))
	}
	return append(out, current)
}

// atom reads a <word> or a literal argument.
func (p *parser) atom() node {
	rest := p.s[p.i:]
	if rest[0] == '<' {
		name, _, ok := strings.Cut(rest[1:], ">")
		if !ok || words[name] == nil {
			panic(fmt.Sprintf("template %q: no word <%s>", p.s, name))
		}
		p.i += len(name) + 2
		return word(name)
	}
	n := strings.IndexAny(rest, " []()|{}<>")
	if n < 0 {
		n = len(rest)
	}
	if n == 0 {
		panic(fmt.Sprintf("template %q: unexpected %q", p.s, rest))
	}
	p.i += n
	return literal(rest[:n])
}

// generator makes the commands of one round. It is a source of randomness and remembers nothing, so a round is its
// seed.
type generator struct {
	*rand.Rand
}

// Family is a set of commands that are tried together.
type Family struct {
	Name      string
	templates []node
	shape     func(g *generator, f *Family) []Step // how steps are made of templates; nil: one command a step
}

// Step is one command to send.
type Step struct {
	Args []string
	// Guard marks an OBJECT ENCODING that tells whether the next reply may come in any order.
	Guard bool
}

// newFamily reads templates, one a line. A number in front is how many times as likely a line is.
func newFamily(name, text string) *Family {
	f := &Family{Name: name}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		line = strings.TrimSpace(line)
		weight := 1
		if head, rest, ok := strings.Cut(line, " "); ok {
			if n, err := strconv.Atoi(head); err == nil {
				weight, line = n, rest
			}
		}
		n := parse(line)
		for range weight {
			f.templates = append(f.templates, n)
		}
	}
	return f
}

// damageOneIn is how rarely a command is damaged, so that errors are compared as well.
const damageOneIn = 25

// command makes one command, now and then a damaged one.
func (f *Family) command(g *generator) []string {
	args := f.templates[g.IntN(len(f.templates))].expand(g, nil)
	if g.IntN(damageOneIn) == 0 && !(args[0] == "ZADD" && strings.HasPrefix(args[1], lexPrefix)) {
		damaged := damage(g, args)
		if !(strings.HasPrefix(args[0], "BZ") && slices.Contains(damaged, "0")) { // it may wait for ever
			args = damaged
		}
	}
	return args
}

// junk are arguments that are wrong almost everywhere. None is a size that a server could take seriously.
var junk = []string{"", "abc", "-1", "0", "1.5", "nan", "inf", "9223372036854775808", "-9223372036854775809", "(", "[", "NX", "WITHSCORES", "1e", " 1"}

// damage drops, doubles, replaces or adds an argument.
func damage(g *generator, args []string) []string {
	at := 1 + g.IntN(max(1, len(args)-1))
	switch g.IntN(4) {
	case 0:
		if at < len(args) {
			return append(args[:at:at], args[at+1:]...)
		}
		return args
	case 1:
		if at < len(args) {
			return append(append(args[:at:at], args[at]), args[at:]...)
		}
		return args
	case 2:
		if at < len(args) {
			out := append([]string(nil), args...)
			out[at] = junk[g.IntN(len(junk))]
			return out
		}
		return args
	}
	return append(args, junk[g.IntN(len(junk))])
}

// steps makes the next steps of a family.
func (f *Family) steps(g *generator) []Step {
	if f.shape != nil {
		return f.shape(g, f)
	}
	return guarded(f.command(g))
}

// guarded puts OBJECT ENCODING before a command whose reply may come in any order for some encodings only.
func guarded(args []string) []Step {
	if len(args) > 1 && orderedWhenPacked[strings.ToUpper(args[0])] {
		return []Step{{Args: []string{"OBJECT", "ENCODING", args[1]}, Guard: true}, {Args: args}}
	}
	return []Step{{Args: args}}
}

// Round makes the steps of one round: at least n of them, the same for the same seed.
func (f *Family) Round(seed uint64, n int) []Step {
	g := &generator{rand.New(rand.NewPCG(seed, 0x6c696d69746b76))}
	var out []Step
	for len(out) < n {
		out = append(out, f.steps(g)...)
	}
	return out
}
