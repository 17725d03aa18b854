package command

// Interfaces of what lies above this package: the server that serves the sessions, and the family of scripts.

import (
	"crypto/tls"
	"net"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/longrun"
)

// Functions is the registry of the libraries of functions, which the family of scripts implements. Loading adds libraries to
// the existing ones, or replaces all if flush is set. Without replace, a library that exists is an error, whose text is
// returned.
type Functions interface {
	// Libraries returns the code of a keyspace's libraries.
	Libraries(ks *engine.Keyspace) []string
	// Save returns the libraries of a keyspace, and Load restores them.
	Save(ks *engine.Keyspace) any
	Load(ks *engine.Keyspace, saved any, flush, replace bool) (problem string)
	// LoadCode loads libraries from their code.
	LoadCode(c *Ctx, codes [][]byte, flush, replace bool) (problem string)
}

// Log receives log lines: the server's log, or one that a program provides. The levels are 'd', 'v', 'n' and 'w'.
type Log interface {
	Printf(level byte, format string, args ...any)
}

// Host is the server that runs this package's Server: sessions and their commands call it.
type Host interface {
	// Authorize returns the error text for a command that the session's restricted user may not run, empty if it may, and logs
	// a denial. AuthorizeKeys does so for keys that are not among the command's arguments. Server.Refuses and RefusesKeys call
	// them.
	Authorize(c *Ctx, cmd *Command, args [][]byte) string
	AuthorizeKeys(c *Ctx, keys []NamedKey) string
	// GoLong makes the command in c, which began at a time of the monotonic clock, one that takes long: it continues on its
	// goroutine, and other commands run on another one.
	GoLong(c *Ctx, since int64) *longrun.Run
	// Step releases the locks of a long command for a moment, so that others can take them. The command must not have changed
	// anything. It continues under locks instead of a reservation.
	Step(c *Ctx)
	// Apply runs a command of a journal in a session made for that.
	Apply(sess *Session, args [][]byte) error
	// Replayer returns what runs a primary's commands in a session made for that. feed gets the bytes of each command, or of a
	// whole transaction, once it has been applied. Whoever holds all keys sees both or neither.
	Replayer(sess *Session, feed func(raw []byte)) Replayer
	// TookLong is called after a command that took at least Server.SlowMicros.
	TookLong(c *Ctx, cmd *Command, args [][]byte, micros int64)
	// EvictClientsSoon closes the largest clients, on another goroutine, if they use more than MaxClientBytes.
	EvictClientsSoon()
	// Flushed is called after databases of the command's keyspace were emptied, if Server.Tracking is not 0.
	Flushed(c *Ctx)
	// InRound and Watch are those of resp.Server.
	InRound() bool
	Watch(event int, fn func()) bool
	// Dial makes a connection inside the process, for a client at a remote address. It does not count for maxclients.
	Dial(remote net.Addr) net.Conn
	// Writing is called before the last files are written at the end, which may take longer than shutdown-timeout.
	Writing()
	// Fatal ends the process, since the server cannot continue. The reason has been logged. Die panics if Fatal returns.
	Fatal(text string)
	// ClientTLS returns the configuration of connections to other servers, from the present parameters.
	ClientTLS() (*tls.Config, error)
	// Freed is called after much memory was released.
	Freed()
}

// Logf writes a line to the log at a level.
func (s *Server) Logf(level byte, format string, args ...any) { s.Log.Printf(level, format, args...) }
