package resp

// What clients inherit from the listening socket.

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// options are those of a connection's socket that a test asks for.
type options struct{ noDelay, keepalive, idle int }

// optionsHandler tells the options of each connection that comes.
type optionsHandler struct {
	nullHandler
	got chan options
}

func (h *optionsHandler) Opened(c *Conn) {
	var o options
	o.noDelay, _ = unix.GetsockoptInt(c.Fd, unix.IPPROTO_TCP, unix.TCP_NODELAY)
	o.keepalive, _ = unix.GetsockoptInt(c.Fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE)
	o.idle, _ = unix.GetsockoptInt(c.Fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
	h.got <- o
}

func TestInheritedOptions(t *testing.T) {
	h := &optionsHandler{got: make(chan options, 1)}
	s, addr := start(t, h, Options{Loops: 2, Keepalive: 70 * time.Second})
	ask := func() options {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		return <-h.got
	}
	for range 3 { // on both loops
		if got, want := ask(), (options{1, 1, 70}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	// A change holds for all who connect after it.
	s.SetKeepalive(90 * time.Second)
	if got, want := ask(), (options{1, 1, 90}); got != want {
		t.Errorf("changed: %+v, want %+v", got, want)
	}
	s.SetKeepalive(0)
	if got := ask(); got.keepalive != 0 || got.noDelay != 1 {
		t.Errorf("none: %+v", got)
	}
	s.SetKeepalive(70 * time.Second)
	if got, want := ask(), (options{1, 1, 70}); got != want {
		t.Errorf("again: %+v, want %+v", got, want)
	}
}
