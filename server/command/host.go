package command

// What this package, and what stands on it, ask of who is above: the server that serves sessions, and the family of scripts.

import (
	"crypto/tls"
	"net"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/longrun"
)

// Functions knows the libraries of functions: the family of scripts does. Those that are loaded are added to those
// there are, unless flush; without replace, one that is there is an error, whose text
// is returned.
type Functions interface {
	// Libraries returns the code of a keyspace's libraries.
	Libraries(ks *engine.Keyspace) []string
	// Save returns the libraries of a keyspace as they are, and Load has them again.
	Save(ks *engine.Keyspace) any
	Load(ks *engine.Keyspace, saved any, flush, replace bool) (problem string)
	// LoadCode is Load for the code of libraries.
	LoadCode(c *Ctx, codes [][]byte, flush, replace bool) (problem string)
}

// Log is where lines go: the server's log, or what a program has given. It takes them at a level: 'd', 'v', 'n' or 'w'.
type Log interface {
	Printf(level byte, format string, args ...any)
}

// Host is what the server runs in, and what sessions and their commands ask of the server that serves them.
type Host interface {
	// Authorize returns the error text for a command that the session's user, who is restricted, may not run, empty if it
	// may, and notes the attempt; AuthorizeKeys is that for keys that are not among the command's arguments. Server.Refuses
	// and RefusesKeys call them.
	Authorize(c *Ctx, cmd *Command, args [][]byte) string
	AuthorizeKeys(c *Ctx, keys []NamedKey) string
	// GoLong makes the command that runs in c, which began at a time of the monotonic
	// clock, a long one: it goes on where it is, others elsewhere.
	GoLong(c *Ctx, since int64) *longrun.Run
	// Step lets others have the locks of a long command, which has changed nothing, for a moment. From then on it goes on
	// under locks, not under a reservation.
	Step(c *Ctx)
	// Apply runs a command of a journal in a session that is kept for it.
	Apply(sess *Session, args [][]byte) error
	// Replayer makes what runs a primary's commands in a session that is kept for it. feed gets the bytes of each command,
	// or of a whole transaction, when it has been applied; whoever holds all keys sees both or neither.
	Replayer(sess *Session, feed func(raw []byte)) Replayer
	// TookLong is told of a command that took at least Server.SlowMicros.
	TookLong(c *Ctx, cmd *Command, args [][]byte, micros int64)
	// EvictClientsSoon ends the largest clients, beside its caller, if they take more than MaxClientBytes.
	EvictClientsSoon()
	// Flushed is told that databases of the command's keyspace were emptied, while Server.Tracking is not 0.
	Flushed(c *Ctx)
	// InRound and Watch are resp.Server's.
	InRound() bool
	Watch(event int, fn func()) bool
	// Dial makes a connection inside the process, for a client at a remote address. It
	// does not count to maxclients.
	Dial(remote net.Addr) net.Conn
	// Writing is called when what is to be kept is about to be written at the end, which may take longer than
	// shutdown-timeout.
	Writing()
	// Fatal is called when the server cannot go on, after that has been logged, and ends
	// the process. Die panics if it returns.
	Fatal(text string)
	// ClientTLS is what connections to other servers go by, as the parameters are now.
	ClientTLS() (*tls.Config, error)
	// Freed is told that much memory has been let go.
	Freed()
}

// Logf writes a line of the log at a level.
func (s *Server) Logf(level byte, format string, args ...any) { s.Log.Printf(level, format, args...) }
