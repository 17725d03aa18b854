package resp

// A connection served by goroutines over net.Conn: for TLS, and on systems without
// epoll. It has three goroutines, so that posted functions do not wait for a silent
// or a slow client: one reads and passes the input on, one owns the Conn, one
// writes.

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// goConn is a connection served by goroutines.
type goConn struct {
	Conn
	set *goroutineSet
	nc  net.Conn
	now func() int64

	ready   chan struct{} // has one element if there may be mail
	input   chan []byte   // what was read; closed at the end
	taken   chan []byte   // the owner no longer needs the input; the element is the next read buffer, nil for the same
	feeding bool          // the reader waits for taken
	outputs chan []byte   // to the writer
	written chan int      // how many bytes the writer has sent, or -1 if it failed
	busy    bool          // the writer is sending
	ended   func()        // called last
	caught  func()        // deferred by the goroutines that own c
	spareW  []byte        // the last buffer given to the writer; reused once the writer has sent it
	lent    bool          // the bytes that the writer sends belong to the source
	scratch scratch
}

// goroutineSet is the connections served by goroutines.
type goroutineSet struct {
	mu    sync.Mutex
	conns map[*goConn]struct{}
	io    ioCount
}

func (g *goroutineSet) list() []*goConn {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]*goConn, 0, len(g.conns))
	for c := range g.conns {
		out = append(out, c)
	}
	return out
}

func (g *goroutineSet) cutOffAfter(d time.Duration) {
	if len(g.list()) == 0 {
		return
	}
	time.AfterFunc(d, func() {
		for _, c := range g.list() {
			c.nc.Close()
		}
	})
}

func (s *Server) acceptGoroutines(ln net.Listener) {
	defer s.running.Done()
	defer s.caught()
	for {
		nc, err := ln.Accept()
		if err != nil {
			if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
				_ = s.full() // only notes it: the client waits until a descriptor is free
			}
			select {
			case <-s.done:
				return
			case <-time.After(restMillis * time.Millisecond):
			}
			if _, ok := err.(net.Error); !ok {
				return
			}
			continue
		}
		s.ServeConn(nc)
	}
}

// ServeConn serves nc by goroutines and returns at once.
func (s *Server) ServeConn(nc net.Conn) {
	c := &goConn{
		set: &s.gor, nc: nc, now: s.opts.Now,
		input: make(chan []byte), taken: make(chan []byte),
		outputs: make(chan []byte, 1), written: make(chan int, 1),
	}
	c.ready = make(chan struct{}, 1)
	c.init(s.lastID.Add(1), s.opts.Handler, c, s.opts.Now())
	c.remote, c.local = netAddrPort(nc.RemoteAddr()), netAddrPort(nc.LocalAddr())
	_, c.Inside = nc.(interface{ Inside() })
	if a, ok := nc.LocalAddr().(*net.UnixAddr); ok {
		c.path = a.Name
	}
	if tc, ok := nc.(*net.TCPConn); ok {
		period := time.Duration(s.keepalive.Load())
		_ = tc.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: period > 0, Idle: period, Interval: period / 3, Count: 3})
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		nc.Close()
		return
	}
	s.gor.mu.Lock()
	s.gor.conns[c] = struct{}{}
	s.gor.mu.Unlock()
	s.running.Add(1)
	s.mu.Unlock()
	c.ended, c.caught = s.running.Done, s.caught
	go c.run()
}

func netAddrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		p := t.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return netip.AddrPort{}
}

func (c *goConn) post() bool {
	select {
	case c.ready <- struct{}{}:
	default:
	}
	return true
}

func (c *goConn) nudge() { c.post() }

func (c *goConn) resume() { c.queued = true }

// flush sends nothing: Out goes to the writer when the turn ends. If the peer is gone, flush drops
// the replies.
func (c *goConn) flush() {
	if c.hungUp {
		c.Out.Buf = c.Out.Buf[:0]
	}
}

func (c *goConn) others() {}

func (c *goConn) gather() {
	nc := c.nc
	if over, ok := nc.(interface{ NetConn() net.Conn }); ok { // TLS
		nc = over.NetConn()
	}
	if tcp, ok := nc.(*net.TCPConn); ok {
		_ = tcp.SetNoDelay(false)
	}
}

func (c *goConn) unsent() int {
	if c.busy && !c.lent {
		return len(c.Out.Buf) + len(c.spareW)
	}
	return len(c.Out.Buf)
}

// run owns the connection until it ends.
func (c *goConn) run() {
	defer c.caught()
	go c.reader()
	go c.writer()
	c.handler.Opened(&c.Conn)
	c.settle()
	c.loop()
}

// loop is the main loop of run. It returns when another goroutine has taken over,
// or c has ended.
func (c *goConn) loop() {
	for c.closing != closeNow {
		select {
		case data, ok := <-c.input:
			if !ok {
				if !c.hangUp() {
					return
				}
				break
			}
			c.feeding = true
			if !c.feed(data) {
				return
			}
			c.feeding = false
			c.taken <- nil
		case <-c.ready:
			c.mail.run()
		case n := <-c.written:
			c.busy = false
			if n < 0 {
				if !c.hangUp() {
					return
				}
				break
			}
			c.bytesOut.Add(int64(n))
			if c.lent {
				c.lent = false
				c.source.Sent(n)
			}
			if c.drained() {
				c.queued = true
			}
		}
		for c.queued && c.closing == keepOpen {
			c.queued = false
			if !c.paused && c.in.len() > 0 && !c.serveKept() {
				return
			}
			c.settle()
		}
		c.settle()
	}
	c.end()
}

// handOver: see Conn.HandOver.
func (c *goConn) handOver(ran, mark int) bool {
	if c.scratch.data == nil {
		return false // no command runs
	}
	c.detach(&c.scratch, ran, mark)
	go c.carryOn()
	return true
}

// carryOn continues loop on a new goroutine, since the former one keeps a command.
func (c *goConn) carryOn() {
	defer c.caught()
	if c.feeding { // the command may use what the reader has read
		c.feeding = false
		c.taken <- make([]byte, sharedInputBytes)
	}
	if c.hungUp {
		for c.away {
			<-c.ready
			c.mail.run()
		}
		if !c.runKept(c.in.len() > 0) {
			return
		}
	}
	c.settle()
	c.loop()
}

// serveKept gives c a turn with its stored input. mine is false if c belongs to another
// goroutine now.
func (c *goConn) serveKept() (mine bool) {
	done := c.serve(c.in.bytes(), true, &c.scratch, turnCommandsMax)
	if done < 0 {
		return false
	}
	c.in.take(done)
	c.served()
	return true
}

// hangUp ends c, whose peer is gone, after the commands that a choke delayed have run. mine is
// as in serveKept.
func (c *goConn) hangUp() (mine bool) { return c.runKept(c.Conn.hangUp()) }

func (c *goConn) runKept(kept bool) (mine bool) {
	for ; kept && c.closing == keepOpen; kept = c.more {
		if !c.serveKept() {
			return false
		}
		c.mail.run()
		c.flush()
	}
	c.close(false, ReasonPeer)
	return true
}

// feed takes new input and serves it. It copies what remains, since the reader needs
// its buffer back. mine is as in serveKept.
func (c *goConn) feed(data []byte) (mine bool) {
	c.lastActive.Store(c.now())
	c.bytesIn.Add(int64(len(data)))
	if c.closing != keepOpen {
		return true
	}
	if c.in.len() == 0 {
		done := c.serve(data, false, &c.scratch, turnCommandsMax)
		if done < 0 {
			return false
		}
		c.in.buf = append(c.in.buf, data[done:]...)
		c.served()
		return true
	}
	if need := c.parser.Need(); need > cap(c.in.buf) && need < 2*c.in.len() {
		c.in = backlog{buf: append(make([]byte, 0, need), c.in.bytes()...)}
	}
	c.in.buf = append(c.in.buf, data...)
	return c.serveKept()
}

// served tidies up after a turn.
func (c *goConn) served() {
	if c.in.len() == 0 && cap(c.in.buf) > 0 || c.closing != keepOpen {
		c.in = backlog{}
	}
	c.scratch.release()
	c.noteQueryBytes()
	if c.overInput() {
		c.close(false, ReasonInput)
	}
	if c.more {
		c.queued = true
	}
}

// settle gives replies to the writer if it is free, and closes c if that is due.
func (c *goConn) settle() {
	if c.closing == closeNow {
		return
	}
	if c.strayReply(); c.closing == closeNow {
		return
	}
	if len(c.Out.Buf) > 0 && !c.busy {
		c.busy = true
		c.owed = 0
		b := c.Out.Buf
		c.Out.Buf, c.spareW = c.spareW[:0], b
		c.outputs <- b
	}
	if c.source != nil && !c.busy && c.closing == keepOpen {
		if b := c.source.Next(); len(b) > 0 {
			c.busy, c.lent = true, true
			c.outputs <- b
		}
	}
	if !c.busy && cap(c.spareW) > writeChunkBytes {
		c.spareW = nil
	}
	own, shared := c.unsent(), c.sourced()
	c.setOutputBytes(own)
	c.setSharedBytes(shared)
	waiting := int64(own) + shared
	if waiting == 0 && c.closing == closeFlushed {
		c.close(false, ReasonHandler)
	} else if c.busy && c.overOutput(waiting, c.now()) {
		c.close(false, ReasonOutput)
		c.reason = ReasonOutput
	}
}

// end closes everything and waits for the reader and the writer.
func (c *goConn) end() {
	c.over()
	c.nc.Close()
	close(c.outputs)
	for range c.input {
		c.taken <- nil
	}
	for range c.written {
	}
	c.set.mu.Lock()
	delete(c.set.conns, c)
	c.set.mu.Unlock()
	if c.away { // end does not wait for the command
		go c.endMail()
	} else {
		c.endMail()
	}
	c.ended()
}

// endMail runs what was posted to c until nothing more can come.
func (c *goConn) endMail() {
	defer c.caught()
	for c.away {
		<-c.ready
		c.mail.run()
	}
	for !c.mail.end() {
		c.mail.run()
	}
}

// shakeHands performs the TLS handshake, if c has one. The client has handshakeMillis for it, since it already counts as a
// connected client. shakeHands reports false if the handshake failed.
func (c *goConn) shakeHands() bool {
	over, ok := c.nc.(interface{ Handshake() error })
	if !ok {
		return true
	}
	late := time.AfterFunc(handshakeMillis*time.Millisecond, func() { c.nc.Close() })
	defer late.Stop()
	return over.Handshake() == nil
}

func (c *goConn) reader() {
	defer close(c.input)
	if !c.shakeHands() {
		return
	}
	buf := make([]byte, sharedInputBytes)
	for {
		n, err := c.nc.Read(buf)
		if n > 0 {
			c.set.io.reads.Add(1)
			c.input <- buf[:n]
			if other := <-c.taken; other != nil {
				buf = other
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *goConn) writer() {
	defer close(c.written)
	for b := range c.outputs {
		n, err := c.nc.Write(b)
		if err == nil && n < len(b) {
			err = io.ErrShortWrite
		}
		if err != nil {
			c.written <- -1
			return
		}
		c.set.io.writes.Add(1)
		c.written <- n
	}
}
