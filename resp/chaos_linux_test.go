package resp

// Many clients at once. Each checks that it gets all its replies in order, whatever the others do.

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestChaos(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) { chaos(t, o, nil) })
}

// chaos runs the clients. meanwhile, if not nil, is called with the server; the
// function that it returns is called when the clients are done.
func chaos(t *testing.T, o Options, meanwhile func(s *Server) (stop func())) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h := &echo{on: map[string]func(c *Conn, cmd Command){}}
	// later answers from another goroutine, while the client is paused.
	h.on["later"] = func(c *Conn, cmd Command) {
		c.Pause()
		arg := string(cmd.Args[1])
		go c.Post(func() {
			if !c.Gone() {
				c.Out.BulkString(arg)
				c.Resume()
			}
		})
	}
	h.on["big"] = func(c *Conn, cmd Command) {
		c.Out.Bulk(bytes.Repeat(cmd.Args[1], 10_000))
	}
	s, addr := start(t, h, o)
	if meanwhile != nil {
		defer meanwhile(s)()
	}
	const commands, clients = 400, 24
	var replies, hangups atomic.Int64
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			var send, want bytes.Buffer
			for n := range commands {
				arg := fmt.Sprintf("%d-%d", i, n)
				if rng.IntN(10) == 0 {
					arg += strings.Repeat("x", rng.IntN(1<<rng.IntN(17)))
				}
				name := []string{"ECHO", "ECHO", "ECHO", "AWAY", "LATER", "BIG", "inline", "inline away"}[rng.IntN(8)]
				if name == "BIG" && len(arg) > 20 {
					name = "AWAY"
				}
				switch name {
				case "inline", "inline away":
					verb := "echo"
					if name != "inline" {
						verb = "away"
					}
					arg = arg[:min(len(arg), 1000)]
					fmt.Fprintf(&send, "%s '%s'\r\n", verb, arg)
					fmt.Fprintf(&want, "$%d\r\n%s\r\n", len(arg), arg)
				case "BIG":
					send.Write(command(name, arg))
					fmt.Fprintf(&want, "$%d\r\n%s\r\n", 10_000*len(arg), bytes.Repeat([]byte(arg), 10_000))
				default:
					send.Write(command(name, arg))
					fmt.Fprintf(&want, "$%d\r\n%s\r\n", len(arg), arg)
				}
			}
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			_ = nc.SetDeadline(time.Now().Add(30 * time.Second))
			if i%6 == 5 { // goes away in the middle
				_, _ = nc.Write(send.Bytes()[:rng.IntN(send.Len())])
				hangups.Add(1)
				return
			}
			writeSeed := rng.Uint64()
			go func() {
				rng := rand.New(rand.NewPCG(writeSeed, 0))
				for b := send.Bytes(); len(b) > 0; {
					n := min(len(b), 1+rng.IntN(1<<rng.IntN(16)))
					if _, err := nc.Write(b[:n]); err != nil {
						return
					}
					b = b[n:]
					if rng.IntN(10) == 0 {
						time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
					}
				}
			}()
			r := bufio.NewReader(nc)
			got := make([]byte, 64<<10)
			for w := want.Bytes(); len(w) > 0; {
				n, err := r.Read(got[:min(len(got), len(w))])
				if err != nil && !errors.Is(err, io.EOF) || n == 0 {
					t.Errorf("client %d: %v with %d bytes to come", i, err, len(w))
					return
				}
				if !bytes.Equal(got[:n], w[:n]) {
					t.Errorf("client %d: got %.60q, want %.60q", i, got[:n], w[:n])
					return
				}
				w = w[n:]
			}
			replies.Add(int64(commands))
		})
	}
	all.Wait()
	if replies.Load() != int64(commands*clients*5/6) || hangups.Load() == 0 || h.away.Load() < int64(commands) {
		t.Errorf("%d replies, %d hangups, %d handed over", replies.Load(), hangups.Load(), h.away.Load())
	}
	eventually(t, "all are closed", func() bool { return h.closed.Load() == int64(clients) })
}

// TestSubscriber posts much to a client that reads all the time but is always
// behind: the server must not store the bytes that the client has read.
func TestSubscriber(t *testing.T) {
	conns := make(chan *Conn, 1)
	h := &echo{onOpen: func(c *Conn) { conns <- c }}
	_, addr := start(t, h, Options{Loops: 1})
	c := dial(t, "tcp", addr)
	conn := <-conns
	message := bytes.Repeat([]byte("m"), 100_000)
	const messages = 500
	widest := make(chan int, messages)
	go func() {
		for range messages {
			for conn.OutputBytes() > 3<<20 {
				time.Sleep(100 * time.Microsecond)
			}
			ran := make(chan bool)
			conn.Post(func() {
				conn.Out.Bulk(message)
				widest <- capacity(conn)
				close(ran)
			})
			<-ran
		}
	}()
	if _, err := io.CopyN(io.Discard, c.r, messages*(100_000+11)); err != nil {
		t.Fatal(err)
	}
	most := 0
	for range messages {
		most = max(most, <-widest)
	}
	if most > 32<<20 {
		t.Errorf("%d bytes were kept for output", most)
	}
}

// capacity is the memory of the output that waits.
func capacity(c *Conn) (n int) {
	if s, ok := c.owner.(*sock); ok {
		for _, b := range s.pend.list {
			n += cap(b)
		}
	}
	return n
}
