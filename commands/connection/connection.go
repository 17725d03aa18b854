// Package connection, internal to the server, is the family of commands about connections: a client's own connection, and
// others that it looks at or acts on.
package connection

import (
	"bytes"
	"strings"

	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

// family is the state of the connection commands.
type family struct{ s *server.Server }

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := &family{s: s}
	const early = command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth | command.AllowBusy
	return []*command.Command{
		{
			Name: "ping", Arity: -1, Group: command.GroupConnection, Since: "1.0.0",
			Flags:      command.Fast | command.InSubscribed | command.WithWrites,
			ACL:        []string{"connection"},
			Summary:    "Answers PONG, or the message that it is given.",
			Complexity: "O(1)",
			Tips:       []string{"request_policy:all_shards", "response_policy:all_succeeded"},
			Syntax:     "[message:string]",
			Run:        ping,
		},
		{
			Name: "echo", Arity: 2, Group: command.GroupConnection, Since: "1.0.0",
			Flags:      command.Loading | command.Stale | command.Fast,
			ACL:        []string{"connection"},
			Summary:    "Replies its argument.",
			Complexity: "O(1)",
			Syntax:     "message:string",
			Run:        func(c *command.Ctx) { c.Bulk(c.Args[1]) },
		},
		{
			Name: "quit", Arity: -1, Group: command.GroupConnection, Since: "1.0.0",
			Flags:      early | command.InSubscribed | command.InMulti,
			ACL:        []string{"connection"},
			Summary:    "Ends the connection after a reply.",
			Complexity: "O(1)",
			// Redis deprecates QUIT because clients can close the connection themselves.
			DeprecatedSince: "7.2.0", ReplacedBy: "closing the connection on the client's side",
			Run: func(c *command.Ctx) { c.Session.Closing = true; c.OK() },
		},
		{
			Name: "reset", Arity: 1, Group: command.GroupConnection, Since: "6.2.0",
			Flags:      early | command.InSubscribed | command.InMulti,
			ACL:        []string{"connection"},
			Summary:    "Makes the connection what it was when it began.",
			Complexity: "O(1)",
			Run:        f.reset,
		},
		{
			Name: "select", Arity: 2, Group: command.GroupConnection, Since: "1.0.0",
			Flags:      command.Loading | command.Stale | command.Fast,
			ACL:        []string{"connection"},
			Summary:    "Chooses the database of the connection.",
			Complexity: "O(1)",
			Syntax:     "index:integer",
			Run:        selectDB,
		},
		f.authRow(),
		f.helloRow(),
		f.clientRow(),
	}
}

func ping(c *command.Ctx) {
	switch {
	case len(c.Args) > 2:
		c.Error(command.ErrArity("ping"))
	case c.Session.Subscriptions.Load() > 0 && c.Proto != 3:
		c.Array(2)
		c.BulkString("pong")
		c.Bulk(bytes.Join(c.Args[1:], nil))
	case len(c.Args) == 1:
		c.Status("PONG")
	default:
		c.Bulk(c.Args[1])
	}
}

// selectDB changes the database of the connection or, if a script calls it, of the script only.
func selectDB(c *command.Ctx) {
	a := c.Cursor(1)
	n := a.Int32()
	if a.Failed(c) {
		return
	}
	if n != 0 && c.Server.Cluster {
		c.Error("ERR SELECT is not allowed in cluster mode")
		return
	}
	if n < 0 || n >= int64(c.KS.Databases()) {
		c.Error(command.ErrDBIndex)
		return
	}
	c.DB = int(n)
	if !c.Script {
		c.Session.SetDB(int(n))
	}
	c.OK()
}

// reset returns the session to its initial state.
func (f *family) reset(c *command.Ctx) {
	s := c.Session
	c.Discard()
	f.s.PubSub.LeaveAll(s)
	f.s.Monitor.Remove(s)
	f.s.Tracker.Stop(s)
	s.SetDB(0)
	c.DB = 0
	s.SetProto(2)
	s.SetName("")
	s.Reply = command.ReplyOn
	s.NoTouch = false
	s.Show(command.ShownNoTouch, false)
	f.s.SpareClient(s, false)
	f.s.Connections.Begin(s)
	c.Status("RESET")
}

// printable reports whether CLIENT LIST can show the text: ASCII without blanks.
func printable(text []byte) bool {
	if i := bytes.IndexByte(text, 0); i >= 0 {
		text = text[:i]
	}
	return !strings.ContainsFunc(string(text), func(r rune) bool { return r < '!' || r > '~' })
}
