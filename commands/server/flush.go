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
				if lazy, ok := flushMode(c); ok {
					f.emptied(lazy, f.flushAll(c), freedPieces)
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
				if lazy, ok := flushMode(c); ok {
					n := c.Count()
					c.Flush()
					f.emptied(lazy, n, n)
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

// flushAll removes the keys of all databases, and returns how many there were.
func (f *family) flushAll(c *command.Ctx) (n int) {
	db := c.DB
	for c.DB = 0; c.DB < c.KS.Databases(); c.DB++ {
		n += c.Count()
		c.Flush()
	}
	c.DB = db
	f.flushed(c)
	return n
}

// emptied tells of so many keys that are gone, and pieces of memory: nobody knows
// how many the values are.
func (f *family) emptied(lazy bool, keys, pieces int) {
	switch {
	case keys == 0:
	case lazy:
		f.letGo(keys, pieces)
	default:
		f.letGo(0, pieces)
	}
}

// freedPieces is how many pieces of memory must have been let go for that to be
// told to who looks after the process's memory.
const freedPieces = 1 << 16

// letGo counts objects that Redis would free later, and tells of the pieces of
// memory if they are many: the Go runtime waits until the heap has grown by as
// much as there is, which may be never where nothing is written.
func (f *family) letGo(objects, pieces int) {
	f.s.Stats.LazyFreed.Add(int64(objects))
	if f.pieces.Add(int64(pieces)) < freedPieces {
		return
	}
	f.pieces.Store(0)
	if f.s.Freed != nil {
		f.s.Freed()
	}
}

// flushed tells those who keep values on their side.
func (f *family) flushed(c *command.Ctx) {
	if f.s.Tracking.Load() != 0 {
		f.s.Flushed(c.KS)
	}
}

// flushMode reads ASYNC or SYNC. Both are the same here: the keys are gone at
// once, and the collector frees their memory later. lazy tells whether Redis would
// do so too: with SYNC as well, where the client can wait for it.
func flushMode(c *command.Ctx) (lazy, ok bool) {
	a := c.Cursor(1)
	lazy = !c.Exec && !c.Script
	switch {
	case !a.More() || a.Left() == 1 && a.Is("SYNC"):
	case a.Left() == 1 && a.Is("ASYNC"):
		lazy = true
	default:
		a.Syntax()
	}
	return lazy, !a.Failed(c)
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
	c.ForceEffect()
	c.OK()
}
