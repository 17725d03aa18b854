package commands_test

// Transactions of many connections at once, whose queues reuse each other's memory.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/resp"
)

// teller is a connection whose transactions return words to it.
type teller struct {
	conn   *resp.Memory
	queued []string // in the open transaction
	open   bool
}

func TestTransactionsOfManyConnections(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s := serve(t)
	tellers := make([]*teller, 80)
	executed, told := 0, 0
	sizes := []int{1, 2, 10, 200, 16<<10 - 10, 16 << 10, 17 << 10}
	for range 4000 {
		i := r.IntN(len(tellers))
		c := tellers[i]
		if c == nil || r.IntN(100) == 0 { // a connection ends, perhaps in the middle of a transaction
			if c != nil {
				c.conn.Close(false)
				c.conn.Feed(nil)
			}
			c = &teller{conn: resp.NewMemory(s, s.Keyspace.Clock.Now)}
			c.conn.Loop = 0
			tellers[i] = c
		}
		var batch []byte
		var want strings.Builder
		for range 1 + r.IntN(20) {
			switch n := r.IntN(20); {
			case !c.open:
				batch = request(batch, "MULTI")
				want.WriteString("+OK\r\n")
				c.open = true
			case n == 0:
				batch = request(batch, "DISCARD")
				want.WriteString("+OK\r\n")
				c.open, c.queued = false, nil
			case n < 4:
				batch = request(batch, "EXEC")
				fmt.Fprintf(&want, "*%d\r\n", len(c.queued))
				for _, word := range c.queued {
					fmt.Fprintf(&want, "$%d\r\n%s\r\n", len(word), word)
				}
				executed++
				told += len(c.queued)
				c.open, c.queued = false, nil
			default:
				few := 1
				if n == 19 && r.IntN(10) == 0 {
					few = 62 + r.IntN(6)
				}
				for range few {
					size := sizes[r.IntN(4)]
					if r.IntN(50) == 0 {
						size = sizes[r.IntN(len(sizes))]
					}
					word := strings.Repeat(fmt.Sprintf("%d.", r.IntN(1000)), size)[:size]
					batch = request(batch, "ECHO", word)
					want.WriteString("+QUEUED\r\n")
					c.queued = append(c.queued, word)
				}
			}
		}
		if got := c.conn.Feed(batch); string(got) != want.String() {
			at := 0
			for at < min(len(got), want.Len()) && got[at] == want.String()[at] {
				at++
			}
			t.Fatalf("from byte %d on: got %.100q, want %.100q", at, got[at:], want.String()[at:])
		}
	}
	if executed < 1000 || told < 3000 {
		t.Errorf("only %d transactions were executed, of %d commands", executed, told)
	}
}

// A transaction that its connection sends at once takes no memory.
func TestTransactionAllocatesNothing(t *testing.T) {
	s := serve(t)
	batch := request(request(request(request(nil, "MULTI"), "SET", "key", "a value of some words"), "INCR", "n"), "EXEC")
	want := "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n:"
	run := func() {
		if got := s.conn.Feed(batch); !bytes.HasPrefix(got, []byte(want)) {
			t.Fatalf("%q", got)
		}
	}
	run()
	if n := testing.AllocsPerRun(1000, run); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}
