package resp

// Replies of connections that are ready together are sent together.

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// holding is a handler whose command HOLD passes a channel to the test and blocks the loop until the test closes it.
func holding() (h *echo, held chan chan struct{}) {
	held = make(chan chan struct{})
	return &echo{on: map[string]func(*Conn, Command){"hold": func(c *Conn, _ Command) {
		goOn := make(chan struct{})
		held <- goOn
		<-goOn
		c.Out.Status("HELD")
	}}}, held
}

// gather makes several clients ready at once for a loop. Each of them except the first has sent the text send(its number).
func gather(clients []*client, held chan chan struct{}, send func(i int) string) {
	clients[0].send("HOLD\r\n")
	goOn := <-held
	for i, c := range clients[1:] {
		c.send(send(i + 1))
	}
	close(goOn)
	clients[0].expect("+HELD\r\n")
}

// TestLateReplies collects replies of all sizes around the limits: each client gets its own replies, whole and in order.
func TestLateReplies(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	h, held := holding()
	h.on["long"] = func(c *Conn, cmd Command) {
		n, _ := ParseInt(cmd.Args[1])
		c.Took(n)
		c.Out.Status("LONG")
	}
	h.on["others"] = func(c *Conn, _ Command) { c.Others(); c.Out.Status("FIRST") }
	h.on["big"] = func(c *Conn, cmd Command) {
		var n int
		_, _ = fmt.Sscan(string(cmd.Args[1]), &n)
		c.Out.Bulk([]byte(strings.Repeat("x", n)))
	}
	_, addr := start(t, h, Options{Loops: 1})
	clients := make([]*client, 2*lateMax+5)
	for i := range clients {
		clients[i] = dial(t, "tcp", addr)
	}
	sizes := []int{0, 1, 100, lateBytesMax - 10, lateBytesMax, lateBytesMax + 1, outputBytes - 10, outputBytes, 3 * outputBytes, outKeptBytes + 1}
	for range 30 {
		want := make([]string, len(clients))
		gather(clients, held, func(i int) string {
			var b strings.Builder
			for range 1 + r.IntN(4) {
				switch r.IntN(8) {
				case 0:
					fmt.Fprintf(&b, "LONG %d\r\n", []int{1, LateMicrosMax / 3, LateMicrosMax - 1, LateMicrosMax, LateMicrosMax + 1}[r.IntN(5)])
					want[i] += "+LONG\r\n"
				case 1:
					b.WriteString("OTHERS\r\n")
					want[i] += "+FIRST\r\n"
				case 2:
					n := sizes[r.IntN(len(sizes))]
					fmt.Fprintf(&b, "BIG %d\r\n", n)
					want[i] += fmt.Sprintf("$%d\r\n%s\r\n", n, strings.Repeat("x", n))
				default:
					word := fmt.Sprint(r.IntN(1000000))
					b.WriteString("ECHO " + word + "\r\n")
					want[i] += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
				}
			}
			return b.String()
		})
		for i, c := range clients[1:] {
			c.expect(want[i+1])
		}
	}
}

// TestOthersAreSent runs a long command that waits until the replies of earlier turns have arrived.
func TestOthersAreSent(t *testing.T) {
	h, held := holding()
	arrived := make(chan struct{})
	h.on["slow"] = func(c *Conn, _ Command) {
		c.Others()
		<-arrived
		c.Out.Status("SLOW")
	}
	_, addr := start(t, h, Options{Loops: 1})
	clients := []*client{dial(t, "tcp", addr), dial(t, "tcp", addr), dial(t, "tcp", addr)}
	gather(clients, held, func(i int) string { return []string{1: "PING\r\n", 2: "SLOW\r\n"}[i] })
	clients[1].expect("+PONG\r\n")
	close(arrived)
	clients[2].expect("+SLOW\r\n")
}

// TestLongTurns checks that replies are sent before further turns once the turns took LateMicrosMax together, and not earlier.
func TestLongTurns(t *testing.T) {
	for _, took := range []int64{LateMicrosMax/3 - 1, LateMicrosMax/2 - 1, LateMicrosMax / 2, LateMicrosMax - 1, LateMicrosMax, LateMicrosMax + 1, 1_000_000} {
		h, held := holding()
		h.on["long"] = func(c *Conn, _ Command) { c.Took(took); c.Out.Status("LONG") }
		h.on["sent"] = func(c *Conn, _ Command) { c.Out.Int(int64(len(c.owner.(*sock).loop.late))) }
		_, addr := start(t, h, Options{Loops: 1})
		clients := make([]*client, 6)
		for i := range clients {
			clients[i] = dial(t, "tcp", addr)
		}
		gather(clients, held, func(i int) string {
			return []string{1: "LONG\r\n", 2: "LONG\r\n", 3: "SENT\r\n", 4: "LONG\r\n", 5: "SENT\r\n"}[i]
		})
		// What waits when SENT runs: two LONGs or nothing; then SENT's own reply and another LONG with that, or without.
		first, second := 2, 0
		switch {
		case 3*took < LateMicrosMax:
			second = 4
		case 2*took >= LateMicrosMax:
			first, second = 0, 2
			if took >= LateMicrosMax {
				second = 0
			}
		}
		want := []string{1: "+LONG\r\n", 2: "+LONG\r\n", 3: fmt.Sprintf(":%d\r\n", first), 4: "+LONG\r\n", 5: fmt.Sprintf(":%d\r\n", second)}
		for i, c := range clients[1:] {
			c.expect(want[i+1])
		}
	}
}

// TestLateRepliesOfTheGone ends connections whose replies are yet to be sent: the client disconnects, or the handler closes.
func TestLateRepliesOfTheGone(t *testing.T) {
	h, held := holding()
	conns := map[string]*Conn{}
	h.on["me"] = func(c *Conn, cmd Command) { conns[string(cmd.Args[1])] = c; c.Out.Status("ME") }
	h.on["kill"] = func(c *Conn, cmd Command) {
		victim := conns[string(cmd.Args[1])]
		victim.Post(func() { victim.Close(false) })
		c.Out.Status("KILLED")
	}
	_, addr := start(t, h, Options{Loops: 1})
	for round := range 20 {
		clients := []*client{dial(t, "tcp", addr), dial(t, "tcp", addr), dial(t, "tcp", addr), dial(t, "tcp", addr), dial(t, "tcp", addr)}
		name := fmt.Sprint("victim", round)
		clients[1].send("ME " + name + "\r\n")
		clients[1].expect("+ME\r\n")
		gather(clients, held, func(i int) string {
			return []string{1: "PING\r\nPING\r\n", 2: "KILL " + name + "\r\n", 3: "PING\r\n", 4: "PING\r\nQUIT\r\n"}[i]
		})
		clients[1].expect("+PONG\r\n+PONG\r\n") // they were there before it was killed
		clients[1].expectEOF()
		clients[2].expect("+KILLED\r\n")
		clients[3].expect("+PONG\r\n")
		clients[4].expect("+PONG\r\n+OK\r\n")
		clients[4].expectEOF()
		clients[0].Close()
		clients[3].Close()
	}
	eventually(t, "all are closed", func() bool { return h.closed.Load() >= 60 })
}

// TestCloseWithLateReplies stops the server in a round with unsent replies: they are sent, each connection is
// closed once, and the loop ends.
func TestCloseWithLateReplies(t *testing.T) {
	h, held := holding()
	s, addr := start(t, h, Options{Loops: 1})
	clients := []*client{dial(t, "tcp", addr), dial(t, "tcp", addr), dial(t, "tcp", addr), dial(t, "tcp", addr)}
	gather(clients, held, func(i int) string { return []string{1: "PING\r\n", 2: "PING\r\n", 3: "HOLD\r\n"}[i] })
	goOn := <-held
	ended := make(chan struct{})
	go func() { s.Close(); close(ended) }()
	l := s.loops[0]
	eventually(t, "the loop is told to end", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.mail) > 0 })
	close(goOn)
	clients[1].expect("+PONG\r\n")
	clients[2].expect("+PONG\r\n")
	clients[3].expect("+HELD\r\n")
	for _, c := range clients {
		c.expectEOF()
	}
	eventually(t, "the server has ended", func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	})
	if n := h.closed.Load(); n != int64(len(clients)) {
		t.Errorf("%d connections were closed %d times", len(clients), n)
	}
}

// TestUnreadRepliesStay has a client with unread replies that took the loop's buffer with them, while other clients get
// replies: the unread replies do not change.
func TestUnreadRepliesStay(t *testing.T) {
	const size, unread = 200_000, 100
	h := &echo{on: map[string]func(*Conn, Command){"fill": func(c *Conn, cmd Command) {
		c.Out.Bulk([]byte(strings.Repeat(string(cmd.Args[1]), size)))
	}}}
	_, addr := start(t, h, Options{Loops: 1})
	lazy, other := dial(t, "tcp", addr), dial(t, "tcp", addr)
	reply := func(letter string) string { return fmt.Sprintf("$%d\r\n%s\r\n", size, strings.Repeat(letter, size)) }
	for range unread {
		lazy.send("FILL a\r\n")
		other.send("FILL z\r\n")
		other.expect(reply("z"))
	}
	for range unread {
		lazy.expect(reply("a"))
	}
}
