package generic

// Finding, counting and removing keys.

import (
	"github.com/limitkv/limitkv/commands/scan"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/resp/number"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/glob"
	"github.com/limitkv/limitkv/server/value"
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
			c.Server.LetGo(1, pieces)
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
		findsAny(c)
		if e := c.View.Random(c.Server.Random); e.Ok() {
			c.Bulk(e.Key())
		} else {
			c.Null()
		}
	},
}

// findsAny makes the removal of each expired key that the command finds be logged separately. Redis does so for commands that
// find keys which nobody named, outside of transactions and scripts.
func findsAny(c *command.Ctx) {
	if !c.Exec && !c.Script {
		c.Independent()
	}
}

var keysRow = &command.Command{
	Name: "keys", Arity: 2, Group: command.GroupGeneric, Since: "1.0.0",
	Flags:      command.ReadOnly | command.WholeKeyspace | command.TakesTime,
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
	var found []engine.Entry // not their keys, which are three times as long
	if all {
		found = make([]engine.Entry, 0, c.Count())
	}
	c.Each(func(e engine.Entry) bool {
		if all || glob.Match(pattern, e.Key()) {
			found = append(found, e)
		}
		return true
	})
	c.Array(len(found))
	for _, e := range found {
		c.Bulk(e.Key())
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
	findsAny(c)
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
	scan.ReplyCursor(c.Writer, next)
	c.Array(len(found))
	for _, key := range found {
		c.Bulk(key)
	}
}
