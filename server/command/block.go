package command

// Blocking commands. A handler that finds nothing calls Block. The connection is parked then, without a goroutine, and
// whoever makes a key ready serves the wait under the key's lock.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/resp"
)

// Trier is the parsed request of a command that waits.
type Trier interface {
	// Try tries to serve the wait with the value of a key. It runs under the key's lock with a Ctx of the waiting session,
	// whose Args are the Wait's. It replies if and only if its result Ends. againMicros, if not 0, is when to try the key
	// again even if nobody writes it.
	Try(c *Ctx, key []byte) (result engine.Served, againMicros int64)
}

// Wait is a command that waits.
type Wait struct {
	// Waiter is its place in the lines of its keys, and its timer.
	engine.Waiter
	// Request is the command's, with its own copy of the arguments.
	Request
	Trier Trier
	// Since is in Unix microseconds.
	Since int64
	// Lapsed replies when the deadline comes; nil replies a null array.
	Lapsed func(w Replier)
	// Closes: the connection ends after the reply. The caller of Unblock sets it while it makes the reply.
	Closes bool

	session *Session
	server  *Server
	bytes   int64       // of the arguments
	at      journal.LSN // where the effects of its end are in the journal
}

// NewWait makes a wait of the running command, if CanBlock allows it; Block begins it. The caller sets what it waits for. Keys
// and Also must be taken from the wait's Args, which outlive the command's.
func (c *Ctx) NewWait(trier Trier, kind engine.Kind, deadline int64) *Wait {
	w := &Wait{Request: c.Request.Clone(), Trier: trier, Since: c.Now, session: c.Session, server: c.Server}
	w.bytes = int64(ArgBytes(w.Args))
	w.KS, w.DB, w.Kind, w.Deadline, w.Who = c.KS, c.DB, kind, deadline, w
	return w
}

// Block makes the session wait. The handler returns without a reply.
func (c *Ctx) Block(w *Wait) {
	c.Session.Blocked.Store(w)
	c.Waits = true
	c.Wait(&w.Waiter)
	c.Server.BlockedClients.Add(1)
}

// Ctx is the context of the command that waits, without a reply.
func (w *Wait) Ctx(v engine.View) Ctx {
	c := Ctx{View: v, Request: &w.Request, Session: w.session, Server: w.server}
	c.Writes = w.Cmd.Flags&Write != 0
	return c
}

// Serve tries a key, under the locks of v.
func (w *Wait) Serve(v *engine.View, key []byte) (engine.Served, int64) {
	s := w.server
	if w.session.Killed.Load() { // its connection is about to be closed: what the wait took would be lost
		s.BlockedClients.Add(-1)
		return engine.ServedDone, 0
	}
	out := resp.Writer{Proto: w.session.Proto()}
	// The writes of Try belong to the serving command, which counts them and serves the waits that they make ready.
	c := w.Ctx(*v)
	c.Writer = &out
	if text := s.Refuses(&c, w.Cmd, w.Args); text != "" { // rights changed while it waited
		s.CountError(text)
		s.Workers.Unowned(w.Cmd).Rejected.Add(1)
		out.Error(text)
		w.finish(out.Buf)
		return engine.ServedDone, 0
	}
	result, again := w.Trier.Try(&c, key)
	c.EndCommand(w.Args)
	c.Commit()
	w.at = c.LSN
	*v = c.View
	if result.Ends() {
		w.called(c.Failure)
		w.finish(out.Buf)
	}
	return result, again
}

// Unblock ends a wait that has not been served, with the reply that reply makes, or with that of a time-out if it is nil. It
// reports whether it did. A caller that holds locks (a command inside EXEC) says so with held: the wait then leaves its
// lines, and the reply is sent, on another goroutine.
func (w *Wait) Unblock(reply func(w *resp.Writer), held bool) bool {
	if !w.Depart() {
		return false
	}
	leave := func() {
		defer w.server.Caught("the end of a wait")
		w.Unlist()
		w.end(reply)
	}
	if held {
		w.KS.Sched.Go(leave)
	} else {
		leave()
	}
	return true
}

// TimedOut ends a wait whose deadline has come.
func (w *Wait) TimedOut() { w.end(nil) }

// end replies without a value. The caller holds no lock, and the wait has left its lines.
func (w *Wait) end(reply func(w *resp.Writer)) {
	out, failure := resp.Writer{Proto: w.session.Proto()}, ""
	switch {
	case reply != nil:
		reply(&out)
		if len(out.Buf) > 1 && out.Buf[0] == '-' {
			failure = string(out.Buf[1:])
		}
	case w.Lapsed != nil:
		w.Lapsed(&out)
	default:
		out.NullArray()
	}
	w.called(failure)
	w.finish(out.Buf)
}

// called counts that the command ran, and that it failed if there is an error.
func (w *Wait) called(failure string) {
	n := w.server.Workers.Unowned(w.Cmd)
	n.Calls.Add(1)
	if failure != "" {
		w.server.CountError(failure)
		n.Failed.Add(1)
	}
}

// finish sends the reply to the connection and resumes it.
func (w *Wait) finish(reply []byte) {
	s, sess := w.server, w.session
	s.BlockedClients.Add(-1)
	if s.SlowMicros.Load() == 0 {
		// The time of a wait does not count, and the time to serve it is too short to measure. But with
		// slowlog-log-slower-than 0 all commands are logged.
		c := Ctx{Request: &w.Request, Session: sess, Server: s}
		c.Now = s.Keyspace.Clock.Now()
		s.Host.TookLong(&c, w.Cmd, w.Args, 0)
	}
	sess.Blocked.Store(nil)
	s.When(max(w.at, sess.Held), func(failed string) {
		sess.Conn.Post(func() {
			if !sess.Conn.Gone() {
				s.ClientServed(sess)
			}
			if sess.Reply == ReplyOn {
				s.Reply(sess, w.at, reply, failed)
			}
			if w.Closes {
				sess.Conn.Close(true)
				return
			}
			sess.Conn.Resume()
		})
	})
}

// Abandon ends the wait of a session whose connection is gone.
func (w *Wait) Abandon() {
	if w.Leave() {
		w.server.BlockedClients.Add(-1)
	}
}

// When calls fn once the journal is confirmed up to an LSN, mostly at once, or with an error if that fails.
func (s *Server) When(at journal.LSN, fn func(failed string)) {
	if s.Keyspace.Journal.Holds() {
		s.Keyspace.Journal.After(at, fn)
	} else {
		fn("")
	}
}
