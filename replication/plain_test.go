package replication

// What plain replicas receive.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// cmd is a command as in the stream.
func cmd(words ...string) string {
	b := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		b += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	return b
}

func dotted(b []byte) bool {
	name, _ := Word(b, true)
	return bytes.IndexByte(name, '.') >= 0
}

// A filler has the requested length, and consists only of PINGs and empty lines.
func TestFiller(t *testing.T) {
	for _, n := range append(seq(0, 2300), 99_999, 100_021, 100_022, 100_023, 100_024, 1_000_000, 1_000_024, 1_000_025) {
		b := AppendFiller(nil, n)
		if len(b) != n {
			t.Fatalf("%d bytes for %d", len(b), n)
		}
		pings := 0
		for rest := b; len(rest) > 0; {
			var s scan
			k, ok := s.command(rest)
			if !ok || k == 0 {
				t.Fatalf("%d: %.60q", n, rest)
			}
			if name, _ := Word(rest[:k], true); k > 1 {
				if string(name) != "PING" {
					t.Fatalf("%d: %.60q", n, rest)
				}
				pings++
			}
			rest = rest[k:]
		}
		if n >= len(ping) && pings != 1 { // the replica counts bytes only with a command
			t.Fatalf("%d pings in %d bytes", pings, n)
		}
	}
}

func seq(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

// However a stream is cut, a plain replica gets the same number of bytes, and all commands that it knows.
func TestPlain(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var whole, want strings.Builder
	natives := int64(0)
	for range 2000 {
		words := []string{"SET", "k", strings.Repeat("v", r.IntN(200))}
		switch r.IntN(4) {
		case 0:
			words = []string{"RL.SET", "limiter", strings.Repeat("x", r.IntN(3000))}
			natives++
		case 1:
			words = []string{"MULTI"}
		}
		c := cmd(words...)
		whole.WriteString(c)
		if words[0] == "RL.SET" {
			want.Write(AppendFiller(nil, len(c)))
		} else {
			want.WriteString(c)
		}
	}
	for _, most := range []int{1, 7, 100, 5000, 1 << 20} {
		p := Plain{Native: dotted}
		var got []byte
		for rest := whole.String(); len(rest) > 0; {
			n := min(len(rest), 1+r.IntN(most))
			out, ok := p.Turn(nil, []byte(rest[:n]))
			if !ok {
				t.Fatal("the stream is refused")
			}
			got = append(got, out...)
			rest = rest[n:]
			if len(got)+p.Waiting()+len(rest) != whole.Len() {
				t.Fatalf("bytes are lost: %d", len(got)+p.Waiting()+len(rest)-whole.Len())
			}
		}
		if string(got) != want.String() || p.LeftOut != natives || natives == 0 {
			t.Fatalf("pieces up to %d: %d left out of %d", most, p.LeftOut, natives)
		}
	}
	for _, bad := range []string{"x", "*x\r\n", "*1\r\n:1\r\n", "*1\r\n$-1\r\n", "*\r\n", "*1\rx", "*99999999999999\r\n"} {
		p := Plain{Native: dotted}
		if _, ok := p.Turn(nil, []byte(bad)); ok {
			t.Errorf("%q is taken", bad)
		}
	}
}
