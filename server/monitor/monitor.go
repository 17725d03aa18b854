// Package monitor, internal to the server, is MONITOR: it sends every command of every client, as it runs, to the sessions
// that monitor.
package monitor

import (
	"strconv"
	"strings"
	"sync"

	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
)

// Monitors holds the sessions that monitor.
type Monitors struct {
	s        *command.Server
	mu       sync.Mutex
	sessions []*command.Session
}

// New returns the monitors of a server, none at first.
func New(s *command.Server) *Monitors {
	m := &Monitors{s: s}
	s.Mutexes = append(s.Mutexes, &m.mu)
	return m
}

// Add makes a session monitor. It must not monitor yet.
func (m *Monitors) Add(s *command.Session) {
	s.Show(command.ShownMonitor, true)
	m.mu.Lock()
	m.sessions = append(m.sessions, s)
	m.mu.Unlock()
	m.s.Monitors.Add(1)
}

// Remove ends the monitoring of a session, if it monitors.
func (m *Monitors) Remove(s *command.Session) {
	if s.Shown.Flags.Load()&command.ShownMonitor == 0 {
		return
	}
	s.Show(command.ShownMonitor, false)
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, x := range m.sessions {
		if x == s {
			m.sessions = append(m.sessions[:i:i], m.sessions[i+1:]...)
			m.s.Monitors.Add(-1)
			return
		}
	}
}

// Feed sends a command to the sessions that monitor.
func (m *Monitors) Feed(c *command.Ctx, args [][]byte) {
	line := appendMonitored(nil, c, args)
	m.mu.Lock()
	sessions := m.sessions
	m.mu.Unlock()
	for _, s := range sessions {
		if m.s.KeyspaceOf(s) != c.KS {
			continue // a session sees only its own namespace
		}
		s.Push(func(w *resp.Writer) { w.Raw(line) })
	}
}

// appendMonitored appends the line for a command.
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

// appendQuoted appends bytes in double quotes and escapes those that are not printable, as Redis does.
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
