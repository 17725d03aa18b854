// Package acl, internal to the server, is the family of ACL: the commands by which administrators manage users. The users are
// in server/acl.
package acl

import (
	"crypto/rand"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/acl"
	"github.com/limitkv/limitkv/server/command"
)

type family struct{ users *acl.Users }

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command { return family{s.ACL}.rows() }

// done replies OK, or an error.
func done(c *command.Ctx, problem string) {
	if problem != "" {
		c.Error(problem)
	} else {
		c.OK()
	}
}

func texts(c *command.Ctx, list []string) {
	c.Array(len(list))
	for _, text := range list {
		c.BulkString(text)
	}
}

func pairs(c *command.Ctx, fields [][2]string) {
	for _, field := range fields {
		c.BulkString(field[0])
		c.BulkString(field[1])
	}
}

func (f family) setUser(c *command.Ctx) {
	rules := make([]string, 0, len(c.Args)-3)
	for _, a := range c.Args[3:] {
		rules = append(rules, string(a))
	}
	done(c, f.users.SetUser(c, string(c.Args[2]), rules))
}

func (f family) delUser(c *command.Ctx) {
	if slices.ContainsFunc(c.Args[2:], func(name []byte) bool { return string(name) == command.DefaultUser }) {
		c.Error("ERR The 'default' user cannot be removed")
		return
	}
	c.Int(int64(f.users.Delete(c, c.Args[2:])))
}

func (f family) getUser(c *command.Ctx) {
	d, ok := f.users.Describe(string(c.Args[2]))
	if !ok {
		c.Null()
		return
	}
	c.Map(6)
	c.BulkString("flags")
	c.Set(len(d.Flags))
	for _, flag := range d.Flags {
		c.BulkString(flag)
	}
	c.BulkString("passwords")
	texts(c, d.Passwords)
	fields(c, d.Selectors[0])
	c.BulkString("selectors")
	c.Array(len(d.Selectors) - 1)
	for _, s := range d.Selectors[1:] {
		c.Map(3)
		fields(c, s)
	}
}

func fields(c *command.Ctx, s acl.Selector) {
	pairs(c, [][2]string{{"commands", s.Commands}, {"keys", s.Keys}, {"channels", s.Channels}})
}

func cat(c *command.Ctx) {
	switch len(c.Args) {
	case 2:
		texts(c, command.ACLCategories)
	case 3:
		category := command.Lower(c.Args[2])
		if !slices.Contains(command.ACLCategories, category) {
			c.Error("ERR Unknown category '" + command.Repeat(c.Args[2], command.RepeatBytesMax) + "'")
			return
		}
		var names []string
		for _, cmd := range c.Server.Table.All() {
			if slices.Contains(cmd.Categories(), category) {
				names = append(names, cmd.FullName())
			}
		}
		texts(c, names)
	default:
		c.Error(command.ErrSubcommandSyntax("ACL", c.Args[1]))
	}
}

// passBitsMax is the longest password that GENPASS makes, in bits.
const passBitsMax = 4096

// genPass needs randomness that nobody can repeat, so it does not use c.Random.
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

func (f family) dryRun(c *command.Ctx) {
	switch refused, err := f.users.Try(string(c.Args[2]), c.Args[3:]); {
	case err != "":
		c.Error(err)
	case refused != "":
		c.BulkString(refused)
	default:
		c.OK()
	}
}

func (f family) log(c *command.Ctx) {
	count := int64(10)
	switch {
	case len(c.Args) > 3:
		c.Error(command.ErrSubcommandSyntax("ACL", c.Args[1]))
		return
	case len(c.Args) == 3 && command.EqualFold(c.Args[2], "RESET"):
		f.users.Log.Reset()
		c.OK()
		return
	case len(c.Args) == 3:
		a := c.Cursor(2)
		if count = max(0, a.Int()); a.Failed(c) {
			return
		}
	}
	entries := f.users.Log.Entries(count)
	c.Array(len(entries))
	for _, e := range entries {
		c.Map(10)
		c.BulkString("count")
		c.Int(e.Count)
		pairs(c, [][2]string{{"reason", e.Reason}, {"context", e.Context}, {"object", e.Object}, {"username", e.User}})
		c.BulkString("age-seconds")
		c.Double(float64(c.Now/1000-e.UpdatedMillis) / 1000)
		c.BulkString("client-info")
		c.BulkString(e.Client)
		c.BulkString("entry-id")
		c.Int(e.ID)
		c.BulkString("timestamp-created")
		c.Int(e.CreatedMillis)
		c.BulkString("timestamp-last-updated")
		c.Int(e.UpdatedMillis)
	}
}
