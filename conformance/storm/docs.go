package storm

// Random commands of every kind that the server has, made from what it says of itself (COMMAND DOCS): a command that is
// added later is sent without anybody thinking of it here. Values come from small pools, so that commands meet each
// other's keys, and some are wrong.

import (
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/conformance/peer"
)

// argument is one of COMMAND DOCS.
type argument struct {
	kind, token                       string
	optional, multiple, multipleToken bool
	parts                             []argument
}

// documented is a command, or a subcommand with its container's name, and what it takes.
type documented struct {
	name   []string
	args   []argument
	tokens []string // the words of its options, which values may equal
	often  int      // how often a key or a text is one of them: one of so many
	group  string
	// values, if not nil, makes the values in place of value.
	values func(r *rand.Rand, kind string) string
}

// appendTokens appends the words of arguments.
func appendTokens(out []string, args []argument) []string {
	for _, a := range args {
		if a.token != "" {
			out = append(out, a.token)
		}
		out = appendTokens(out, a.parts)
	}
	return out
}

// pairs calls fn with the names and values of a map, which RESP2 has as an array.
func pairs(v peer.Value, fn func(name string, of peer.Value)) {
	for i := 0; i+1 < len(v.Items); i += 2 {
		fn(v.Items[i].Text, v.Items[i+1])
	}
}

// readDocs reads the reply to COMMAND DOCS.
func readDocs(v peer.Value) (all []documented) {
	pairs(v, func(name string, doc peer.Value) {
		d := documented{name: strings.Split(name, "|"), often: tokensSeldom}
		container := false
		pairs(doc, func(field string, of peer.Value) {
			switch field {
			case "group":
				d.group = of.Text
			case "arguments":
				d.args = readArguments(of)
				d.tokens = appendTokens(nil, d.args)
			case "subcommands":
				container = true
				all = append(all, readDocs(of)...)
			}
		})
		if !container {
			all = append(all, d)
		}
	})
	return all
}

func readArguments(v peer.Value) (args []argument) {
	for _, item := range v.Items {
		var a argument
		pairs(item, func(field string, of peer.Value) {
			switch field {
			case "type":
				a.kind = of.Text
			case "token":
				a.token = of.Text
			case "flags":
				for _, f := range of.Items {
					a.optional = a.optional || f.Text == "optional"
					a.multiple = a.multiple || f.Text == "multiple"
					a.multipleToken = a.multipleToken || f.Text == "multiple_token"
				}
			case "arguments":
				a.parts = readArguments(of)
			}
		})
		args = append(args, a)
	}
	return args
}

// timesMax is how often an argument is given at most that may be given several times.
const timesMax = 4

// command makes a command.
func (d documented) command(r *rand.Rand) []string {
	args := d.appendArguments(r, append([]string(nil), d.name...), d.args)
	if r.IntN(20) == 0 && len(args) > 1 { // one is wrong, missing or too much
		switch at := 1 + r.IntN(len(args)-1); r.IntN(3) {
		case 0:
			args[at] = wrong[r.IntN(len(wrong))]
		case 1:
			args = append(args[:at], args[at+1:]...)
		default:
			args = append(args, wrong[r.IntN(len(wrong))])
		}
	}
	return args
}

func (d documented) appendArguments(r *rand.Rand, out []string, args []argument) []string {
	for _, a := range args {
		if a.optional && r.IntN(2) == 0 {
			continue
		}
		times := 1
		if a.multiple {
			times += r.IntN(timesMax)
		}
		for i := range times {
			if a.token != "" && (i == 0 || a.multipleToken) {
				out = append(out, a.token)
			}
			switch a.kind {
			case "oneof":
				out = d.appendArguments(r, out, a.parts[r.IntN(len(a.parts)):][:1])
			case "block":
				out = d.appendArguments(r, out, a.parts)
			case "pure-token":
			default:
				out = append(out, d.value(r, a.kind))
			}
		}
	}
	return out
}

var (
	keys   = []string{"s0", "s1", "h0", "h1", "z0", "z1", "l0", "l1", "t0", "t1", "x0", "x1", "q0", "q1", "r0", "r1", "{a}1", "{a}2", "k"}
	texts  = []string{"a", "b", "f1", "f2", "m1", "*", "$", ">", "-", "+", "[a", "(b", "0-1", "1-1", "", "hello world", "\x00\xff\r\n", "g1", "c1", "10/1s", "id1", strings.Repeat("v", 200)}
	wrong  = []string{"", "-1", "0", "nan", "inf", "9223372036854775808", "-9223372036854775808", "NX", "STREAMS", "\r\n", "1.5"}
	larges = []string{"9223372036854775807", "-9223372036854775808", "4294967296", "1000000", "65536", "2147483647"}
)

const (
	tokensSeldom = 8
	tokensOften  = 2
)

func (d documented) value(r *rand.Rand, kind string) string {
	if d.values != nil {
		return d.values(r, kind)
	}
	if (kind == "key" || kind == "string") && len(d.tokens) > 0 && r.IntN(d.often) == 0 {
		return d.tokens[r.IntN(len(d.tokens))]
	}
	if r.IntN(40) == 0 {
		return wrong[r.IntN(len(wrong))]
	}
	switch kind {
	case "key":
		return keys[r.IntN(len(keys))]
	case "integer":
		if r.IntN(30) == 0 {
			return larges[r.IntN(len(larges))]
		}
		return strconv.Itoa(r.IntN(20) - 2)
	case "double":
		return strconv.FormatFloat(float64(r.IntN(200))/16, 'g', -1, 64)
	case "pattern":
		return []string{"*", "s*", "?0", "[a-z]1", "news.*"}[r.IntN(5)]
	case "unix-time":
		return strconv.Itoa(1_700_000_000 + r.IntN(1_000_000_000))
	}
	if r.IntN(4) == 0 {
		return keys[r.IntN(len(keys))]
	}
	return texts[r.IntN(len(texts))]
}
