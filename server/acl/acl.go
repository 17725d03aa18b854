// Package acl, internal to the server, manages users: their passwords and what they may do. Admission, scripts and AUTH check
// it.
//
// A user's rights are immutable and replaced as a whole, so that commands on all loops check them without a lock. Most users
// may do everything; they are marked, and not checked at all.
package acl

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

// Users are all users of a server.
type Users struct {
	s *command.Server
	// Listeners calls fn for each channel and pattern, with its subscribers.
	Listeners func(fn func(name string, pattern bool, list []*command.Session))

	mu     sync.RWMutex // guards users, and changes of their rights
	users  map[string]*command.User
	main   *command.User // the user named default, for new sessions
	lookup sync.Once
	byName map[string]*command.Command // by the row's full name

	file        *atomic.Pointer[string]
	channels    *atomic.Pointer[string] // acl-pubsub-default
	requirePass atomic.Pointer[string]
	noPassword  atomic.Bool // main needs no password
	required    atomic.Bool // main must authenticate
	// Log is ACL LOG.
	Log Log
}

// New returns a server's users: only default, who may do everything.
func New(s *command.Server) *Users {
	acl := &Users{s: s, users: map[string]*command.User{}}
	acl.declare()
	s.Mutexes = append(s.Mutexes, &acl.mu, &acl.Log.mu)
	acl.main = acl.add(command.DefaultUser, acl.everything())
	return acl
}

func (acl *Users) declare() {
	c := acl.s.Config
	acl.file = c.Text("aclfile", "", "file of users, one a line")
	c.Find("aclfile").Immutable = true
	acl.channels = c.Enum("acl-pubsub-default", "resetchannels", []string{"allchannels", "resetchannels"}, "channels that new users may use")
	acl.Log.max = c.Int("acllog-max-len", 128, 0, math.MaxInt64, "how many entries ACL LOG keeps")
	c.Lines("user", acl.lines)
	acl.requirePass.Store(new(string))
	c.Add(&params.Param{
		Name: "requirepass", Help: "password that clients must give, none if empty",
		Secret: true,
		Get:    func() string { return *acl.requirePass.Load() },
		Set: func(value string) error {
			acl.requirePass.Store(&value)
			acl.mu.Lock()
			defer acl.mu.Unlock()
			r := rightsOf(acl.main).clone()
			r.passwords, r.noPass = nil, value == ""
			if value != "" {
				r.passwords = []string{hash([]byte(value))}
			}
			acl.set(acl.main, r)
			return nil
		},
	})
}

// hash returns a password as it is stored.
func hash(password []byte) string {
	sum := sha256.Sum256(password)
	return hex.EncodeToString(sum[:])
}

// rightsOf returns a user's present rights.
func rightsOf(u *command.User) *rights { return u.Rights.Load().(*rights) }

// add makes a user. The caller holds acl.mu, or no other goroutine runs yet.
func (acl *Users) add(name string, r *rights) *command.User {
	u := &command.User{Name: name}
	acl.users[name] = u
	acl.set(u, r)
	return u
}

// set replaces a user's rights. The caller holds acl.mu, or no other goroutine runs yet.
func (acl *Users) set(u *command.User, r *rights) {
	u.Rights.Store(r)
	u.Unrestricted.Store(r.unrestricted())
	u.SkipSanitize.Store(r.skipSanitize)
	if u == acl.main || u.Name == command.DefaultUser && acl.main == nil {
		acl.noPassword.Store(r.noPass)
		acl.required.Store(!r.noPass || !r.on)
	}
}

// Default is the user of new sessions. Required: clients must authenticate. NoPassword: the default user needs no password.
func (acl *Users) Default() *command.User { return acl.main }
func (acl *Users) Required() bool         { return acl.required.Load() }
func (acl *Users) NoPassword() bool       { return acl.noPassword.Load() }

// Exists tells whether there is a user with this name.
func (acl *Users) Exists(name []byte) bool { return acl.find(string(name)) != nil }

func (acl *Users) find(name string) *command.User {
	acl.mu.RLock()
	defer acl.mu.RUnlock()
	return acl.users[name]
}

// sorted lists the users by name.
func (acl *Users) sorted() []*command.User {
	acl.mu.RLock()
	defer acl.mu.RUnlock()
	list := make([]*command.User, 0, len(acl.users))
	for _, u := range acl.users {
		list = append(list, u)
	}
	slices.SortFunc(list, func(a, b *command.User) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return list
}

// Authenticate sets the session's user if the password is right. It compares all passwords of the user, in constant time.
func (acl *Users) Authenticate(c *command.Ctx, name, password []byte) bool {
	right := false
	given := []byte(hash(password))
	u := acl.find(string(name))
	if u != nil {
		r := rightsOf(u)
		right = r.noPass
		for _, p := range r.passwords {
			right = subtle.ConstantTimeCompare(given, []byte(p)) == 1 || right
		}
		right = right && r.on
	}
	if !right {
		acl.Log.add(c, acl.s, denial{reason: deniedAuth, object: string(c.Args[0]), user: string(name)})
		return false
	}
	c.Session.SetUser(u)
	return true
}

// end closes the session of a user who is deleted, or who may no longer subscribe: other sessions at once, the caller's after
// the reply.
func (acl *Users) end(c *command.Ctx, s *command.Session) {
	if c != nil && s == c.Session {
		s.Closing, s.Authenticated = true, false
		return
	}
	acl.s.Kill(s)
}

// commandNamed finds a command, or "container|subcommand", by the name in its row. So rename-command does not change the
// meaning of rules.
func (acl *Users) commandNamed(name string) *command.Command {
	acl.lookup.Do(func() {
		acl.byName = map[string]*command.Command{}
		for _, c := range acl.s.Table.All() {
			acl.byName[c.FullName()] = c
		}
	})
	return acl.byName[command.Lower([]byte(name))]
}
