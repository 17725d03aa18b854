package commands

// What a server for tests does to commands before they run, and where.

import (
	"github.com/limitkv/limitkv/commands/command"
)

// inject is run for a server whose Injector is to see commands, or was when it
// first saw the command, and for a session in a namespace.
func (s *server) inject(w *command.Worker, sess *command.Session, r *command.Request) outcome {
	c := &w.Ctx
	c.KS = s.KeyspaceOf(sess)
	defer func() {
		c.Account()
		c.KS = s.Keyspace
	}()
	if sess.Aside&command.AsideSeen == 0 && s.Injecting.Load() {
		c.Request, c.Session, c.DB, c.Failure = r, sess, sess.DB(), ""
		c.Mark = c.Writer.Mark()
		var cmd *command.Command
		if r.Known {
			cmd = r.Cmd
		}
		switch fault := s.Injector.See(c, cmd); {
		case fault.Disconnect:
			sess.Conn.Close(false)
			return replied
		case fault.Error != "":
			s.refuse(c, fault.Error)
			return replied
		case fault.DelayMicros > 0:
			sess.Aside |= command.AsideSeen
			conn := sess.Conn
			s.Keyspace.Sched.At(s.Keyspace.Clock.Now()+fault.DelayMicros, func(int64) {
				conn.Post(conn.Resume)
			})
			return retry
		}
	}
	result := s.process(w, sess, r)
	sess.Aside &^= command.AsideSeen
	if result == retry {
		sess.Aside |= command.AsideSeen
	}
	return result
}
