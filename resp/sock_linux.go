package resp

// A connection on an event loop: reading, serving, writing, ending. All of it runs on the loop's goroutine.

import (
	"net/netip"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sock is a connection on a loop.
type sock struct {
	Conn
	loop  *loop
	slot  int32
	gen   int32  // tells a late event for an earlier owner of the slot
	armed uint32 // the events epoll is asked for
	pend  pieces // output that the peer has yet to take
}

// add takes over a connected descriptor.
func (l *loop) add(fd int, remote, local netip.AddrPort, path string) {
	var slot int32
	if n := len(l.free); n > 0 {
		slot = l.free[n-1]
		l.free = l.free[:n-1]
	} else {
		slot = int32(len(l.socks))
		l.socks = append(l.socks, nil)
	}
	c := &sock{loop: l, slot: slot}
	c.init(l.server.lastID.Add(1), l.server.opts.Handler, c, l.now)
	c.gen = int32(c.ID)
	c.Fd, c.Loop, c.remote, c.local, c.path = fd, l.index, remote, local, path
	l.socks[slot] = c
	c.armed = unix.EPOLLIN
	ev := unix.EpollEvent{Events: c.armed, Fd: slot, Pad: c.gen}
	if err := unix.EpollCtl(l.epfd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		l.socks[slot] = nil
		l.free = append(l.free, slot)
		unix.Close(fd)
		l.count.Add(-1)
		return
	}
	l.begin(c)
	c.handler.Opened(&c.Conn)
	if l.stopping {
		c.close(true, ReasonShutdown)
	}
	l.finish(c)
}

// event handles what epoll reports about c. It reports false if the loop is
// another goroutine's now.
func (l *loop) event(c *sock, events uint32) (mine bool) {
	if events&unix.EPOLLOUT != 0 {
		l.writePending(c)
		if c.gone {
			return true
		}
	}
	switch {
	case c.queued || c.hungUp: // first what is there
	case events&unix.EPOLLIN != 0:
		return l.read(c)
	case events&(unix.EPOLLERR|unix.EPOLLHUP) != 0:
		l.hangUp(c)
	}
	return true
}

// hangUp ends c, whose peer is gone, once the commands that were kept have run.
func (l *loop) hangUp(c *sock) {
	if c.hangUp() {
		c.pend.release(&l.pool)
		c.setOutputBytes(0)
		c.resume()
		l.arm(c)
		return
	}
	c.close(false, ReasonPeer)
	l.drop(c)
}

// read takes what c has sent, as much as the buffer holds, and serves it. It
// reports as event does.
func (l *loop) read(c *sock) (mine bool) {
	if c.closing != keepOpen { // only its end is of interest
		n, errno := rawRead(c.Fd, l.input)
		if n == 0 && errno != syscall.EAGAIN && errno != syscall.EINTR {
			c.close(false, ReasonPeer)
			l.drop(c)
		}
		return true
	}
	held := c.in.len()
	own := held > sharedInputBytes
	buf := l.input
	if own {
		l.growInput(c)
		buf = c.in.buf[c.in.off:cap(c.in.buf)]
	} else {
		copy(buf, c.in.bytes())
	}
	n, errno := rawRead(c.Fd, buf[held:min(len(buf), held+readTurnBytes)])
	if n <= 0 {
		if errno != syscall.EAGAIN && errno != syscall.EINTR {
			l.hangUp(c)
		}
		return true
	}
	c.lastActive.Store(l.now)
	c.bytesIn.Add(int64(n))
	l.io.reads.Add(1)
	if own {
		c.in.buf = c.in.buf[:len(c.in.buf)+n]
	} else if c.in.buf != nil {
		c.in.drop(&l.pool)
	}
	return l.serve(c, buf[:held+n], own)
}

// growInput makes room for more input, at once for all of a large argument that
// is known to come, but never more than twice what has come: announcing much
// must not cost us anything.
func (l *loop) growInput(c *sock) {
	in := c.in
	if cap(in.buf)-len(in.buf) >= sharedInputBytes {
		return
	}
	held := c.in.len()
	size := 2 * held
	if need := c.parser.Need(); need > held && need < size {
		size = need
	}
	size = max(size, held+sharedInputBytes)
	c.in = backlog{buf: append(l.pool.get(size), in.bytes()...)}
	in.drop(&l.pool)
}

// serve gives c a turn with data, which is all of c.in if own, else borrowed. It
// reports as event does.
func (l *loop) serve(c *sock, data []byte, own bool) (mine bool) {
	l.begin(c)
	done := c.serve(data, own, &l.scratch, turnCommandsMax)
	if done < 0 {
		return false
	}
	l.keep(c, data, done, own)
	l.finish(c)
	if own || cap(l.scratch.args) > argsKeptMax {
		l.scratch.release()
	}
	switch {
	case c.gone:
		return true
	case c.overInput():
		c.close(false, ReasonInput)
		l.drop(c)
		return true
	case c.more:
		c.resume()
	case c.hungUp:
		c.close(false, ReasonPeer)
		l.drop(c)
		return true
	}
	l.arm(c)
	return true
}

// handOver is called in the middle of serve. What the loop had before it when it
// came to c is done by whoever goes on with it: events are reported again.
func (c *sock) handOver(ran, mark int) bool {
	l := c.loop
	if l.scratch.data == nil {
		return false // no command runs
	}
	if !l.scratch.own {
		l.input = make([]byte, readBytes)
	}
	c.part(&l.scratch, ran, mark)
	l.output = nil
	c.flush()
	if c.hungUp { // that it is would be reported without end
		_ = unix.EpollCtl(l.epfd, unix.EPOLL_CTL_DEL, c.Fd, nil)
	}
	l.arm(c)
	l.again = append(l.again, l.left...)
	l.left, l.spareAgain = nil, nil
	go l.carryOn()
	return true
}

// keep stores the input that is not done with.
func (l *loop) keep(c *sock, data []byte, done int, own bool) {
	rest := data[done:]
	switch {
	case c.closing != keepOpen || len(rest) == 0:
		c.in.drop(&l.pool)
	case !own || len(rest) <= sharedInputBytes && done > 0:
		small := append(l.pool.get(len(rest)), rest...)
		c.in.drop(&l.pool)
		c.in = backlog{buf: small}
	default:
		c.in.take(done)
	}
	c.setQueryBytes(c.in.len())
}

// begin lends c the loop's output buffer: its turn begins.
func (l *loop) begin(c *sock) { c.Out.Buf = l.output[:0] }

// finish ends c's turn: sends what was appended, takes the buffer back and
// closes c if that was asked for.
func (l *loop) finish(c *sock) {
	c.flush()
	if cap(c.Out.Buf) <= outKeptBytes {
		l.output = c.Out.Buf[:0]
	} else {
		l.output = nil
	}
	c.Out.Buf = nil
	l.settle(c)
}

// settle closes c if that is due and drops it if it is over its output limit.
func (l *loop) settle(c *sock) {
	if c.gone {
		return
	}
	if c.closing == closeNow || c.closing == closeFlushed && c.pend.size == 0 {
		l.drop(c)
		return
	}
	if c.pend.size > 0 && c.overOutput(int64(c.pend.size), l.now) {
		c.close(false, ReasonOutput)
		c.reason = ReasonOutput
		l.drop(c)
		return
	}
	l.arm(c)
}

// flush sends c's replies, and keeps what the peer does not take yet.
func (c *sock) flush() {
	l, b := c.loop, c.Out.Buf
	if len(b) == 0 || c.closing == closeNow || c.hungUp {
		c.Out.Buf = b[:0]
		return
	}
	n := 0
	if c.pend.size == 0 {
		var errno syscall.Errno
		n, errno = rawWrite(c.Fd, b)
		if errno != 0 && errno != syscall.EAGAIN && errno != syscall.EINTR {
			c.close(false, ReasonPeer)
			n = len(b)
		} else if n > 0 {
			c.bytesOut.Add(int64(n))
			l.io.writes.Add(1)
		}
		if n == len(b) {
			c.Out.Buf = b[:0]
			return
		}
	}
	if len(b)-n > readBytes { // rather than copy much, give the buffer away
		c.pend.give(b[n:])
		c.Out.Buf = nil
	} else {
		c.pend.add(&l.pool, b[n:])
		c.Out.Buf = b[:0]
	}
	c.setOutputBytes(c.pend.size)
}

func (c *sock) unsent() int { return c.pend.size + len(c.Out.Buf) }

// writePending sends more of what c's peer had not taken.
func (l *loop) writePending(c *sock) {
	sent := 0
	for c.pend.size > 0 && sent < writeTurnBytes {
		b := c.pend.first()
		n, errno := rawWrite(c.Fd, b)
		if errno == syscall.EAGAIN || errno == syscall.EINTR {
			break
		}
		if errno != 0 {
			l.hangUp(c)
			return
		}
		sent += n
		c.pend.take(&l.pool, n)
		if n < len(b) {
			break
		}
	}
	if sent == 0 {
		return
	}
	c.bytesOut.Add(int64(sent))
	l.io.writes.Add(1)
	c.setOutputBytes(c.pend.size)
	if c.drained() {
		c.resume()
	}
	l.settle(c)
}

// arm tells epoll what c waits for now, if that has changed.
func (l *loop) arm(c *sock) {
	want := uint32(unix.EPOLLIN)
	if c.hungUp {
		want = 0
	}
	if c.pend.size > 0 {
		want |= unix.EPOLLOUT
	}
	if want == c.armed {
		return
	}
	c.armed = want
	ev := unix.EpollEvent{Events: want, Fd: c.slot, Pad: c.gen}
	_ = unix.EpollCtl(l.epfd, unix.EPOLL_CTL_MOD, c.Fd, &ev)
}

// drop ends c.
func (l *loop) drop(c *sock) {
	if c.gone {
		return
	}
	c.over()
	unix.Close(c.Fd)
	c.in.drop(&l.pool)
	c.pend.release(&l.pool)
	l.socks[c.slot] = nil
	l.free = append(l.free, c.slot)
	l.count.Add(-1)
}

// rawRead and rawWrite go past the scheduler: the descriptors do not block.
func rawRead(fd int, b []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	runtime.KeepAlive(b)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

func rawWrite(fd int, b []byte) (n int, e syscall.Errno) {
	if len(b) > writeChunkBytes { // long enough for others to want the processor
		n, err := syscall.Write(fd, b)
		e, _ = err.(syscall.Errno)
		return max(n, 0), e
	}
	r, _, e := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	runtime.KeepAlive(b)
	if e != 0 {
		return 0, e
	}
	return int(r), 0
}
