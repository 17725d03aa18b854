package commands

// What a server for tests does to commands before they run.

import (
	"github.com/limitkv/limitkv/commands/command"
)

// inject is run for a server that has an Inject function, or had one when it
// first saw the command.
func (s *server) inject(hook *func(*command.Ctx, *command.Command) command.Injected, w *command.Worker, sess *command.Session, args [][]byte, f *command.Foreseen) outcome {
	if !sess.Seen && hook != nil {
		c := &w.Ctx
		c.Args, c.Cmd, c.Session, c.DB, c.Failure = args, f.Cmd, sess, sess.DB(), ""
		c.Mark = c.Writer.Mark()
		var cmd *command.Command
		if f.Known {
			cmd = f.Cmd
		}
		switch fault := (*hook)(c, cmd); {
		case fault.Disconnect:
			sess.Conn.Close(false)
			return replied
		case fault.Error != "":
			s.refuse(c, fault.Error)
			return replied
		case fault.DelayMicros > 0:
			sess.Seen = true
			conn := sess.Conn
			s.Keyspace.Sched.At(s.Keyspace.Clock.Now()+fault.DelayMicros, func(int64) {
				conn.Post(conn.Resume)
			})
			return retry
		}
	}
	result := s.run(w, sess, args, f)
	sess.Seen = result == retry
	return result
}
