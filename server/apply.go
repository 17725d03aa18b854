package server

// Commands without a connection: the server's own, and those of a journal that is loaded. A journal's commands run as a
// client's would, but nothing expires meanwhile, no rights are checked, and an error stops the loading.

import (
	"errors"
	"fmt"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
)

// Do runs a command for the server itself, under a session of its own, and
// returns the reply's bytes.
func (s *Server) Do(args ...string) []byte {
	return s.do(&command.Session{Authenticated: true}, args)
}

// do runs a command in a session without a connection.
func (s *Server) do(sess *command.Session, args []string) []byte {
	raw := make([][]byte, len(args))
	for i, a := range args {
		raw[i] = []byte(a)
	}
	began := engine.Monotonic()
	_, reply := s.alone(sess, raw, began, func(c *command.Ctx) { s.account(c, c.Cmd, began, engine.Monotonic(), 1) })
	return reply
}

// Apply runs one command of a journal in a session that is kept for it. It skips MULTI and EXEC, since nobody else sees the
// state in between.
func (s *Server) Apply(sess *command.Session, args [][]byte) error {
	if command.EqualFold(args[0], "MULTI") || command.EqualFold(args[0], "EXEC") {
		return nil
	}
	result, reply := s.alone(sess, args, engine.Monotonic(), func(*command.Ctx) {})
	switch {
	case result == waits || result == retry:
		return errors.New("a command of the journal waits: " + quoted(args))
	case len(reply) > 0 && reply[0] == '-':
		if cmd, _ := s.Table.Resolve(args); cmd == nil && s.Table.Applied(args[0]) == nil {
			return &journal.UnknownError{Name: string(args[0])}
		}
		return fmt.Errorf("%s: %s", quoted(args), reply[1:len(reply)-2])
	}
	return nil
}

// alone takes a command without a connection through the pipeline, and calls done if it ran. began is on the monotonic clock.
func (s *Server) alone(sess *command.Session, args [][]byte, began int64, done func(c *command.Ctx)) (outcome, []byte) {
	w := s.Workers.Get(s.Server)
	defer s.Workers.Put(w)
	c, r := &w.Ctx, &w.Requests[0]
	out := &resp.Writer{Proto: 2}
	c.Writer, c.KS = out, s.KeyspaceOf(sess)
	w.ReadAt, c.Now = began, c.KS.Clock.At(began)
	defer func() { c.Writer, c.KS = nil, s.Keyspace }()
	if r.Resolve(s.Table, args); r.Cmd == nil {
		if cmd := s.Table.Applied(args[0]); cmd != nil {
			r.Call(cmd, args)
		}
	}
	result := s.process(w, sess, r)
	if result == ran {
		done(c)
	}
	s.enterChanges(w)
	r.Args = nil
	return result, out.Buf
}

// quotedMax is how many bytes of a command an error repeats.
const quotedMax = 200

func quoted(args [][]byte) string {
	text := ""
	for _, a := range args {
		text += fmt.Sprintf("%q ", command.Repeat(a, quotedMax))
		if len(text) > quotedMax {
			break
		}
	}
	return text
}
