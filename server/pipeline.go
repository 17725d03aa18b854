package server

// The pipeline: the way of a command from its arguments to its reply, in five steps.
//
//	resolve  what the arguments call: the row, and where its key is (command.Request). A connection's next commands are
//	         resolved together, so that their keys can be touched before the first of them runs (serve.go).
//	admit    whether it may run now (admit.go): arity, rights, memory, replicas, pauses; and what the row prepares, EVAL
//	         its script. In MULTI the command ends here, queued with all that was found.
//	lock     the shards of its keys. Where a long run has reserved one, the connection waits, not its loop.
//	run      the handler, and then MONITOR, tracking and the counters.
//	settle   the effects go to the journal, clients that wait for a key are served, the locks are released.
//
// A client's command goes all the way. So does a command without a connection, the server's own or a journal's, which is
// always admitted. EXEC's commands were resolved when they were queued; they are checked again and run under EXEC's locks.
// A script's commands are admitted in call.go and run under the script's locks. A command that takes long leaves its loop
// in the middle of run, or before it, and settles on its own (long.go).

import (
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/longrun"
)

// outcome is what became of a command of a connection.
type outcome uint8

const (
	ran     outcome = iota // also: the next step may begin
	waits                  // the connection is to be paused; the command was taken
	retry                  // the connection is to be paused; the command is to be run again
	replied                // refused or queued
	away                   // it ran, and the connection is another goroutine's by now
)

// process takes a resolved request through the other steps, in the worker's context, of which w.ReadAt and c.Now are set. The
// caller counts the command if it ran.
func (s *Server) process(w *command.Worker, sess *command.Session, r *command.Request) (result outcome) {
	c := &w.Ctx
	out, mark := c.Writer, c.Writer.Mark()
	defer func() {
		if p := recover(); p != nil {
			c.Writer, c.Mark, c.Request = out, mark, r
			s.rescue(c, p)
			result = s.settle(c)
		}
	}()
	w.Risk = false
	c.Request, c.Session, c.Mark = r, sess, mark
	c.LSN, c.Replicas, c.Failure, c.Waits = 0, 0, "", false
	c.Held = engine.LockSet{}
	c.DB, c.NoTouch, c.Who = sess.DB(), sess.NoTouch, sess.ID
	c.Trust()
	c.Forget()
	if result = s.admit(c); result != ran {
		return result
	}
	if result = s.lock(c); result != ran {
		return result
	}
	if sess.Conn == nil && sess.Killed.Load() { // of a primary that the server does not follow any more
		c.KS.Unlock(w.Locked)
		w.Locked = engine.LockSet{}
		return replied
	}
	s.run(c)
	return s.settle(c)
}

// lock takes the locks of the shards that the command needs.
func (s *Server) lock(c *command.Ctx) outcome {
	w, cmd, sess := c.Worker, c.Cmd, c.Session
	w.Wanted.Reset()
	var h *engine.Reservation
	long := false
	switch {
	case w.Kept.All():
		w.Wanted, w.Kept = w.Kept, engine.LockSet{}
	case c.Sole > 0:
		c.NeedAt(&w.Wanted, c.Args[c.Sole], c.Place)
		if cmd.Also != nil {
			cmd.Also(c, &w.Wanted)
		}
		w.Risk = true
		h = c.KS.Lock(w.Wanted)
	default:
		if long, h = s.take(c); h != nil && cmd.Plan != nil { // the script is analysed by now and may need less
			w.Risk = false
			w.Wanted.Reset()
			long, h = s.take(c)
		}
	}
	switch {
	case h == nil:
	case h.Slow() && cmd.Flags&command.AllowBusy == 0:
		s.refuse(c, h.Info.(*longrun.Run).Busy())
		return replied
	case sess.Conn == nil:
		for ; h != nil; long, h = s.take(c) { // the server's own session may wait
			h.Wait()
		}
	default:
		resume := func() { sess.Conn.Post(sess.Conn.Resume) }
		if cmd.Flags&command.AllowBusy != 0 {
			h.OnRelease(resume)
		} else {
			h.OnReleaseOrSlow(resume) // the run may become slow before it ends
		}
		return retry
	}
	w.Locked, c.Held = w.Wanted, w.Wanted
	// The clock may have been set while the command waited for the locks, and what they guard goes by the clock.
	c.Now = c.KS.Clock.At(w.ReadAt)
	if long {
		s.GoLong(c, engine.Monotonic())
	}
	return ran
}

// take locks the shards that the command needs, or returns the reservation that is in the way.
func (s *Server) take(c *command.Ctx) (long bool, h *engine.Reservation) {
	w := c.Worker
	long = s.Plan(c, &w.Wanted)
	w.Risk = true
	return long, c.KS.Lock(w.Wanted)
}

// Plan adds what c's request needs to a lock set, and tells whether it will take long.
func (s *Server) Plan(c *command.Ctx, set *engine.LockSet) (long bool) {
	switch cmd, args := c.Cmd, c.Args; {
	case cmd.Plan != nil:
		return cmd.Plan(c, set)
	case cmd.Flags&command.WholeKeyspace != 0:
		set.AddAll()
	case c.Sole > 0:
		c.NeedAt(set, args[c.Sole], c.Place)
	case cmd.HasKeys():
		cmd.EachKey(args, func(i int) { set.AddKey(args[i]) })
	}
	if c.Cmd.Also != nil {
		c.Cmd.Also(c, set)
	}
	return false
}

// run calls the handler, and tells monitors, the tracking table and the counters of the command.
func (s *Server) run(c *command.Ctx) {
	w, cmd := c.Worker, c.Cmd
	w.Risk = false
	// MONITOR shows a script before its commands, other commands once they have run, and administrative ones never.
	monitored := s.Monitors.Load() != 0 && cmd.Flags&command.Admin == 0
	if monitored && cmd.Flags&command.SkipMonitor != 0 {
		s.Monitor.Feed(c, c.Args)
		monitored = false
	}
	c.Writes = cmd.CallFlags(c.Args)&command.Write != 0
	c.Expect(len(c.Args))
	cmd.Run(c)
	c.EndCommand(c.Args)
	if n := c.TakeChanges(); n != 0 {
		w.Changes += n
	}
	if monitored {
		s.Monitor.Feed(c, c.Args)
	}
	// A script counts by the commands that it calls.
	if cmd.Flags&(command.ReadOnly|command.SkipMonitor) == command.ReadOnly && s.Tracking.Load() != 0 {
		s.Tracker.Read(c, cmd, c.Args)
	}
	if c.Failure != "" {
		w.Counters[cmd.Index()].Failed.Add(1)
		if !c.Counted {
			s.CountError(c.Failure)
		}
	}
	c.Counted = false
}

// settle ends what lock began.
func (s *Server) settle(c *command.Ctx) outcome {
	w, sess, run := c.Worker, c.Session, c.Long
	w.Risk = true
	sole := c.Sole > 0 && c.Held.Sole(c.Place)
	if sole {
		c.CommitSole(c.Place)
	} else {
		c.Commit()
	}
	if c.LSN != 0 {
		sess.Wrote = c.LSN
	}
	if c.Replicas != 0 {
		sess.Offset = c.Replicas
	}
	// A script that was refused to write, and changed nothing, has nothing that must be confirmed before its reply.
	if c.KS.Journal.Holds() && (c.LSN != 0 || !strings.HasPrefix(c.Failure, "MISCONF ")) {
		at := c.LSN
		if sole { // it has not seen the other keys of the shard
			at = max(at, c.KS.ChangedNear(c.Place))
		} else {
			at = max(at, c.KS.ChangedAt(c.Held))
		}
		w.Seen = max(w.Seen, at)
	}
	if c.Reserved {
		run.Reservation.Lock()
		w.Locked, w.Keep, c.Reserved = c.Held, false, false
	}
	if c.Held != (engine.LockSet{}) {
		c.ServeReady()
		w.Changes += c.TakeChanges()
	}
	if w.Keep && c.Held.All() {
		w.Kept = c.Held
	} else {
		c.KS.Unlock(w.Locked)
	}
	w.Locked = engine.LockSet{}
	if run != nil {
		s.endLong(c, run)
	}
	w.Risk = false
	switch {
	case w.Away:
		return away
	case c.Waits: // it counts as a call when the wait ends
		return waits
	}
	return ran
}

// Queued runs a command that EXEC comes to. Rights may have changed since it was queued.
func (s *Server) Queued(c *command.Ctx, r *command.Request, began int64) (now int64) {
	exec := c.Request
	c.Request = r
	text := s.check(c)
	c.Request = exec
	if text != "" { // counts as EXEC's failure, unless another command runs after this one
		c.Writer.Error(text)
		s.CountError(text)
		c.Failure, c.Counted = text, true
		return began
	}
	r.Began, r.Ended = began, 0
	s.within(c, r)
	if now = r.Ended; now == 0 {
		now = engine.Monotonic()
	}
	s.took(c, r, now-began)
	return now
}

// Called runs a command that a script calls. Brief commands are not timed, since to read the clock takes a good part of their
// own time.
func (s *Server) Called(c *command.Ctx, r *command.Request) {
	if r.Cmd.Brief() && !s.timedApart() {
		s.within(c, r)
		return
	}
	began := engine.Monotonic()
	s.within(c, r)
	s.took(c, r, engine.Monotonic()-began)
}

// within runs a command inside another one, under its locks and at its time.
func (s *Server) within(c *command.Ctx, r *command.Request) {
	outer, mark := c.Request, c.Mark
	c.Request, c.Mark, c.Failure, c.Counted = r, c.Writer.Mark(), "", false
	c.Forget()
	if r.Sole > 0 {
		c.HintAt(r.Args[r.Sole], r.Place)
	}
	s.run(c)
	c.Worker.Counters[r.Cmd.Index()].Calls.Add(1)
	c.Request, c.Mark, c.Failure = outer, mark, ""
	c.Forget()
}
