// Package acl, internal to the server, is ACL: users, their passwords and what they may do, and the
// hooks by which dispatch, scripts and AUTH ask.
//
// A user's rights are immutable and swapped as a whole, so that commands on all
// loops check them without a lock. A user who may do everything, as most, is
// marked so and never checked.
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

type family struct {
	s *command.Server

	mu     sync.RWMutex // guards users, and changes of their rights
	users  map[string]*command.User
	main   *command.User // the user named default, of new sessions
	lookup sync.Once
	byName map[string]*command.Command // by full name, as the rows have it

	file        *atomic.Pointer[string]
	channels    *atomic.Pointer[string] // acl-pubsub-default
	requirePass atomic.Pointer[string]
	noPassword  atomic.Bool // main has none
	required    atomic.Bool // main must authenticate
	log         log
}

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{s: s, users: map[string]*command.User{}}
	f.declare()
	s.Mutexes = append(s.Mutexes, &f.mu, &f.log.mu)
	f.main = f.add(command.DefaultUser, f.everything())
	s.ACL = f
	s.OnStart = append(s.OnStart, f.start)
	return f.rows()
}

func (f *family) declare() {
	c := f.s.Config
	f.file = c.Text("aclfile", "", "file of users, one a line")
	c.Find("aclfile").Immutable = true
	f.channels = c.Enum("acl-pubsub-default", "resetchannels", []string{"allchannels", "resetchannels"}, "channels that new users may use")
	f.log.max = c.Int("acllog-max-len", 128, 0, math.MaxInt64, "how many entries ACL LOG keeps")
	c.Lines("user", f.lines)
	f.requirePass.Store(new(string))
	c.Add(&params.Param{
		Name: "requirepass", Help: "password that clients must give, none if empty",
		Secret: true,
		Get:    func() string { return *f.requirePass.Load() },
		Set: func(value string) error {
			f.requirePass.Store(&value)
			f.mu.Lock()
			defer f.mu.Unlock()
			r := rightsOf(f.s.ACL.Default()).clone()
			r.passwords, r.noPass = nil, value == ""
			if value != "" {
				r.passwords = []string{hash([]byte(value))}
			}
			f.set(f.main, r)
			return nil
		},
	})
}

// hash is how passwords are kept.
func hash(password []byte) string {
	sum := sha256.Sum256(password)
	return hex.EncodeToString(sum[:])
}

// rightsOf are the rights that a user has now.
func rightsOf(u *command.User) *rights { return u.Rights.Load().(*rights) }

// add makes a user. The caller holds f.mu, or is alone.
func (f *family) add(name string, r *rights) *command.User {
	u := &command.User{Name: name}
	f.users[name] = u
	f.set(u, r)
	return u
}

// set gives a user other rights. The caller holds f.mu, or is alone.
func (f *family) set(u *command.User, r *rights) {
	u.Rights.Store(r)
	u.Unrestricted.Store(r.unrestricted())
	u.SkipSanitize.Store(r.skipSanitize)
	if u == f.main || u.Name == command.DefaultUser && f.main == nil {
		f.noPassword.Store(r.noPass)
		f.required.Store(!r.noPass || !r.on)
	}
}

// Default, Required, NoPassword and UserExists are for the others: see command.ACL.
func (f *family) Default() *command.User      { return f.main }
func (f *family) Required() bool              { return f.required.Load() }
func (f *family) NoPassword() bool            { return f.noPassword.Load() }
func (f *family) UserExists(name []byte) bool { return f.find(string(name)) != nil }

func (f *family) find(name string) *command.User {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.users[name]
}

// sorted lists the users by name.
func (f *family) sorted() []*command.User {
	f.mu.RLock()
	defer f.mu.RUnlock()
	list := make([]*command.User, 0, len(f.users))
	for _, u := range f.users {
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

// Authenticate makes the session a user's if the password is right. All of the
// user's passwords are compared, in a time that tells nothing of them.
func (f *family) Authenticate(c *command.Ctx, name, password []byte) bool {
	right := false
	given := []byte(hash(password))
	u := f.find(string(name))
	if u != nil {
		r := rightsOf(u)
		right = r.noPass
		for _, p := range r.passwords {
			right = subtle.ConstantTimeCompare(given, []byte(p)) == 1 || right
		}
		right = right && r.on
	}
	if !right {
		f.log.add(c, f.s, denial{reason: deniedAuth, object: string(c.Args[0]), user: string(name)})
		return false
	}
	c.Session.SetUser(u)
	return true
}

// end closes the session of a user who is gone, or may not listen any more:
// another's at once, the own one after the reply.
func (f *family) end(c *command.Ctx, s *command.Session) {
	if c != nil && s == c.Session {
		s.Closing, s.Authenticated = true, false
		return
	}
	f.s.Kill(s)
}

// commandNamed finds a command, or "container|subcommand", by the name of its
// row: rename-command does not change what rules mean.
func (f *family) commandNamed(name string) *command.Command {
	f.lookup.Do(func() {
		f.byName = map[string]*command.Command{}
		for _, c := range f.s.Table.All() {
			f.byName[c.FullName()] = c
		}
	})
	return f.byName[command.Lower([]byte(name))]
}
