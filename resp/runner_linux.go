package resp

// Which threads run the loops. Connections are spread over all loops from the start. A loop has its own thread only while
// that helps; a shared loop is one that the thread of the first loop runs too.
//
// Why: one thread that serves 50 connections finds ten of them ready each time it looks. Two threads find two or three
// each. They look, sleep and are woken so much more often that a command costs a third more processor time (GET without
// pipelining, client on the same 2 cores: 3.6 µs with one thread, 4.9 with two, Redis 3.3), for the same throughput. If
// commands are slow, or processors are idle, the second thread is worth its cost.
//
// The first loop's epoll descriptor watches the epoll descriptors of the shared loops. A shared loop has its turn where epoll
// reports it, between the first loop's connections. So if a client sends on one connection and then on another, they are
// served in that order, whichever loops the connections are on. Events are edge-triggered (EPOLLET): otherwise epoll would
// put a descriptor that it has reported first in the next report, before descriptors that became ready earlier. If more
// clients of a shared loop are ready than one epoll_wait reports, the loop has a turn after every round of the first loop,
// for as many clients as one epoll_wait reports. One turn per pass of epoll over all connections of the first loop would be
// too few: its clients would get a fraction of the turns of the others.

import (
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// runner is the part of a loop that says which thread runs it.
type runner struct {
	own    sync.Mutex  // locked while a goroutine runs the loop
	turn   int         // counts the goroutines that have run the first loop; guarded by own
	shared atomic.Bool // the first loop's thread runs it
	leave  atomic.Bool // the loop must give its own thread back

	lent     bool // the first loop's thread runs a round of it; guarded by own
	lentTurn int  // turn of the first loop at that moment

	// more says that work is left which no event will report. full says that the last look found as many events as it can
	// report, so that there may be others. Only the first loop's thread uses the two.
	more, full bool

	round bool  // a round is under way; guarded by own
	look  int64 // after how many microseconds Options.Round must be called again, 0 for not at all; guarded by own

	busy  atomic.Int64 // microseconds that its thread has worked
	taken atomic.Int64 // bytes received from its connections
	since atomic.Int64 // when its thread began the present round, 0 while it waits
}

// startLoops makes the loops and starts them.
func (s *Server) startLoops() error {
	for i := range s.opts.Loops {
		l, err := newLoop(s, i)
		if err != nil {
			for _, l := range s.loops {
				l.end()
			}
			return err
		}
		s.loops = append(s.loops, l)
	}
	s.running.Add(len(s.loops))
	for _, l := range s.loops[1:] {
		if s.opts.Fixed || l.takeThread() != nil {
			l.run.own.Lock()
			go l.runAlone()
		}
	}
	s.loops[0].run.own.Lock()
	go s.loops[0].runFirst(s.loops[1:])
	if len(s.loops) > 1 && !s.opts.Fixed {
		s.share.start(s)
	}
	return nil
}

// runFirst runs the first loop, and the other loops while they are shared. The
// caller has locked l.run.own. runFirst unlocks it while it runs another
// loop, so that a long command there does not make the first loop's
// clients wait: the supervisor then starts another goroutine for the first loop,
// and this goroutine keeps the other loop.
func (l *loop) runFirst(others []*loop) {
	defer l.server.caught()
	now := l.server.opts.Now
	t := now()
	for _, o := range others {
		l.watch(o) // epoll does not repeat what it reported to the former thread
	}
	l.roundEnds()
	for {
		n, blocked := l.wait(!anyMore(others))
		if blocked {
			t = now()
		}
		l.server.share.rouse()
		l.begins(t)
		kept, mine := l.handle(n)
		for i := 0; i < len(others) && kept == nil && mine; i++ {
			if o := others[i]; o.leftOver() {
				kept, mine = l.runShared(o, o.run.full)
			}
		}
		if !mine {
			return
		}
		if kept != nil {
			kept.runAlone()
			return
		}
		l.roundEnds()
		t = l.ends(t, now())
		if l.stopping && l.count.Load() == 0 && l.endFirst(others) {
			l.run.own.Unlock()
			l.server.running.Done()
			return
		}
	}
}

// watch has epoll report a shared loop if it is ready.
func (l *loop) watch(o *loop) {
	if !o.run.shared.Load() {
		return // its descriptor may belong to another file by now
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: slotLoop - int32(o.index)}
	_ = unix.EpollCtl(l.epfd, unix.EPOLL_CTL_MOD, o.epfd, &ev) // an error means that o has just got its own thread
}

// runShared runs a round of a shared loop o with the thread of l, the first loop: its remaining work
// and, if reported, its epoll events. It does not look for unreported events, since they would overtake
// events that epoll has yet to report to l; runner.full is the exception. kept is o if the caller
// has lost l to another goroutine and has o instead. mine is as in handle.
func (l *loop) runShared(o *loop, reported bool) (kept *loop, mine bool) {
	if !o.run.shared.Load() || !o.run.own.TryLock() {
		l.watch(o) // o is about to get a thread, or to give it back
		return nil, true
	}
	l.sendLate()
	turn, now := l.run.turn, l.now
	o.run.lent, o.run.lentTurn, o.idle = true, turn, l.idle
	l.run.own.Unlock()
	if !o.visit(now, reported) {
		return nil, false
	}
	o.run.lent = false
	if reported {
		l.watch(o)
	}
	if !l.reacquire(turn) {
		return o, true
	}
	o.run.own.Unlock()
	return nil, true
}

// adopt adds a new connection to a shared loop with the thread of l, the first
// loop. If add were posted, later commands of other connections could overtake
// the client's first command. It reports whether it did.
func (l *loop) adopt(o *loop, add func()) bool {
	if !o.run.shared.Load() || !o.run.own.TryLock() {
		return false
	}
	o.now = l.now
	add()
	o.run.more = o.run.more || len(o.again) > 0
	o.run.own.Unlock()
	return true
}

// endVisit continues runShared on another goroutine, after a command of the
// shared loop kept the first goroutine.
func (l *loop) endVisit(o *loop) {
	turn := o.run.lentTurn
	o.run.lent, o.run.more = false, true // the visit is not over
	if !l.reacquire(turn) {
		o.runAlone()
		return
	}
	o.run.own.Unlock()
	l.runFirst(l.server.loops[1:])
}

// carryOn runs on a new goroutine that handOver starts: it continues with everything that
// the calling goroutine did, except the command that it keeps.
func (l *loop) carryOn() {
	switch first := l.server.loops[0]; {
	case l.run.lent:
		first.endVisit(l)
	case l == first:
		l.runFirst(l.server.loops[1:])
	default:
		l.runAlone()
	}
}

// anyMore tells whether a shared loop has something left to do.
func anyMore(others []*loop) bool { return slices.ContainsFunc(others, (*loop).leftOver) }

func (l *loop) leftOver() bool { return l.run.shared.Load() && (l.run.more || l.run.full) }

// reacquire locks the first loop's run.own again. It returns false if another goroutine
// has taken over since: then the caller keeps the shared loop that it ran. The caller held
// that loop's run.own all the time, so that replaceFirst could see which loop it is.
func (l *loop) reacquire(turn int) bool {
	if !l.run.own.TryLock() {
		return false
	}
	if l.run.turn != turn { // the new goroutine is running a shared loop just now
		l.run.own.Unlock()
		return false
	}
	return true
}

// begins and ends account for the time that a round takes.
func (l *loop) begins(t int64) {
	l.now = t
	l.run.since.Store(t)
	l.roundBegins()
}

func (l *loop) ends(begun, t int64) int64 {
	l.run.busy.Add(t - begun)
	return t
}

// visit runs a round of a shared loop. mine is as in handle.
func (l *loop) visit(t int64, reported bool) (mine bool) {
	if !l.run.shared.Load() {
		return true // it has ended
	}
	l.waiting.Store(false)
	n := 0
	if reported {
		n, _ = l.epollNow()
		l.run.full = n == eventsPerWait
	}
	l.now = t
	if _, mine := l.handle(n); !mine {
		return false
	}
	l.run.more = !l.goIdle()
	if l.stopping && !l.run.more && l.count.Load() == 0 && l.end() {
		l.run.shared.Store(false)
		l.server.running.Done()
	}
	return true
}

// goIdle sets waiting if the loop has no mail, so that the next goroutine that posts writes to the
// eventfd. It reports whether nothing is left to do until then.
func (l *loop) goIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	quiet := len(l.mail) == 0 && len(l.nudged) == 0
	l.waiting.Store(quiet)
	return quiet && len(l.again) == 0
}

// runAlone runs a loop on its own thread, until the loop ends or is shared
// again. The caller has locked l.run.own.
func (l *loop) runAlone() {
	defer l.server.caught()
	now := l.server.opts.Now
	t := now()
	l.roundEnds()
	for {
		n, blocked := l.wait(true)
		if blocked {
			t = now()
		}
		l.begins(t)
		if _, mine := l.handle(n); !mine {
			return // run.own stays locked: it belongs to the other goroutine now
		}
		l.roundEnds()
		t = l.ends(t, now())
		switch {
		case l.stopping && l.count.Load() == 0 && l.end():
			l.run.own.Unlock()
			l.server.running.Done()
			return
		case l.run.leave.Load() && l.goIdle():
			l.run.since.Store(0)
			l.run.leave.Store(false)
			if l.takeThread() == nil {
				l.run.own.Unlock()
				return
			}
		}
	}
}

// takeThread makes a loop a shared one. Its own thread, if it has one, must end then.
func (l *loop) takeThread() error {
	s := &l.server.share
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen {
		return ErrClosed
	}
	l.run.shared.Store(true)
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: slotLoop - int32(l.index)}
	err := unix.EpollCtl(l.server.loops[0].epfd, unix.EPOLL_CTL_ADD, l.epfd, &ev)
	if err != nil {
		l.run.shared.Store(false)
	}
	return err
}

// giveThread gives a shared loop its own thread. It reports whether it did.
func (l *loop) giveThread() bool {
	s := &l.server.share
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen || !l.run.shared.Load() || !l.run.own.TryLock() {
		return false
	}
	_ = unix.EpollCtl(l.server.loops[0].epfd, unix.EPOLL_CTL_DEL, l.epfd, nil)
	l.run.shared.Store(false)
	go l.runAlone()
	return true
}

// replaceFirst starts another goroutine for the first loop if the present one is busy
// with a shared loop, which the present one then keeps.
func (s *Server) replaceFirst() {
	s.share.mu.Lock()
	defer s.share.mu.Unlock()
	first := s.loops[0]
	if s.share.frozen || !first.run.own.TryLock() {
		return // the first loop itself is busy
	}
	for _, l := range s.loops[1:] {
		switch {
		case !l.run.shared.Load():
		case l.run.own.TryLock():
			l.run.own.Unlock()
		default:
			_ = unix.EpollCtl(first.epfd, unix.EPOLL_CTL_DEL, l.epfd, nil)
			l.run.shared.Store(false)
		}
	}
	first.run.turn++
	go first.runFirst(s.loops[1:])
}

// endFirst ends the first loop once no shared loop is left. No loop becomes
// shared again, since a stopping server freezes which loops are shared.
func (l *loop) endFirst(others []*loop) bool {
	for _, o := range others {
		if o.run.shared.Load() {
			return false
		}
	}
	return l.end()
}
