package command

// Users: whom a session belongs to. What a user may do is
// server/acl's business.

import "sync/atomic"

// DefaultUser is the name of the user that sessions belong to before AUTH.
const DefaultUser = "default"

// User is one user. It stays the same while its rights change.
type User struct {
	Name string
	// Unrestricted: the user may run any command on any key and channel, which
	// most may and which is therefore quick to see.
	Unrestricted atomic.Bool
	// SkipSanitize is the rule skip-sanitize-payload: what the user restores is not refused for what can be put right.
	SkipSanitize atomic.Bool
	// Rights are what server/acl keeps of the user.
	Rights atomic.Value
}

// Channels says where the channels of a command are among its arguments, from
// First up to the Last (negative: from the end); First is 0 if there are none.
type Channels struct {
	First, Last int
	// Pattern: they are patterns.
	Pattern bool
}

// Unrestricted tells whether the session may run any command on any key and channel.
func (s *Session) Unrestricted() bool {
	u := s.user.Load()
	return u == nil || u.Unrestricted.Load()
}

// Refuses returns the error text for a command that the session's user may not
// run, empty if it may, and notes the attempt.
func (s *Server) Refuses(c *Ctx, cmd *Command, args [][]byte) string {
	if c.Session.Unrestricted() {
		return ""
	}
	return s.Host.Authorize(c, cmd, args)
}

// What delay queues do with the keys that their settings name: with the dead-letter queue, and with the limiter.
const (
	DeadLetters = RW | Insert
	Budget      = RW | Access | Update
)

// NamedKey is a key that is not among a command's arguments, since a value names it, and what is to become of it.
type NamedKey struct {
	Key   []byte
	Flags KeyFlags
}

// RefusesKeys is Refuses for keys that the command which runs uses beside those of its arguments, or has others use.
func (s *Server) RefusesKeys(c *Ctx, keys ...NamedKey) string {
	if len(keys) == 0 || c.Session.Unrestricted() {
		return ""
	}
	return s.Host.AuthorizeKeys(c, keys)
}
