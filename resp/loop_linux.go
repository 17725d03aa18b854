package resp

// An event loop owns connections: it waits for them with epoll, reads what one
// has sent, has it served, writes the replies, and goes to the next. Nothing in
// it blocks but the wait. Buffers belong to the loop and are lent to the
// connection whose turn it is, so that an idle connection owns none.

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
	wakefd int // eventfd, written to when something is posted to a waiting loop

	socks []*sock // by slot
	free  []int32 // unused slots
	count atomic.Int64
	io    ioCount

	accepts    []*acceptor
	again      []*sock // those with commands left for another turn
	spareAgain []*sock
	left       []*sock // of those whose turn it was, the ones that have yet to have it

	now     int64
	ceded   int64  // when its goroutine last gave its processor away
	cedes   uint   // how often
	input   []byte // what is read, before it is parsed
	output  []byte // replies, before they are written; what it holds is those of late
	late    []late
	owed    int64 // microseconds that turns took since late was last sent
	scratch scratch
	pool    pool
	events  [eventsPerWait]unix.EpollEvent

	mu       sync.Mutex
	mail     []letter
	spare    []letter
	nudged   []*sock // whose sources have more
	ended    bool
	waiting  atomic.Bool // whoever posts must write to wakefd
	stopping bool
	grace    *time.Timer // what ends connections then

	nudgedAt int64 // when the loop saw that some are, 0 for none
	idle     bool  // nothing was found to do

	run runner // who runs it
}

// letter is what is posted to a loop: a connection that has mail, or a function.
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

// handle gives all that is ready a turn, in the order in which it became ready:
// the first n of l.events, connections with commands left, and what was posted.
// If l is the first loop and was taken over while another one had its turn, it
// returns that one at once, for the caller to keep; epoll will report the rest
// again. It reports false if the caller has nothing to do with any loop any more:
// a command handed them over.
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

// wait returns how many events there are. It looks first, past the scheduler,
// and blocks only if there is nothing.
//
// Other ways were measured (2 cores, shared with the client, 50 connections
// without pipelining). Letting Go's poller watch the epoll descriptor, so that
// no thread blocks: fewer switches between threads, but 0.3 µs more processor
// time per command, and the slowest percent takes 10 times as long with two
// clients. Giving the processor away (sched_yield) before blocking lets events
// gather and saves 20 % of the processor time, but with anything else running
// the slowest 5 % of replies take more than twice as long. Looking again and again
// for 5 to 40 µs before blocking: up to 10 % more requests a second, for 9 to 36 %
// more processor time. LockOSThread and blocking without looking first: no
// difference.
//
// A goroutine that has not been rescheduled for 10 ms has its processor taken by
// Go's monitor if it is then in a system call, and for each that it takes the
// monitor wakes up every 20 µs for a while: 4,000 times a second in all. So before
// that time is over the loop reschedules itself. Gosched wakes another thread to
// look for work, so it mostly does it by yield, which does not.
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

// cedeMicros is well below the 10 ms. Goroutines that wait for any processor, as one does that comes back from the disk,
// get the loop's every so many times.
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

// epollBlock waits, for so many microseconds if that is not 0.
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

// runAgain serves those that had commands left, once each. It reports as event
// does.
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

// rouse wakes the loop if it waits. Its lock is held, since end closes the descriptor under it.
func (l *loop) rouse() {
	if l.waiting.Load() && l.waiting.CompareAndSwap(true, false) {
		one := [8]byte{1}
		_, _ = raw(syscall.SYS_WRITE, l.wakefd, one[:], 0)
	}
}

// nudgeMicros is how long what a source has waits for more while there is other work.
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

// pumpNudged sends what sources have, if it is time or there is nothing else to do.
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

// call has fn run by the loop; false if it has ended.
func (l *loop) call(fn func()) bool { return l.post(letter{fn: fn}) }

// runMail runs what was posted before it began; what is posted meanwhile waits
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
	if l.grace != nil { // or it would hold all that the server had
		l.grace.Stop()
	}
	unix.Close(l.epfd)
	unix.Close(l.wakefd)
	return true
}
