package server

// Commands that take long. A command begins on the goroutine of its connection's loop, under the locks of its keys. If
// it turns out to take long (a script that is over its time, see scripting), or is known to, it keeps its goroutine, and
// everything else moves: another goroutine with another worker runs the loop, the locks become a reservation, so that
// commands for the same keys are parked instead of blocking a loop, and the connection is paused. A command that ends in
// time pays nothing for this.

import (
	"runtime"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/longrun"
)

// GoLong makes the command that c's worker runs a long one. since, on the monotonic clock, is when it began. The command's own
// goroutine calls it, and has no locks but the command's.
func (s *Server) GoLong(c *command.Ctx, since int64) *longrun.Run {
	if c.Long != nil {
		return c.Long
	}
	w, sess := c.Worker, c.Session
	w.Risk = true
	defer func() { w.Risk = false }()
	run := &longrun.Run{Args: command.Clone(c.Args), Since: since}
	run.Reservation = c.KS.Reserve(w.Locked, run)
	w.Locked = engine.LockSet{}
	c.Long, c.Reserved = run, true
	s.Long.Add(run)
	conn := sess.Conn
	if conn == nil {
		return run
	}
	var next *command.Worker
	if conn.Loop >= 0 {
		next = s.Workers.Get(s.Server)
		s.loops[conn.Loop] = next // before the loop goes on
	}
	sess.Busy.Store(true)
	kept, from := s.holdBack(w, sess, w.ReplyAt) // earlier replies that are not confirmed stay behind
	if w.Away = conn.HandOver(w.Nth, from); w.Away {
		w.Unsafe = w.Unsafe[:0]
		s.sendLater(sess, kept)
	} else {
		sess.Forget()
		sess.Busy.Store(false)
		if next != nil {
			s.loops[conn.Loop] = w
			s.Workers.Put(next)
		}
	}
	return run
}

// Step is called by a long command between two steps of a search. A step is short, so the command holds the mutexes of its
// shards for it, which others get within a millisecond. A reservation would be worse: the command would take it again before
// the waiting commands were told that it is free.
func (s *Server) Step(c *command.Ctx) {
	w := c.Worker
	w.Risk = true
	if c.Reserved {
		c.Long.Reservation.Lock()
		w.Keep, c.Reserved = false, false
	}
	c.KS.Unlock(c.Held)
	w.Locked = engine.LockSet{}
	c.Long.Reservation.Release()
	runtime.Gosched()
	c.KS.LockWaiting(c.Held)
	w.Locked = c.Held
	c.Forget()
	w.Risk = false
}

// endLong ends what GoLong began, once the command is settled.
func (s *Server) endLong(c *command.Ctx, run *longrun.Run) {
	c.Long = nil
	s.enterChanges(c.Worker) // who waits for the last long command to end sees the changes
	s.Long.Remove(run)
	run.Reservation.Release()
}

// comeBack sends the reply of a long command to its connection, which another goroutine serves by now, and gives the worker
// back. The worker's Ctx is still the command's.
func (s *Server) comeBack(w *command.Worker, sess *command.Session) {
	c := &w.Ctx
	s.enterChanges(w)
	reply, told := c.Writer.From(w.ReplyAt), command.Ctx{Request: &command.Request{Cmd: c.Cmd}, Session: sess, Server: s.Server}
	c.Writer, w.Away = nil, false
	w.Requests = [command.RequestsMax]command.Request{} // their arguments point into the connection's buffer
	c.Rest()
	seen := w.Seen
	s.Workers.Put(w)
	s.When(max(seen, sess.Held), func(failed string) {
		sess.Conn.Post(func() {
			sess.Busy.Store(false)
			if s.Tracking.Load() != 0 {
				s.Tracker.Commanded(&told)
			}
			s.reply(sess, seen, reply, failed)
			s.ClientServed(sess)
			sess.Conn.Return()
		})
	})
}
