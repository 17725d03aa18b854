package generic

// Which keys there are.

import (
	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/commands/glob"
	"github.com/limitkv/limitkv/commands/scan"
	"github.com/limitkv/limitkv/commands/value"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/resp/number"
)

var delRow = &command.Command{
	Name: "del", Arity: -2, Group: command.GroupGeneric, Since: "1.0.0",
	Flags:      command.Write,
	ACL:        keyspaceACL,
	Keys:       []command.KeySpec{command.KeyRange(1, -1, 1, command.RM|command.Delete)},
	Summary:    "Deletes keys.",
	Complexity: "O(N) in the number of keys; freeing a large value is left to the garbage collector",
	Tips:       []string{"request_policy:multi_shard", "response_policy:agg_sum"},
	Syntax:     "key...",
	Run:        func(c *command.Ctx) { remove(c, false) },
}

var unlinkRow = &command.Command{
	Name: "unlink", Arity: -2, Group: command.GroupGeneric, Since: "4.0.0",
	Flags:      command.Write | command.Fast,
	ACL:        keyspaceACL,
	Keys:       []command.KeySpec{command.KeyRange(1, -1, 1, command.RM|command.Delete)},
	Summary:    "Deletes keys, as DEL does.",
	Complexity: "O(N) in the number of keys",
	Tips:       []string{"request_policy:multi_shard", "response_policy:agg_sum"},
	Syntax:     "key...",
	Run:        func(c *command.Ctx) { remove(c, true) },
}

// remove is DEL, or UNLINK, which counts what Redis would free later.
func remove(c *command.Ctx, unlink bool) {
	n := int64(0)
	for _, key := range c.Args[1:] {
		pieces := 0
		if unlink {
			pieces = value.LazyEffort(c.Find(key))
		}
		if !c.Delete(key) {
			continue
		}
		c.Changed(key, engine.EventGeneric, "del")
		n++
		if pieces > 0 {
			c.Server.Keeper.LetGo(1, pieces)
		}
	}
	c.Int(n)
}

var existsRow = &command.Command{
	Name: "exists", Arity: -2, Group: command.GroupGeneric, Since: "1.0.0",
	Flags:      command.ReadOnly | command.Fast,
	ACL:        keyspaceACL,
	Keys:       []command.KeySpec{command.KeyRange(1, -1, 1, command.RO)},
	Summary:    "Counts which of the keys exist.",
	Complexity: "O(N) in the number of keys",
	Tips:       []string{"request_policy:multi_shard", "response_policy:agg_sum"},
	Syntax:     "key...",
	Run: func(c *command.Ctx) {
		noTouch := c.NoTouch
		c.NoTouch = true
		count(c)
		c.NoTouch = noTouch
	},
}

var touchRow = &command.Command{
	Name: "touch", Arity: -2, Group: command.GroupGeneric, Since: "3.2.1",
	Flags:      command.ReadOnly | command.Fast,
	ACL:        keyspaceACL,
	Keys:       []command.KeySpec{command.KeyRange(1, -1, 1, command.RO)},
	Summary:    "Counts which of the keys exist, and notes the access to them.",
	Complexity: "O(N) in the number of keys",
	Tips:       []string{"request_policy:multi_shard", "response_policy:agg_sum"},
	Syntax:     "key...",
	Run: func(c *command.Ctx) {
		noTouch := c.NoTouch
		c.NoTouch = false // that is what the command is for
		count(c)
		c.NoTouch = noTouch
	},
}

// count replies how many of the keys exist; one named twice counts twice.
func count(c *command.Ctx) {
	n := int64(0)
	for _, key := range c.Args[1:] {
		if c.Get(key).Ok() {
			n++
		}
	}
	c.Int(n)
}

var typeRow = &command.Command{
	Name: "type", Arity: 2, Group: command.GroupGeneric, Since: "1.0.0",
	Flags:      command.ReadOnly | command.Fast,
	ACL:        keyspaceACL,
	Keys:       []command.KeySpec{command.Key(1, command.RO)},
	Summary:    "Returns what kind of value a key holds.",
	Complexity: "O(1)",
	Syntax:     "key",
	Run: func(c *command.Ctx) {
		noTouch := c.NoTouch
		c.NoTouch = true
		c.Status(c.Get(c.Args[1]).Kind().String())
		c.NoTouch = noTouch
	},
}

var randomkeyRow = &command.Command{
	Name: "randomkey", Arity: 1, Group: command.GroupGeneric, Since: "1.0.0",
	Flags:      command.ReadOnly | command.TouchesArbitraryKeys | command.WholeKeyspace,
	ACL:        keyspaceACL,
	Summary:    "Returns a key of the database at random.",
	Complexity: "O(1)",
	Tips:       []string{"request_policy:all_shards", "response_policy:special", "nondeterministic_output"},
	Run: func(c *command.Ctx) {
		if e := c.View.Random(c.Server.Random); e.Ok() {
			c.Bulk(e.Key())
		} else {
			c.Null()
		}
	},
}

var keysRow = &command.Command{
	Name: "keys", Arity: 2, Group: command.GroupGeneric, Since: "1.0.0",
	Flags:      command.ReadOnly | command.WholeKeyspace | command.LeavesCold | command.TakesTime,
	ACL:        []string{"keyspace", "dangerous"},
	Summary:    "Returns all keys that match a pattern.",
	Complexity: "O(N) in the number of keys of the database",
	Tips:       []string{"request_policy:all_shards", "nondeterministic_output_order"},
	Syntax:     "pattern",
	Run:        keys,
}

func keys(c *command.Ctx) {
	pattern := c.Args[1]
	all := len(pattern) == 1 && pattern[0] == '*'
	var found [][]byte
	c.Each(func(e engine.Entry) bool {
		if key := e.Key(); all || glob.Match(pattern, key) {
			found = append(found, key)
		}
		return true
	})
	c.Array(len(found))
	for _, key := range found {
		c.Bulk(key)
	}
}

var scanRow = &command.Command{
	Name: "scan", Arity: -2, Group: command.GroupGeneric, Since: "2.8.0",
	Flags:      command.ReadOnly | command.TouchesArbitraryKeys | command.WholeKeyspace,
	ACL:        keyspaceACL,
	Summary:    "Returns some keys of the database, and where to go on.",
	Complexity: "O(1) for a call, O(N) for all calls of a complete scan",
	Tips:       []string{"nondeterministic_output", "request_policy:special", "response_policy:special"},
	Syntax:     "cursor:integer [MATCH pattern] [COUNT count:integer] [TYPE type:string]",
	Run:        scanKeys,
}

func scanKeys(c *command.Ctx) {
	cursor, ok := number.ParseUint(c.Args[1])
	if !ok {
		c.Error(command.ErrInvalidCursor)
		return
	}
	o, ok := scan.Parse(c, 2, scan.Keys)
	if !ok {
		return
	}
	kind, known := engine.KindByName(command.Lower(o.Type))
	var found [][]byte
	next := c.View.Scan(cursor, o.Count, func(e engine.Entry) {
		if o.Type != nil && (!known || e.Kind() != kind) {
			return
		}
		if key := e.Key(); o.Wants(key) {
			found = append(found, key)
		}
	})
	c.Array(2)
	scan.ReplyCursor(c, next)
	c.Array(len(found))
	for _, key := range found {
		c.Bulk(key)
	}
}

var waitRow = &command.Command{
	Name: "wait", Arity: 3, Group: command.GroupGeneric, Since: "3.0.0",
	Flags:      command.Blocking,
	ACL:        []string{"connection"},
	Summary:    "Returns how many replicas have the connection's writes: none, as there are no replicas.",
	Complexity: "O(1)",
	Tips:       []string{"request_policy:all_shards", "response_policy:agg_min"},
	Syntax:     "numreplicas:integer timeout:integer",
	Run:        wait,
}

func wait(c *command.Ctx) {
	a := c.Cursor(1)
	replicas := a.Int()
	timeout := a.IntOr(command.ErrTimeoutNotInt)
	if timeout < 0 {
		a.Fail(command.ErrTimeoutNegative)
	}
	if a.Failed(c) {
		return
	}
	if replicas <= 0 || !c.CanBlock() {
		c.Int(0)
		return
	}
	w := c.NewWait(nil, engine.KindNone, deadline(c, timeout))
	w.Lapsed = func(w command.Replier) { w.Int(0) }
	c.Block(w)
}

var waitaofRow = &command.Command{
	Name: "waitaof", Arity: 4, Group: command.GroupGeneric, Since: "7.2.0",
	Flags:      command.Blocking,
	ACL:        []string{"connection"},
	Summary:    "Waits until the connection's writes are synced in the append-only file.",
	Complexity: "O(1)",
	Tips:       []string{"request_policy:all_shards", "response_policy:agg_min"},
	Syntax:     "numlocal:integer numreplicas:integer timeout:integer",
	Run:        waitaof,
}

func waitaof(c *command.Ctx) {
	a := c.Cursor(1)
	local := a.IntRange(0, 1, "ERR value is out of range, value must between 0 and 1")
	replicas := a.IntRange(0, 1<<62, "ERR value is out of range, must be positive")
	timeout := a.IntOr(command.ErrTimeoutNotInt)
	if timeout < 0 {
		a.Fail(command.ErrTimeoutNegative)
	}
	if a.Failed(c) {
		return
	}
	srv, wrote := c.Server, c.Session.Wrote
	reply := func(w command.Replier) {
		here := int64(0)
		if synced, _ := srv.Durability.Synced(wrote); synced {
			here = 1
		}
		w.Array(2)
		w.Int(here)
		w.Int(0)
	}
	synced, logs := srv.Durability.Synced(wrote)
	switch {
	case local > 0 && !logs:
		c.Error("ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.")
		return
	case replicas == 0 && (local == 0 || synced), !c.CanBlock():
		reply(c.Writer)
		return
	}
	w := c.NewWait(nil, engine.KindNone, deadline(c, timeout))
	w.Lapsed = reply
	c.Block(w)
	if replicas == 0 {
		go func() {
			srv.Durability.SyncLog()
			w.Unblock(func(w *resp.Writer) { reply(w) }, false)
		}()
	}
}

// deadline is when a time-out in milliseconds, 0 for none, comes.
func deadline(c *command.Ctx, millis int64) int64 {
	if millis == 0 {
		return 0
	}
	return c.Now + millis*1000
}
