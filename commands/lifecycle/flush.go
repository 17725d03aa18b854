package lifecycle

// Whole databases: DBSIZE, FLUSHDB, FLUSHALL, SWAPDB.

import (
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) flushRows() []*command.Command {
	acl := []string{"keyspace", "dangerous"}
	tips := []string{"request_policy:all_shards", "response_policy:all_succeeded"}
	history := [][2]string{{"4.0.0", "ASYNC."}, {"6.2.0", "SYNC."}}
	return []*command.Command{
		{
			Name: "dbsize", Arity: 1, Group: command.GroupServer, Since: "1.0.0",
			Flags:      command.ReadOnly | command.Fast | command.WholeKeyspace,
			ACL:        []string{"keyspace"},
			Summary:    "How many keys the database has.",
			Complexity: "O(1)",
			Tips:       []string{"request_policy:all_shards", "response_policy:agg_sum"},
			Run:        func(c *command.Ctx) { c.Int(int64(c.Count())) },
		},
		{
			Name: "flushall", Arity: -1, Group: command.GroupServer, Since: "1.0.0",
			Flags:      command.Write | command.WholeKeyspace,
			ACL:        acl,
			Summary:    "Removes the keys of all databases.",
			Complexity: "O(N) in the number of keys",
			Tips:       tips,
			Syntax:     "[flush-type=(ASYNC | SYNC)]",
			History:    history,
			Run: func(c *command.Ctx) {
				if mode, ok := flushMode(c); ok {
					f.emptied(mode, c.FlushAll(), command.FreedPieces)
					f.s.Persistence.Flushed(c)
					f.flushed(c, mode)
				}
			},
		},
		{
			Name: "flushdb", Arity: -1, Group: command.GroupServer, Since: "1.0.0",
			Flags:      command.Write | command.WholeKeyspace,
			ACL:        acl,
			Summary:    "Removes the keys of the database.",
			Complexity: "O(N) in the number of keys",
			Tips:       tips,
			Syntax:     "[flush-type=(ASYNC | SYNC)]",
			History:    history,
			Run: func(c *command.Ctx) {
				if mode, ok := flushMode(c); ok {
					n := c.FlushDB()
					f.emptied(mode, n, n)
					f.flushed(c, mode)
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

// A flush is how Redis would empty databases.
type flush uint8

const (
	flushAtOnce flush = iota // while all others wait
	flushLater               // another thread frees the memory
	flushWaits               // the same, and the client waits for it
)

// emptied counts the keys that were removed, and their pieces of memory as far as these are known.
func (f *family) emptied(mode flush, keys, pieces int) {
	switch {
	case keys == 0:
	case mode == flushAtOnce:
		f.s.LetGo(0, pieces)
	default:
		f.s.LetGo(keys, pieces)
	}
}

// flushMode reads ASYNC or SYNC. Both are the same here: the keys are gone at
// once, and the collector frees their memory later.
func flushMode(c *command.Ctx) (mode flush, ok bool) {
	a := c.Cursor(1)
	if mode = flushWaits; c.Exec || c.Script {
		mode = flushAtOnce
	}
	switch {
	case !a.More() || a.Left() == 1 && a.Is("SYNC"):
	case a.Left() == 1 && a.Is("ASYNC"):
		mode = flushLater
	default:
		a.Syntax()
	}
	return mode, !a.Failed(c)
}

// flushed replies OK. A client that waits in Redis first gets its messages about the keys that were removed.
func (f *family) flushed(c *command.Ctx, mode flush) {
	if mode == flushWaits && c.Server.Tracking.Load() != 0 && c.Session.Reply == command.ReplyOn {
		f.s.Tracker.Commanded(c)
		c.Session.SendOwn(c.Writer)
	}
	c.OK()
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
