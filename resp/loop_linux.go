package resp

// An event loop owns connections: it waits for them with epoll, reads what one
// has sent, has it served, writes the replies, and goes to the next. Nothing in
// it blocks but the wait. Buffers belong to the loop and are lent to the
// connection whose turn it is, so that an idle connection owns none.

import (
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loop is one event loop.
type loop struct {
	server *Server
	index  int
	epfd   int
	wakefd int // eventfd, written to when something is posted to a waiting loop

	socks []*sock // by slot
	free  []int32 // unused slots
	count atomic.Int64

	accepts    []*acceptor
	again      []*sock // those with commands left for another turn
	spareAgain []*sock

	now     int64
	input   []byte // what is read, before it is parsed
	output  []byte // replies, before they are written
	scratch scratch
	pool    pool
	events  [eventsPerWait]unix.EpollEvent

	mu       sync.Mutex
	mail     []letter
	spare    []letter
	ended    bool
	waiting  atomic.Bool
	stopping bool
}

// sock is a connection on a loop.
type sock struct {
	Conn
	loop  *loop
	slot  int32
	gen   int32  // tells a late event for an earlier owner of the slot
	armed uint32 // the events epoll is asked for
}

// letter is a function posted to a loop, for a connection or for itself.
type letter struct {
	c  *sock
	fn func()
}

// The slots of events that are not connections.
const (
	slotWake   = -1
	slotAccept = -2 // and below: acceptor -2-slot
)

func newLoop(s *Server, index int) (*loop, error) {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	wakefd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		unix.Close(epfd)
		return nil, err
	}
	l := &loop{server: s, index: index, epfd: epfd, wakefd: wakefd}
	l.input = make([]byte, readBytes)
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: slotWake}
	if err := unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, wakefd, &ev); err != nil {
		unix.Close(epfd)
		unix.Close(wakefd)
		return nil, err
	}
	return l, nil
}

// run is the loop's goroutine.
func (l *loop) run() {
	defer l.server.running.Done()
	for {
		n := l.wait()
		l.now = l.server.opts.Now()
		for i := range l.events[:n] {
			ev := &l.events[i]
			switch {
			case ev.Fd >= 0:
				c := l.socks[ev.Fd]
				if c == nil || c.gen != ev.Pad {
					continue
				}
				l.event(c, ev.Events)
			case ev.Fd == slotWake:
				var b [8]byte
				_, _ = rawRead(l.wakefd, b[:])
			default:
				l.accepts[slotAccept-ev.Fd].ready(l)
			}
		}
		l.runAgain()
		l.runMail()
		if l.stopping && l.count.Load() == 0 {
			if l.end() {
				return
			}
		}
	}
}

// wait returns how many events there are. It looks first and blocks only if
// there is nothing: the look costs no scheduling, and a busy loop never blocks.
func (l *loop) wait() int {
	n, errno := l.epollNow()
	if n > 0 || len(l.again) > 0 {
		return n
	}
	l.waiting.Store(true)
	l.mu.Lock()
	idle := len(l.mail) == 0
	l.mu.Unlock()
	for idle {
		n, errno = l.epollBlock()
		if errno != syscall.EINTR {
			break
		}
	}
	l.waiting.Store(false)
	if errno != 0 && errno != syscall.EINTR {
		panic("resp: epoll_wait: " + errno.Error()) // the descriptor is ours
	}
	return max(n, 0)
}

func (l *loop) epollNow() (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(l.epfd),
		uintptr(unsafe.Pointer(&l.events[0])), eventsPerWait, 0, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

func (l *loop) epollBlock() (int, syscall.Errno) {
	n, _, e := syscall.Syscall6(syscall.SYS_EPOLL_PWAIT, uintptr(l.epfd),
		uintptr(unsafe.Pointer(&l.events[0])), eventsPerWait, ^uintptr(0), 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
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

func rawWrite(fd int, b []byte) (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
	runtime.KeepAlive(b)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
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

// event handles what epoll reports about c.
func (l *loop) event(c *sock, events uint32) {
	if events&unix.EPOLLOUT != 0 {
		l.writePending(c)
		if c.gone {
			return
		}
	}
	if events&unix.EPOLLIN != 0 {
		l.read(c)
		return
	}
	if events&(unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		c.close(false, ReasonPeer)
		l.drop(c)
	}
}

// read takes what c has sent, as much as the buffer holds, and serves it.
func (l *loop) read(c *sock) {
	if c.closing != keepOpen { // only its end is of interest
		n, errno := rawRead(c.Fd, l.input)
		if n == 0 && errno != syscall.EAGAIN && errno != syscall.EINTR {
			c.close(false, ReasonPeer)
			l.drop(c)
		}
		return
	}
	held := len(c.in)
	own := held > sharedInputBytes
	var buf []byte
	if own {
		c.in = l.growInput(c.in, c.parser.Need())
		buf = c.in[:cap(c.in)]
	} else {
		buf = l.input
		copy(buf, c.in)
	}
	n, errno := rawRead(c.Fd, buf[held:min(len(buf), held+readTurnBytes)])
	if n <= 0 {
		if errno == syscall.EAGAIN || errno == syscall.EINTR {
			return
		}
		c.close(false, ReasonPeer)
		l.drop(c)
		return
	}
	c.lastActive.Store(l.now)
	c.bytesIn.Add(int64(n))
	if own {
		c.in = buf[:held+n]
	} else if held > 0 {
		l.pool.put(c.in)
		c.in = nil
	}
	l.serve(c, buf[:held+n], own)
}

// growInput makes room for more input, at once for all of a large argument that
// is known to come, but never more than twice what has come: announcing much
// must not cost us anything.
func (l *loop) growInput(in []byte, need int) []byte {
	if cap(in)-len(in) >= sharedInputBytes {
		return in
	}
	size := 2 * cap(in)
	if need > len(in) && need < size {
		size = need
	}
	if size-len(in) < sharedInputBytes/4 {
		size = len(in) + sharedInputBytes
	}
	grown := append(l.pool.get(size), in...)
	l.pool.put(in)
	return grown
}

// serve gives c a turn with data, which is c.in if own, else borrowed.
func (l *loop) serve(c *sock, data []byte, own bool) {
	l.begin(c)
	done := c.serve(data, &l.scratch, turnCommandsMax)
	l.keep(c, data, done, own)
	l.finish(c)
	if own || cap(l.scratch.args) > argsKeptMax {
		l.scratch.release()
	}
	if c.gone {
		return
	}
	if c.overInput() {
		c.close(false, ReasonInput)
		l.drop(c)
		return
	}
	if c.more {
		c.resume()
	}
	l.arm(c)
}

// keep stores the input that is not done with.
func (l *loop) keep(c *sock, data []byte, done int, own bool) {
	rest := data[done:]
	switch {
	case c.closing != keepOpen || len(rest) == 0:
		if own {
			l.pool.put(c.in)
		}
		c.in = nil
	case !own:
		c.in = append(l.pool.get(len(rest)), rest...)
	case len(rest) <= sharedInputBytes && done > 0:
		c.in = append(l.pool.get(len(rest)), rest...)
		l.pool.put(data)
	case done > 0:
		c.in = append(c.in[:0], rest...)
	}
	c.queryBytes.Store(int64(len(c.in)))
}

// begin lends c the loop's output buffer: its turn begins.
func (l *loop) begin(c *sock) { c.out.Buf = l.output[:0] }

// finish ends c's turn: sends what was appended, takes the buffer back and
// closes c if that was asked for.
func (l *loop) finish(c *sock) {
	c.flush()
	if cap(c.out.Buf) <= outKeptBytes {
		l.output = c.out.Buf[:0]
	} else {
		l.output = nil
	}
	c.out.Buf = nil
	l.settle(c)
}

// settle closes c if that is due and drops it if it is over its output limit.
func (l *loop) settle(c *sock) {
	if c.gone {
		return
	}
	if c.closing == closeNow || c.closing == closeFlushed && c.pend == nil {
		l.drop(c)
		return
	}
	if c.pend != nil && c.overOutput(int64(len(c.pend)-c.pendOff), l.now) {
		c.close(false, ReasonOutput)
		c.reason = ReasonOutput
		l.drop(c)
		return
	}
	l.arm(c)
}

// flush sends c's replies, and keeps what the peer does not take yet.
func (c *sock) flush() {
	l, b := c.loop, c.out.Buf
	if len(b) == 0 || c.closing == closeNow {
		c.out.Buf = b[:0]
		return
	}
	if c.pend != nil {
		c.pend = append(c.pend, b...)
		c.out.Buf = b[:0]
		c.outputBytes.Store(int64(len(c.pend) - c.pendOff))
		return
	}
	n, errno := rawWrite(c.Fd, b)
	if errno != 0 && errno != syscall.EAGAIN && errno != syscall.EINTR {
		c.close(false, ReasonPeer)
		n = len(b)
	} else {
		c.bytesOut.Add(int64(n))
	}
	if n == len(b) {
		c.out.Buf = b[:0]
		return
	}
	if len(b)-n > readBytes { // rather than copy much, give the buffer away
		c.pend, c.pendOff = b, n
		c.out.Buf = nil
	} else {
		c.pend, c.pendOff = append(l.pool.get(len(b)-n), b[n:]...), 0
		c.out.Buf = b[:0]
	}
	c.outputBytes.Store(int64(len(c.pend) - c.pendOff))
}

// writePending sends more of what c's peer had not taken.
func (l *loop) writePending(c *sock) {
	if c.pend == nil {
		return
	}
	n, errno := rawWrite(c.Fd, c.pend[c.pendOff:])
	if errno != 0 {
		if errno == syscall.EAGAIN || errno == syscall.EINTR {
			return
		}
		c.close(false, ReasonPeer)
		l.drop(c)
		return
	}
	c.bytesOut.Add(int64(n))
	c.pendOff += n
	if c.pendOff == len(c.pend) {
		l.pool.put(c.pend)
		c.pend, c.pendOff = nil, 0
	}
	c.outputBytes.Store(int64(len(c.pend) - c.pendOff))
	l.settle(c)
}

// arm tells epoll what c waits for now, if that has changed.
func (l *loop) arm(c *sock) {
	want := uint32(unix.EPOLLIN)
	if c.pend != nil {
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
	c.gone = true
	c.handler.Closed(&c.Conn)
	unix.Close(c.Fd)
	l.pool.put(c.in)
	l.pool.put(c.pend)
	c.in, c.pend = nil, nil
	l.socks[c.slot] = nil
	l.free = append(l.free, c.slot)
	l.count.Add(-1)
}

// resume gives c another turn before the loop waits again.
func (c *sock) resume() {
	if !c.queued {
		c.queued = true
		c.loop.again = append(c.loop.again, c)
	}
}

// runAgain serves those that had commands left, once each.
func (l *loop) runAgain() {
	if len(l.again) == 0 {
		return
	}
	todo := l.again
	l.again = l.spareAgain[:0]
	for i, c := range todo {
		todo[i] = nil
		c.queued = false
		if c.gone {
			continue
		}
		if len(c.in) > 0 && !c.paused {
			l.serve(c, c.in, true)
		} else {
			l.arm(c)
		}
	}
	l.spareAgain = todo[:0]
}

// post queues fn for the loop.
func (c *sock) post(fn func()) bool { return c.loop.post(c, fn) }

func (l *loop) post(c *sock, fn func()) bool {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return false
	}
	l.mail = append(l.mail, letter{c, fn})
	l.mu.Unlock()
	if l.waiting.Load() && l.waiting.CompareAndSwap(true, false) {
		one := [8]byte{1}
		_, _ = rawWrite(l.wakefd, one[:])
	}
	return true
}

// runMail runs what was posted before it began; what is posted meanwhile waits
// for the next round, so that the connections get their turns.
func (l *loop) runMail() {
	l.mu.Lock()
	mail := l.mail
	l.mail = l.spare[:0]
	l.mu.Unlock()
	for i := range mail {
		c, fn := mail[i].c, mail[i].fn
		mail[i] = letter{}
		if c == nil {
			fn()
			continue
		}
		l.begin(c)
		fn()
		if c.gone {
			l.output = c.out.Buf[:0]
			c.out.Buf = nil
			continue
		}
		l.finish(c)
	}
	if cap(mail) > mailKeptMax {
		mail = nil
	}
	l.spare = mail[:0]
}

// end closes the loop for good, unless something was posted meanwhile.
func (l *loop) end() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.mail) > 0 {
		return false
	}
	l.ended = true
	unix.Close(l.epfd)
	unix.Close(l.wakefd)
	return true
}
