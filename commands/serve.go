// Package commands puts the table of commands together and serves sessions:
// it checks, locks, runs and replies. What a command does is in its family's
// package.
package commands

// Connections: resp.Handler over sessions.

import (
	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp"
)

// server is command.Server with what only this package needs.
type server struct {
	*command.Server
	// loops are the workers of the event loops.
	loops  []*command.Worker
	params params
}

// Opened makes a session for a new connection.
func (s *server) Opened(conn *resp.Conn) {
	s.Stats.Connections.Add(1)
	sess := &command.Session{ID: s.Clients.NextID(), Conn: conn, Created: s.Keyspace.Clock.Now(), Authenticated: true}
	conn.Data = sess
	if s.Admit != nil {
		if text := s.Admit(sess); text != "" {
			conn.Out.Error(text)
			s.Stats.Rejected.Add(1)
			conn.Close(true)
			return
		}
	}
	s.Clients.Add(sess)
	s.Logf('v', "client %d connected from %s", sess.ID, conn.RemoteAddr())
}

// Closed forgets the session.
func (s *server) Closed(conn *resp.Conn) {
	sess := conn.Data.(*command.Session)
	s.Stats.BytesIn.Add(conn.BytesIn())
	s.Stats.BytesOut.Add(conn.BytesOut())
	switch conn.Reason() {
	case resp.ReasonInput:
		s.Stats.InputDrops.Add(1)
	case resp.ReasonOutput:
		s.Stats.OutputDrops.Add(1)
	}
	if b := sess.Blocked.Load(); b != nil {
		s.Abandon(b)
	}
	if sess.Multi.Watcher.Watching() {
		s.Keyspace.Unwatch(&sess.Multi.Watcher, engine.LockSet{})
	}
	for _, fn := range s.OnClose {
		fn(sess)
	}
	s.Clients.Remove(sess)
}

// Serve runs a batch of commands.
func (s *server) Serve(conn *resp.Conn, batch []resp.Command) int {
	sess := conn.Data.(*command.Session)
	if sess.Killed.Load() {
		conn.Close(false)
		return 0
	}
	w := s.worker(conn)
	c := &w.Ctx
	c.Writer = conn.Out
	now := s.Keyspace.Clock.Now()
	sess.LastUsed.Store(now)
	done := 0
	for i := range batch {
		c.Now = now
		mark := conn.Out.Mark()
		result := s.run(w, sess, batch[i].Args)
		if result == retry {
			conn.Pause()
			break
		}
		done++
		if sess.Reply != command.ReplyOn {
			s.silence(sess, conn, mark)
		}
		if result == waits {
			conn.Pause()
			break
		}
		now = s.account(c, now, result)
		if sess.Closing {
			conn.Close(true)
			break
		}
		if conn.Full() {
			break
		}
	}
	s.Stats.Commands.Add(int64(done))
	sess.Commands.Add(int64(done))
	c.Writer = nil
	if conn.Loop < 0 {
		s.Workers.Put(w)
	}
	return done
}

// account counts the time of a command that ran and returns the time for the
// next.
func (s *server) account(c *command.Ctx, began int64, result outcome) (now int64) {
	now = s.Keyspace.Clock.Now()
	if result == ran {
		s.took(c, c.Cmd, c.Args, now-began)
	}
	return now
}

// took counts the time of a command. Below a microsecond, as most are, there
// is nothing to add.
func (s *server) took(c *command.Ctx, cmd *command.Command, args [][]byte, micros int64) {
	if micros > 0 {
		c.Worker.Counters[cmd.Index()].Took(micros)
	}
	if slow := s.SlowMicros.Load(); slow >= 0 && micros >= slow {
		s.Executed(c, cmd, args, micros)
	}
}

// silence drops a reply as CLIENT REPLY asked.
func (s *server) silence(sess *command.Session, conn *resp.Conn, mark int) {
	switch sess.Reply {
	case command.ReplyOff, command.ReplySkip:
		conn.Out.Cut(mark)
		if sess.Reply == command.ReplySkip {
			sess.Reply = command.ReplyOn
		}
	case command.ReplySkipNext: // CLIENT REPLY SKIP itself says nothing
		conn.Out.Cut(mark)
		sess.Reply = command.ReplySkip
	}
}

// worker is the worker of the connection's loop; connections with a goroutine
// of their own borrow one.
func (s *server) worker(conn *resp.Conn) *command.Worker {
	if conn.Loop >= 0 {
		return s.loops[conn.Loop]
	}
	return s.Workers.Get(s.Server)
}

// reply appends a reply that was made elsewhere.
func (s *server) reply(sess *command.Session, b []byte) {
	mark := sess.Conn.Out.Mark()
	sess.Conn.Out.Raw(b)
	if sess.Reply != command.ReplyOn {
		s.silence(sess, sess.Conn, mark)
	}
	if sess.Closing {
		sess.Conn.Close(true)
	}
}

func respWriter(sess *command.Session) *resp.Writer {
	return &resp.Writer{Proto: sess.Proto()}
}

// Do runs a command for the server itself, under a session of its own, and
// returns the reply's bytes.
func (s *server) Do(args ...string) []byte {
	raw := make([][]byte, len(args))
	for i, a := range args {
		raw[i] = []byte(a)
	}
	w := s.Workers.Get(s.Server)
	defer s.Workers.Put(w)
	out := &resp.Writer{Proto: 2}
	w.Ctx.Writer = out
	w.Ctx.Now = s.Keyspace.Clock.Now()
	s.run(w, &command.Session{Authenticated: true}, raw)
	w.Ctx.Writer = nil
	return out.Buf
}

var _ resp.Handler = (*server)(nil)
