package connection

// CLIENT: what a connection declares about itself and does to others.

import (
	"strings"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/pause"
)

const errClientName = "ERR Client names cannot contain spaces, newlines or special characters."

func (f *family) clientRow() *command.Command {
	const flags = command.NoScript | command.Loading | command.Stale
	acl := []string{"connection"}
	everywhere := []string{"request_policy:all_nodes", "response_policy:all_succeeded"}
	row := &command.Command{
		Name: "client", Arity: -2, Group: command.GroupConnection, Since: "2.4.0",
		Summary:    "Commands about client connections.",
		Complexity: "That of the subcommand",
		Sub: []*command.Command{
			{
				Name: "getname", Arity: 2, Since: "2.6.9", Flags: flags, ACL: acl,
				Summary:    "The name of the connection.",
				Complexity: "O(1)",
				Run:        getName,
			},
			command.HelpRow("5.0.0", acl...),
			{
				Name: "id", Arity: 2, Since: "5.0.0", Flags: flags, ACL: acl,
				Summary:    "The number of the connection, which no other ever has.",
				Complexity: "O(1)",
				Run:        func(c *command.Ctx) { c.Int(c.Session.ID) },
			},
			{
				Name: "info", Arity: 2, Since: "6.2.0", Flags: flags, ACL: acl,
				Summary:    "What CLIENT LIST shows, of this connection.",
				Complexity: "O(1)",
				Tips:       []string{"nondeterministic_output"},
				Run:        f.clientInfo,
			},
			f.killRow(acl, flags),
			f.listRow(acl, flags),
			{
				Name: "no-evict", Arity: 3, Since: "7.0.0", Flags: flags | command.Admin, ACL: acl,
				Summary:    "Spares the connection when memory is short.",
				Complexity: "O(1)",
				Syntax:     "enabled=(ON | OFF)",
				Run: func(c *command.Ctx) {
					if on, ok := onOff(c); ok {
						f.s.SpareClient(c.Session, on)
						if f.s.ClientsTakeTooMuch(0) {
							f.s.Keeper.EvictClientsSoon()
						}
					}
				},
			},
			{
				Name: "no-touch", Arity: 3, Since: "7.2.0", Flags: flags, ACL: acl,
				Summary:    "Lets the connection's reads leave access times and frequencies as they are.",
				Complexity: "O(1)",
				Syntax:     "enabled=(ON | OFF)",
				Run: func(c *command.Ctx) {
					if on, ok := onOff(c); ok {
						c.Session.NoTouch = on
						c.Session.Show(command.ShownNoTouch, on)
					}
				},
			},
			{
				Name: "pause", Arity: -3, Since: "3.0.0", Flags: flags | command.Admin, ACL: acl,
				Summary:    "Holds back the commands of all clients, or those that may write, for some milliseconds.",
				Complexity: "O(1)",
				Syntax:     "timeout:integer [mode=(WRITE | ALL)]",
				History:    [][2]string{{"6.2.0", "WRITE holds back writes alone."}},
				Run:        f.pause,
			},
			{
				Name: "reply", Arity: 3, Since: "3.2.0", Flags: flags, ACL: acl,
				Summary:    "Turns replies to this connection off or on, or leaves one out.",
				Complexity: "O(1)",
				Syntax:     "action=(ON | OFF | SKIP)",
				Run:        reply,
			},
			{
				Name: "setinfo", Arity: 4, Since: "7.2.0", Flags: flags, ACL: acl,
				Summary:    "Tells which client library the connection uses.",
				Complexity: "O(1)",
				Tips:       everywhere,
				Syntax:     "attr=(lib-name libname:string | lib-ver libver:string)",
				Run:        setInfo,
			},
			{
				Name: "setname", Arity: 3, Since: "2.6.9", Flags: flags, ACL: acl,
				Summary:    "Names the connection.",
				Complexity: "O(1)",
				Tips:       everywhere,
				Syntax:     "connection-name:string",
				Run:        setName,
			},
			{
				Name: "unblock", Arity: -3, Since: "5.0.0", Flags: flags | command.Admin, ACL: acl,
				Summary:    "Ends the waiting of a blocked client.",
				Complexity: "O(log N) in the number of clients",
				Syntax:     "client-id:integer [unblock-type=(TIMEOUT | ERROR)]",
				Run:        f.unblock,
			},
			{
				Name: "unpause", Arity: 2, Since: "6.2.0", Flags: flags | command.Admin, ACL: acl,
				Summary:    "Ends CLIENT PAUSE.",
				Complexity: "O(N) in the number of clients held back",
				Run:        func(c *command.Ctx) { f.s.Pause.End(c.KS, pause.ByClient); c.OK() },
			},
		},
	}
	row.Sub = append(row.Sub, f.trackingRows(acl, flags)...)
	return row
}

func getName(c *command.Ctx) {
	if name := c.Session.Name(); name != "" {
		c.BulkString(name)
	} else {
		c.Null()
	}
}

func setName(c *command.Ctx) {
	if !printable(c.Args[2]) {
		c.Error(errClientName)
		return
	}
	c.Session.SetName(string(c.Args[2]))
	c.OK()
}

func setInfo(c *command.Ctx) {
	attr, value := string(c.Args[2]), string(c.Args[3])
	lib := strings.EqualFold(attr, "lib-name")
	switch {
	case !lib && !strings.EqualFold(attr, "lib-ver"):
		c.Error("ERR Unrecognized option '" + attr + "'")
	case !printable(c.Args[3]):
		c.Error("ERR " + attr + " cannot contain spaces, newlines or special characters.")
	case lib:
		c.Session.SetLib(&value, nil)
		c.OK()
	default:
		c.Session.SetLib(nil, &value)
		c.OK()
	}
}

// onOff reads ON or OFF and replies OK, or the error.
func onOff(c *command.Ctx) (on, ok bool) {
	a := c.Cursor(2)
	switch {
	case a.Is("ON"):
		on = true
	case a.Is("OFF"):
	default:
		c.Error(command.ErrSyntax)
		return false, false
	}
	c.OK()
	return on, true
}

func reply(c *command.Ctx) {
	a := c.Cursor(2)
	s := c.Session
	switch {
	case a.Is("ON"):
		s.Reply = command.ReplyOn
		c.OK()
	case a.Is("OFF"):
		s.Reply = command.ReplyOff
	case a.Is("SKIP"):
		if s.Reply != command.ReplyOff {
			s.Reply = command.ReplySkipNext
		}
	default:
		c.Error(command.ErrSyntax)
	}
}

func (f *family) pause(c *command.Ctx) {
	if len(c.Args) > 4 {
		c.Error(errSubcommand(c))
		return
	}
	a := c.Cursor(3)
	writes := a.Is("WRITE")
	if !writes && a.More() && !a.Is("ALL") {
		a.Fail("ERR CLIENT PAUSE mode must be WRITE or ALL")
	}
	t := c.Cursor(2)
	ms := t.IntOr("ERR timeout is not an integer or out of range")
	switch {
	case a.Failed(c) || t.Failed(c):
	case ms < 0:
		c.Error(command.ErrTimeoutNegative)
	case ms > (1<<63-1-c.Now)/1000:
		c.Error(command.ErrTimeoutRange)
	default:
		f.s.Pause.Begin(c.KS, pause.ByClient, c.Now+ms*1000, writes)
		c.OK()
	}
}

func (f *family) unblock(c *command.Ctx) {
	if len(c.Args) > 4 {
		c.Error(errSubcommand(c))
		return
	}
	var reply func(w *resp.Writer)
	if len(c.Args) > 3 {
		a := c.Cursor(3)
		if a.Is("ERROR") {
			reply = func(w *resp.Writer) { w.Error("UNBLOCKED client unblocked via CLIENT UNBLOCK") }
		} else if !a.Is("TIMEOUT") {
			c.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
			return
		}
	}
	a := c.Cursor(2)
	id := a.Int()
	if a.Failed(c) {
		return
	}
	if s := f.s.Clients.Get(id); s != nil {
		if b := s.Blocked.Load(); b != nil && b.Unblock(reply, c.Held != (engine.LockSet{})) {
			if reply != nil { // the error is counted with both commands
				c.Worker.Counters[c.Cmd.Index()].Failed.Add(1)
			}
			c.Int(1)
			return
		}
	}
	c.Int(0)
}
