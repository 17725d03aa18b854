package server

// Commands that take another way: those that a test injects faults into, and those of sessions in a namespace or of replicas.

import (
	"bytes"
	"strings"

	"github.com/limitkv/limitkv/server/command"
)

// inject runs a command of such a session, or while faults.Injector is active. A command that was delayed comes here a second
// time, although the injector may be inactive by then.
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

// stray disconnects a replica that would get a reply, which it would take for a part of the stream.
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
