package resp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
)

// TestSharedReplies calls the methods of Writer at random: shared strings are at the place where copied ones would be.
func TestSharedReplies(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 2))
	shares := 0
	for range 2000 {
		w, plain := Writer{sharing: true}, Writer{}
		type mark struct{ w, plain int }
		marks := []mark{{0, 0}}
		for range rnd.IntN(12) {
			b := bytes.Repeat([]byte("x"), rnd.IntN(20))
			switch rnd.IntN(6) {
			case 0:
				marks = append(marks, mark{w.Mark(), plain.Mark()})
			case 1:
				i := rnd.IntN(len(marks))
				marks = marks[:i+1]
				w.Cut(marks[i].w)
				plain.Cut(marks[i].plain)
			case 2:
				m := marks[len(marks)-1]
				w.ArrayFrom(m.w, 3)
				plain.ArrayFrom(m.plain, 3)
			case 3:
				m := marks[len(marks)-1]
				w.Insert(m.w, b)
				plain.Insert(m.plain, b)
			case 4:
				w.Bulk(b)
				plain.Bulk(b)
			default:
				w.BulkShared(b)
				plain.Bulk(b)
				shares++
			}
			m := marks[len(marks)-1]
			if !bytes.Equal(w.From(m.w), plain.Buf[m.plain:]) || w.Whole(m.w) != m.plain || w.Len() != len(plain.Buf) {
				t.Fatalf("seed %d: %q, want %q", seed, w.From(0), plain.Buf)
			}
		}
		if w.Flatten(); !bytes.Equal(w.Buf, plain.Buf) || w.Len() != len(plain.Buf) {
			t.Fatalf("seed %d: %q, want %q", seed, w.Buf, plain.Buf)
		}
	}
	if shares < 1000 {
		t.Errorf("only %d strings were shared", shares)
	}
}

// TestSharedSent sends many shared bytes to a client that reads late, among other replies and commands.
func TestSharedSent(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16)
	bothServers(t, func(t *testing.T, o Options) {
		var shared atomic.Int64
		h := &echo{}
		h.on = map[string]func(c *Conn, cmd Command){"get": func(c *Conn, _ Command) {
			c.Out.Array(3)
			c.Out.Int(1)
			if c.Out.Shares(len(long)) {
				shared.Add(1)
				c.Out.BulkShared(long)
			} else {
				c.Out.Bulk(long)
			}
			c.Out.Int(2)
		}}
		_, addr := start(t, h, o)
		c := dial(t, "tcp", addr)
		one := fmt.Sprintf("*3\r\n:1\r\n$%d\r\n%s\r\n:2\r\n", len(long), long)
		for range 3 {
			c.send(strings.Repeat("GET\r\nPING\r\n", 4))
			c.expect(strings.Repeat(one+"+PONG\r\n", 4))
		}
		if n := shared.Load(); n != 12 && !o.Goroutines {
			t.Errorf("%d of 12 replies were shared", n)
		}
	})
}
