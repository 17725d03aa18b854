package resp

// The servers over real sockets: each test runs on loops and on goroutines.

import (
	"bufio"
	"net"
	"testing"
	"time"
)

// start runs a server for a test and returns it with its address.
func start(t testing.TB, h Handler, o Options) (*Server, string) {
	t.Helper()
	o.Handler, o.Now = h, micros
	s, err := NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	addr, err := s.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return s, addr.String()
}

// bothServers runs a test on loops and on goroutines.
func bothServers(t *testing.T, fn func(t *testing.T, o Options)) {
	t.Run("loops", func(t *testing.T) { fn(t, Options{Loops: 2}) })
	t.Run("goroutines", func(t *testing.T) { fn(t, Options{Goroutines: true}) })
}

type client struct {
	net.Conn
	r *bufio.Reader
	t testing.TB
}

func dial(t testing.TB, network, addr string) *client {
	t.Helper()
	nc, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(20 * time.Second))
	return &client{nc, bufio.NewReader(nc), t}
}

func (c *client) send(s string) {
	c.t.Helper()
	if _, err := c.Write([]byte(s)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) expect(want string) {
	c.t.Helper()
	buf := make([]byte, len(want))
	for n := 0; n < len(want); {
		k, err := c.r.Read(buf[n:])
		if err != nil {
			c.t.Fatalf("after %q: %v", buf[:n], err)
		}
		n += k
	}
	if string(buf) != want {
		c.t.Fatalf("got %q, want %q", buf, want)
	}
}

func (c *client) expectEOF() {
	c.t.Helper()
	if b, err := c.r.ReadByte(); err == nil {
		c.t.Fatalf("got byte %q, want end of connection", b)
	}
}

func TestServerBasics(t *testing.T) {
	bothServers(t, func(t *testing.T, o Options) {
		h := &echo{}
		_, addr := start(t, h, o)
		c := dial(t, "tcp", addr)
		c.send("*1\r\n$4\r\nPING\r\n")
		c.expect("+PONG\r\n")
		c.send("PING\r\n*2\r\n$4\r\nECHO\r\n$3\r\na")
		c.expect("+PONG\r\n")
		c.send("bc\r\n")
		c.expect("$3\r\nabc\r\n")
		c.send("QUIT\r\nPING\r\n")
		c.expect("+OK\r\n")
		c.expectEOF()
		c = dial(t, "tcp", addr)
		c.send("*1\r\nfoo\r\n")
		c.expect("-ERR Protocol error: expected '$', got 'f'\r\n")
		c.expectEOF()
	})
}
