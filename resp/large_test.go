package resp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// keeper is a handler that stores the large arguments that it may store, and runs a command only when it gets it the second time.
type keeper struct {
	echo
	t    *testing.T
	kept [][]byte
	was  []string
	seen bool
}

func (k *keeper) Serve(c *Conn, batch []Command) int {
	if k.seen = !k.seen; k.seen {
		c.Pause()
		c.Post(c.Resume)
		return 0
	}
	for _, cmd := range batch {
		if cmd.Own != 0 {
			if len(batch) != 1 {
				k.t.Errorf("a command with large arguments is one of %d", len(batch))
			}
			for _, a := range cmd.Args {
				if len(a) >= cmd.Own {
					if cap(a) != len(a) {
						k.t.Errorf("room for %d bytes where there are %d", cap(a), len(a))
					}
					k.kept, k.was = append(k.kept, a), append(k.was, string(a))
				}
			}
		}
		c.Out.Array(len(cmd.Args))
		for _, a := range cmd.Args {
			c.Out.Bulk(a)
		}
	}
	return len(batch)
}

// TestLargeArguments sends commands of all kinds in pieces of any size: the replies belong to the arguments that were
// sent, and the arguments that the handler stores do not change.
func TestLargeArguments(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	k := &keeper{t: t}
	m := NewMemory(k, micros)
	m.parser.Large = 50
	kept := 0
	for range 300 {
		var sent, want []byte
		for range 1 + rnd.IntN(4) {
			args := make([][]byte, 1+rnd.IntN(5))
			for i := range args {
				args[i] = bytes.Repeat([]byte{byte('a' + rnd.IntN(26))}, rnd.IntN([]int{10, 60, 5000}[rnd.IntN(3)]))
			}
			b := AppendCommand(nil, args...)
			sent, want = append(sent, b...), append(want, b...) // which is the reply, too
		}
		var got []byte
		for rest := sent; len(rest) > 0; {
			n := min(len(rest), 1+rnd.IntN(3000))
			got = append(got, m.Feed(rest[:n])...)
			if rest = rest[n:]; len(rest) == 0 && m.QueryBytes() != 0 {
				t.Fatalf("seed %d: %d bytes are kept", seed, m.QueryBytes())
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d: sent %.300q, got %.300q", seed, sent, got)
		}
	}
	for i, a := range k.kept {
		if string(a) != k.was[i] {
			t.Fatalf("seed %d: what was kept has changed", seed)
		}
		kept += len(a)
	}
	if len(k.kept) < 100 || kept < 100_000 {
		t.Errorf("seed %d: only %d arguments of %d bytes were kept", seed, len(k.kept), kept)
	}
}

// TestLargeHandedOver hands a command with a large argument over.
func TestLargeHandedOver(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		h := &echo{}
		_, addr := start(t, h, o)
		c := dial(t, "tcp", addr)
		long := strings.Repeat("x", 3<<20)
		for range 3 {
			c.send(fmt.Sprintf("*2\r\n$4\r\nAWAY\r\n$%d\r\n%s\r\n*1\r\n$4\r\nPING\r\n", len(long), long))
			c.expect(fmt.Sprintf("$%d\r\n%s\r\n+PONG\r\n", len(long), long))
		}
		if h.away.Load() != 3 {
			t.Errorf("%d commands were handed over", h.away.Load())
		}
	})
}

// TestAnnouncedLength checks that a client which only announces a large argument costs little memory.
func TestAnnouncedLength(t *testing.T) {
	m := NewMemory(&echo{}, micros)
	m.Feed([]byte("*2\r\n$4\r\nECHO\r\n$536870912\r\n"))
	for sent := 0; sent < 1<<20; sent += 1 << 10 {
		m.Feed(make([]byte, 1<<10))
		if room := cap(m.parser.large.arg); room > aheadTimes*(sent+1<<10) {
			t.Fatalf("room for %d bytes when %d had come", room, sent+1<<10)
		}
	}
	if n := m.QueryBytes(); n < 1<<20 {
		t.Errorf("%d bytes are said to be kept", n)
	}
}
