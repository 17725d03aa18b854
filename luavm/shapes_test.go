package luavm

// Sources of every shape that may overload a parser or a compiler: chains, nestings and lists of any length. Their stack must
// not grow with the length, and their time at most in proportion to it. They must be accepted or refused like by
// the server in REDIS_SERVER, with the same errors.

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/luavm/analysis"
)

var shapeSeed = flag.Uint64("shapeseed", 0, "seed of the random shapes; 0: another one each time")

// shape is a source with a part that is repeated.
type shape struct {
	name                      string
	before, link, after, back string // back is repeated, too, behind after
	// slow is the number of links from which the real Lua takes time proportional to their square; 0: never
	slow int
}

var shapes = []shape{
	{name: "fields", before: "return a", link: ".b"},
	{name: "known fields", before: "return redis", link: ".call"},
	{name: "indexes", before: "return a", link: "[1]"},
	{name: "calls", before: "return a", link: "()"},
	{name: "calls with a string", before: "return a", link: "''"},
	{name: "calls with a table", before: "return a", link: "{}"},
	{name: "method calls", before: "return a", link: ":b()"},
	{name: "statement of calls", before: "a", link: "(1)"},
	{name: "assignment to fields", before: "local a a", link: ".b", after: "=1"},
	{name: "function of fields", before: "function a", link: ".b", after: "() end"},
	{name: "sum", before: "return a", link: "+1"},
	{name: "sum of constants", before: "return 1", link: "+1"},
	{name: "product", before: "local a return a", link: "*a"},
	{name: "power", before: "return a", link: "^a"},
	{name: "concatenation", before: "return a", link: "..a"},
	{name: "and", before: "return a", link: " and a", slow: 20_000},
	{name: "or", before: "return a", link: " or a", slow: 20_000},
	{name: "and or", before: "return a", link: " and b or c", slow: 20_000},
	{name: "condition of and", before: "if a", link: " and a", after: " then b() end", slow: 20_000},
	{name: "condition of or", before: "while a", link: " or not a", after: " do b() end", slow: 20_000},
	{name: "equalities", before: "return a", link: "==a"},
	{name: "comparisons", before: "return a", link: "<1"},
	{name: "elseif", before: "if a then ", link: "elseif a then ", after: "end", slow: 20_000},
	{name: "elseif with bodies", before: "if a then ", link: "elseif a then if b then c() else d() end ", after: "end", slow: 20_000},
	{name: "breaks", before: "while a do ", link: "if a then break end ", after: "end", slow: 20_000},
	{name: "not", before: "return ", link: "not ", after: "a"},
	{name: "minus", before: "return ", link: "- ", after: "a"},
	{name: "length", before: "return ", link: "#", after: "a"},
	{name: "parentheses", before: "return ", link: "(", after: "a", back: ")"},
	{name: "parenthesis calls", before: "return ", link: "(", after: "a", back: ")()"},
	{name: "tables", before: "return ", link: "{", after: "a", back: "}"},
	{name: "keyed tables", before: "return ", link: "{a=", after: "a", back: "}"},
	{name: "arguments", before: "return ", link: "f(", after: "a", back: ")"},
	{name: "keys", before: "return ", link: "a[", after: "a", back: "]"},
	{name: "functions", before: "return ", link: "function() return ", after: "a", back: " end"},
	{name: "named functions", link: "local function f() ", back: "end "},
	{name: "do", link: "do ", back: "end "},
	{name: "while", link: "while a do ", back: "end "},
	{name: "repeat", link: "repeat ", back: "until a "},
	{name: "numeric for", link: "for i=1,2 do ", back: "end "},
	{name: "generic for", link: "for i in a do ", back: "end "},
	{name: "if", link: "if a then ", back: "else b() end "},
	{name: "statements", link: "a=1 "},
	{name: "known calls", link: "redis.call('get','x') "},
	{name: "locals", link: "local a "},
	{name: "locals of blocks", link: "do local a end "},
	{name: "loops", link: "for i=1,2 do end "},
	{name: "whiles", link: "while a do end "},
	{name: "functions in a row", before: "local f ", link: "f=function() end "},
	{name: "nils", before: "local a=nil", link: ",nil"},
	{name: "targets", before: "a", link: ",a", after: "=1"},
	{name: "fields as targets", before: "local a a.b", link: ",a.b", after: "=1"},
	{name: "results", before: "return a", link: ",a"},
	{name: "arguments in a row", before: "return f(1", link: ",1", after: ")"},
	{name: "items", before: "return {1", link: ",1", after: "}"},
	{name: "items of a call", before: "return {1", link: ",a()", after: "}"},
	{name: "entries", before: "return {a=1", link: ",a=1", after: "}"},
	{name: "string", before: "return '", link: "a", after: "'"},
	{name: "escapes", before: "return '", link: `\n`, after: "'"},
	{name: "long string", before: "return [[", link: "a]", after: "]]"},
	{name: "lines", link: "\n", after: "return a a"},
	{name: "comments", link: "--[[a]]", after: "return a"},
	{name: "long bracket", before: "return [", link: "=", after: "["},
	{name: "digits", before: "return ", link: "1"},
	{name: "name", before: "return ", link: "a"},
	{name: "semicolons", before: "a()", link: ";"},
	{name: "body of while", before: "while a do ", link: "b() ", after: "end"},
	{name: "body of for", before: "for i=1,2 do ", link: "b() ", after: "end"},
	{name: "body of if", before: "if a then ", link: "b() ", after: "end"},
}

func (s *shape) source(n int) string {
	return s.before + strings.Repeat(s.link, n) + s.after + strings.Repeat(s.back, n)
}

// numbered are shapes whose parts are all different: constants, variables, upvalues.
var numbered = []struct {
	name  string
	build func(n int) string
}{
	{"constants", func(n int) string { return "return {" + each(n, "'k%d',") + "}" }},
	{"numbers", func(n int) string { return "return {" + each(n, "%d.5,") + "}" }},
	{"globals", func(n int) string { return each(n, "g%d() ") }},
	{"keys of a table", func(n int) string { return "return {" + each(n, "k%d=1,") + "}" }},
	{"methods", func(n int) string { return "local a " + each(n, "a:m%d() ") }},
	{"upvalues", func(n int) string {
		return each(min(n, 190), "local v%d ") + "return function() return {" + each(min(n, 190), "v%d,") + "} end"
	}},
	{"upvalues of the outer one", func(n int) string {
		return each(min(n, 190), "local v%d ") + "return function() return function() return {" + each(min(n, 190), "v%d,") + "} end end"
	}},
	{"parameters", func(n int) string { return "return function(" + each(n, "p%d,") + "...) end" }},
	{"names of a loop", func(n int) string { return "for a" + each(n, ",v%d") + " in b do end" }},
}

func each(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// loadReply is what SCRIPT LOAD replies, a SHA-1 as OK.
func loadReply(source string) string {
	s, err := Compile([]byte(source))
	if err != nil {
		return "-ERR " + oneLine(err.Error()) + "\r\n"
	}
	s.Analyse(func(string, []analysis.Arg) (analysis.Keys, bool) { return analysis.Keys{}, true })
	return "OK"
}

func (o *oracle) load(source string) string {
	reply := o.do("SCRIPT", "LOAD", source)
	o.do("SCRIPT", "FLUSH")
	if reply[0] == '$' {
		return "OK"
	}
	return reply
}

// withSmallStack ends the process if something needs a large stack.
func withSmallStack(t testing.TB) {
	old := debug.SetMaxStack(4 << 20)
	t.Cleanup(func() { debug.SetMaxStack(old) })
}

// Chains of a million links are loaded or refused, in a small stack.
func TestMillionLinks(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	withSmallStack(t)
	knownFunctions()
	loaded, refused := 0, 0
	for i, s := range shapes {
		n := 1_000_000 // of the chains that grow to the left
		switch {
		case s.back != "":
			n = 10_000 // as many are read as Lua allows
		case i > 25:
			n = 200_000
		}
		if loadReply(s.source(n)) == "OK" {
			loaded++
		} else {
			refused++
		}
	}
	for _, s := range numbered {
		loadReply(s.build(100_000))
	}
	if loaded < 25 || refused < 20 {
		t.Errorf("%d shapes were loaded, %d refused", loaded, refused)
	}
}

// The same from a script, by loadstring, and then run.
func TestMillionLinksLoadedByScript(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	vm, host := New(Config{}), newTestHost()
	for _, c := range []struct{ script, want string }{
		{`return #tostring(loadstring('return a'..string.rep('.b',1000000)))>0`, ":1\r\n"},
		{`local f = loadstring('local a = 0 return a'..string.rep('+1',1000000)) return f()`, ":1000000\r\n"},
		{`local f = loadstring('local a = function(f) return f end a = {b=0} a.b=a return a'..string.rep('.b',1000000)..'==a') return f()`, ":1\r\n"},
		{`local f = loadstring('local function a(f) return f end return (function(f) return f'..string.rep('(f)',1000000)..'==f end)(a)') return f()`, ":1\r\n"},
		{`local f = loadstring('local t = {f=function(t) return t end} return t'..string.rep(':f()',1000000)..'==t') return f()`, ":1\r\n"},
		{`local f = loadstring('local a = true return a'..string.rep(' and a',40000)) return f()`, ":1\r\n"},
		{`local f = loadstring('local a = false if a then return 1 '..string.rep('elseif a then return 2 ',20000)..'else return 3 end') return f()`, ":3\r\n"},
		{`local f = loadstring('return {'..string.rep('7,',1000000)..'}') local t = f() return {#t, t[1], t[511*50], t[512*50+1], t[1000000]}`,
			"*5\r\n:1000000\r\n:7\r\n:7\r\n:7\r\n:7\r\n"},
	} {
		if got := eval(t, vm, host, c.script, nil, nil); got != c.want {
			t.Errorf("%s\n got %.200q\nwant %q", c.script, got, c.want)
		}
	}
}

// around are lengths at which a limit of Lua may be.
var around = []int{0, 1, 2, 48, 49, 50, 51, 58, 59, 60, 61, 62, 98, 99, 100, 101, 195, 196, 197, 198, 199, 200, 201, 202,
	246, 247, 248, 249, 250, 251, 252, 253, 254, 255, 256, 257, 258, 300, 510, 511, 512, 513, 1000, 32766, 32767, 32768}

// randomShape nests and chains shapes into each other.
func randomShape(r *rand.Rand, most int) string {
	length := func() int {
		switch r.IntN(4) {
		case 0:
			return around[r.IntN(len(around))]
		case 1:
			return r.IntN(most)
		}
		return r.IntN(300)
	}
	s := shapes[r.IntN(len(shapes))]
	n := length()
	if s.slow > 0 {
		n = min(n, s.slow/4)
	}
	source := s.source(n)
	for range r.IntN(4) {
		inner := shapes[r.IntN(len(shapes))]
		n := length()
		if inner.slow > 0 {
			n = min(n, inner.slow/4)
		}
		switch r.IntN(4) {
		case 0: // in the place of the innermost value
			source = strings.Replace(source, "a", "(function() "+inner.source(n)+" end)()", 1)
		case 1:
			source = "do " + source + " end " + inner.source(n)
		case 2:
			source = inner.before + strings.Repeat(inner.link, n) + inner.after + " " + source + strings.Repeat(inner.back, n)
		case 3: // cut somewhere
			source = source[:r.IntN(len(source)+1)]
		}
	}
	return source
}

func TestRandomShapes(t *testing.T) {
	seed := *shapeSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-shapeseed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	withSmallStack(t)
	knownFunctions()
	var o *oracle
	if oracleNamed() {
		o = startOracle(t)
	}
	loaded, refused := 0, 0
	for range *rounds {
		source := randomShape(r, 20_000)
		got := loadReply(source)
		if got == "OK" {
			loaded++
		} else {
			refused++
		}
		if o == nil {
			continue
		}
		if want := o.load(source); got != want {
			t.Errorf("%.200q… (%d bytes): %.300q, want %.300q", source, len(source), got, want)
		}
	}
	if loaded == 0 || refused == 0 {
		t.Errorf("of %d shapes %d were loaded, %d refused", *rounds, loaded, refused)
	}
}

// FuzzShapes takes shapes of up to a megabyte.
func FuzzShapes(f *testing.F) {
	for i := range uint64(20) {
		f.Add(i, uint32(1<<i))
	}
	knownFunctions()
	f.Fuzz(func(t *testing.T, seed uint64, most uint32) {
		withSmallStack(t)
		loadReply(randomShape(rand.New(rand.NewPCG(seed, 2)), 1+int(most)%1_000_000))
	})
}
