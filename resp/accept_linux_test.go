package resp

// The socket options that clients inherit from the listening socket.

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// options are the options of a connection's socket that the tests check.
type options struct{ noDelay, keepalive, idle int }

// optionsHandler reports the options of each new connection.
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
	// A change applies to all clients that connect after it.
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

// TestListenerIsLoops checks that only the loop watches a listening socket: Go's poller would wake a thread for each
// new client.
func TestListenerIsLoops(t *testing.T) {
	s, _ := start(t, &echo{}, Options{Loops: 2})
	l := s.loops[0]
	listener, by := make(chan unix.Stat_t, 1), 0
	l.call(func() {
		var st unix.Stat_t
		if err := unix.Fstat(l.accepts[0].fd, &st); err != nil {
			t.Error(err)
		}
		listener <- st
	})
	wanted := fmt.Sprintf(" ino:%x ", (<-listener).Ino)
	infos, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil || len(infos) == 0 {
		t.Fatalf("%v: %v", infos, err)
	}
	for _, name := range infos {
		if info, err := os.ReadFile(name); err == nil { // else it has been closed
			by += strings.Count(string(info), wanted)
		}
	}
	if by != 1 {
		t.Errorf("%d watch it", by)
	}
}

// TestAddresses checks that a connection knows its local and remote address, for both kinds of addresses.
func TestAddresses(t *testing.T) {
	h := &echo{on: map[string]func(*Conn, Command){"ends": func(c *Conn, _ Command) {
		c.Out.Status(c.RemoteAddr() + " " + c.LocalAddr())
	}}}
	s, addr := start(t, h, Options{Loops: 2})
	addrs := []string{addr}
	if six, err := s.Listen("tcp", "[::1]:0"); err == nil {
		addrs = append(addrs, six.String())
	} else {
		t.Logf("without IPv6: %v", err)
	}
	for _, addr := range addrs {
		for range 2 { // on both loops
			c := dial(t, "tcp", addr)
			c.send("ENDS\r\n")
			c.expect("+" + c.LocalAddr().String() + " " + c.RemoteAddr().String() + "\r\n")
		}
	}
}
