package connection

// CLIENT LIST, INFO and KILL, which show connections and end them.

import (
	"bytes"
	"strings"

	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) listRow(acl []string, flags command.Flags) *command.Command {
	return &command.Command{
		Name: "list", Arity: -2, Since: "2.4.0", Flags: flags | command.Admin, ACL: acl,
		Summary:    "Shows the connections, one a line.",
		Complexity: "O(N) in the number of connections",
		Tips:       []string{"nondeterministic_output"},
		Syntax:     "[TYPE client-type=(normal | master | replica | pubsub)] [ID client-id:integer...]",
		Run:        f.list,
	}
}

func (f *family) clientInfo(c *command.Ctx) {
	mark := c.Writer.Mark()
	c.Buf = c.Session.AppendLine(c.Buf, c)
	c.MakeVerbatim(mark, "txt")
}

func (f *family) list(c *command.Ctx) {
	a := c.Cursor(2)
	var sessions []*command.Session
	switch {
	case a.Left() == 0:
		sessions = f.s.ClientsOf(c.Session)
	case a.Left() == 2 && a.Is("TYPE"):
		class, ok := clientType(&a)
		if !ok {
			break
		}
		for _, s := range f.s.ClientsOf(c.Session) {
			if class.matches(s) {
				sessions = append(sessions, s)
			}
		}
	case a.Left() > 1 && a.Is("ID"):
		for a.More() {
			if s := f.s.Clients.Get(a.IntOr("ERR Invalid client ID")); s != nil {
				sessions = append(sessions, s)
			}
		}
	default:
		a.Syntax()
	}
	if a.Failed(c) {
		return
	}
	mark := c.Writer.Mark()
	for _, s := range sessions {
		c.Buf = s.AppendLine(c.Buf, c)
	}
	c.MakeVerbatim(mark, "txt")
}

// class is a type of clients as TYPE names them.
type class uint8

const (
	anyClass class = iota
	normalClass
	masterClass
	replicaClass
	pubsubClass
)

var classByName = map[string]class{"normal": normalClass, "master": masterClass, "slave": replicaClass, "replica": replicaClass, "pubsub": pubsubClass}

// clientType reads a type's name.
func clientType(a *command.Args) (class, bool) {
	name := a.Bytes()
	cl, ok := classByName[command.Lower(name)]
	if !ok {
		a.Fail("ERR Unknown client type '" + string(name) + "'")
	}
	return cl, ok
}

// matches reports whether a session is of the class. A client that monitors is a normal one.
func (cl class) matches(s *command.Session) bool {
	subscribed, replica := s.Subscriptions.Load() > 0, s.Shown.Flags.Load()&command.ShownReplica != 0
	switch primary := s.Conn == nil; cl {
	case normalClass:
		return !subscribed && !replica && !primary
	case pubsubClass:
		return subscribed && !replica
	case masterClass:
		return primary
	case replicaClass:
		return replica
	default:
		return true
	}
}

func (f *family) killRow(acl []string, flags command.Flags) *command.Command {
	return &command.Command{
		Name: "kill", Arity: -3, Since: "2.4.0", Flags: flags | command.Admin, ACL: acl,
		Summary:    "Ends connections.",
		Complexity: "O(N) in the number of connections",
		Syntax:     "filter=(old-format~ip:port:string | new-format=([ID client-id:integer] | [TYPE client-type=(normal | master | slave | replica | pubsub)] | [USER username:string] | [ADDR addr~ip:port:string] | [LADDR laddr~ip:port:string] | [SKIPME skipme=(YES | NO)] | [MAXAGE maxage:integer])...)",
		Run:        f.kill,
	}
}

// filter selects connections.
type filter struct {
	addr, laddr []byte
	user        []byte
	class       class
	id          int64
	age         int64 // seconds, at least
	skipMe      bool
}

func (f *family) kill(c *command.Ctx) {
	old := len(c.Args) == 3
	var what filter
	if old {
		what.addr = c.Args[2]
	} else {
		what.skipMe = true
		a := c.Cursor(2)
		for a.More() {
			f.killOption(&what, &a)
		}
		if a.Failed(c) {
			return
		}
	}
	killed := 0
	for _, s := range f.s.ClientsOf(c.Session) {
		if what.matches(c, s) {
			f.end(c, s)
			killed++
		}
	}
	switch {
	case !old:
		c.Int(int64(killed))
	case killed == 0:
		c.Error("ERR No such client")
	default:
		c.OK()
	}
}

func (f *family) killOption(what *filter, a *command.Args) {
	switch {
	case a.IsWith("ID", 1):
		id, ok := number.ParseInt(a.Bytes())
		if !ok || id < 1 {
			a.Fail("ERR client-id should be greater than 0")
		}
		what.id = id
	case a.IsWith("MAXAGE", 1):
		what.age = a.IntOr("ERR maxage is not an integer or out of range")
		if a.Err() == "" && what.age <= 0 {
			a.Fail("ERR maxage should be greater than 0")
		}
	case a.IsWith("TYPE", 1):
		what.class, _ = clientType(a)
	case a.IsWith("ADDR", 1):
		what.addr = a.Bytes()
	case a.IsWith("LADDR", 1):
		what.laddr = a.Bytes()
	case a.IsWith("USER", 1):
		what.user = a.Bytes()
		if !f.s.ACL.Exists(what.user) {
			a.Fail("ERR No such user '" + string(what.user) + "'")
		}
	case a.IsWith("SKIPME", 1):
		switch {
		case a.Is("YES"):
			what.skipMe = true
		case a.Is("NO"):
			what.skipMe = false
		default:
			a.Syntax()
		}
	default:
		a.Syntax()
	}
}

func (w *filter) matches(c *command.Ctx, s *command.Session) bool {
	remote, local := s.Addresses()
	switch {
	case w.addr != nil && remote != string(w.addr),
		w.laddr != nil && local != string(w.laddr),
		!w.class.matches(s),
		w.id != 0 && s.ID != w.id,
		w.user != nil && !bytes.Equal([]byte(s.UserName()), w.user),
		w.skipMe && s == c.Session,
		w.age != 0 && (c.Now-s.Created)/1e6 < w.age:
		return false
	}
	return true
}

// end ends a session: another's at once, the caller's own after the reply.
func (f *family) end(c *command.Ctx, s *command.Session) {
	if s == c.Session {
		s.Closing = true
		return
	}
	if s.Conn == nil {
		s.Peer.Drop()
		return
	}
	f.s.Kill(s)
}

// errSubcommand is the error for a subcommand with too many arguments, where
// its arity alone does not refuse them.
func errSubcommand(c *command.Ctx) string {
	return command.ErrSubcommandSyntax(strings.ToUpper(c.Cmd.Parent().Name), c.Args[1])
}
