package command

// Blocking commands. A handler that finds nothing calls Block; dispatch then
// parks the connection, which costs no goroutine, and whoever makes a key ready
// serves it under the key's lock.

import (
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/resp"
)

// Wait describes what a blocked command waits for.
type Wait struct {
	// Keys are waited for, the first ready one is served. They may alias the
	// request.
	Keys [][]byte
	// Also are keys that Serve needs locked besides.
	Also [][]byte
	// Deadline ends the wait, in Unix microseconds; 0 = never.
	Deadline int64
	// Again, if not 0, is when the first key is worth a try although nobody
	// writes it (a due time), in Unix microseconds.
	Again int64
	// Kind, Weight and NoKey are those of engine.Waiter.
	Kind   engine.Kind
	Weight int64
	NoKey  bool
	// Serve tries key. It runs under the key's lock with a Ctx of the blocked
	// session whose Args are a copy of the request. It replies exactly when it
	// returns engine.ServedDone. again is as in Again.
	Serve func(c *Ctx, key []byte) (result engine.Served, againMicros int64)
	// TimedOut replies when the deadline comes; nil replies a null array.
	TimedOut func(w Replier)
}

// Blocked is a session that waits.
type Blocked struct {
	Wait    Wait
	Cmd     *Command
	Args    [][]byte
	Since   int64
	Waiter  *engine.Waiter
	Timer   *engine.Timer
	session *Session
	ks      *engine.Keyspace
	at      journal.LSN // where the effects of its end are in the journal
	done    atomic.Bool
	// setup is held while Block makes the session wait. A wait without keys can
	// end meanwhile, for no lock of a shard holds its timer or CLIENT UNBLOCK back.
	setup sync.Mutex
}

// Block makes the session wait. The handler returns without a reply. Only
// when CanBlock says so.
func (c *Ctx) Block(w Wait) {
	s := c.Session
	b := &Blocked{Cmd: c.Cmd, Args: Clone(c.Args), Since: c.Now, session: s, ks: c.KS}
	w.Keys = Clone(w.Keys)
	w.Also = Clone(w.Also)
	b.Wait = w
	b.setup.Lock()
	defer b.setup.Unlock()
	srv := c.Server
	b.Waiter = &engine.Waiter{
		DB: c.DB, Keys: w.Keys, Also: w.Also, Kind: w.Kind, Weight: w.Weight, NoKey: w.NoKey,
		Serve: func(v *engine.View, key []byte) (engine.Served, int64) {
			return srv.serveBlocked(b, v, key)
		},
	}
	s.Blocked.Store(b)
	c.Waits = true
	c.Wait(b.Waiter, w.Again)
	srv.BlockedClients.Add(1)
	if w.Deadline != 0 {
		b.Timer = srv.Keyspace.Sched.At(w.Deadline, func(int64) { srv.Unblock(b, nil, false) })
	}
}

// serveBlocked runs Serve for a blocked session, under the locks of view.
func (s *Server) serveBlocked(b *Blocked, v *engine.View, key []byte) (engine.Served, int64) {
	w := resp.Writer{Proto: b.session.Proto()}
	c := Ctx{Writer: &w, Args: b.Args, Cmd: b.Cmd, Session: b.session, Server: s}
	// The writes of Serve are the serving command's: it wakes whom they make
	// ready, and counts them.
	c.View = *v
	c.Writes = b.Cmd.Flags&Write != 0
	if text := s.Refuses(&c, b.Cmd, b.Args); text != "" { // rights changed while it waited
		s.count(b, text, func(n *Counters) *atomic.Int64 { return &n.Rejected })
		w.Error(text)
		s.finish(b, w.Buf)
		return engine.ServedDone, 0
	}
	result, again := b.Wait.Serve(&c, key)
	c.EndCommand(b.Args)
	c.Commit()
	b.at = c.LSN
	*v = c.View
	if result == engine.ServedDone {
		if c.Failure != "" {
			s.Stats.CountError(c.Failure)
			s.Workers.CountFailed(b.Cmd)
		}
		s.finish(b, w.Buf)
	}
	return result, again
}

// Unblock ends a wait that has not been served, with the time-out's reply or,
// if reply is not nil, with that. It reports whether it did. A caller who holds
// locks (a command inside EXEC) says so: the line is then left, and the reply
// sent, as soon as it may have let them go.
func (s *Server) Unblock(b *Blocked, reply func(w *resp.Writer), held bool) bool {
	if !b.Waiter.Depart() {
		return false
	}
	if held {
		go s.depart(b, reply)
	} else {
		s.depart(b, reply)
	}
	return true
}

// depart is the rest of Unblock. No lock is held.
func (s *Server) depart(b *Blocked, reply func(w *resp.Writer)) {
	defer s.Caught("the end of a wait")
	b.ks.Unlist(b.Waiter)
	w := resp.Writer{Proto: b.session.Proto()}
	switch {
	case reply != nil:
		reply(&w)
		if len(w.Buf) > 1 && w.Buf[0] == '-' {
			s.count(b, string(w.Buf[1:]), func(n *Counters) *atomic.Int64 { return &n.Failed })
		}
	case b.Wait.TimedOut != nil:
		b.Wait.TimedOut(&w)
	default:
		w.NullArray()
	}
	s.finish(b, w.Buf)
}

// count counts that a blocked command came to an error.
func (s *Server) count(b *Blocked, text string, of func(*Counters) *atomic.Int64) {
	s.Stats.CountError(text)
	w := s.Workers.Get(s)
	of(&w.Counters[b.Cmd.Index()]).Add(1)
	s.Workers.Put(w)
}

// finish hands the reply to the connection and lets it go on.
func (s *Server) finish(b *Blocked, reply []byte) {
	if !s.leaves(b) {
		return
	}
	if s.SlowMicros.Load() == 0 {
		// Only what it runs counts, not how long it waited: nothing worth
		// measuring, but the slow log may be asked for everything.
		c := Ctx{Args: b.Args, Cmd: b.Cmd, Session: b.session, Server: s}
		c.Now = s.Keyspace.Clock.Now()
		s.Executed(&c, b.Cmd, b.Args, 0)
	}
	conn := b.session.Conn
	b.session.Blocked.Store(nil)
	s.When(max(b.at, b.session.Held), func() {
		conn.Post(func() {
			if b.session.Reply == ReplyOn {
				conn.Out.Raw(reply)
			}
			conn.Resume()
		})
	})
}

// When calls fn as soon as all up to a place in the journal is as safe as the user
// asked: at once, mostly.
func (s *Server) When(at journal.LSN, fn func()) {
	if s.Keyspace.Gated.Load() {
		s.Gate(at, fn)
	} else {
		fn()
	}
}

// Abandon ends the wait of a session whose connection is gone.
func (s *Server) Abandon(b *Blocked) {
	if b.ks.Leave(b.Waiter) {
		s.leaves(b)
	}
}

// leaves ends the wait, and reports false if it has ended before.
func (s *Server) leaves(b *Blocked) bool {
	if !b.done.CompareAndSwap(false, true) {
		return false
	}
	b.setup.Lock()
	timer := b.Timer
	b.setup.Unlock()
	s.BlockedClients.Add(-1)
	if timer != nil {
		s.Keyspace.Sched.Cancel(timer)
	}
	return true
}
