package server

// What a server for tests does to commands before they run, and where; and commands of sessions that are not like others.

import (
	"bytes"
	"strings"

	"github.com/limitkv/limitkv/server/command"
)

// inject is run for a server whose faults.Injector is to see commands, or was when it
// first saw the command, for a session in a namespace and for a replica.
func (s *Server) inject(w *command.Worker, sess *command.Session, r *command.Request) outcome {
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
		switch fault := s.Faults.See(c, cmd); {
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
	mark := c.Writer.Mark()
	result := s.process(w, sess, r)
	if sess.Aside&command.AsideReplica != 0 && c.Writer.Mark() > mark {
		s.stray(c, mark)
	}
	sess.Aside &^= command.AsideSeen
	if result == retry {
		sess.Aside |= command.AsideSeen
	}
	return result
}

// stray ends a replica that was replied something: it would take the reply for a part of the stream.
func (s *Server) stray(c *command.Ctx, mark int) {
	sess := c.Session
	name := strings.ToLower(command.Repeat(c.Args[0], command.RepeatBytesMax))
	if c.Cmd != nil {
		name = c.Cmd.FullName()
	}
	if text, failed := bytes.CutPrefix(c.Writer.Buf[mark:], []byte("-")); failed {
		line, _, _ := bytes.Cut(text, []byte("\r\n"))
		s.Logf('w', "== CRITICAL == This master is sending an error to its replica: '%s' after processing the command '%s'", command.Repeat(line, command.RepeatBytesMax), name)
	}
	s.Logf('w', "Replica generated a reply to command '%s', disconnecting it: %s", name, sess.Line(c))
	c.Writer.Cut(mark)
	sess.Conn.Close(false)
}
