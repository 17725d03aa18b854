package server

// Commands that take long. A command begins on the goroutine of its connection's loop, under the locks of its keys. If
// it turns out to take long – a script that is over its time, see scripting – or is known to, it stays where it is, and
// all else goes elsewhere: the loop to another goroutine with another worker, the locks become a reservation, which
// parks who wants the keys instead of blocking a loop, and the connection is paused. What ends in time pays nothing.

import (
	"runtime"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/longrun"
)

// GoLong makes the command that c's worker runs a long one, which began at a time of the monotonic clock. It is called
// on the command's goroutine, with no lock held but those of the command.
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
	kept, from := s.holdBack(w, sess, w.ReplyAt) // what came before it does not leave with the loop
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

// Step is called by a command that GoLong was called for, before it goes on looking. Its steps are short, so each is under
// the mutexes of its shards: those who wait for one get it in a millisecond. A reservation that is given back and taken
// again is taken before they have heard of it.
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
	s.enterChanges(c.Worker) // whoever waits for the last long command to end finds what it changed
	s.Long.Remove(run)
	run.Reservation.Release()
}

// comeBack gives the reply of a command to its connection, which went on elsewhere, and the worker back. The worker's Ctx is that of the command still.
func (s *Server) comeBack(w *command.Worker, sess *command.Session) {
	c := &w.Ctx
	s.enterChanges(w)
	reply, told := c.Writer.From(w.ReplyAt), command.Ctx{Request: &command.Request{Cmd: c.Cmd}, Session: sess, Server: s.Server}
	c.Writer, w.Away = nil, false
	w.Requests = [command.RequestsMax]command.Request{} // whose arguments are the connection's
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
