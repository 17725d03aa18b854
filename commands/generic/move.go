package generic

// Renaming and copying keys, and moving them to another database.

import (
	"bytes"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/hashslot"
	"github.com/limitkv/limitkv/server/value"
)

var renameRow = &command.Command{
	Name: "rename", Arity: 3, Group: command.GroupGeneric, Since: "1.0.0",
	Flags:      command.Write,
	ACL:        keyspaceACL,
	Keys:       []command.KeySpec{command.Key(1, command.RW|command.Access|command.Delete), command.Key(2, command.OW|command.Update)},
	Summary:    "Gives a key another name, replacing what had it.",
	Complexity: "O(1)",
	Syntax:     "key newkey:key@1",
	Run:        func(c *command.Ctx) { rename(c, false) },
}

var renamenxRow = &command.Command{
	Name: "renamenx", Arity: 3, Group: command.GroupGeneric, Since: "1.0.0",
	Flags:      command.Write | command.Fast,
	ACL:        keyspaceACL,
	Keys:       []command.KeySpec{command.Key(1, command.RW|command.Access|command.Delete), command.Key(2, command.OW|command.Insert)},
	Summary:    "Gives a key another name if nothing has it.",
	Complexity: "O(1)",
	Syntax:     "key newkey:key@1",
	Run:        func(c *command.Ctx) { rename(c, true) },
}

func rename(c *command.Ctx, nx bool) {
	from, to := c.Args[1], c.Args[2]
	e := c.GetWrite(from)
	if !e.Ok() {
		c.Error(command.ErrNoSuchKey)
		return
	}
	gone, plain := [][]byte{from}, e.Kind().Plain()
	if bytes.Equal(from, to) {
		if nx {
			c.Int(0)
		} else {
			c.OK()
		}
		return
	}
	if c.GetWrite(to).Ok() {
		if nx {
			c.Int(0)
			return
		}
		c.Delete(to)
		gone = append(gone, to)
	}
	c.Rename(from, to)
	c.Changed(from, engine.EventGeneric, "rename_from")
	c.Changed(to, engine.EventGeneric, "rename_to")
	if !plain {
		c.EffectMoved(to, gone...)
	}
	if nx {
		c.Int(1)
	} else {
		c.OK()
	}
}

// errSameObject is for a source that is its own destination.
const errSameObject = "ERR source and destination objects are the same"

// database reads the number of a database.
func database(c *command.Ctx, a *command.Args) int {
	n := a.Int()
	if a.Err() == "" && int64(int32(n)) != n {
		a.Fail(command.ErrNotInt)
	}
	if n < 0 || n >= int64(c.KS.Databases()) {
		a.Fail(command.ErrDBIndex)
	}
	return int(n)
}

var moveRow = &command.Command{
	Name: "move", Arity: 3, Group: command.GroupGeneric, Since: "1.0.0",
	Flags:      command.Write | command.Fast,
	ACL:        keyspaceACL,
	Keys:       []command.KeySpec{command.Key(1, command.RW|command.Access|command.Update)},
	Summary:    "Moves a key to another database, if that has none of its name.",
	Complexity: "O(1)",
	Syntax:     "key db:integer",
	Run:        move,
}

func move(c *command.Ctx) {
	if c.Server.Cluster {
		c.Error("ERR MOVE is not allowed in cluster mode")
		return
	}
	a := c.Cursor(2)
	db := database(c, &a)
	if a.Failed(c) {
		return
	}
	if db == c.DB {
		c.Error(errSameObject)
		return
	}
	key := c.Args[1]
	if !c.GetWrite(key).Ok() || in(c, db, key) {
		c.Int(0)
		return
	}
	c.Move(key, key, db)
	c.Changed(key, engine.EventGeneric, "move_from")
	changedIn(c, db, key, "move_to")
	c.Int(1)
}

// in reports whether a database has a key.
func in(c *command.Ctx, db int, key []byte) bool {
	here := c.DB
	c.DB = db
	ok := c.Peek(key).Ok()
	c.DB = here
	return ok
}

func changedIn(c *command.Ctx, db int, key []byte, event string) {
	here := c.DB
	c.DB = db
	c.Changed(key, engine.EventGeneric, event)
	c.DB = here
}

var copyRow = &command.Command{
	Name: "copy", Arity: -3, Group: command.GroupGeneric, Since: "6.2.0",
	Flags:      command.Write | command.DenyOOM,
	ACL:        keyspaceACL,
	Keys:       []command.KeySpec{command.Key(1, command.RO|command.Access), command.Key(2, command.OW|command.Update)},
	Summary:    "Copies a key's value to another key.",
	Complexity: "O(N) in the size of the value",
	Syntax:     "source:key destination:key@1 [DB destination-db:integer] [REPLACE]",
	Run:        copyKey,
}

func copyKey(c *command.Ctx) {
	a := c.Cursor(3)
	db, replace := c.DB, false
	for a.More() {
		switch {
		case a.Is("REPLACE"):
			replace = true
		case a.IsWith("DB", 1):
			db = database(c, &a)
		default:
			a.Syntax()
		}
	}
	if a.Failed(c) {
		return
	}
	from, to := c.Args[1], c.Args[2]
	if db == c.DB && bytes.Equal(from, to) {
		c.Error(errSameObject)
		return
	}
	e := c.Get(from)
	if !e.Ok() || !replace && in(c, db, to) {
		c.Int(0)
		return
	}
	if text := refusesNames(c, to, e.Object()); text != "" {
		c.Error(text)
		return
	}
	replaced := replace && in(c, db, to)
	c.Expect(4 * value.Elements(e))
	var clone any
	if !e.InBytes() {
		clone = value.Clone(e.Object())
	}
	c.Copy(e, to, db, clone)
	changedIn(c, db, to, "copy_to")
	if replaced && !e.Kind().Plain() {
		here := c.DB
		c.DB = db
		c.EffectMoved(to, to)
		c.DB = here
	}
	c.Int(1)
}

// refusesNames returns an error text if a value must not be stored under a key because of the keys that it names: a queue's
// dead-letter queue and its limiter. The queue's commands use those keys later without a check of rights.
func refusesNames(c *command.Ctx, key []byte, obj any) (text string) {
	q, ok := obj.(*delayqueue.Queue)
	if !ok {
		return ""
	}
	var names []command.NamedKey
	settings := q.Settings()
	for _, n := range []command.NamedKey{
		{Key: []byte(settings.Dead), Flags: command.DeadLetters},
		{Key: []byte(settings.Limit), Flags: command.Budget},
	} {
		switch {
		case len(n.Key) == 0:
		case c.Server.Cluster && !c.Trusted() && hashslot.Of(n.Key) != hashslot.Of(key):
			return command.ErrCrossSlot
		default:
			names = append(names, n)
		}
	}
	return c.Server.RefusesKeys(c, names...)
}
