package server

// The commands of a primary's stream. They run like a client's, so that readers see all of a transaction or nothing, but
// without checks of rights and without admission.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
)

// replayer runs a primary's commands, one after the other.
type replayer struct {
	s    *Server
	w    *command.Worker // the replayer's own
	sess *command.Session
	out  resp.Writer
	feed func(raw []byte)
	// raw is what feed gets once it is applied, open the bytes of a transaction that has begun.
	raw, open []byte
	fed       bool
	readAt    int64 // when the commands that are run now were read, on the monotonic clock
	atCommit  func(journal.LSN)
}

// Replayer makes a replayer.
func (s *Server) Replayer(sess *command.Session, feed func(raw []byte)) command.Replayer {
	r := &replayer{s: s, w: s.Workers.Get(s.Server), sess: sess, feed: feed}
	r.out.Proto = 2
	r.atCommit = func(journal.LSN) {
		if r.w.Ctx.Held != (engine.LockSet{}) {
			r.pass()
		}
	}
	return r
}

// pass hands on the bytes of what was applied. Whoever holds all keys sees both the change and its bytes, or neither.
func (r *replayer) pass() {
	switch {
	case r.sess.Multi.Active: // with the rest of the transaction
		return
	case !r.fed && !r.sess.Killed.Load():
		r.feed(r.raw)
	}
	r.fed = true
}

// Pass implements command.Replayer.
func (r *replayer) Pass(raw []byte) {
	if r.sess.Multi.Active {
		r.open = append(r.open, raw...)
		return
	}
	r.raw, r.fed = raw, false
	r.unlocked(func() {})
}

// Select implements command.Replayer.
func (r *replayer) Select(db int, raw []byte) {
	r.raw, r.fed = raw, false
	r.unlocked(func() { r.sess.SetDB(db) })
}

// End implements command.Replayer.
func (r *replayer) End() {
	c := &r.w.Ctx
	c.Told, c.Writer, c.KS = false, nil, r.s.Keyspace
	r.sess.Multi = command.Multi{}
	r.s.Workers.Put(r.w)
}

// Ahead implements command.Replayer. It finds what the commands call, and touches their keys.
func (r *replayer) Ahead(commands [][][]byte) {
	var places [engine.TouchMax]engine.Place
	keys := 0
	for i, args := range commands {
		if len(args) == 0 {
			continue
		}
		req := &r.w.Requests[i]
		if req.Resolve(r.s.Table, args); req.Cmd == nil {
			if cmd := r.s.Table.Applied(args[0]); cmd != nil {
				req.Call(cmd, args)
			}
		}
		if at, ok := req.Ahead(len(commands)); ok {
			places[keys] = at
			keys++
		}
	}
	if keys > 1 {
		r.s.Keyspace.Touch(r.sess.DB(), &places, keys)
	}
	r.readAt = engine.Monotonic()
	r.sess.LastUsed.Store(r.s.Keyspace.Clock.At(r.readAt))
}

// Run implements command.Replayer.
func (r *replayer) Run(nth int, args [][]byte, raw []byte) (failure string) {
	s, w, c := r.s, r.w, &r.w.Ctx
	r.out.Buf = r.out.Buf[:0]
	c.Writer, c.KS, c.Told = &r.out, s.Keyspace, true
	w.ReadAt, c.Now = r.readAt, s.Keyspace.Clock.At(r.readAt)
	req := &w.Requests[nth]
	r.raw = raw
	if r.sess.Multi.Active {
		r.open = append(r.open, raw...)
		r.raw = r.open
	}
	r.fed = false
	if !req.Known { // the other commands of its transaction may have bytes here
		r.unlocked(func() {})
		return "ERR unknown command " + quoted(args)
	}
	ends := !r.sess.Multi.Active || req.Cmd.Flags&command.InMulti != 0
	if ends {
		c.AtCommit(r.atCommit)
	}
	result := s.process(w, r.sess, req)
	switch {
	case r.sess.Killed.Load():
		r.fed = true
		c.Commit() // hands on nothing, since pass has done that
		return ""
	case result == waits || result == retry:
		failure = "ERR it waits"
	case len(r.out.Buf) > 0 && r.out.Buf[0] == '-':
		failure = string(r.out.Buf[1 : len(r.out.Buf)-2])
	}
	switch {
	case r.sess.Multi.Active && ends: // it begins
		r.open = append(r.open[:0], raw...)
	case !r.sess.Multi.Active && !r.fed:
		r.unlocked(func() {})
	}
	if result == ran {
		w.Counters[req.Cmd.Index()].Calls.Add(1)
	}
	s.enterChanges(w)
	req.Args = nil
	return failure
}

// unlocked hands on the bytes of commands that locked no keys or were refused. Nobody can hold all keys meanwhile.
func (r *replayer) unlocked(also func()) {
	if r.sess.Multi.Active {
		return
	}
	r.s.Keyspace.Inspect(engine.LocksOf(nil), func(*engine.Reader) {
		if !r.sess.Killed.Load() {
			also()
		}
		r.pass()
	})
	r.w.Ctx.Held = engine.LockSet{}
	r.w.Ctx.Commit()
}

var _ command.Replayer = (*replayer)(nil)
