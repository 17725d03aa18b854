package resp

// Rounds of the loops, as those see them who have work done at their ends and by their epoll descriptors.

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// watch is what loops do for others.
type watch struct {
	rounds atomic.Int32 // that are under way
	at     atomic.Pointer[watched]
}

// watched is an eventfd, and who is told that it is readable.
type watched struct {
	event int
	ready func()
}

// InRound says whether a loop is in a round whose end is yet to come, and Options.Round with it. Who has done something
// by then that Round looks for is sure that it does.
func (s *Server) InRound() bool { return s.watch.rounds.Load() > 0 }

// Watch has the first loop read an eventfd whenever it can, and call fn then, in a round. There is one for a server. It
// says whether there are loops.
func (s *Server) Watch(event int, fn func()) bool {
	if len(s.loops) == 0 {
		return false
	}
	s.watch.at.Store(&watched{event, fn})
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: slotWatch}
	return unix.EpollCtl(s.loops[0].epfd, unix.EPOLL_CTL_ADD, event, &ev) == nil
}

// read is called where the watched descriptor is readable.
func (w *watch) read() {
	at := w.at.Load()
	drain(at.event)
	at.ready()
}

// roundBegins and roundEnds are called around what a loop does between two looks at epoll. A round that a long command
// took over ends when another goroutine goes on with the loop.
func (l *loop) roundBegins() {
	if !l.run.round {
		l.run.round = true
		l.server.watch.rounds.Add(1)
	}
}

func (l *loop) roundEnds() {
	if !l.run.round {
		return
	}
	l.run.round = false
	l.server.watch.rounds.Add(-1) // before Round looks: who counts on it was there first
	if round := l.server.opts.Round; round != nil {
		l.run.look = round()
	}
}
