package resp

// The server: listeners, the loops they feed, and the end of both.

import (
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure a Server.
type Options struct {
	Handler Handler

	// Now is the clock of LastActive, OpenedAt and the soft output limit, in
	// microseconds. A loop calls it once or twice per round.
	Now func() int64

	// Loops is how many epoll loops there are (Linux); 0 means GOMAXPROCS. A
	// busy loop keeps its processor (in the sense of GOMAXPROCS) and does not
	// yield. So GOMAXPROCS should be greater by at least one; otherwise goroutines
	// outside the loops wait up to 10 ms for a turn. Measured with two busy loops
	// on 2 cores: one goroutine in a hundred is late by 5 ms with
	// GOMAXPROCS 2, by 2 ms with 3, by 0.3 ms with 4.
	Loops int

	// Fixed gives every loop its own thread from the start. Otherwise one
	// thread runs all loops as long as it is not busy or no processor is
	// idle: a few threads that find much to do each time they look cost less than
	// many threads that find little.
	Fixed bool

	// Keepalive is the TCP keepalive period, 0 for none.
	Keepalive time.Duration

	// Goroutines serves every connection by goroutines, as other systems do.
	Goroutines bool

	// Round, if set, is called at the end of each round of a loop, after the replies of its commands were written or
	// delayed. It returns after how many microseconds it must be called again if nothing happens before; 0 means that it
	// need not be called.
	Round func() (again int64)

	// Full, if set, is called when a client connects and no file descriptor is left for it. It returns the text of the error
	// that the client gets, if the server can send it one.
	Full func() string

	// Panicked, if set, is called on the stack of a panic in one of the server's
	// goroutines, and ends the process.
	Panicked func(r any)
}

// caught is deferred by the server's goroutines.
func (s *Server) caught() {
	if s.opts.Panicked == nil {
		return
	}
	if r := recover(); r != nil {
		s.opts.Panicked(r)
	}
}

// full is the reply to a client for which no descriptor is left.
func (s *Server) full() string {
	if s.opts.Full == nil {
		return ""
	}
	return "-" + s.opts.Full() + "\r\n"
}

// ErrClosed is what Listen returns after Close.
var ErrClosed = errors.New("resp: server closed")

// Server owns listeners and the connections that come from them.
type Server struct {
	opts   Options
	lastID atomic.Uint64
	// keepalive is Options.Keepalive, or the last value of SetKeepalive.
	keepalive atomic.Int64

	mu        sync.Mutex
	listeners []*listener
	closed    bool
	done      chan struct{} // closed when Close is called
	running   sync.WaitGroup

	loops []*loop      // empty where connections are served by goroutines
	watch watch        // what loops do besides serving connections
	share supervisor   // decides which loops have their own thread
	gor   goroutineSet // the connections served by goroutines
}

type listener struct {
	net.Listener
}

// NewServer makes a server and starts its loops; it serves nothing until Listen.
func NewServer(o Options) (*Server, error) {
	if o.Loops <= 0 {
		o.Loops = runtime.GOMAXPROCS(0)
	}
	s := &Server{opts: o, done: make(chan struct{})}
	s.SetKeepalive(o.Keepalive)
	s.gor.conns = make(map[*goConn]struct{})
	if !o.Goroutines {
		if err := s.startLoops(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Listen starts accepting clients: network is tcp, tcp4, tcp6 or unix. It
// returns the address bound, with the port chosen if it was 0.
func (s *Server) Listen(network, addr string) (net.Addr, error) {
	ln, err := net.Listen(network, addr)
	if err != nil {
		return nil, err
	}
	if err := s.ServeListener(ln, len(s.loops) == 0); err != nil {
		ln.Close()
		return nil, err
	}
	return ln.Addr(), nil
}

// ServeListener accepts clients from ln, which Close will close. If goroutines is
// set, each client is served by goroutines over net.Conn, which TLS needs.
func (s *Server) ServeListener(ln net.Listener, goroutines bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.listeners = append(s.listeners, &listener{Listener: ln})
	if !goroutines && len(s.loops) > 0 {
		return s.listenOnLoop(ln)
	}
	s.running.Add(1)
	go s.acceptGoroutines(ln)
	return nil
}

// SetKeepalive changes Options.Keepalive for clients accepted from now on.
func (s *Server) SetKeepalive(period time.Duration) { s.keepalive.Store(int64(period)) }

// Loops is the number of event loops.
func (s *Server) Loops() int { return len(s.loops) }

// Each makes the owning goroutine of every connection call fn for it. It
// does not wait. It is for work that must visit all connections now and then, such
// as idle timeouts.
func (s *Server) Each(fn func(c *Conn)) {
	s.eachOnLoops(fn)
	for _, c := range s.gor.list() {
		c.Post(func() {
			if !c.gone {
				fn(&c.Conn)
			}
		})
	}
}

// Close stops accepting, closes every connection after sending its pending
// replies, and returns when all have ended. A client that does not take its
// replies is disconnected after a second.
func (s *Server) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		s.running.Wait()
		return
	}
	s.closed = true
	close(s.done)
	for _, ln := range s.listeners {
		ln.Close()
	}
	s.mu.Unlock()
	s.stopLoops()
	for _, c := range s.gor.list() {
		c.Post(func() { c.close(true, ReasonShutdown) })
	}
	s.gor.cutOffAfter(shutdownGraceMillis * time.Millisecond)
	s.running.Wait()
}
