// Package limitkvtest starts limitkv servers inside Go tests, in the manner of net/http/httptest: one line starts a server on
// a free port of 127.0.0.1, and it stops at the end of the test. Any Redis client can connect to its address.
package limitkvtest

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/params"
)

// Server is a running server.
type Server struct {
	// Addr is host:port, Host and Port its parts.
	Addr, Host, Port string

	t         testing.TB
	server    *server.Server
	namespace string // "" for the server's own databases
}

// Start starts a server in this process, and stops it when the test ends. The server has the commands of --test (LKV.CLOCK and
// others). flags are parameters as on the command line: "--requirepass", "secret". The test fails if the server does not
// start.
func Start(t testing.TB, flags ...string) *Server {
	t.Helper()
	settings, _, err := params.ParseArgs(append([]string{"--port", "0"}, flags...))
	if err != nil {
		t.Fatalf("limitkvtest: %v", err)
	}
	server, err := commands.New(server.Options{
		Settings: settings,
		Test:     true,
		Fatal:    func(text string) { panic("limitkvtest: the server of " + t.Name() + ": " + text) },
		Logf: func(level byte, format string, args ...any) {
			if level == 'w' {
				t.Logf("limitkv: "+format, args...)
			}
		},
	})
	if err != nil {
		t.Fatalf("limitkvtest: %v", err)
	}
	addrs, err := server.Listen()
	if err != nil {
		server.Close()
		t.Fatalf("limitkvtest: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("limitkvtest: %v", err)
		}
	})
	s := &Server{Addr: addrs[0], t: t, server: server}
	s.Host, s.Port, _ = net.SplitHostPort(s.Addr)
	return s
}

// Do runs a command on the server, without a client, in database 0 (of the namespace if s is one), as a user who may do
// everything. It returns the reply in the protocol's form.
func (s *Server) Do(args ...string) string { return string(s.server.DoIn(s.namespace, args...)) }

// must is Do for a command that must succeed.
func (s *Server) must(args ...string) { s.t.Helper(); s.run(s.t, args...) }

// run is must in a test other than the one that started the server.
func (s *Server) run(t testing.TB, args ...string) {
	t.Helper()
	if reply := s.Do(args...); strings.HasPrefix(reply, "-") {
		t.Fatalf("limitkvtest: %s: %s", strings.Join(args, " "), strings.TrimSpace(reply))
	}
}

// FlushAll empties all databases.
func (s *Server) FlushAll() { s.t.Helper(); s.must("FLUSHALL") }

// Freeze stops the server's clock. TTLs, TIME, limiters, queues and blocking time-outs all use that clock.
func (s *Server) Freeze() { s.t.Helper(); s.must("LKV.CLOCK", "FREEZE") }

// FreezeAt stops the clock at a time, to the millisecond.
func (s *Server) FreezeAt(at time.Time) {
	s.t.Helper()
	s.must("LKV.CLOCK", "FREEZE", fmt.Sprint(at.UnixMilli()))
}

// Advance moves the stopped clock forward by whole milliseconds. When it returns, all that falls due in that time has
// happened, in order of time.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	s.must("LKV.CLOCK", "ADVANCE", fmt.Sprint(d.Milliseconds()))
}

// Resume lets the clock run again.
func (s *Server) Resume() { s.t.Helper(); s.must("LKV.CLOCK", "RESUME") }

// Seed makes the server's random choices (SPOP, RANDOMKEY …) repeatable.
func (s *Server) Seed(n uint64) { s.t.Helper(); s.must("LKV.SEED", fmt.Sprint(n)) }
