package command

// The users of sessions. Their rights are in server/acl.

import "sync/atomic"

// DefaultUser is the name of the user of sessions before AUTH.
const DefaultUser = "default"

// User is one user. It stays the same while its rights change.
type User struct {
	Name string
	// Unrestricted: the user may run any command on any key and channel. Most users may, so this is quick to check.
	Unrestricted atomic.Bool
	// SkipSanitize is the rule skip-sanitize-payload: RESTORE accepts values with faults that can be repaired.
	SkipSanitize atomic.Bool
	// Rights are the rights that server/acl stores here.
	Rights atomic.Value
}

// Channels says which arguments are channels: from First to Last (negative: from the end). First is 0 if there are none.
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

// Refuses returns the error text for a command that the session's user may not run, empty if the user may. It logs a denial.
func (s *Server) Refuses(c *Ctx, cmd *Command, args [][]byte) string {
	if c.Session.Unrestricted() {
		return ""
	}
	return s.Host.Authorize(c, cmd, args)
}

// How delay queues use the keys that their settings name: the dead-letter queue and the limiter.
const (
	DeadLetters = RW | Insert
	Budget      = RW | Access | Update
)

// NamedKey is a key that a value names and that is not among the command's arguments, with its flags.
type NamedKey struct {
	Key   []byte
	Flags KeyFlags
}

// RefusesKeys is Refuses for keys that the running command uses, or lets others use, besides those in its arguments.
func (s *Server) RefusesKeys(c *Ctx, keys ...NamedKey) string {
	if len(keys) == 0 || c.Session.Unrestricted() {
		return ""
	}
	return s.Host.AuthorizeKeys(c, keys)
}
