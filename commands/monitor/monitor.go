// Package monitor, internal to the server, is the family of MONITOR: every command of every client, as it is run.
package monitor

import (
	"strconv"
	"strings"
	"sync"

	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

type family struct {
	s        *server.Server
	mu       sync.Mutex
	sessions []*command.Session
}

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := &family{s: s}
	s.Mutexes = append(s.Mutexes, &f.mu)
	s.Monitor = f
	s.OnClose = append(s.OnClose, f.unmonitor)
	s.OnReset = append(s.OnReset, func(c *command.Ctx) { f.unmonitor(c.Session) })
	return []*command.Command{f.monitorRow()}
}

func (f *family) monitorRow() *command.Command {
	return &command.Command{
		Name: "monitor", Arity: 1, Group: command.GroupServer, Since: "1.0.0",
		Flags:   command.Admin | command.NoScript | command.Loading | command.Stale,
		Summary: "Shows every command that the server runs from now on.",
		Run:     f.monitor,
	}
}

func (f *family) monitor(c *command.Ctx) {
	s := c.Session
	if !c.CanBlock() {
		c.Error("ERR MONITOR isn't allowed for DENY BLOCKING client")
		return
	}
	if s.Shown.Flags.Load()&command.ShownMonitor != 0 {
		return
	}
	s.Show(command.ShownMonitor, true)
	f.s.Connections.Limit(s)
	f.mu.Lock()
	f.sessions = append(f.sessions, s)
	f.mu.Unlock()
	f.s.Monitors.Add(1)
	c.OK()
}

func (f *family) unmonitor(s *command.Session) {
	if s.Shown.Flags.Load()&command.ShownMonitor == 0 {
		return
	}
	s.Show(command.ShownMonitor, false)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, x := range f.sessions {
		if x == s {
			f.sessions = append(f.sessions[:i:i], f.sessions[i+1:]...)
			f.s.Monitors.Add(-1)
			return
		}
	}
}

// Feed shows a command to those who monitor.
func (f *family) Feed(c *command.Ctx, args [][]byte) {
	line := appendMonitored(nil, c, args)
	f.mu.Lock()
	sessions := f.sessions
	f.mu.Unlock()
	for _, s := range sessions {
		if f.s.KeyspaceOf(s) != c.KS {
			continue // it sees its own namespace
		}
		s.Push(func(w *resp.Writer) { w.Raw(line) })
	}
}

// appendMonitored appends the line that shows a command.
func appendMonitored(b []byte, c *command.Ctx, args [][]byte) []byte {
	b = append(b, '+')
	b = strconv.AppendInt(b, c.Now/1e6, 10)
	micros := strconv.Itoa(int(1e6 + c.Now%1e6))
	b = append(b, '.')
	b = append(b, micros[1:]...)
	b = append(b, " ["...)
	b = strconv.AppendInt(b, int64(c.DB), 10)
	b = append(b, ' ')
	switch conn := c.Session.Conn; {
	case c.Script:
		b = append(b, "lua"...)
	case conn == nil:
		b = append(b, "limitkv"...)
	case c.Session.Shown.Flags.Load()&command.ShownUnixSocket != 0:
		b = append(append(b, "unix:"...), strings.TrimSuffix(conn.RemoteAddr(), ":0")...)
	default:
		b = append(b, conn.RemoteAddr()...)
	}
	b = append(b, ']')
	for i, a := range args {
		b = append(b, ' ')
		if c.Cmd.Secret != nil && c.Cmd.Secret(args, i) {
			b = append(append(append(b, '"'), command.Redacted...), '"')
		} else {
			b = appendQuoted(b, a)
		}
	}
	return append(b, "\r\n"...)
}

// appendQuoted appends bytes in double quotes with what is not printable
// escaped, in Redis's manner.
func appendQuoted(b, s []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range s {
		switch {
		case c == '\\' || c == '"':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, `\n`...)
		case c == '\r':
			b = append(b, `\r`...)
		case c == '\t':
			b = append(b, `\t`...)
		case c == '\a':
			b = append(b, `\a`...)
		case c == '\b':
			b = append(b, `\b`...)
		case c < ' ' || c > '~':
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}
