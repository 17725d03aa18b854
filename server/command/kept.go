package command

// Replies that are held back until their data is confirmed, and the messages that follow them.

import (
	"bytes"

	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/resp"
)

// Unsafe is a reply that depends on the journal up to At. It is the bytes From to To of a connection's output.
type Unsafe struct {
	From, To int
	At       journal.LSN
}

// Kept is output that a connection gets later. It belongs to the connection's goroutine.
type Kept struct {
	// At is the LSN that it waits for.
	At      journal.LSN
	buf     []byte
	replies []Unsafe
}

// HoldBack copies replies from the first unsafe one on. Until they are sent, the session's messages queue behind them.
func (s *Session) HoldBack(buf []byte, unsafe []Unsafe) *Kept {
	from := unsafe[0].From
	k := &Kept{buf: bytes.Clone(buf[from:])}
	for _, u := range unsafe {
		k.At = max(k.At, u.At)
		k.replies = append(k.replies, Unsafe{u.From - from, u.To - from, u.At})
	}
	s.Held, s.kept = k.At, k
	return k
}

// Forget undoes HoldBack.
func (s *Session) Forget() { s.kept = nil }

// Send sends what was held back. If failed is an error, it replaces the replies that were not confirmed.
func (s *Server) Send(sess *Session, k *Kept, failed string) {
	if sess.kept == k {
		sess.kept = nil
	}
	out, pos := sess.Conn.Out, 0
	if failed != "" {
		confirmed := s.Keyspace.Journal.Confirmed()
		for _, u := range k.replies {
			out.Raw(k.buf[pos:u.From])
			if pos = u.To; u.At <= confirmed {
				out.Raw(k.buf[u.From:u.To])
			} else {
				s.fail(out, k.buf[u.From:u.To], failed)
			}
		}
	}
	out.Raw(k.buf[pos:])
}

// fail replaces every reply with an error. Pushed messages in between stay.
func (s *Server) fail(out *resp.Writer, replies []byte, failed string) {
	var scan resp.Scanner
	for len(replies) > 0 {
		n, err := scan.Scan(replies)
		if err != nil {
			n = len(replies) // no reply of ours is torn
		}
		if replies[0] == '>' {
			out.Raw(replies[:n])
		} else {
			out.Error(failed)
			s.CountError(failed)
		}
		replies = replies[n:]
	}
}

// Reply sends a reply that waited for an LSN, or an error instead. The connection owns the reply's memory from then on.
func (s *Server) Reply(sess *Session, at journal.LSN, reply []byte, failed string) {
	if failed == "" || at <= s.Keyspace.Journal.Confirmed() {
		sess.Conn.Out.Adopt(reply)
	} else {
		s.fail(sess.Conn.Out, reply, failed)
	}
}

// PushOwn is Push for the session whose command runs. The message follows the command's reply directly, before the next reply
// of a pipeline, even where CLIENT REPLY is OFF.
func (c *Ctx) PushOwn(write func(w *resp.Writer)) {
	if c.Session.Conn == nil {
		return
	}
	w := resp.Writer{Proto: c.Session.Conn.Out.Proto, Buf: c.Session.behind}
	write(&w)
	c.Session.behind = w.Buf
}

// SendOwn appends the messages of PushOwn. Only the session's own goroutine calls it.
func (s *Session) SendOwn(w *resp.Writer) {
	if s.behind != nil {
		w.Raw(s.behind)
		s.behind = nil
	}
}

// Push sends a session a message, after the replies that are under way. Any goroutine may call it.
func (s *Session) Push(write func(w *resp.Writer)) {
	s.Conn.Post(func() {
		k := s.kept
		switch {
		case s.Conn.Gone():
		case k == nil:
			write(s.Conn.Out)
		default:
			w := resp.Writer{Proto: s.Conn.Out.Proto, Buf: k.buf}
			write(&w)
			k.buf = w.Buf
			if most := s.Conn.OutputHard; most > 0 && int64(len(k.buf)) > most {
				s.Conn.Close(false) // as one that does not read
			}
		}
	})
}
