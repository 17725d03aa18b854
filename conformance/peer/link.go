package peer

import (
	"errors"
	"io"
	"math"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Link passes bytes on to a server, until it is cut. Who reaches a server by its link alone can be cut off from it.
type Link struct {
	// Cuts counts connections that ended since they were to pass no more.
	Cuts atomic.Int64

	ln     net.Listener
	to     string
	manner func() (left int64, slow bool)
	mu     sync.Mutex
	cut    bool
	conns  map[net.Conn]struct{}
}

// NewLink is a link to an address, at a port of its own. The caller closes it.
func NewLink(to string) (*Link, error) {
	return newLink(to, func() (int64, bool) { return math.MaxInt64, false })
}

// BadLink is a link until the test ends of which manner says, for each connection, how many of the server's bytes it passes before
// it ends, and whether it stands still now and then.
func BadLink(tb testing.TB, to string, manner func() (left int64, slow bool)) *Link {
	tb.Helper()
	l, err := newLink(to, manner)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(l.Close)
	return l
}

func newLink(to string, manner func() (int64, bool)) (*Link, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Link{ln: ln, to: to, manner: manner, conns: map[net.Conn]struct{}{}}
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go l.pass(c)
		}
	}()
	return l, nil
}

// Addr is where the server is reached by the link.
func (l *Link) Addr() string { return l.ln.Addr().String() }

// Port is the port of that.
func (l *Link) Port() string { _, port, _ := net.SplitHostPort(l.ln.Addr().String()); return port }

// Close ends the link and all its connections.
func (l *Link) Close() {
	l.ln.Close()
	l.Set(true)
}

// Set cuts all connections and lets no others be, or mends that.
func (l *Link) Set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for c := range l.conns {
		if cut {
			c.Close()
		}
	}
}

// keep notes connections, which a cut closes; it reports whether there may be any.
func (l *Link) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.conns[c] = struct{}{}
	}
	return !l.cut
}

func (l *Link) pass(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", l.to)
	if err != nil {
		return
	}
	defer s.Close()
	if l.keep(c, s) {
		go func() { _, _ = io.Copy(s, c); s.Close(); c.Close() }() // the other side's end ends this one
		l.answers(c, s)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	delete(l.conns, s)
}

// answers passes on what the server sends.
func (l *Link) answers(to, from net.Conn) {
	left, slow := l.manner()
	buf := make([]byte, 4<<10)
	for left > 0 {
		n, err := from.Read(buf[:min(int64(len(buf)), left)])
		left -= int64(n)
		if slow && left%7 == 0 {
			time.Sleep(20 * time.Millisecond)
		}
		if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
			return
		}
	}
	l.Cuts.Add(1)
}

// lastingTried counts the ports that were tried. Processes that run beside each other begin at different ones.
var lastingTried atomic.Int64

// LastingPort looks for a port that nobody else is given while the server of it is away: the system gives out higher ones.
func LastingPort() (string, error) {
	for range 1000 {
		port := strconv.FormatInt(15000+(int64(os.Getpid())*101+lastingTried.Add(1))%15000, 10)
		if ln, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			ln.Close()
			return port, nil
		}
	}
	return "", errors.New("no free port")
}
