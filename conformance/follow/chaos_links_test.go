package follow

// Links that nobody would want: each connection has a delay, a speed and an end of its own, and now and then nothing passes.

import (
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// link is the way of a replica to a server.
type link struct {
	ln   net.Listener
	to   string
	calm *atomic.Bool // all passes as it comes
	cuts *atomic.Int64

	mu     sync.Mutex
	r      *rand.Rand
	stands time.Time // nothing passes until then
	conns  map[net.Conn]struct{}
}

// manner is how a direction of a connection is.
type manner struct {
	left  int64 // so many bytes pass before it is cut
	speed int64 // bytes in a second, 0 for no limit
	delay time.Duration
}

func newLink(t *testing.T, to string, r *rand.Rand, calm *atomic.Bool, cuts *atomic.Int64) *link {
	t.Helper()
	l := &link{ln: newListener(t), to: to, r: r, calm: calm, cuts: cuts, conns: map[net.Conn]struct{}{}}
	t.Cleanup(func() { l.ln.Close(); l.cut() }) // first, so that nobody comes behind it
	go accept(l.ln, l.serve)
	return l
}

func (l *link) port() string { _, port, _ := net.SplitHostPort(l.ln.Addr().String()); return port }

// manner draws how a direction is. Few bytes and many are as likely, and most connections last.
func (l *link) manner() (m manner) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m.left = math.MaxInt64
	if l.r.IntN(2) == 0 {
		m.left = int64(math.Exp(l.r.Float64() * math.Log(4<<20)))
	}
	switch l.r.IntN(4) {
	case 0:
		m.speed = 50_000 << l.r.IntN(6)
	case 1:
		m.delay = time.Duration(l.r.IntN(30)) * time.Millisecond
	}
	return m
}

func (l *link) serve(c net.Conn) {
	s, err := net.Dial("tcp", l.to)
	if err != nil {
		c.Close()
		return
	}
	l.mu.Lock()
	l.conns[c], l.conns[s] = struct{}{}, struct{}{}
	l.mu.Unlock()
	up, down := l.manner(), l.manner()
	var both sync.WaitGroup
	both.Go(func() { l.pass(s, c, up) })
	both.Go(func() { l.pass(c, s, down) })
	both.Wait()
	l.mu.Lock()
	delete(l.conns, c)
	delete(l.conns, s)
	l.mu.Unlock()
}

// pass passes bytes on in one direction until either side ends.
func (l *link) pass(to, from net.Conn, m manner) {
	defer to.Close()
	defer from.Close()
	type chunk struct {
		b   []byte
		due time.Time
	}
	chunks := make(chan chunk, 64)
	gone := make(chan struct{})
	defer close(gone)
	go func() {
		defer close(chunks)
		for {
			b := make([]byte, 16<<10)
			n, err := from.Read(b)
			if n > 0 {
				select {
				case chunks <- chunk{b[:n], time.Now().Add(m.delay)}:
				case <-gone:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	for c := range chunks {
		if !l.calm.Load() {
			time.Sleep(time.Until(c.due))
			if m.speed > 0 {
				time.Sleep(time.Duration(int64(len(c.b)) * int64(time.Second) / m.speed))
			}
			for !l.calm.Load() && time.Now().Before(l.until()) {
				time.Sleep(5 * time.Millisecond)
			}
			if n := min(int64(len(c.b)), m.left); n < int64(len(c.b)) {
				_, _ = to.Write(c.b[:n])
				l.cuts.Add(1)
				return
			}
			m.left -= int64(len(c.b))
		}
		if _, err := to.Write(c.b); err != nil {
			return
		}
	}
}

func (l *link) until() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stands
}

// stall has nothing pass for some time.
func (l *link) stall(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stands = time.Now().Add(d)
}

// cut ends all connections.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		c.Close()
	}
	if len(l.conns) > 0 {
		l.cuts.Add(1)
	}
}
