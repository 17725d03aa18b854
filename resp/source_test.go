package resp

// Sources: a connection sends the bytes of a source, as fast as its peer takes them.

import (
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// counting is a source whose bytes count up, to a limit that the test raises.
type counting struct {
	mu         sync.Mutex
	sent, upTo int64
}

func (s *counting) Next() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := make([]byte, min(s.upTo-s.sent, 50_000))
	for i := range b {
		b[i] = byte((s.sent + int64(i)) % 251)
	}
	return b
}

func (s *counting) Sent(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent += int64(n)
}

func (s *counting) Unsent() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.upTo - s.sent
}

func (s *counting) more(c *Conn, n int64) {
	s.mu.Lock()
	s.upTo += n
	s.mu.Unlock()
	if n%2 == 0 {
		c.Nudge()
	} else {
		c.Post(func() {})
	}
}

// feeder replies +OK, has the source attached on "feed" and replies to nothing else.
type feeder struct {
	source counting
	conns  chan *Conn
	closed chan Reason
}

func (f *feeder) Opened(*Conn)   {}
func (f *feeder) Closed(c *Conn) { f.closed <- c.Reason() }
func (f *feeder) Serve(c *Conn, batch []Command) int {
	for _, cmd := range batch {
		switch string(cmd.Args[0]) {
		case "feed":
			c.Out.Status("OK")
			c.Post(func() { c.Attach(&f.source); f.conns <- c })
		case "limit":
			c.OutputHard = 1 << 20
		case "stray":
			c.Out.Status("STRAY")
		}
	}
	return len(batch)
}

func TestSource(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		f := &feeder{conns: make(chan *Conn, 1), closed: make(chan Reason, 9)}
		_, addr := start(t, f, o)
		c := dial(t, "tcp", addr)
		c.send("feed\r\n")
		conn := <-f.conns
		const all = 20 << 20
		go func() {
			for left := int64(all); left > 0; {
				n := min(left, rand.Int64N(300_000)+1)
				f.source.more(conn, n)
				left -= n
				if rand.IntN(10) == 0 {
					time.Sleep(time.Millisecond)
				}
			}
		}()
		c.expect("+OK\r\n")
		buf := make([]byte, 1<<20)
		for at := int64(0); at < all; {
			n, err := c.r.Read(buf[:1+rand.IntN(len(buf)-1)])
			if err != nil {
				t.Fatalf("after %d bytes: %v", at, err)
			}
			for i, b := range buf[:n] {
				if b != byte((at+int64(i))%251) {
					t.Fatalf("byte %d is %d", at+int64(i), b)
				}
			}
			at += int64(n)
			if rand.IntN(50) == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		c.send("nothing\r\n") // to which there is no reply
		f.source.more(conn, 1)
		if b, err := c.r.ReadByte(); err != nil || b != byte(all%251) {
			t.Fatal(b, err)
		}
		// A reply would be taken for a part of it.
		c.send("stray\r\n")
		if rest, _ := io.ReadAll(c.r); len(rest) != 0 {
			t.Errorf("%q was sent", rest)
		}
		if why := <-f.closed; why != ReasonHandler {
			t.Errorf("closed for reason %d", why)
		}
	})
}

// What waits in a source counts as output that the peer has not taken.
func TestSourceLimit(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		f := &feeder{conns: make(chan *Conn, 1), closed: make(chan Reason, 9)}
		_, addr := start(t, f, o)
		c := dial(t, "tcp", addr)
		c.send("limit\r\nfeed\r\n")
		conn := <-f.conns
		for i := 0; ; i++ {
			select {
			case why := <-f.closed:
				if why != ReasonOutput {
					t.Errorf("closed for reason %d", why)
				}
				return
			default:
			}
			if i > 2000 {
				t.Fatal("it is never closed")
			}
			f.source.more(conn, 100_000)
			time.Sleep(time.Millisecond)
		}
	})
}
