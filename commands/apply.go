package commands

// Applying the journal of another time or server: its commands are run as a
// client's would be, but nothing expires meanwhile, nobody's rights are asked, and
// no error may come of them.

import (
	"errors"
	"fmt"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/resp"
)

// apply runs one command of a journal in a session that is kept for it. What frames
// a transaction is passed over: nobody sees what is between.
func (s *server) apply(sess *command.Session, args [][]byte, nowMicros int64) error {
	if command.EqualFold(args[0], "MULTI") || command.EqualFold(args[0], "EXEC") {
		return nil
	}
	w := s.Workers.Get(s.Server)
	defer s.Workers.Put(w)
	out := &resp.Writer{Proto: 2}
	w.Ctx.Writer = out
	w.Ctx.Now = nowMicros
	w.Ctx.KS = s.KeyspaceOf(sess)
	s.foresee(w, sess, []resp.Command{{Args: args}})
	if f := &w.Foreseen[0]; f.Cmd == nil {
		f.Cmd = s.Table.Applied(args[0])
		f.Known = f.Cmd != nil
	}
	defer func() { w.Ctx.Writer, w.Ctx.KS = nil, s.Keyspace }()
	result := s.run(w, sess, args, &w.Foreseen[0])
	s.enterChanges(w)
	switch {
	case result == waits || result == retry:
		return errors.New("a command of the journal waits: " + quoted(args))
	case len(out.Buf) > 0 && out.Buf[0] == '-':
		return fmt.Errorf("%s: %s", quoted(args), out.Buf[1:len(out.Buf)-2])
	}
	return nil
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
