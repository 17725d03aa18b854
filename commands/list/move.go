package list

// Moving an element from one list to another, waiting for one or not.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/engine/packed"
	"github.com/limitkv/limitkv/server/command"
)

var moveKeys = []command.KeySpec{command.Key(1, popKey), command.Key(2, pushKey)}

func (f *family) lmoveRow() *command.Command {
	return &command.Command{
		Name: "lmove", Arity: 5, Group: command.GroupList, Since: "6.2.0",
		Flags:      command.Write | command.DenyOOM,
		ACL:        listACL,
		Keys:       moveKeys,
		Summary:    "Moves an element from an end of a list to an end of another.",
		Complexity: "O(1)",
		Syntax:     "source:key destination:key@1 wherefrom=(LEFT | RIGHT) whereto=(LEFT | RIGHT)",
		Run: func(c *command.Ctx) {
			a := c.Cursor(3)
			from, to := fromEnd(&a), fromEnd(&a)
			if !a.Failed(c) {
				f.move(c, from, to)
			}
		},
	}
}

func (f *family) rpoplpushRow() *command.Command {
	return &command.Command{
		Name: "rpoplpush", Arity: 3, Group: command.GroupList, Since: "1.2.0",
		Flags:           command.Write | command.DenyOOM,
		ACL:             listACL,
		Keys:            moveKeys,
		Summary:         "Moves the element at the tail of a list to the head of another.",
		Complexity:      "O(1)",
		Syntax:          "source:key destination:key@1",
		DeprecatedSince: "6.2.0", ReplacedBy: "`LMOVE` with the `RIGHT` and `LEFT` arguments",
		Run: func(c *command.Ctx) { f.move(c, false, true) },
	}
}

func (f *family) blmoveRow() *command.Command {
	return &command.Command{
		Name: "blmove", Arity: 6, Group: command.GroupList, Since: "6.2.0",
		Flags:      command.Write | command.DenyOOM | command.Blocking,
		ACL:        listACL,
		Keys:       moveKeys,
		Summary:    "Moves an element from an end of a list to an end of another, waiting for one.",
		Complexity: "O(1)",
		Syntax:     "source:key destination:key@1 wherefrom=(LEFT | RIGHT) whereto=(LEFT | RIGHT) timeout:double",
		Run: func(c *command.Ctx) {
			a := c.Cursor(3)
			from, to := fromEnd(&a), fromEnd(&a)
			if deadline := a.Timeout(c); !a.Failed(c) {
				f.moveOrWait(c, from, to, deadline)
			}
		},
	}
}

func (f *family) brpoplpushRow() *command.Command {
	return &command.Command{
		Name: "brpoplpush", Arity: 4, Group: command.GroupList, Since: "2.2.0",
		Flags:           command.Write | command.DenyOOM | command.Blocking,
		ACL:             listACL,
		Keys:            moveKeys,
		Summary:         "Moves the element at the tail of a list to the head of another, waiting for one.",
		Complexity:      "O(1)",
		Syntax:          "source:key destination:key@1 timeout:double",
		DeprecatedSince: "6.2.0", ReplacedBy: "`BLMOVE` with the `RIGHT` and `LEFT` arguments",
		Run: func(c *command.Ctx) {
			a := c.Cursor(3)
			if deadline := a.Timeout(c); !a.Failed(c) {
				f.moveOrWait(c, false, true, deadline)
			}
		},
	}
}

// move moves an element if there is one, and replies it.
func (f *family) move(c *command.Ctx, fromHead, toHead bool) {
	source, ok := lookupWrite(c, c.Args[1])
	if !ok {
		return
	}
	if source == nil {
		c.Null()
		return
	}
	f.moveOne(c, source, fromHead, toHead)
}

// moveOne moves an element from a list that is not empty. It reports whether the destination is a list; if not, it replies
// the error.
func (f *family) moveOne(c *command.Ctx, source *list.List, fromHead, toHead bool) bool {
	from, to := c.Args[1], c.Args[2]
	destination, ok := lookupWrite(c, to)
	if !ok {
		return false
	}
	if destination == nil {
		destination = &list.List{}
		c.PutObject(to, engine.KindList, destination, 0)
	}
	at := 0
	if !fromHead {
		at = source.Len() - 1
	}
	var s packed.Scratch
	value, _ := source.Index(at, &s)
	c.Bulk(value)
	list.Move(source, destination, fromHead, toHead, f.limits())
	c.Changed(to, engine.EventList, pushEvent(toHead))
	removed(c, from, source, popEvent(fromHead))
	c.SameChange()
	switch c.Cmd.Name {
	case "blmove":
		c.Effect([]byte("LMOVE"), from, to, c.Args[3], c.Args[4])
	case "brpoplpush":
		c.Effect([]byte("RPOPLPUSH"), from, to)
	}
	return true
}

// moveOrWait moves an element, waiting for one. The destination is locked as
// well when the wait is served.
func (f *family) moveOrWait(c *command.Ctx, fromHead, toHead bool, deadline int64) {
	source, ok := lookupWrite(c, c.Args[1])
	switch {
	case !ok:
	case source != nil:
		f.moveOne(c, source, fromHead, toHead)
	case !c.CanBlock():
		c.Null()
	default:
		w := c.NewWait(&moving{f, fromHead, toHead}, engine.KindList, deadline)
		w.Keys, w.Also = w.Args[1:2], w.Args[2:3]
		c.Block(w)
	}
}

// moving is a BLMOVE that waits.
type moving struct {
	f                *family
	fromHead, toHead bool
}

// Try moves an element if the list has one by now.
func (m *moving) Try(c *command.Ctx, key []byte) (engine.Served, int64) {
	return command.TryKind(c, key, engine.KindList, func(e engine.Entry) {
		m.f.moveOne(c, e.Object().(*list.List), m.fromHead, m.toHead)
	})
}
