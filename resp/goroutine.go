package resp

// A connection served by goroutines over net.Conn: for TLS, and where there is
// no epoll. Three share it, so that neither a silent nor a slow client keeps
// posted functions waiting: one reads and hands over what it has read, one owns
// the Conn, one writes.

import (
	"io"
	"net"
	"net/netip"
	"sync"
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
	taken   chan struct{} // the owner is done with it
	outputs chan []byte   // to the writer
	written chan int      // the writer has sent so much, or -1: it failed
	busy    bool          // the writer has something
	spareW  []byte        // the buffer the writer does not have
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
			select {
			case <-s.done:
				return
			case <-time.After(10 * time.Millisecond): // out of descriptors
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
		input: make(chan []byte), taken: make(chan struct{}),
		outputs: make(chan []byte, 1), written: make(chan int, 1),
	}
	c.ready = make(chan struct{}, 1)
	c.init(s.lastID.Add(1), s.opts.Handler, c, s.opts.Now())
	c.remote, c.local = netAddrPort(nc.RemoteAddr()), netAddrPort(nc.LocalAddr())
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
	go func() {
		defer s.running.Done()
		defer s.caught()
		c.run()
	}()
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

func (c *goConn) resume() { c.queued = true }

// flush does nothing: what is in Out goes to the writer when the turn ends, or to
// nobody.
func (c *goConn) flush() {
	if c.hungUp {
		c.out.Buf = c.out.Buf[:0]
	}
}

func (c *goConn) unsent() int {
	if c.busy {
		return len(c.out.Buf) + len(c.spareW)
	}
	return len(c.out.Buf)
}

// run owns the connection until it ends.
func (c *goConn) run() {
	go c.reader()
	go c.writer()
	c.handler.Opened(&c.Conn)
	c.settle()
	for c.closing != closeNow {
		select {
		case data, ok := <-c.input:
			if !ok {
				c.hangUp()
				break
			}
			c.feed(data)
			c.taken <- struct{}{}
		case <-c.ready:
			c.mail.run()
		case n := <-c.written:
			c.busy = false
			if n < 0 {
				c.hangUp()
				break
			}
			c.bytesOut.Add(int64(n))
			if c.drained() {
				c.queued = true
			}
		}
		for c.queued && c.closing == keepOpen {
			c.queued = false
			if !c.paused && c.in.len() > 0 {
				c.in.take(c.serve(c.in.bytes(), &c.scratch, turnCommandsMax))
				c.served()
			}
			c.settle()
		}
		c.settle()
	}
	c.end()
}

// hangUp ends c, whose peer is gone, once the commands that were kept have run.
func (c *goConn) hangUp() {
	for kept := c.Conn.hangUp(); kept && c.closing == keepOpen; kept = c.more {
		c.in.take(c.serve(c.in.bytes(), &c.scratch, turnCommandsMax))
		c.served()
		c.mail.run()
		c.flush()
	}
	c.close(false, ReasonPeer)
}

// feed takes input. It is copied behind what is there, since the reader needs
// its buffer back.
func (c *goConn) feed(data []byte) {
	c.lastActive.Store(c.now())
	c.bytesIn.Add(int64(len(data)))
	if c.closing != keepOpen {
		return
	}
	if c.in.len() == 0 {
		done := c.serve(data, &c.scratch, turnCommandsMax)
		c.in.buf = append(c.in.buf, data[done:]...)
	} else {
		if need := c.parser.Need(); need > cap(c.in.buf) && need < 2*c.in.len() {
			c.in = backlog{buf: append(make([]byte, 0, need), c.in.bytes()...)}
		}
		c.in.buf = append(c.in.buf, data...)
		c.in.take(c.serve(c.in.bytes(), &c.scratch, turnCommandsMax))
	}
	c.served()
}

// served tidies up after a turn.
func (c *goConn) served() {
	if c.in.len() == 0 && cap(c.in.buf) > 0 || c.closing != keepOpen {
		c.in = backlog{}
	}
	c.scratch.release()
	c.setQueryBytes(c.in.len())
	if c.overInput() {
		c.close(false, ReasonInput)
	}
	if c.more {
		c.queued = true
	}
}

// settle hands replies to the writer if it is free, and closes what is due.
func (c *goConn) settle() {
	if c.closing == closeNow {
		return
	}
	if len(c.out.Buf) > 0 && !c.busy {
		c.busy = true
		b := c.out.Buf
		c.out.Buf, c.spareW = c.spareW[:0], b
		c.outputs <- b
	}
	if !c.busy && cap(c.spareW) > writeChunkBytes {
		c.spareW = nil
	}
	waiting := int64(c.unsent())
	c.setOutputBytes(int(waiting))
	if waiting == 0 && c.closing == closeFlushed {
		c.close(false, ReasonHandler)
	} else if c.busy && c.overOutput(waiting, c.now()) {
		c.close(false, ReasonOutput)
		c.reason = ReasonOutput
	}
}

// end closes everything and waits for the reader and the writer.
func (c *goConn) end() {
	c.gone = true
	c.handler.Closed(&c.Conn)
	c.nc.Close()
	close(c.outputs)
	for range c.input {
		c.taken <- struct{}{}
	}
	for range c.written {
	}
	c.set.mu.Lock()
	delete(c.set.conns, c)
	c.set.mu.Unlock()
	for !c.mail.end() {
		c.mail.run()
	}
}

func (c *goConn) reader() {
	defer close(c.input)
	buf := make([]byte, sharedInputBytes)
	for {
		n, err := c.nc.Read(buf)
		if n > 0 {
			c.set.io.reads.Add(1)
			c.input <- buf[:n]
			<-c.taken
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
