// The notation of replies loses nothing, and the looser rules are no looser than they say.
package peer

import (
	"bufio"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestNotation(t *testing.T) {
	for _, c := range []struct{ wire, text string }{
		{"+OK\r\n", "+OK"},
		{"+\r\n", "+"},
		{"-ERR no such key, sorry\r\n", "-ERR no such key, sorry"},
		{":-7\r\n", ":-7"},
		{"$3\r\na\"\xff\r\n", `"a\"\xff"`},
		{"$-1\r\n", "$-1"},
		{"*-1\r\n", "*-1"},
		{"_\r\n", "_"},
		{",1.0\r\n", ",1.0"},
		{",inf\r\n", ",inf"},
		{"#t\r\n", "#t"},
		{"(12345678901234567890\r\n", "(12345678901234567890"},
		{"=8\r\ntxt:a\r\nb\r\n", `="txt:a\r\nb"`},
		{"*0\r\n", "[]"},
		{"*4\r\n:1\r\n+OK\r\n-ERR a, b]\r\n$-1\r\n", `[:1, +"OK", -"ERR a, b]", $-1]`},
		{"*2\r\n,1.5\r\n,-2\r\n", "[,1.5, ,-2]"},
		{"%2\r\n$1\r\na\r\n*1\r\n:1\r\n+b\r\n_\r\n", `%{"a" => [:1], +"b" => _}`},
		{"~1\r\n$1\r\na\r\n", `~["a"]`},
		{">2\r\n$1\r\na\r\n#f\r\n", `>["a", #f]`},
		{"*2\r\n*0\r\n*1\r\n*-1\r\n", "[[], [*-1]]"},
	} {
		v := read(t, c.wire)
		if got := v.String(); got != c.text {
			t.Errorf("%q is written %s, want %s", c.wire, got, c.text)
		}
		back, err := ParseValue(c.text)
		if err != nil || !back.Equal(v) {
			t.Errorf("%s reads back as %v, %v", c.text, back, err)
		}
	}
}

func read(t *testing.T, wire string) Value {
	t.Helper()
	c := Conn{r: bufio.NewReader(strings.NewReader(wire))}
	v, err := c.read()
	if err != nil {
		t.Fatalf("%q: %v", wire, err)
	}
	return v
}

// TestNotationRandom writes random replies, long ones among them, and reads them back.
func TestNotationRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	broken := 0
	for range 2000 {
		v := randomValue(r, 3)
		text := v.String()
		if strings.Contains(text, "\n") {
			broken++
		}
		back, err := ParseValue(text)
		if err != nil || !back.Equal(v) {
			t.Fatalf("%s reads back as %v, %v", text, back, err)
		}
	}
	if broken == 0 {
		t.Error("no reply took several lines")
	}
}

// hard are bytes that the notation must take care of.
const hard = " ab\"\\]},=>_:$*-1\r\n\x00\xff"

func randomValue(r *rand.Rand, depth int) Value {
	kinds := "+-:$,#(=!_N"
	if depth > 0 {
		kinds += "****%~>"
	}
	switch kind := kinds[r.IntN(len(kinds))]; kind {
	case ':', '(':
		return Value{Kind: kind, Text: "-12"}
	case ',':
		return Value{Kind: kind, Text: []string{"1.5", "inf", "-inf", "nan", "1e+30"}[r.IntN(5)]}
	case '#':
		return Value{Kind: kind, Text: "f"}
	case '_':
		return Value{Kind: '_', Null: true}
	case 'N':
		return Value{Kind: "$*"[r.IntN(2)], Null: true}
	case '*', '%', '~', '>':
		v := Value{Kind: kind, Items: []Value{}}
		n := r.IntN(12)
		if kind == '%' {
			n *= 2
		}
		for range n {
			v.Items = append(v.Items, randomValue(r, depth-1))
		}
		return v
	default:
		b := make([]byte, r.IntN(20))
		for i := range b {
			b[i] = hard[r.IntN(len(hard))]
		}
		if kind == '+' || kind == '-' {
			return Value{Kind: kind, Text: "X" + strings.NewReplacer("\r", "", "\n", "").Replace(string(b))}
		}
		return Value{Kind: kind, Text: string(b)}
	}
}

func TestStrictReading(t *testing.T) {
	for _, wire := range []string{"OK\r\n", "+OK\n", "$03\r\nabc\r\n", "$3\r\nabcd\r\n", ":\r\n", "*-2\r\n", "%-1\r\n", "$+1\r\na\r\n"} {
		c := Conn{r: bufio.NewReader(strings.NewReader(wire))}
		if v, err := c.read(); err == nil {
			t.Errorf("%q was read as %v", wire, v)
		}
	}
}

func TestRules(t *testing.T) {
	for _, c := range []struct {
		rule      Rule
		want, got string
		match     bool
	}{
		{Rule{}, ":1", ":1", true},
		{Rule{}, ":1", `"1"`, false},
		{Rule{}, "$-1", "_", false},
		{Rule{Unordered: 1}, `["a", "b"]`, `["b", "a"]`, true},
		{Rule{Unordered: 1}, `["a", "a", "b"]`, `["b", "a", "b"]`, false},
		{Rule{Unordered: 1}, `["a"]`, `~["a"]`, false},
		{Rule{Unordered: 2}, `["a", "1", "b", "2"]`, `["b", "2", "a", "1"]`, true},
		{Rule{Unordered: 2}, `["a", "1", "b", "2"]`, `["b", "1", "a", "2"]`, false},
		{Rule{Unordered: 1}, `%{"a" => "1", "b" => "2"}`, `%{"b" => "2", "a" => "1"}`, true},
		{Rule{Unordered: 1}, `%{"a" => "1", "b" => "2"}`, `%{"b" => "1", "a" => "2"}`, false},
		{Rule{Near: 5}, ":100", ":95", true},
		{Rule{Near: 5}, ":100", ":94", false},
		{Rule{Near: 5}, ":-1", ":1", false},
		{Rule{Near: 5}, "[:100, :-1]", "[:101, :-1]", true},
		{Rule{AnyInt: true}, ":100", ":3", true},
		{Rule{AnyInt: true}, ":100", `"3"`, false},
		{Rule{Shape: true}, `["a", :1]`, `["b", :2]`, true},
		{Rule{Shape: true}, `["a", :1]`, `["b", "2"]`, false},
		{Rule{Any: true}, ":1", `"x"`, true},
		{Rule{Any: true}, ":1", "-ERR x", false},
		{Rule{ErrorCode: true}, "-ERR a", "-ERR b", true},
		{Rule{ErrorCode: true}, "-ERR a", "-WRONGTYPE b", false},
	} {
		want, err1 := ParseValue(c.want)
		got, err2 := ParseValue(c.got)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if c.rule.Match(want, got) != c.match {
			t.Errorf("%+v of %s and %s is %v", c.rule, want, got, !c.match)
		}
	}
}

// TestStuck: of a server that a test waits for in vain, the test shows what it was doing.
func TestStuck(t *testing.T) {
	s := LimitKV(t)
	stuck(t)
	if out := s.Output(); s.Alive() || !strings.Contains(out, "SIGQUIT") || !strings.Contains(out, "goroutine ") {
		t.Errorf("it has ended: %v, and says\n%s", !s.Alive(), out)
	}
}
