package resp

// Clients that send much before they read: the server stores either their commands or the replies.

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestWriteFirst sends all commands before it reads a reply, with requests that are shorter, as long and longer than
// their replies. The stored bytes must not be much more than the smaller of the two.
func TestWriteFirst(t *testing.T) {
	const total = 24 << 20 // of the longer side; the kernel keeps up to 10 MB
	for _, sizes := range []struct{ request, reply int }{{14, 10}, {40, 1000}, {20, 70_000}, {400, 400}, {1000, 10}, {300_000, 10}, {100_000, 100_000}} {
		t.Run(fmt.Sprintf("%d-%d", sizes.request, sizes.reply), func(t *testing.T) {
			for _, o := range []Options{{Loops: 2}, {Goroutines: true}} {
				count := min(total/max(sizes.request, sizes.reply), 1_000_000)
				writeFirst(t, o, sizes.request, sizes.reply, count, 0)
				writeFirst(t, o, sizes.request, sizes.reply, count/2, 1<<20)
			}
		})
	}
}

func writeFirst(t *testing.T, o Options, request, reply, count int, limit int64) {
	conns := make(chan *Conn, 1)
	text := strings.Repeat("r", reply-3)
	var held atomic.Int64 // the most
	h := &echo{
		onOpen: func(c *Conn) {
			c.QueryBufferLimit = limit
			c.Buffered = func(int64) { held.Store(max(held.Load(), c.QueryBytes()+c.OutputBytes())) }
			conns <- c
		},
		unknown: func(c *Conn, _ Command) { c.Out.Status(text) },
	}
	s, addr := start(t, h, o)
	defer s.Close()
	c := dial(t, "tcp", addr)
	conn := <-conns
	one := fmt.Appendf(nil, "*1\r\n$%d\r\n", request)
	one = append(one, strings.Repeat("x", request)...)
	one = append(one, "\r\n"...)
	batch := bytes.Repeat(one, max(1, min(count, (1<<20)/len(one))))
	for left := count * len(one); left > 0; {
		n, err := c.Write(batch[:min(left, len(batch))])
		if err != nil {
			t.Fatalf("%d bytes were not taken: %v (reason %d)", left, err, conn.Reason())
		}
		left -= n
	}
	c.expect(strings.Repeat("+"+text+"\r\n", min(count, 3)))
	if n, err := io.CopyN(io.Discard, c.r, int64(reply)*int64(max(0, count-3))); err != nil {
		t.Fatalf("%d bytes of replies: %v", n, err)
	}
	c.send("PING\r\n")
	c.expect("+PONG\r\n")
	// Twice the smaller, plus the bytes of one turn.
	most := 2*int64(count)*int64(min(len(one), reply)) + 8*chokeBytes
	if limit != 0 {
		most = int64(count)*int64(reply) + 8*chokeBytes
	}
	if held.Load() > most {
		t.Errorf("held %d bytes for %d commands of %d bytes answered by %d", held.Load(), count, len(one), reply)
	}
}

// TestKeptCommandsRun checks that commands which wait because their client does not read are run when it disconnects without
// having read, as they would have been on arrival: some clients write much and need no replies.
func TestKeptCommandsRun(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		const count = 300_000
		conns, closed := make(chan *Conn, 1), make(chan Reason, 1)
		var ran atomic.Int64
		text := strings.Repeat("r", 100)
		h := &echo{
			onOpen:  func(c *Conn) { conns <- c },
			onClose: func(c *Conn) { closed <- c.Reason() },
			on: map[string]func(c *Conn, cmd Command){
				"inc":  func(c *Conn, _ Command) { ran.Add(1); c.Out.Status(text) },
				"wait": func(c *Conn, _ Command) { c.Pause() },
			},
		}
		_, addr := start(t, h, o)
		for _, end := range []string{"", "WAIT\r\nINC\r\n", "QUIT\r\nINC\r\n", "*1\r\n$3\r\nIN", "*1\r\n+\r\n"} {
			ran.Store(0)
			c := dial(t, "tcp", addr)
			conn := <-conns
			all := strings.Repeat("INC\r\n", count) + end
			c.send(all)
			eventually(t, "all is read", func() bool { return conn.BytesIn() == int64(len(all)) })
			if ran.Load() == count {
				t.Error("nothing was kept")
			}
			c.Close()
			select {
			case <-closed:
			case <-time.After(10 * time.Second):
				t.Fatalf("%q: not closed, %d ran", end, ran.Load())
			}
			if n := ran.Load(); n != count {
				t.Errorf("%q: %d of %d ran", end, n, count)
			}
			if n := conn.OutputBytes(); n != 0 && !o.Goroutines {
				t.Errorf("%q: %d bytes of output are left", end, n)
			}
		}
	})
}

// TestPushesToKept posts messages to a client whose commands wait: it gets every message, each in one piece, and every reply.
func TestPushesToKept(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		const count, pushes = 50_000, 1000
		conns := make(chan *Conn, 1)
		text := strings.Repeat("r", 200)
		h := &echo{
			onOpen:  func(c *Conn) { conns <- c },
			unknown: func(c *Conn, _ Command) { c.Out.Status(text) },
		}
		_, addr := start(t, h, o)
		c := dial(t, "tcp", addr)
		conn := <-conns
		for i := range pushes {
			c.send(strings.Repeat("X\r\n", count/pushes))
			conn.Post(func() { conn.Out.Push(1); conn.Out.Int(int64(i)) })
		}
		replies, pushed := 0, 0
		for replies < count || pushed < pushes {
			switch line, err := c.r.ReadString('\n'); {
			case err != nil:
				t.Fatalf("after %d replies, %d pushes: %v", replies, pushed, err)
			case line == "+"+text+"\r\n":
				replies++
			case line == "*1\r\n":
				c.expect(fmt.Sprintf(":%d\r\n", pushed))
				pushed++
			default:
				t.Fatalf("got %q", line)
			}
		}
	})
}

// TestWaitingBehindPause sends a million commands behind one that waits.
func TestWaitingBehindPause(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		const count = 1_000_000
		waiting := make(chan *Conn, 1)
		h := &echo{on: map[string]func(c *Conn, cmd Command){"wait": func(c *Conn, _ Command) { c.Pause(); waiting <- c }}}
		_, addr := start(t, h, o)
		c := dial(t, "tcp", addr)
		c.send("WAIT\r\n")
		conn := <-waiting
		all := strings.Repeat("PING\r\n", count)
		c.send(all)
		eventually(t, "all is read", func() bool { return conn.QueryBytes() == int64(len(all)) })
		conn.Post(func() { conn.Out.OK(); conn.Resume() })
		c.expect("+OK\r\n")
		if n, err := io.CopyN(io.Discard, c.r, count*7); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
	})
}

// TestPieces compares the queue of unsent output with a plain buffer.
func TestPieces(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	var p pool
	var q pieces
	var want []byte
	var moved int
	for range 20_000 {
		b := make([]byte, rnd.IntN(1<<rnd.IntN(18))+1)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		switch rnd.IntN(5) {
		case 0:
			q.give(b)
			want = append(want, b...)
		case 1, 2:
			if len(want) < 10<<20 {
				q.add(&p, b)
				want = append(want, b...)
			}
		default:
			for n := len(b) * 2; n > 0 && q.size > 0; {
				first := q.first()
				k := min(n, len(first))
				if !bytes.Equal(first[:k], want[:k]) {
					t.Fatal("other bytes")
				}
				q.take(&p, k)
				want, n, moved = want[k:], n-k, moved+k
			}
		}
		if q.size != len(want) {
			t.Fatalf("size %d, want %d", q.size, len(want))
		}
	}
	if moved < 1<<20 {
		t.Errorf("only %d bytes were taken", moved)
	}
	q.release(&p)
	if q.size != 0 || q.list != nil {
		t.Error("not released")
	}
}
