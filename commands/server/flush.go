package server

// Whole databases: FLUSHDB, FLUSHALL, SWAPDB.

import (
	"github.com/limitkv/limitkv/commands/command"
)

func (f *family) flushRows() []*command.Command {
	acl := []string{"keyspace", "dangerous"}
	tips := []string{"request_policy:all_shards", "response_policy:all_succeeded"}
	history := [][2]string{{"4.0.0", "ASYNC."}, {"6.2.0", "SYNC."}}
	return []*command.Command{
		{
			Name: "flushall", Arity: -1, Group: command.GroupServer, Since: "1.0.0",
			Flags:      command.Write | command.WholeKeyspace | command.LeavesCold,
			ACL:        acl,
			Summary:    "Removes the keys of all databases.",
			Complexity: "O(N) in the number of keys",
			Tips:       tips,
			Syntax:     "[flush-type=(ASYNC | SYNC)]",
			History:    history,
			Run: func(c *command.Ctx) {
				if flushMode(c) {
					f.flushAll(c)
					c.OK()
				}
			},
		},
		{
			Name: "flushdb", Arity: -1, Group: command.GroupServer, Since: "1.0.0",
			Flags:      command.Write | command.WholeKeyspace | command.LeavesCold,
			ACL:        acl,
			Summary:    "Removes the keys of the database.",
			Complexity: "O(N) in the number of keys",
			Tips:       tips,
			Syntax:     "[flush-type=(ASYNC | SYNC)]",
			History:    history,
			Run: func(c *command.Ctx) {
				if flushMode(c) {
					c.Flush()
					f.flushed(c)
					c.OK()
				}
			},
		},
		{
			Name: "swapdb", Arity: 3, Group: command.GroupServer, Since: "4.0.0",
			Flags:      command.Write | command.Fast | command.WholeKeyspace,
			ACL:        acl,
			Summary:    "Exchanges two databases, at once and for all clients.",
			Complexity: "O(N) in the number of clients that watch or wait for their keys",
			Syntax:     "index1:integer index2:integer",
			Run:        swapDB,
		},
	}
}

// flushAll removes the keys of all databases.
func (f *family) flushAll(c *command.Ctx) {
	db := c.DB
	for c.DB = 0; c.DB < c.KS.Databases(); c.DB++ {
		c.Flush()
	}
	c.DB = db
	f.flushed(c)
}

// flushed tells those who keep values on their side.
func (f *family) flushed(c *command.Ctx) {
	if f.s.Tracking.Load() != 0 {
		f.s.Flushed(c.KS)
	}
}

// flushMode reads ASYNC or SYNC. Both are the same here: the keys are gone at
// once, and the collector frees their memory later.
func flushMode(c *command.Ctx) bool {
	a := c.Cursor(1)
	if a.More() && (a.Left() > 1 || !a.Is("ASYNC") && !a.Is("SYNC")) {
		a.Syntax()
	}
	return !a.Failed(c)
}

func swapDB(c *command.Ctx) {
	if c.Server.Cluster {
		c.Error("ERR SWAPDB is not allowed in cluster mode")
		return
	}
	a := c.Cursor(1)
	one := a.Int32Or("ERR invalid first DB index")
	two := a.Int32Or("ERR invalid second DB index")
	if a.Failed(c) {
		return
	}
	n := int64(c.KS.Databases())
	if one < 0 || one >= n || two < 0 || two >= n {
		c.Error(command.ErrDBIndex)
		return
	}
	c.Swap(int(one), int(two))
	c.OK()
}
