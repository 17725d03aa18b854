package resp

// An event loop owns connections: it waits for them with epoll, reads what one
// has sent, runs its commands, writes the replies, and goes to the next. Only the
// wait blocks. The buffers belong to the loop, which lends them to the
// connection whose turn it is, so an idle connection needs none.

import (
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// loop is one event loop.
type loop struct {
	server *Server
	index  int
	epfd   int
	wakefd int // eventfd: a write wakes the waiting loop

	socks []*sock // by slot
	free  []int32 // unused slots
	count atomic.Int64
	io    ioCount

	accepts    []*acceptor
	again      []*sock // connections with commands left for another turn
	spareAgain []*sock
	left       []*sock // the part of the former again that still waits for its turn in this round

	now     int64
	ceded   int64  // when its goroutine last yielded its processor
	cedes   uint   // how often it did
	input   []byte // buffer for reading
	output  []byte // buffer for replies; its contents are those that late describes
	late    []late
	owed    int64 // microseconds that turns took since late was last sent
	scratch scratch
	pool    pool
	events  [eventsPerWait]unix.EpollEvent

	mu       sync.Mutex
	mail     []letter
	spare    []letter
	nudged   []*sock // connections whose sources have more
	ended    bool
	waiting  atomic.Bool // a goroutine that posts must write to wakefd
	stopping bool
	grace    *time.Timer // ends the remaining connections of a stopping loop

	nudgedAt int64 // when the loop first saw that nudged is not empty, 0 if it is
	idle     bool  // the last look found nothing to do

	run runner // which thread runs it
}

// letter is a message to a loop: a connection that has mail, or a function.
type letter struct {
	c  *sock
	fn func()
}

// The slots of events that are not connections.
const (
	slotWake   = -1
	slotWatch  = -2
	slotAccept = -3       // and below: acceptor slotAccept-slot
	slotLoop   = -1 << 16 // and below: loop slotLoop-slot has events
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
	l.waiting.Store(true)
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: slotWake}
	if err := unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, wakefd, &ev); err != nil {
		unix.Close(epfd)
		unix.Close(wakefd)
		return nil, err
	}
	return l, nil
}

// handle gives everything that is ready a turn, in the order in which it became ready:
// the first n of l.events, connections with commands left, and posted letters.
// If l is the first loop, another goroutine may take l over while this one runs a
// shared loop. Then handle returns the shared loop at once, which the caller keeps;
// epoll will report the remaining events again. mine is false if a command handed
// the loops over: then the caller has no loop any more.
func (l *loop) handle(n int) (kept *loop, mine bool) {
	for i := range l.events[:n] {
		ev := &l.events[i]
		switch {
		case ev.Fd >= 0:
			c := l.socks[ev.Fd]
			if c == nil || c.gen != ev.Pad {
				continue
			}
			if !l.event(c, ev.Events) {
				return nil, false
			}
		case ev.Fd == slotWake:
			drain(l.wakefd)
		case ev.Fd == slotWatch:
			l.server.watch.read()
		case ev.Fd <= slotLoop:
			if kept, mine = l.runShared(l.server.loops[slotLoop-ev.Fd], true); kept != nil || !mine {
				return kept, mine
			}
		default:
			l.accepts[slotAccept-ev.Fd].ready(l)
		}
	}
	if !l.runAgain() {
		return nil, false
	}
	l.runMail()
	l.sendLate()
	l.pumpNudged()
	return nil, true
}

// wait returns how many events there are. It first polls with a raw system call, which Go's
// scheduler does not see, and blocks only if there is nothing.
//
// Other ways were measured (2 cores, shared with the client, 50 connections
// without pipelining):
//
//   - Go's poller watches the epoll descriptor, so that no thread blocks: fewer
//     thread switches, but 0.3 µs more processor time per command, and with two
//     clients the slowest percent of replies takes 10 times as long.
//   - sched_yield before blocking, so that more events are ready: it saves 20 % of
//     the processor time, but if anything else runs, the slowest 5 % of replies
//     take more than twice as long.
//   - Polling for 5 to 40 µs before blocking: up to 10 % more requests a second,
//     for 9 to 36 % more processor time.
//   - LockOSThread, and blocking without polling first: no difference.
//
// Go's monitor takes the processor from a goroutine that has not been rescheduled
// for 10 ms and is in a system call. Each time, the monitor then wakes up every
// 20 µs for a while: 4,000 times a second in all. So the loop reschedules itself
// earlier. It mostly uses yield for this, since Gosched wakes another thread to
// look for work and yield does not.
func (l *loop) wait(mayBlock bool) (n int, blocked bool) {
	n, errno := l.epollNow()
	l.idle = n == 0 && len(l.again) == 0
	if n > 0 || !mayBlock || len(l.again) > 0 || l.nudgedAt != 0 {
		return max(n, 0), false
	}
	if l.now-l.ceded >= cedeMicros {
		l.ceded = l.now
		l.run.since.Store(0)
		if l.cedes++; l.cedes%goschedEvery == 0 {
			runtime.Gosched()
		} else {
			yield()
		}
		if n, errno = l.epollNow(); n > 0 {
			return n, true
		}
	}
	l.waiting.Store(true)
	l.mu.Lock()
	idle := len(l.mail) == 0 && len(l.nudged) == 0
	l.mu.Unlock()
	if idle {
		l.run.since.Store(0)
	}
	for idle {
		n, errno = l.epollBlock(l.run.look)
		if errno != syscall.EINTR {
			break
		}
	}
	l.waiting.Store(false)
	if errno != 0 && errno != syscall.EINTR {
		panic("resp: epoll_wait: " + errno.Error()) // the descriptor is ours
	}
	return max(n, 0), idle
}

// cedeMicros is well below the 10 ms. yield serves only goroutines that wait for this processor. So every goschedEvery times
// the loop calls Gosched, for goroutines that wait for any processor, such as one whose disk write has ended.
const (
	cedeMicros   = 5000
	goschedEvery = 4
)

// yield lets the goroutines run that wait for this processor.
//
//go:linkname yield runtime.goyield
func yield()

func (l *loop) epollNow() (int, syscall.Errno) {
	n, _, e := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(l.epfd),
		uintptr(unsafe.Pointer(&l.events[0])), eventsPerWait, 0, 0, 0)
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// epollBlock waits for events, at most micros microseconds if that is not 0.
func (l *loop) epollBlock(micros int64) (int, syscall.Errno) {
	var n uintptr
	var e syscall.Errno
	if micros == 0 {
		n, _, e = syscall.Syscall6(syscall.SYS_EPOLL_PWAIT, uintptr(l.epfd),
			uintptr(unsafe.Pointer(&l.events[0])), eventsPerWait, ^uintptr(0), 0, 0)
	} else {
		most := unix.NsecToTimespec(micros * 1000)
		n, _, e = syscall.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.epfd),
			uintptr(unsafe.Pointer(&l.events[0])), eventsPerWait, uintptr(unsafe.Pointer(&most)), 0, 0)
		if e == syscall.ENOSYS { // before Linux 5.11
			n, _, e = syscall.Syscall6(syscall.SYS_EPOLL_PWAIT, uintptr(l.epfd),
				uintptr(unsafe.Pointer(&l.events[0])), eventsPerWait, uintptr(micros/1000+1), 0, 0)
		}
	}
	if e != 0 {
		return 0, e
	}
	return int(n), 0
}

// resume gives c another turn before the loop waits again.
func (c *sock) resume() {
	if !c.queued {
		c.queued = true
		c.loop.again = append(c.loop.again, c)
	}
}

// runAgain serves each connection that had commands left once. It returns mine as
// event does.
func (l *loop) runAgain() (mine bool) {
	if len(l.again) == 0 {
		return true
	}
	todo := l.again
	l.again = l.spareAgain[:0]
	for i, c := range todo {
		todo[i] = nil
		l.left = todo[i+1:]
		c.queued = false
		if c.gone {
			continue
		}
		if c.in.len() > 0 && !c.paused {
			if !l.serve(c, c.in.bytes(), true) {
				return false
			}
		} else {
			l.arm(c)
		}
	}
	l.spareAgain = todo[:0]
	return true
}

func (c *sock) post() bool { return c.loop.post(letter{c: c}) }

// post queues a letter for the loop; false if it has ended.
func (l *loop) post(m letter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.mail = append(l.mail, m)
	l.rouse()
	return true
}

// rouse wakes the loop if it waits. The caller holds l.mu, since end closes the descriptor under it.
func (l *loop) rouse() {
	if l.waiting.Load() && l.waiting.CompareAndSwap(true, false) {
		one := [8]byte{1}
		_, _ = raw(syscall.SYS_WRITE, l.wakefd, one[:], 0)
	}
}

// nudgeMicros is how long a source's bytes wait for more while the loop has other work.
const nudgeMicros = 500

func (c *sock) nudge() {
	l := c.loop
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.nudged = append(l.nudged, c)
		l.rouse()
	}
}

// pumpNudged sends the bytes of nudged sources if nudgeMicros have passed or there is nothing else to do.
func (l *loop) pumpNudged() {
	l.mu.Lock()
	todo := l.nudged
	switch {
	case len(todo) == 0:
		l.mu.Unlock()
		return
	case l.nudgedAt == 0:
		l.nudgedAt = l.now
	}
	if !l.idle && l.now-l.nudgedAt < nudgeMicros {
		l.mu.Unlock()
		return
	}
	l.nudged, l.nudgedAt = nil, 0
	l.mu.Unlock()
	for _, c := range todo {
		if !c.gone {
			l.begin(c)
			l.finish(c)
		}
	}
}

// call makes the loop run fn; false if the loop has ended.
func (l *loop) call(fn func()) bool { return l.post(letter{fn: fn}) }

// runMail handles the letters that were posted before the call. Letters posted meanwhile wait
// for the next round, so that the connections get their turns.
func (l *loop) runMail() {
	l.mu.Lock()
	mail := l.mail
	l.mail = l.spare[:0]
	l.mu.Unlock()
	for i, m := range mail {
		mail[i] = letter{}
		switch {
		case m.c == nil:
			m.fn()
		case m.c.gone:
			m.c.mail.run()
			m.c.Out.Cut(0)
			m.c.Out.Buf = nil
		default:
			l.begin(m.c)
			m.c.mail.run()
			l.finish(m.c)
		}
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
	if l.grace != nil { // the timer would keep the whole server's memory alive
		l.grace.Stop()
	}
	unix.Close(l.epfd)
	unix.Close(l.wakefd)
	return true
}
