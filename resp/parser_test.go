package resp

// What the parser costs, beside redcon's.

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/redcon"
)

// command is a command in wire form.
func command(args ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.Bytes()
}

func TestParserAllocatesNothing(t *testing.T) {
	whole := bytes.Repeat(command("SET", "key:000000000001", strings.Repeat("v", 32)), 16)
	inline := []byte("SET 'a b' \"c\\x20\" d\r\n")
	var p Parser
	var args [][]byte
	n := testing.AllocsPerRun(100, func() {
		args = args[:0]
		for pos := 0; pos < len(whole); {
			k, out, err := p.Next(whole[pos:], args)
			if k == 0 || err != nil {
				t.Fatal(k, err)
			}
			pos += k
			args = out
		}
		for cut := 1; cut < 60; cut++ { // in two pieces
			k, _, _ := p.Next(whole[:cut], args[:0])
			if k != 0 {
				t.Fatal(k)
			}
			if k, out, err := p.Next(whole, args[:0]); len(out) != 3 || err != nil || k == 0 {
				t.Fatal(k, out, err)
			}
		}
		if _, out, _ := p.Next(inline, args[:0]); len(out) != 4 {
			t.Fatal(out)
		}
		p.Release()
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestBatchOfInlines holds that quoted arguments of one command survive the next.
func TestBatchOfInlines(t *testing.T) {
	var p Parser
	var all [][]byte
	input := []byte(strings.Repeat("a 'b c' \"d\\x41\"\r\n", 100))
	for pos := 0; pos < len(input); {
		n, out, err := p.Next(input[pos:], all)
		if n == 0 || err != nil {
			t.Fatal(n, err)
		}
		pos, all = pos+n, out
	}
	if got := string(bytes.Join(all, []byte("|"))); got != strings.TrimSuffix(strings.Repeat("a|b c|dA|", 100), "|") {
		t.Errorf("%.200q", got)
	}
}

// TestRedconCannot checks the reasons not to parse with redcon. It fails when one of them
// no longer applies.
func TestRedconCannot(t *testing.T) {
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a negative length does not panic any more")
			}
		}()
		_, _, _, _, _ = redcon.ReadNextCommand([]byte("*1\r\n$-20\r\nabcdefghijklmnopq\r\n"), nil)
	}()
	if _, _, _, _, err := redcon.ReadNextCommand([]byte("*-1\r\nPING\r\n"), nil); err == nil {
		t.Error("*-1 is no error any more")
	}
	if _, args, _, _, _ := redcon.ReadNextCommand([]byte("ECHO \"a\\x41\"\r\n"), nil); len(args) == 2 && string(args[1]) == "aA" {
		t.Error("inline quoting is that of Redis now")
	}
}

func BenchmarkParser(b *testing.B) {
	for _, c := range []struct {
		name string
		wire []byte
	}{
		{"PING", command("PING")},
		{"GET", command("GET", "key:000000000001")},
		{"SET", command("SET", "key:000000000001", strings.Repeat("v", 32))},
		{"EVALSHA12", command("EVALSHA", strings.Repeat("a", 40), "5", "a", "b", "c", "d", "e", "1", "2", "3")},
	} {
		batch := bytes.Repeat(c.wire, 16)
		b.Run(c.name+"/resp", func(b *testing.B) {
			var p Parser
			var args [][]byte
			b.ReportAllocs()
			for i := 0; i < b.N; i += 16 {
				args = args[:0]
				for pos := 0; pos < len(batch); {
					n, out, _ := p.Next(batch[pos:], args)
					pos, args = pos+n, out
				}
			}
		})
		b.Run(c.name+"/redcon", func(b *testing.B) {
			var args [][]byte
			b.ReportAllocs()
			for i := 0; i < b.N; i += 16 {
				for rest := batch; len(rest) > 0; {
					_, args, _, rest, _ = redcon.ReadNextCommand(rest, args[:0])
				}
			}
		})
	}
}

// BenchmarkParserChunked parses one command of 100,000 arguments that arrives in
// pieces of 16 KB.
func BenchmarkParserChunked(b *testing.B) {
	args := make([]string, 100_000)
	for i := range args {
		args[i] = "member:12345"
	}
	wire := command(args...)
	each := func(fn func(buf []byte) bool) {
		for end := 16 << 10; !fn(wire[:min(end, len(wire))]); end += 16 << 10 {
		}
	}
	b.Run("resp", func(b *testing.B) {
		var p Parser
		out := make([][]byte, 0, len(args))
		for b.Loop() {
			each(func(buf []byte) bool { n, _, _ := p.Next(buf, out); return n > 0 })
		}
	})
	b.Run("redcon", func(b *testing.B) {
		out := make([][]byte, 0, len(args))
		for b.Loop() {
			each(func(buf []byte) bool { ok, _, _, _, _ := redcon.ReadNextCommand(buf, out); return ok })
		}
	})
}
