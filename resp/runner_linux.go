package resp

// Who runs the loops. Connections are spread over all loops from the start, but a loop has a thread of its own only while
// that helps; else the thread of the first loop runs it too.
//
// Why: one thread that serves 50 connections finds ten of them ready each time it looks. Two threads find two or three
// each, and look, sleep and are woken so much more often that a command costs half as much again (GET without pipelining,
// client on the same 2 cores: 3.6 µs of processor time with one, 4.9 with two, Redis 3.3), for the same throughput. Where
// commands take their time, or processors are idle, the second thread is worth it.
//
// A loop that has no thread of its own is watched through the first loop's epoll descriptor, which its own is part of. It
// has its turn where epoll reports it, between the first loop's connections: what a client sends on one connection, and
// then on another, is served in that order, whichever loops the connections are on. It is reported when something comes
// (EPOLLET): what epoll has reported once it otherwise looks at first the next time, before what came earlier. Where more
// clients are ready than one look tells of, it has a turn after every round of the first loop, as many clients at a time:
// one for each time that epoll has gone through the first loop's would leave its clients with a fraction of the others'.

import (
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// runner is the part of a loop that says who runs it.
type runner struct {
	own    sync.Mutex  // held while the loop is run
	turn   int         // counts the goroutines that have run the first loop; guarded by own
	shared atomic.Bool // the first loop's thread runs it
	leave  atomic.Bool // its own thread is to give it back

	lent     bool // the first loop's thread runs a round of it; guarded by own
	lentTurn int  // which turn of the first loop's that was

	// For the first loop's thread alone: there is something left to do that no event will tell of; the last look found
	// as many events as it can, so that there may be others.
	more, full bool

	round bool  // a round is under way; guarded by own
	look  int64 // in so many microseconds Options.Round is to be called again, 0 for not; guarded by own

	busy  atomic.Int64 // microseconds its thread has not waited
	taken atomic.Int64 // bytes that its connections have sent
	since atomic.Int64 // when its thread last came back to look, 0 while it waits
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

// runFirst runs the first loop, and the others while they are shared. The
// caller has locked l.run.own for it. It lets go of that while it runs another
// loop, so that a command that takes long there does not keep the first loop's
// clients waiting: then the supervisor has another goroutine run the first loop,
// and this one stays with the other.
func (l *loop) runFirst(others []*loop) {
	defer l.server.caught()
	now := l.server.opts.Now
	t := now()
	for _, o := range others {
		l.watch(o) // what was reported to the former thread is not reported again
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
		return // its descriptor may be another file's by now
	}
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: slotLoop - int32(o.index)}
	_ = unix.EpollCtl(l.epfd, unix.EPOLL_CTL_MOD, o.epfd, &ev) // an error says that it has just got a thread
}

// runShared runs a round of a shared loop with the thread of l, the first one: of what
// is left to do there and, if reported, of what epoll has. Nothing unreported is
// looked for: it would overtake what the first loop is yet to be told of; but see
// full. It returns o if that is the caller's now and l is not, and reports as handle does.
func (l *loop) runShared(o *loop, reported bool) (kept *loop, mine bool) {
	if !o.run.shared.Load() || !o.run.own.TryLock() {
		l.watch(o) // it is about to get a thread, or to give it back
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

// adopt gives a new connection to a shared loop, with the thread of l, the first
// one: if it were posted, its first command would be overtaken. It reports
// whether it did.
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

// endVisit goes on where runShared was, on another goroutine, when the one that was
// there stays with a command of the loop it visited.
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

// carryOn is called on a goroutine of its own by handOver: it goes on with all that
// the calling goroutine did besides the command that it stays with.
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

// reacquire takes the first loop's lock again, unless another goroutine has taken
// over since: then the caller keeps the loop that it was visiting, whose lock it
// has held all the time, so that replaceFirst could see which one it is.
func (l *loop) reacquire(turn int) bool {
	if !l.run.own.TryLock() {
		return false
	}
	if l.run.turn != turn { // the other one is visiting a loop just now
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

// visit runs a round of a shared loop. It reports as handle does.
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

// goIdle has whoever posts write to the loop's eventfd again. It reports whether
// there is nothing left to do until then.
func (l *loop) goIdle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	quiet := len(l.mail) == 0 && len(l.nudged) == 0
	l.waiting.Store(quiet)
	return quiet && len(l.again) == 0
}

// runAlone runs a loop on a thread of its own, until it ends or is to be shared
// again. The caller has locked l.run.own for it.
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
			return // with the lock held, which is the other goroutine's now
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

// takeThread makes a loop a shared one. Its thread, if it has one, must end then.
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

// giveThread gives a shared loop a thread of its own. It reports whether it did.
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

// replaceFirst has another goroutine run the first loop if the present one is busy
// with a shared loop, which it then keeps.
func (s *Server) replaceFirst() {
	s.share.mu.Lock()
	defer s.share.mu.Unlock()
	first := s.loops[0]
	if s.share.frozen || !first.run.own.TryLock() {
		return // it is the first loop itself that is busy
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

// endFirst ends the first loop once no other is left for it to run. None will
// come back to it, since stopping has frozen who runs what.
func (l *loop) endFirst(others []*loop) bool {
	for _, o := range others {
		if o.run.shared.Load() {
			return false
		}
	}
	return l.end()
}
