// Package server, internal to the server, serves sessions: it checks, locks, runs and replies. New makes a server of its parts
// and of families of commands, which are given to it. What a command does is in its family's package, of which this one
// knows nothing.
package server

// Connections: resp.Handler over sessions.

import (
	"bytes"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
)

// Opened makes a session for a new connection.
func (s *Server) Opened(conn *resp.Conn) {
	sess := &command.Session{ID: s.Clients.NextID(), Conn: conn, Created: s.Keyspace.Clock.Now(), Authenticated: true}
	conn.Data = sess
	s.ClientArrived(sess)
	if text := s.Connections.Admit(sess); text != "" {
		conn.Out.Error(text)
		s.Stats.Rejected.Add(1)
		conn.Close(true)
		return
	}
	s.Stats.Connections.Add(1)
	s.arrived(sess)
	s.Clients.Add(sess)
	if ns := sess.Namespace(); ns != nil && !s.Namespaces.Has(ns) {
		conn.Close(false) // dropped before it could end this connection
		return
	}
	s.Logf('v', "client %d connected from %s", sess.ID, conn.RemoteAddr())
}

// Closed forgets the session.
func (s *Server) Closed(conn *resp.Conn) {
	sess := conn.Data.(*command.Session)
	s.Stats.BytesIn.Add(conn.BytesIn())
	s.Stats.BytesOut.Add(conn.BytesOut())
	switch conn.Reason() {
	case resp.ReasonInput:
		s.Stats.InputDrops.Add(1)
	case resp.ReasonOutput:
		s.Stats.OutputDrops.Add(1)
	}
	if w := sess.Blocked.Load(); w != nil {
		w.Abandon()
	}
	if sess.Multi.Watcher.Watching() {
		s.KeyspaceOf(sess).Unwatch(&sess.Multi.Watcher, engine.LockSet{})
	}
	for _, ks := range s.Keyspace.Siblings() {
		ks.EndSession(sess.ID, &sess.Bonds) // the leases of its locks
	}
	s.Tracker.Stop(sess)
	s.Connections.Closed(sess)
	s.Replication.Closed(sess)
	s.PubSub.LeaveAll(sess)
	s.Monitor.Remove(sess)
	s.Clients.Remove(sess)
	s.ClientGone(sess)
}

// slow tells whether a command is likely to take so long that the replies of other connections should not wait for it: its
// calls so far did.
func slow(w *command.Worker, cmd *command.Command) bool {
	if cmd == nil || cmd.Brief() {
		return false
	}
	n := &w.Counters[cmd.Index()]
	return n.Micros.Load() >= resp.LateMicrosMax*n.Calls.Load()
}

// Serve runs a batch of commands and returns how many it took. The number is negative if one of them took long, so that
// another goroutine serves the connection by now (long.go).
func (s *Server) Serve(conn *resp.Conn, batch []resp.Command) int {
	sess := conn.Data.(*command.Session)
	if s.MaxClientBytes.Load() != 0 {
		s.fitClients(sess, batch)
	}
	if sess.Killed.Load() {
		conn.Close(false)
		return 0
	}
	w := s.worker(conn)
	c := &w.Ctx
	c.Writer = conn.Out
	w.Unsafe = w.Unsafe[:0]
	now := engine.Monotonic()
	sess.LastUsed.Store(s.Keyspace.Clock.At(now))
	if turn := conn.Turn(); sess.Turn != turn {
		sess.Turn, sess.TurnBegan = turn, now
	}
	done := 0
	more := true
	began := now
	for more && done < len(batch) {
		window := batch[done:min(done+command.RequestsMax, len(batch))]
		if s.resolve(w, sess, window); done == 0 && slow(w, w.Requests[0].Cmd) {
			conn.Others()
		}
		var n int
		n, now, more = s.serve(w, sess, window, done, now)
		done += n
		if w.Away {
			s.comeBack(w, sess)
			return -1
		}
		for i := range window[1:] { // what the connection sent is not kept
			w.Requests[i+1].Args = nil
		}
	}
	conn.Took(now - began)
	s.enterChanges(w)
	s.ClientServed(sess)
	if len(w.Unsafe) > 0 {
		for i := range w.Unsafe {
			u := &w.Unsafe[i]
			u.From, u.To = conn.Out.Whole(u.From), conn.Out.Whole(u.To)
		}
		conn.Out.Flatten()
	}
	if kept, from := s.holdBack(w, sess, conn.Out.Mark()); kept != nil {
		conn.Out.Cut(from)
		s.hold(sess, kept)
	} else if sess.Closing {
		conn.Close(true) // also where unconfirmed replies delayed that
	}
	c.Writer = nil
	c.Rest()
	if conn.Loop < 0 {
		s.Workers.Put(w)
	}
	return done
}

// holdBack finds the replies of a batch that are not confirmed yet, nil if all are. The batch's replies end at a mark. From the
// returned mark on they do not belong to the connection any more.
func (s *Server) holdBack(w *command.Worker, sess *command.Session, end int) (*command.Kept, int) {
	if len(w.Unsafe) == 0 {
		return nil, end
	}
	confirmed := s.Keyspace.Journal.Confirmed()
	for i, u := range w.Unsafe {
		if u.At > confirmed {
			return sess.HoldBack(w.Ctx.Writer.Buf[:end], w.Unsafe[i:]), u.From
		}
	}
	return nil, end
}

// hold sends replies that were held back once they are confirmed, and pauses the connection until then.
func (s *Server) hold(sess *command.Session, kept *command.Kept) {
	conn := sess.Conn
	waits := conn.Paused() // it also waits for something else, whose reply comes later
	conn.Pause()
	s.Keyspace.Journal.After(kept.At, func(failed string) {
		conn.Post(func() {
			s.Send(sess, kept, failed)
			if sess.Closing {
				conn.Close(true)
			}
			if !waits {
				conn.Resume()
			}
		})
	})
}

// sendLater sends replies that were held back, if there are any, once they are confirmed.
func (s *Server) sendLater(sess *command.Session, kept *command.Kept) {
	if kept == nil {
		return
	}
	s.Keyspace.Journal.After(kept.At, func(failed string) {
		sess.Conn.Post(func() { s.Send(sess, kept, failed) })
	})
}

// fitClients ends the largest clients before a batch runs that would exceed maxmemory-clients.
func (s *Server) fitClients(sess *command.Session, batch []resp.Command) {
	arrived := -sess.Conn.QueryBytes() // this part of the batch is counted already
	for i := range batch {
		arrived += int64(batch[i].Size)
	}
	if arrived = max(arrived, 0); s.ClientsTakeTooMuch(arrived) {
		s.Keeper.EvictClients(sess, arrived)
	}
}

// resolve finds what commands call, and touches their keys.
func (s *Server) resolve(w *command.Worker, sess *command.Session, window []resp.Command) {
	var places [engine.TouchMax]engine.Place
	keys := 0
	for i := range window {
		r := &w.Requests[i]
		r.Resolve(s.Table, window[i].Args)
		r.Own = window[i].Own
		if at, ok := r.Ahead(len(window)); ok {
			places[keys] = at
			keys++
		}
	}
	if keys > 1 {
		s.Keyspace.Touch(sess.DB(), &places, keys)
	}
}

// togetherMax is how many brief commands of the same name are timed together:
// reading the clock takes as long as a tenth of a GET.
const togetherMax = 8

// apartMicros: if slower commands than this are logged, each command is timed apart, so that none is missed.
const apartMicros = 1000

// turnMicrosMax is how long a connection's commands run before another connection's do.
const turnMicrosMax = 2000

// serve runs resolved commands, of a batch of which before ran already. It returns how many it ran, the monotonic time, and
// whether the next one may run.
func (s *Server) serve(w *command.Worker, sess *command.Session, window []resp.Command, before int, now int64) (done int, later int64, more bool) {
	c, conn := &w.Ctx, sess.Conn
	together := 0 // commands that ran since the clock was read
	began := now
	var last *command.Command
	for i := range window {
		r := &w.Requests[i]
		if together > 0 && r.Cmd != last {
			now = s.account(c, last, now, engine.Monotonic(), together)
			together = 0
		}
		if together == 0 {
			r.Began = now
		}
		w.ReadAt, c.Now = now, s.Keyspace.Clock.At(now)
		mark := conn.Out.Mark()
		w.Nth, w.ReplyAt, w.Seen = before+i+1, mark, 0
		var result outcome
		if !s.Injecting.Load() && sess.Aside == 0 {
			w.Keep = r.Known && r.Cmd.Flags&command.KeepsLocks != 0 && now-began < keepMicrosMax &&
				i+1 < len(window) && w.Requests[i+1].Cmd == r.Cmd && s.sameLocks(r.Args, w.Requests[i+1].Args)
			result = s.process(w, sess, r)
			w.Keep = false
			if result != ran {
				s.letGo(w)
			}
		} else {
			result = s.inject(w, sess, r)
		}
		if result == retry {
			conn.Pause()
			break
		}
		done++
		if result == away {
			return done, s.account(c, r.Cmd, now, engine.Monotonic(), together+1), false
		}
		if result == ran {
			together++
			if last = r.Cmd; !last.Brief() || together == togetherMax || s.timedApart() {
				ended := r.Ended
				if ended == 0 {
					ended = engine.Monotonic()
				}
				now = s.account(c, last, now, ended, together)
				together = 0
			}
			if s.Tracking.Load() != 0 {
				s.Tracker.Commanded(c)
			}
		}
		if sess.Reply != command.ReplyOn {
			s.silence(sess, conn, mark, result == ran && r.Cmd.Flags&command.Pushes != 0)
		}
		sess.SendOwn(conn.Out)
		if w.Seen != 0 && w.Seen > s.Keyspace.Journal.Confirmed() && conn.Out.Mark() > mark {
			w.Unsafe = append(w.Unsafe, command.Unsafe{From: mark, To: conn.Out.Mark(), At: w.Seen})
		}
		if result == waits {
			conn.Pause()
			break
		}
		if sess.Closing {
			if len(w.Unsafe) == 0 {
				conn.Close(true)
			}
			break
		}
		if conn.Full() {
			break
		}
		if now-sess.TurnBegan > turnMicrosMax {
			conn.Yield()
			break
		}
		more = i == len(window)-1
	}
	s.letGo(w)
	if together > 0 {
		now = s.account(c, last, now, engine.Monotonic(), together)
	}
	return done, now, more
}

// keepMicrosMax limits for how long the commands of a pipeline hand their locks on to the next one, since others wait.
const keepMicrosMax = 50

// sameLocks tells whether a script that is called twice in a row may keep its locks in between. It may if nothing needs the
// keys or their locks between two commands.
func (s *Server) sameLocks(args, next [][]byte) bool {
	return len(args) > 1 && len(next) > 1 && bytes.Equal(args[1], next[1]) &&
		s.MaxMemory.Load() == 0 && s.Tracking.Load() == 0 && s.Monitors.Load() == 0 && !s.TooFewReplicas.Load() && !s.Pause.On()
}

// letGo gives back the locks that the last command kept for the next one.
func (s *Server) letGo(w *command.Worker) {
	if w.Kept != (engine.LockSet{}) {
		s.Keyspace.Unlock(w.Kept)
		w.Kept = engine.LockSet{}
	}
}

func (s *Server) timedApart() bool {
	slow := s.SlowMicros.Load()
	return slow >= 0 && slow < apartMicros
}

// account counts n commands of the same name that ran between two monotonic times, and returns the later one.
func (s *Server) account(c *command.Ctx, cmd *command.Command, began, now int64, n int) int64 {
	counters := &c.Worker.Counters[cmd.Index()]
	counters.Calls.Add(int64(n))
	if took := now - began; took > 0 {
		counters.Took(took, n)
		if slow := s.SlowMicros.Load(); slow >= 0 && took >= slow {
			s.Latency.Executed(c, cmd, c.Args, took)
		}
	} else if s.SlowMicros.Load() == 0 {
		s.Latency.Executed(c, cmd, c.Args, 0)
	}
	return now
}

// enterChanges adds a worker's changes to the counts of the keyspace. All workers write these, so they are updated once a
// batch, not after each command.
func (s *Server) enterChanges(w *command.Worker) {
	if w.Changes != 0 {
		s.Keyspace.Dirty.Add(w.Changes)
		w.Changes = 0
	}
	w.Ctx.Account()
}

// took counts the time of a command. Most take less than a microsecond, which adds nothing.
func (s *Server) took(c *command.Ctx, r *command.Request, micros int64) {
	if micros > 0 {
		c.Worker.Counters[r.Cmd.Index()].Took(micros, 1)
	}
	if slow := s.SlowMicros.Load(); slow >= 0 && micros >= slow {
		s.Latency.Executed(c, r.Cmd, r.Args, micros)
	}
}

// silence drops a reply as CLIENT REPLY asked, unless it was pushed.
func (s *Server) silence(sess *command.Session, conn *resp.Conn, mark int, pushed bool) {
	switch sess.Reply {
	case command.ReplyOff, command.ReplySkip:
		if !pushed {
			conn.Out.Cut(mark)
		}
		if sess.Reply == command.ReplySkip {
			sess.Reply = command.ReplyOn
		}
	case command.ReplySkipNext: // CLIENT REPLY SKIP itself says nothing
		conn.Out.Cut(mark)
		sess.Reply = command.ReplySkip
	}
}

// worker returns the worker of the connection's loop. A connection with its own goroutine borrows one.
func (s *Server) worker(conn *resp.Conn) *command.Worker {
	if conn.Loop >= 0 {
		return s.loops[conn.Loop]
	}
	return s.Workers.Get(s.Server)
}

// reply appends a reply that was made on another goroutine, or an error if what it tells could not be confirmed.
func (s *Server) reply(sess *command.Session, at journal.LSN, b []byte, failed string) {
	mark := sess.Conn.Out.Mark()
	s.Reply(sess, at, b, failed)
	if sess.Reply != command.ReplyOn {
		s.silence(sess, sess.Conn, mark, false)
	}
	sess.SendOwn(sess.Conn.Out)
	if sess.Closing {
		sess.Conn.Close(true)
	}
}

var _ resp.Handler = (*Server)(nil)
