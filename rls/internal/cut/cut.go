// Package cut, internal to the gateway, is a proxy between a client and a server that tests can interrupt and restore.
package cut

import (
	"net"
	"sync"
	"testing"
)

// Line forwards connections from Addr to a server.
type Line struct {
	Addr string

	t        testing.TB
	to       string
	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	silent   bool
}

// New makes a line to a server, and begins to forward.
func New(t testing.TB, to string) *Line {
	l := &Line{t: t, to: to, Addr: "127.0.0.1:0", conns: map[net.Conn]bool{}}
	l.Mend()
	t.Cleanup(l.Cut)
	return l
}

// Mend accepts connections again, on the same address.
func (l *Line) Mend() {
	listener, err := net.Listen("tcp", l.Addr)
	if err != nil {
		l.t.Fatal(err)
	}
	l.mu.Lock()
	l.listener, l.silent = listener, false
	l.mu.Unlock()
	l.Addr = listener.Addr().String()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", l.to)
			if err != nil {
				c.Close()
				continue
			}
			l.mu.Lock()
			l.conns[c], l.conns[s] = true, true
			l.mu.Unlock()
			go l.copy(s, c, false)
			go l.copy(c, s, true)
		}
	}()
}

// Silence drops answers from now on, until Mend is called.
func (l *Line) Silence() {
	l.mu.Lock()
	l.silent = true
	l.mu.Unlock()
}

func (l *Line) copy(to, from net.Conn, answers bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		l.mu.Lock()
		lost := answers && l.silent
		l.mu.Unlock()
		if n > 0 && !lost {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Cut closes all connections and refuses new ones.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener.Close()
	for c := range l.conns {
		c.Close()
	}
	clear(l.conns)
}
