package command

// A session's line in CLIENT LIST.

import (
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/resp"
)

var flagLetters = []struct {
	bit    uint32
	letter byte
}{
	{ShownReplica, 'S'}, {ShownMonitor, 'O'},
	{ShownTracking, 't'}, {ShownTrackingBroken, 'R'}, {ShownTrackingBroadcast, 'B'},
	{ShownUnixSocket, 'U'}, {ShownNoEvict, 'e'}, {ShownNoTouch, 'T'},
}

// letters returns the flags of a session in Redis's order: S O M P x b t R B d U e T, or N if there are none.
func letters(s *Session) string {
	var b []byte
	bits := s.Shown.Flags.Load()
	put := func(on bool, letter byte) {
		if on {
			b = append(b, letter)
		}
	}
	for _, f := range flagLetters {
		put(bits&f.bit != 0, f.letter)
		switch f.letter {
		case 'O':
			put(s.Conn == nil, 'M')
			put(s.Subscriptions.Load() > 0, 'P')
			put(s.Shown.Multi.Load() > 0, 'x')
			put(s.Blocked.Load() != nil, 'b')
		case 'B':
			put(s.Multi.Watcher.Dirty(), 'd')
		}
	}
	if b == nil {
		return "N"
	}
	return string(b)
}

// Line returns a session's line of CLIENT LIST, without the line's end.
func (s *Session) Line(c *Ctx) string { return strings.TrimSuffix(string(s.AppendLine(nil, c)), "\n") }

// AppendLine appends a session's line of CLIENT LIST. Fields about buffers that only Redis has (rbs, rbp, obl, oll) are 0.
func (s *Session) AppendLine(b []byte, c *Ctx) []byte {
	conn := s.Conn
	if conn == nil { // a primary's
		conn = new(resp.Conn)
	}
	qbuf, args, cmd := conn.QueryBytes(), 0, "NULL"
	remote, local := s.Addresses()
	user := s.UserName()
	if s.Conn == nil {
		user = "(superuser)"
	}
	if w := s.Blocked.Load(); w != nil {
		args = ArgBytes(w.Args)
	}
	if s == c.Session {
		args = ArgBytes(c.Args)
		qbuf = max(qbuf, int64(requestBytes(c.Args)))
	}
	if last := s.LastCommand(); last != nil {
		cmd = last.FullName()
	}
	lib, version := s.Lib()
	shown := &s.Shown
	omem := conn.OutputBytes()
	events := "r"
	if omem > 0 {
		events = "rw"
	}
	l := line(b)
	l.number("id=", s.ID)
	l.text(" addr=", remote)
	l.text(" laddr=", local)
	l.number(" fd=", int64(conn.Fd))
	l.text(" name=", s.Name())
	l.number(" age=", (c.Now-s.Created)/1e6)
	l.number(" idle=", max(0, c.Now-max(s.LastUsed.Load(), s.Created))/1e6)
	l.text(" flags=", letters(s))
	l.number(" db=", int64(s.DB()))
	l.number(" sub=", int64(shown.Subs.Load()))
	l.number(" psub=", int64(shown.PSubs.Load()))
	l.number(" ssub=", int64(shown.SSubs.Load()))
	l.number(" multi=", int64(shown.Multi.Load()-1))
	l.number(" watch=", int64(s.Watching()))
	l.number(" qbuf=", qbuf)
	l.number(" qbuf-free=0 argv-mem=", int64(args))
	l.number(" multi-mem=", conn.QueuedBytes.Load()+pointerBytes*int64(shown.Words.Load()))
	l.number(" rbs=0 rbp=0 obl=0 oll=0 omem=", omem)
	l.number(" tot-mem=", bytesOf(s)+conn.SharedBytes()+qbuf-conn.QueryBytes()+int64(args))
	l.text(" events=", events)
	l.text(" cmd=", cmd)
	l.text(" user=", user)
	l.number(" redir=", shown.Redirect.Load()-1)
	l.number(" resp=", int64(s.Proto()))
	l.text(" lib-name=", lib)
	l.text(" lib-ver=", version)
	l.number(" io-thread=", int64(conn.Loop+1))
	return append(l, '\n')
}

// line builds the line field by field.
type line []byte

func (l *line) text(name, value string) { *l = append(append(*l, name...), value...) }

func (l *line) number(name string, n int64) { *l = strconv.AppendInt(append(*l, name...), n, 10) }

// bytesOf returns the memory of a session, 0 for a primary's, which has no resp.Conn.
func bytesOf(s *Session) int64 {
	if s.Conn == nil {
		return 0
	}
	return s.Bytes()
}

// pointerBytes is what Redis counts for each queued argument besides its bytes.
const pointerBytes = 8

// requestBytes returns the length of a command in the protocol.
func requestBytes(args [][]byte) int {
	n := len("*\r\n") + len(strconv.Itoa(len(args)))
	for _, a := range args {
		n += len("$\r\n\r\n") + len(strconv.Itoa(len(a))) + len(a)
	}
	return n
}
