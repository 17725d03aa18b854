package resp

// Rounds of the loops, for other parts of the server: they can have a function called at the end of each round, and have the
// first loop watch an eventfd.

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// watch is what loops do for other parts of the server.
type watch struct {
	rounds atomic.Int32 // rounds under way
	at     atomic.Pointer[watched]
}

// watched is an eventfd, and the function to call when it is readable.
type watched struct {
	event int
	ready func()
}

// InRound says whether a loop is in a round: Options.Round will be called at its end. So a caller that has prepared
// something before the call can rely on Round to see it.
func (s *Server) InRound() bool { return s.watch.rounds.Load() > 0 }

// Watch makes the first loop read an eventfd whenever that is readable, and then call fn, within a round. A server can have
// one. Watch returns false if there are no loops, or if epoll refuses the eventfd.
func (s *Server) Watch(event int, fn func()) bool {
	if len(s.loops) == 0 {
		return false
	}
	s.watch.at.Store(&watched{event, fn})
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: slotWatch}
	return unix.EpollCtl(s.loops[0].epfd, unix.EPOLL_CTL_ADD, event, &ev) == nil
}

// read is called when the watched descriptor is readable.
func (w *watch) read() {
	at := w.at.Load()
	drain(at.event)
	at.ready()
}

// roundBegins and roundEnds are called around the work of a loop between two calls of epoll_wait. If a long command is handed
// over, its round ends when another goroutine continues with the loop.
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
	l.server.watch.rounds.Add(-1) // before Round is called: it sees what was done while InRound was still true
	if round := l.server.opts.Round; round != nil {
		l.run.look = round()
	}
}
