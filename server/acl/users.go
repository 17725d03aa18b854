package acl

// Managing users: ACL SETUSER, DELUSER, GETUSER, LIST, DRYRUN.

import (
	"slices"

	"github.com/limitkv/limitkv/server/command"
)

// line formats a user as a line of the ACL file.
func line(u *command.User) string { return "user " + u.Name + " " + rightsOf(u).describe() }

// Lines returns all users as lines of the ACL file, Names their names.
func (acl *Users) Lines() (lines []string) {
	for _, u := range acl.sorted() {
		lines = append(lines, line(u))
	}
	return lines
}

func (acl *Users) Names() (names []string) {
	for _, u := range acl.sorted() {
		names = append(names, u.Name)
	}
	return names
}

// SetUser makes a user, or applies rules to an existing one. If it returns an error text, it has changed nothing.
func (acl *Users) SetUser(c *command.Ctx, name string, words []string) string {
	if hasSpaces(name) {
		return "ERR Usernames can't contain spaces or null characters"
	}
	rules, unmatched := merge(words)
	if unmatched >= 0 {
		return "ERR Unmatched parenthesis in acl selector starting at '" + words[unmatched] + "'."
	}
	acl.mu.Lock()
	defer acl.mu.Unlock()
	u := acl.users[name]
	r := acl.nothing()
	if u != nil {
		r = rightsOf(u).clone()
	}
	for _, rule := range rules {
		if err := acl.apply(r, rule); err != nil {
			return "ERR Error in ACL SETUSER modifier '" + rule + "': " + err.Error()
		}
	}
	if u == nil {
		acl.add(name, r)
	} else {
		old := rightsOf(u)
		acl.set(u, r)
		acl.endListeners(c, u, old, r)
	}
	return ""
}

// endListeners closes the sessions of a user that subscribe to channels which the new rights do not allow.
func (acl *Users) endListeners(c *command.Ctx, u *command.User, old, now *rights) {
	var may []string
	for _, s := range now.selectors {
		if s.allChannels {
			return
		}
		may = append(may, s.channels...)
	}
	fewer := false
	for _, s := range old.selectors {
		fewer = fewer || s.allChannels || slices.ContainsFunc(s.channels, func(ch string) bool { return !slices.Contains(may, ch) })
	}
	if !fewer {
		return
	}
	ended := map[*command.Session]bool{}
	acl.Listeners(func(name string, pattern bool, list []*command.Session) {
		if allowsChannel(may, []byte(name), pattern) {
			return
		}
		for _, s := range list {
			if s.User() == u {
				ended[s] = true
			}
		}
	})
	for s := range ended {
		acl.end(c, s)
	}
}

// Delete removes users and closes their sessions. It returns how many it removed.
func (acl *Users) Delete(c *command.Ctx, names [][]byte) int {
	deleted := map[*command.User]bool{}
	acl.mu.Lock()
	for _, name := range names {
		if u := acl.users[string(name)]; u != nil {
			deleted[u] = true
			delete(acl.users, u.Name)
			acl.set(u, acl.nothing())
		}
	}
	acl.mu.Unlock()
	for _, s := range acl.s.Clients.All() {
		if deleted[s.User()] {
			acl.end(c, s)
		}
	}
	return len(deleted)
}

// Description holds the reply of ACL GETUSER.
type Description struct {
	Flags, Passwords []string
	// Selectors: the first one holds the user's root rules.
	Selectors []Selector
}

// Selector is a set of rules.
type Selector struct{ Commands, Keys, Channels string }

// Describe describes a user. ok is false if there is no such user.
func (acl *Users) Describe(name string) (d Description, ok bool) {
	u := acl.find(name)
	if u == nil {
		return d, false
	}
	r := rightsOf(u)
	d.Flags, d.Passwords = r.flags(), r.passwords
	for _, s := range r.selectors {
		d.Selectors = append(d.Selectors, Selector{s.describeCommands(), s.describeKeys(), s.describeChannels()})
	}
	return d, true
}

// Try says why a user may not run a command, or what is wrong with the arguments. Both are empty if the user may.
func (acl *Users) Try(user string, args [][]byte) (refused, err string) {
	u := acl.find(user)
	if u == nil {
		return "", "ERR User '" + user + "' not found"
	}
	cmd, known := acl.s.Table.Resolve(args)
	switch {
	case cmd == nil, !known && len(args) > 1:
		return "", "ERR Command '" + string(args[0]) + "' not found"
	case !cmd.Takes(len(args)):
		return "", "ERR wrong number of arguments for '" + cmd.FullName() + "' command"
	}
	if why, pos := rightsOf(u).check(cmd, args); why != allowed {
		return refusal(why, u.Name, cmd, args[pos], true), ""
	}
	return "", ""
}

// MayRun returns the error text for a command that a user may not run or that does not exist, empty if the user may run it. It
// counts and logs nothing.
func (acl *Users) MayRun(user string, args [][]byte) string {
	refused, err := acl.Try(user, args)
	if err == "" && refused != "" {
		err = "NOPERM " + refused
	}
	return err
}
