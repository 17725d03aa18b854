package acl

// What ACL's subcommands do.

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/limitkv/limitkv/server/command"
)

// line is a user as a line of the ACL file.
func line(u *command.User) string { return "user " + u.Name + " " + rightsOf(u).describe() }

func (f *family) setUser(c *command.Ctx) {
	name := string(c.Args[2])
	if hasSpaces(name) {
		c.Error("ERR Usernames can't contain spaces or null characters")
		return
	}
	words := make([]string, 0, len(c.Args)-3)
	for _, a := range c.Args[3:] {
		words = append(words, string(a))
	}
	rules, unmatched := merge(words)
	if unmatched >= 0 {
		c.Error("ERR Unmatched parenthesis in acl selector starting at '" + words[unmatched] + "'.")
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.users[name]
	r := f.nothing()
	if u != nil {
		r = rightsOf(u).clone()
	}
	for _, rule := range rules {
		if err := f.apply(r, rule); err != nil {
			c.Error("ERR Error in ACL SETUSER modifier '" + rule + "': " + err.Error())
			return
		}
	}
	if u == nil {
		f.add(name, r)
	} else {
		old := rightsOf(u)
		f.set(u, r)
		f.endListeners(c, u, old, r)
	}
	c.OK()
}

// endListeners closes the sessions of a user that listen to channels which the
// user's new rights do not allow.
func (f *family) endListeners(c *command.Ctx, u *command.User, old, now *rights) {
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
	f.s.PubSub.Each(func(name string, pattern bool, list []*command.Session) {
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
		f.end(c, s)
	}
}

func (f *family) delUser(c *command.Ctx) {
	if slices.ContainsFunc(c.Args[2:], func(name []byte) bool { return string(name) == command.DefaultUser }) {
		c.Error("ERR The 'default' user cannot be removed")
		return
	}
	deleted := map[*command.User]bool{}
	f.mu.Lock()
	for _, name := range c.Args[2:] {
		if u := f.users[string(name)]; u != nil {
			deleted[u] = true
			delete(f.users, u.Name)
			f.set(u, f.nothing())
		}
	}
	f.mu.Unlock()
	for _, s := range f.s.Clients.All() {
		if deleted[s.User()] {
			f.end(c, s)
		}
	}
	c.Int(int64(len(deleted)))
}

func (f *family) getUser(c *command.Ctx) {
	u := f.find(string(c.Args[2]))
	if u == nil {
		c.Null()
		return
	}
	r := rightsOf(u)
	c.Map(6)
	c.BulkString("flags")
	flags := r.flags()
	c.Set(len(flags))
	for _, flag := range flags {
		c.BulkString(flag)
	}
	c.BulkString("passwords")
	c.Array(len(r.passwords))
	for _, p := range r.passwords {
		c.BulkString(p)
	}
	fields(c, r.selectors[0])
	c.BulkString("selectors")
	c.Array(len(r.selectors) - 1)
	for _, s := range r.selectors[1:] {
		c.Map(3)
		fields(c, s)
	}
}

func fields(c *command.Ctx, s *selector) {
	c.BulkString("commands")
	c.BulkString(s.describeCommands())
	c.BulkString("keys")
	c.BulkString(s.describeKeys())
	c.BulkString("channels")
	c.BulkString(s.describeChannels())
}

func (f *family) cat(c *command.Ctx) {
	switch len(c.Args) {
	case 2:
		c.Array(len(command.ACLCategories))
		for _, name := range command.ACLCategories {
			c.BulkString(name)
		}
	case 3:
		category := command.Lower(c.Args[2])
		if !slices.Contains(command.ACLCategories, category) {
			c.Error("ERR Unknown category '" + command.Repeat(c.Args[2], command.RepeatBytesMax) + "'")
			return
		}
		var names []string
		for _, cmd := range f.s.Table.All() {
			if slices.Contains(cmd.Categories(), category) {
				names = append(names, cmd.FullName())
			}
		}
		c.Array(len(names))
		for _, name := range names {
			c.BulkString(name)
		}
	default:
		c.Error(command.ErrSubcommandSyntax("ACL", c.Args[1]))
	}
}

// passBitsMax is the longest password that GENPASS makes, in bits.
const passBitsMax = 4096

// genPass is one of the few that want randomness which cannot be repeated, and
// so do not ask c.Random.
func genPass(c *command.Ctx) {
	bits := int64(256)
	if len(c.Args) > 3 {
		c.Error(command.ErrSubcommandSyntax("ACL", c.Args[1]))
		return
	}
	if len(c.Args) == 3 {
		a := c.Cursor(2)
		bits = a.Int()
		if a.Err() == "" && (bits <= 0 || bits > passBitsMax) {
			a.Fail("ERR ACL GENPASS argument must be the number of bits for the output password, a positive number up to " + strconv.Itoa(passBitsMax))
		}
		if a.Failed(c) {
			return
		}
	}
	var b [passBitsMax / 8]byte
	rand.Read(b[:])
	c.BulkString(hex.EncodeToString(b[:])[:(bits+3)/4])
}

func (f *family) dryRun(c *command.Ctx) {
	switch refused, err := f.try(string(c.Args[2]), c.Args[3:]); {
	case err != "":
		c.Error(err)
	case refused != "":
		c.BulkString(refused)
	default:
		c.OK()
	}
}

// try tells why a user may not run a command, or what is wrong with the question; both are empty if he may.
func (f *family) try(user string, args [][]byte) (refused, err string) {
	u := f.find(user)
	if u == nil {
		return "", "ERR User '" + user + "' not found"
	}
	cmd, known := f.s.Table.Resolve(args)
	switch {
	case cmd == nil, !known && len(args) > 1:
		return "", "ERR Command '" + string(args[0]) + "' not found"
	case cmd.Arity > 0 && len(args) != cmd.Arity, len(args) < -cmd.Arity:
		return "", "ERR wrong number of arguments for '" + cmd.FullName() + "' command"
	}
	if why, pos := rightsOf(u).check(cmd, args); why != allowed {
		return refusal(why, u.Name, cmd, args[pos], true), ""
	}
	return "", ""
}

// MayRun implements command.ACL.
func (f *family) MayRun(user string, args [][]byte) string {
	refused, err := f.try(user, args)
	if err == "" && refused != "" {
		err = "NOPERM " + refused
	}
	return err
}
