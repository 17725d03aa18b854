package connection

// AUTH and HELLO, and what a connection may do before it has authenticated.

import (
	"strings"

	"github.com/limitkv/limitkv/server/command"
)

const errNoPassword = "ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"

// login logs the session in as a user. It replies the error and reports false if the password is wrong.
func (f *family) login(c *command.Ctx, user, password []byte) bool {
	if !f.s.ACL.Authenticate(c, user, password) {
		c.Error(command.ErrWrongPass)
		return false
	}
	c.Session.Authenticated = true
	if c.Session.Conn != nil {
		c.Session.Conn.SetUnauthenticated(false)
		f.s.Connections.Limit(c.Session)
	}
	return true
}

func (f *family) authRow() *command.Command {
	return &command.Command{
		Name: "auth", Arity: -2, Group: command.GroupConnection, Since: "1.0.0",
		Flags:      command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth | command.AllowBusy,
		ACL:        []string{"connection"},
		Summary:    "Proves who the client is.",
		Complexity: "O(N) in the number of the user's passwords",
		Syntax:     "[username:string] password:string",
		History:    [][2]string{{"6.0.0", "Takes a user's name before the password."}},
		Secret:     func(args [][]byte, i int) bool { return i > 0 },
		Run:        f.authCommand,
	}
}

func (f *family) authCommand(c *command.Ctx) {
	user, password := []byte(command.DefaultUser), c.Args[1]
	switch {
	case len(c.Args) > 3:
		c.Error(command.ErrSyntax)
		return
	case len(c.Args) == 3:
		user, password = c.Args[1], c.Args[2]
	case f.s.ACL.NoPassword():
		c.Error(errNoPassword)
		return
	}
	if f.login(c, user, password) {
		c.OK()
	}
}

func (f *family) helloRow() *command.Command {
	return &command.Command{
		Name: "hello", Arity: -1, Group: command.GroupConnection, Since: "6.0.0",
		Flags:      command.NoScript | command.Loading | command.Stale | command.Fast | command.NoAuth | command.AllowBusy,
		ACL:        []string{"connection"},
		Summary:    "Begins a conversation: agrees on the protocol, authenticates, names the connection.",
		Complexity: "O(1)",
		Syntax:     "[arguments={protover:integer [AUTH auth={username:string password:string}] [SETNAME clientname:string]}]",
		History:    [][2]string{{"6.2.0", "Without arguments it tells how the connection is."}},
		Secret: func(args [][]byte, i int) bool {
			for j := max(i-2, 2); j < i; j++ {
				if strings.EqualFold(string(args[j]), "auth") {
					return true
				}
			}
			return false
		},
		Run: f.hello,
	}
}

func (f *family) hello(c *command.Ctx) {
	a := c.Cursor(1)
	var proto int64
	if a.Left() > 0 {
		proto = a.IntOr("ERR Protocol version is not an integer or out of range")
		if a.Err() == "" && (proto < 2 || proto > 3) {
			a.Fail(command.ErrNoProto)
		}
	}
	var user, password, name []byte
	for a.More() {
		switch {
		case a.IsWith("AUTH", 2):
			user, password = a.Bytes(), a.Bytes()
		case a.IsWith("SETNAME", 1):
			name = a.Bytes()
			if !printable(name) {
				a.Fail(errClientName)
			}
		default:
			a.Fail("ERR Syntax error in HELLO option '" + string(a.Bytes()) + "'")
		}
	}
	if a.Failed(c) {
		return
	}
	if user != nil && !f.login(c, user, password) {
		return
	}
	s := c.Session
	if !s.Authenticated {
		c.Error("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
		return
	}
	if name != nil {
		s.SetName(string(name))
	}
	if proto != 0 {
		s.SetProto(int(proto))
		c.Proto = int(proto)
	}
	c.Map(7)
	c.BulkString("server")
	c.BulkString("redis")
	c.BulkString("version")
	c.BulkString(command.RedisVersion)
	c.BulkString("proto")
	c.Int(int64(s.Proto()))
	c.BulkString("id")
	c.Int(s.ID)
	c.BulkString("mode")
	c.BulkString(c.Server.Mode())
	c.BulkString("role")
	c.BulkString("master")
	c.BulkString("modules")
	c.Array(0)
}
