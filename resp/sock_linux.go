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
	gen   int32  // distinguishes a late event for an earlier connection in the same slot
	armed uint32 // the events that epoll reports for c
	pend  pieces // output that the peer has yet to take
	late  int    // bytes of c among the loop's late replies
	full  bool   // the source may have more than the peer takes now
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
	c.Out.sharing = true
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

// event handles what epoll reports about c. mine is false if the loop belongs to
// another goroutine now.
func (l *loop) event(c *sock, events uint32) (mine bool) {
	if events&unix.EPOLLOUT != 0 {
		l.writePending(c)
		if c.gone {
			return true
		}
	}
	switch {
	case c.queued || c.hungUp: // the input that was read before comes first
	case events&unix.EPOLLIN != 0:
		return l.read(c)
	case events&(unix.EPOLLERR|unix.EPOLLHUP) != 0:
		l.hangUp(c)
	}
	return true
}

// hangUp ends c, whose peer is gone, after the commands that a choke delayed have run.
func (l *loop) hangUp(c *sock) {
	if c.hangUp() {
		c.pend.release(&l.pool)
		c.setOutputBytes(0)
		c.setSharedBytes(0)
		c.resume()
		l.arm(c)
		return
	}
	c.close(false, ReasonPeer)
	l.drop(c)
}

// read reads as much from c as the buffer has room for, and serves it. mine is as
// in event.
func (l *loop) read(c *sock) (mine bool) {
	if c.closing != keepOpen { // input is dropped; only the end of the stream matters
		n, errno := rawRecv(c.Fd, l.input)
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
	n, errno := rawRecv(c.Fd, buf[held:min(len(buf), held+readTurnBytes)])
	if n <= 0 {
		if errno != syscall.EAGAIN && errno != syscall.EINTR {
			l.hangUp(c)
		}
		return true
	}
	c.lastActive.Store(l.now)
	c.bytesIn.Add(int64(n))
	l.io.reads.Add(1)
	l.run.taken.Add(int64(n))
	if own {
		c.in.buf = c.in.buf[:len(c.in.buf)+n]
	} else if c.in.buf != nil {
		c.in.drop(&l.pool)
	}
	return l.serve(c, buf[:held+n], own)
}

// growInput makes room for more input. If the length of the argument under way is known, it makes
// room for all of it, but never more than twice what has come: an announced
// length alone must not cost memory.
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

// serve gives c a turn with data, which is all of c.in if own, else the loop's buffer. mine is
// as in event.
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

// handOver is called in the middle of serve. The goroutine that takes over also does what remained of
// the loop's round: epoll reports the remaining events again.
func (c *sock) handOver(ran, mark int) bool {
	l := c.loop
	if l.scratch.data == nil {
		return false // no command runs
	}
	if !l.scratch.own {
		l.input = make([]byte, readBytes)
	}
	l.sendLate()
	c.detach(&l.scratch, ran, mark)
	l.output = nil
	c.flush()
	if c.hungUp { // epoll would report it again and again
		_ = unix.EpollCtl(l.epfd, unix.EPOLL_CTL_DEL, c.Fd, nil)
	}
	l.arm(c)
	l.again = append(l.again, l.left...)
	l.left, l.spareAgain = nil, nil
	go l.carryOn()
	return true
}

// keep stores the input that was not consumed.
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
	c.noteQueryBytes()
}

// begin begins c's turn: it lends c the rest of the loop's output buffer.
func (l *loop) begin(c *sock) {
	if l.output == nil {
		l.output = make([]byte, 0, outputBytes)
	}
	c.Out.Buf = l.output[len(l.output):]
}

// finish ends c's turn. If its replies are short, it adds them to the late ones, which are sent when all connections have had
// their turn; otherwise it sends them now. It closes c if that is due.
func (l *loop) finish(c *sock) {
	c.strayReply()
	l.owed += c.took
	c.took = 0
	b := c.Out.Buf
	if n := len(l.output); l.owed < LateMicrosMax && len(b) > 0 && len(b) <= lateBytesMax && n+len(b) <= cap(l.output) && &b[0] == &l.output[:n+1][n] &&
		c.closing == keepOpen && !c.hungUp && c.pend.size == 0 && c.Out.bytes == 0 {
		l.output = l.output[:n+len(b)]
		l.late = append(l.late, late{c, len(b)})
		c.late += len(b)
		c.Out.Buf = nil
		l.arm(c)
		if len(l.late) == lateMax || cap(l.output)-len(l.output) < lateBytesMax {
			l.sendLate()
		}
		return
	}
	c.flush()
	if n := cap(c.Out.Buf); n > cap(l.output) && n <= outKeptBytes {
		l.output = c.Out.Buf[:0]
	}
	c.Out.Buf = nil
	l.settle(c)
}

// late describes replies of a connection that are yet to be sent: so many bytes of the loop's output buffer.
type late struct {
	c     *sock
	bytes int
}

// sendLate sends the late replies. To send them together wakes a client with several connections once, not once per
// connection.
func (l *loop) sendLate() {
	l.owed = 0
	if len(l.late) == 0 {
		return
	}
	todo, b := l.late, l.output
	l.late = nil
	for i := range todo {
		c, n := todo[i].c, todo[i].bytes
		todo[i].c = nil
		c.late -= n
		if !c.gone && !c.hungUp {
			c.keepOutput(b[c.send(b[:n]):n])
			l.settle(c)
		}
		b = b[n:]
	}
	l.late, l.output = todo[:0], l.output[:0]
}

// settle sends what c's source has, ends c if that is due, and also if it is over its output limit.
func (l *loop) settle(c *sock) {
	if c.gone {
		return
	}
	if c.source != nil && c.closing == keepOpen {
		l.pump(c)
	}
	if c.closing == closeNow || c.closing == closeFlushed && c.pend.size == 0 {
		l.drop(c)
		return
	}
	if n := int64(c.pend.size) + c.sourced(); n > 0 && c.overOutput(n, l.now) {
		c.close(false, ReasonOutput)
		c.reason = ReasonOutput
		l.drop(c)
		return
	}
	l.arm(c)
}

// pump sends the bytes of c's source.
func (l *loop) pump(c *sock) {
	c.full = false
	sent := 0
	for c.pend.size == 0 && !c.full {
		b := c.source.Next()
		if len(b) == 0 {
			break
		}
		n, errno := rawSend(c.Fd, b)
		if errno != 0 && errno != syscall.EAGAIN && errno != syscall.EINTR {
			c.close(false, ReasonPeer)
			break
		}
		c.source.Sent(n)
		sent += n
		c.full = n < len(b) || sent >= writeTurnBytes // the other connections must have their turn
	}
	if sent > 0 {
		c.bytesOut.Add(int64(sent))
		l.io.writes.Add(1)
	}
	c.setOutputBytes(c.pend.size)
	c.setSharedBytes(c.source.Unsent())
}

// flush sends c's replies, and stores in c.pend what the peer does not take yet.
func (c *sock) flush() {
	c.loop.sendLate()
	b := c.Out.Buf
	if len(b) == 0 || c.closing == closeNow || c.hungUp {
		c.Out.Cut(0)
		return
	}
	if c.Out.bytes > 0 {
		c.flushShared()
		return
	}
	n := c.send(b)
	if len(b)-n > 1<<poolMaxBits { // give the buffer away instead of copying much; less fits the pool's buffers
		c.pend.give(b[n:])
		c.Out.Buf = nil
		c.loop.output = nil // it may be the same buffer
		c.setOutputBytes(c.pend.size)
	} else {
		c.keepOutput(b[n:])
		c.Out.Buf = b[:0]
	}
}

// flushShared is flush for replies with shared bytes, which are sent without a copy.
func (c *sock) flushShared() {
	b, from := c.Out.Buf, 0
	for _, s := range c.Out.shared {
		c.pend.add(&c.loop.pool, b[from:s.at])
		c.pend.give(s.b)
		from = s.at
	}
	c.pend.add(&c.loop.pool, b[from:])
	c.Out.Cut(0)
	if !c.sendPending() {
		c.close(false, ReasonPeer)
	}
}

func (c *sock) gather() { _ = unix.SetsockoptInt(c.Fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 0) } // a unix socket has no packets

func (c *sock) others() {
	c.loop.sendLate()
	c.loop.server.share.attend()
}

// send sends b if no earlier output waits, and returns how many bytes of it need no further sending.
func (c *sock) send(b []byte) int {
	if c.pend.size > 0 {
		return 0
	}
	n, errno := rawSend(c.Fd, b)
	if errno != 0 && errno != syscall.EAGAIN && errno != syscall.EINTR {
		c.close(false, ReasonPeer)
		return len(b)
	}
	if n > 0 {
		c.bytesOut.Add(int64(n))
		c.loop.io.writes.Add(1)
	}
	return n
}

// keepOutput stores b in c.pend until the peer takes it.
func (c *sock) keepOutput(b []byte) {
	if len(b) > 0 {
		c.pend.add(&c.loop.pool, b)
		c.setOutputBytes(c.pend.size)
	}
}

func (c *sock) unsent() int { return c.late + c.pend.size + c.Out.Len() }

// sendPending sends some of c.pend. It reports false if the peer is gone.
func (c *sock) sendPending() bool {
	sent := 0
	for c.pend.size > 0 && sent < writeTurnBytes {
		b := c.pend.first()
		n, errno := rawSend(c.Fd, b)
		if errno == syscall.EAGAIN || errno == syscall.EINTR {
			break
		}
		if errno != 0 {
			return false
		}
		sent += n
		c.pend.take(&c.loop.pool, n)
		if n < len(b) {
			break
		}
	}
	if sent > 0 {
		c.bytesOut.Add(int64(sent))
		c.loop.io.writes.Add(1)
	}
	c.setOutputBytes(c.pend.size)
	return true
}

// writePending calls sendPending when epoll says that the peer takes more.
func (l *loop) writePending(c *sock) {
	had := c.pend.size
	if !c.sendPending() {
		l.hangUp(c)
		return
	}
	if c.pend.size == had && c.source == nil {
		return
	}
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
	if c.pend.size > 0 || c.full {
		want |= unix.EPOLLOUT
	}
	if want == c.armed {
		return
	}
	c.armed = want
	ev := unix.EpollEvent{Events: want, Fd: c.slot, Pad: c.gen}
	_ = unix.EpollCtl(l.epfd, unix.EPOLL_CTL_MOD, c.Fd, &ev)
}

// drop ends c at once.
func (l *loop) drop(c *sock) {
	if c.gone {
		return
	}
	if c.late > 0 {
		if l.sendLate(); c.gone {
			return // c was closing, and these replies were its last
		}
	}
	c.over()
	unix.Close(c.Fd)
	c.in.drop(&l.pool)
	c.pend.release(&l.pool)
	l.socks[c.slot] = nil
	l.free = append(l.free, c.slot)
	l.count.Add(-1)
}

// raw makes a system call without Go's scheduler knowing of it, which is safe since the descriptor does not block. Calls for
// files have no flags.
func raw(trap uintptr, fd int, b []byte, flags uintptr) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(trap, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
	runtime.KeepAlive(b)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// drain reads an eventfd, so that it is no longer readable.
func drain(event int) {
	var b [8]byte
	_, _ = raw(syscall.SYS_READ, event, b[:], 0)
}

// rawRecv and rawSend are for sockets. recv and send cost the kernel less than read and write: by a twentieth of the time of a
// small request.
func rawRecv(fd int, b []byte) (int, syscall.Errno) {
	return raw(syscall.SYS_RECVFROM, fd, b, unix.MSG_DONTWAIT)
}

func rawSend(fd int, b []byte) (int, syscall.Errno) {
	const flags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
	if len(b) <= rawSendBytes {
		return raw(syscall.SYS_SENDTO, fd, b, flags)
	}
	// The call takes so long that other goroutines may want the processor.
	n, _, e := syscall.Syscall6(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
	runtime.KeepAlive(b)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}
