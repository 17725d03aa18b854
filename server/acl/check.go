package acl

// Checks whether a user may run a command.

import (
	"strings"

	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/glob"
)

// reason is why a command is denied, from least to most relevant.
type reason uint8

const (
	allowed reason = iota
	deniedCommand
	deniedKey
	deniedAuth
	deniedChannel
)

var reasonNames = [...]string{deniedCommand: "command", deniedKey: "key", deniedAuth: "auth", deniedChannel: "channel"}

// keyUse is a key among the arguments, and how the command accesses it.
type keyUse struct {
	pos    int
	access access
}

func accessOf(flags command.KeyFlags) (a access) {
	if flags&command.Access != 0 {
		a |= read
	}
	if flags&(command.Insert|command.Delete|command.Update) != 0 {
		a |= write
	}
	return a
}

// keysOf lists the keys of a command, none if the arguments are invalid.
func keysOf(cmd *command.Command, args [][]byte) (keys []keyUse) {
	if !cmd.EachKeyFlags(args, func(pos int, flags command.KeyFlags) {
		keys = append(keys, keyUse{pos, accessOf(flags)})
	}) {
		return nil
	}
	return keys
}

// check tells whether the rights allow a command. If not, it returns the most relevant reason, and in pos the last
// argument that a selector denied for it.
func (r *rights) check(cmd *command.Command, args [][]byte) (denied reason, pos int) {
	denied = deniedCommand
	var keys []keyUse
	known := false
	for _, s := range r.selectors {
		if !s.allowsCommand(cmd, args) {
			continue
		}
		if !known && !s.allKeys && cmd.HasKeys() {
			keys, known = keysOf(cmd, args), true
		}
		why, at := s.check(cmd, args, keys)
		if why == allowed {
			return allowed, 0
		}
		if why > denied || why == denied && at > pos {
			denied, pos = why, at
		}
	}
	return denied, pos
}

func (s *selector) allowsCommand(cmd *command.Command, args [][]byte) bool {
	if s.allCommands || cmd.Flags&command.NoAuth != 0 || s.allowed[cmd.Index()] {
		return true
	}
	at := 1
	if cmd.Parent() != nil {
		at = 2
	}
	if at < len(args) {
		for _, first := range s.firstArgs[cmd.Index()] {
			if strings.EqualFold(first, string(args[at])) {
				return true
			}
		}
	}
	return false
}

func (s *selector) check(cmd *command.Command, args [][]byte, keys []keyUse) (denied reason, pos int) {
	if !s.allKeys {
		for _, k := range keys {
			if !s.allowsKey(args[k.pos], k.access) {
				return deniedKey, k.pos
			}
		}
	}
	if ch := cmd.Channels; !s.allChannels && ch.First > 0 {
		last := ch.Last
		if last < 0 {
			last += len(args)
		}
		for i := ch.First; i <= last && i < len(args); i++ {
			if !allowsChannel(s.channels, args[i], ch.Pattern) {
				return deniedChannel, i
			}
		}
	}
	return allowed, 0
}

func (s *selector) allowsKey(key []byte, want access) bool {
	for _, p := range s.keys {
		if p.access&want == want && glob.Match([]byte(p.pattern), key) {
			return true
		}
	}
	return false
}

// allowsChannel tells whether one of the patterns allows a channel. A pattern to subscribe to must be one of them literally.
func allowsChannel(patterns []string, channel []byte, pattern bool) bool {
	for _, p := range patterns {
		if pattern && p == string(channel) || !pattern && glob.Match([]byte(p), channel) {
			return true
		}
	}
	return false
}

// MayReadAll tells whether the session's user may run the command and read any key with it.
func MayReadAll(c *command.Ctx) bool {
	u := c.Session.User()
	if u == nil || u.Unrestricted.Load() {
		return true
	}
	for _, s := range rightsOf(u).selectors {
		if s.allows(c) && s.readsAll() {
			return true
		}
	}
	return false
}

// allows tells whether the selector allows the running command.
func (s *selector) allows(c *command.Ctx) bool {
	if !s.allowsCommand(c.Cmd, c.Args) {
		return false
	}
	var keys []keyUse
	if !s.allKeys {
		keys = keysOf(c.Cmd, c.Args)
	}
	why, _ := s.check(c.Cmd, c.Args, keys)
	return why == allowed
}

func (s *selector) readsAll() bool {
	for _, p := range s.keys {
		if p.pattern == "*" && p.access&read != 0 {
			return true
		}
	}
	return s.allKeys
}

// Allows tells whether a user may run a command. It counts and logs nothing.
func Allows(u *command.User, cmd *command.Command, args [][]byte) bool {
	why, _ := rightsOf(u).check(cmd, args)
	return why == allowed
}

// Authorize returns the error text for a command that the session's restricted user may not run, empty if the user may. It
// counts and logs a denial.
func (acl *Users) Authorize(c *command.Ctx, cmd *command.Command, args [][]byte) string {
	u := c.Session.User()
	why, pos := rightsOf(u).check(cmd, args)
	if why == allowed {
		return ""
	}
	d := denial{reason: why, object: cmd.FullName(), user: u.Name}
	if why != deniedCommand {
		d.object = string(args[pos])
	}
	acl.Log.add(c, acl.s, d)
	if c.Exec && !c.Script {
		return "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
			"This command is no longer allowed for the following reason: " + execReasons[why]
	}
	return "NOPERM " + refusal(why, u.Name, cmd, args[pos], false)
}

// AuthorizeKeys is Authorize for keys that the running command uses besides those in its arguments. One selector must allow the
// command and all these keys.
func (acl *Users) AuthorizeKeys(c *command.Ctx, keys []command.NamedKey) string {
	u := c.Session.User()
	denied := keys[0].Key
	for _, s := range rightsOf(u).selectors {
		if !s.allows(c) {
			continue
		}
		i := 0
		for i < len(keys) && (s.allKeys || s.allowsKey(keys[i].Key, accessOf(keys[i].Flags))) {
			i++
		}
		if i == len(keys) {
			return ""
		}
		denied = keys[i].Key
	}
	acl.Log.add(c, acl.s, denial{reason: deniedKey, object: string(denied), user: u.Name})
	return "NOPERM " + refusal(deniedKey, u.Name, c.Cmd, denied, false)
}

var execReasons = [...]string{
	deniedCommand: "no permission to execute the command or subcommand",
	deniedKey:     "no permission to touch the specified keys",
	deniedChannel: "no permission to access one of the channels used as argument to the command",
}

// refusal says why a user may not run a command. verbose adds the key or channel, for users who may see rules.
func refusal(why reason, user string, cmd *command.Command, arg []byte, verbose bool) string {
	if why == deniedCommand {
		return "User " + user + " has no permissions to run the '" + cmd.FullName() + "' command"
	}
	if verbose {
		return "User " + user + " has no permissions to access the '" + string(arg) + "' " + reasonNames[why]
	}
	return "No permissions to access a " + reasonNames[why]
}
