package delayqueue

// DQ.MOVE moves due members of a sorted set to a list, from which workers take them. It replaces programs that poll the
// sorted set.

import (
	"bytes"
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/list"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) moveRow() *command.Command {
	return &command.Command{
		Name: "dq.move", Arity: -3, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.DenyOOM | command.Blocking,
		Keys:       []command.KeySpec{command.Key(1, writeKey|command.Delete), command.Key(2, command.RW|command.Insert)},
		Summary:    "Moves due members of a sorted set to a list, or waits for them.",
		Complexity: "O(log N) for each member",
		Syntax:     "zset:key list:key@1 [where=(LEFT | RIGHT)] [COUNT n:integer] [BLOCK ms:integer] [unit=(UNIT S | UNIT MS)]",
		Run:        f.move,
	}
}

// moving is what DQ.MOVE asks for.
type moving struct {
	f     *family
	left  bool
	count int
	block int64 // ms, 0 for ever, -1 not at all
	unit  int64 // microseconds per unit of the scores
}

func (f *family) readMove(c *command.Ctx) (o moving, text string) {
	o = moving{f: f, count: batchMax, block: -1}
	a := c.Cursor(3)
	sided, counted := false, false
	for a.More() {
		switch {
		case !sided && a.Is("LEFT"):
			o.left, sided = true, true
		case !sided && a.Is("RIGHT"):
			sided = true
		case !counted && a.IsWith("COUNT", 1):
			counted = true
			o.count = int(min(a.IntRange(1, math.MaxInt64, errCount), batchMax))
		case o.block < 0 && a.IsWith("BLOCK", 1):
			o.block = readBlock(&a)
		case o.unit == 0 && a.IsWith("UNIT", 1):
			o.unit = readUnit(&a)
		default:
			a.Syntax()
		}
	}
	if a.Err() == "" && bytes.Equal(c.Args[1], c.Args[2]) {
		a.Fail(errSameKey)
	}
	return o, a.Err()
}

func (f *family) move(c *command.Ctx) {
	o, text := f.readMove(c)
	if text != "" {
		c.Error(text)
		return
	}
	from := c.Args[1]
	f.serveLine(c, c.Args[1:2])
	n, text := o.shift(c, from, c.Args[2])
	switch {
	case text != "":
		c.Error(text)
	case n > 0 || o.block < 0 || !c.CanBlock():
		c.Int(int64(n))
	default:
		o.wait(c)
	}
}

// wait puts the caller in the line of the sorted set.
func (o *moving) wait(c *command.Ctx) {
	kept, deadline := *o, int64(0)
	if o.block > 0 {
		deadline = c.Now + o.block*1000
	}
	w := c.NewWait(&kept, engine.KindDelayQueue, deadline)
	w.Keys, w.Also = w.Args[1:2], w.Args[2:3]
	w.Lapsed = func(out command.Replier) { out.Int(0) }
	c.Block(w)
	if at := nextDue(&c.View, w.Keys[0], o.unit); at != 0 {
		c.Alarm(w.Keys[0], at)
	}
}

// Try moves due members for the first waiter in line.
func (o *moving) Try(c *command.Ctx, from []byte) (engine.Served, int64) {
	if e := c.Peek(from); e.Ok() && e.Kind() != engine.KindZSet { // as BLPOP: the key may get the right type again
		return engine.ServedHold, 0
	}
	n, text := o.shift(c, from, c.Args[2])
	switch {
	case text != "":
		c.Error(text)
		return engine.ServedDone, 0
	case n > 0:
		c.Int(int64(n))
		return engine.ServedDone, 0
	}
	return engine.ServedHold, nextDue(&c.View, from, o.unit)
}

// shift moves due members and returns how many. A text is an error, and nothing has
// changed then.
func (o *moving) shift(c *command.Ctx, from, to []byte) (n int, text string) {
	e := c.GetWrite(from)
	dest := c.GetWrite(to)
	switch {
	case e.Ok() && e.Kind() != engine.KindZSet, dest.Ok() && dest.Kind() != engine.KindList:
		return 0, command.ErrWrongType
	case !e.Ok():
		return 0, ""
	}
	z := c.EditZSet(from, e)
	if n = dueMembers(z, o.unit, c.Now, o.count); n == 0 {
		return 0, ""
	}
	l, _ := dest.Object().(*list.List)
	if l == nil {
		l = &list.List{}
		c.PutObject(to, engine.KindList, l, 0)
	}
	push, event := "RPUSH", "rpush"
	if o.left {
		push, event = "LPUSH", "lpush"
	}
	effect := [][]byte{[]byte(push), to}
	z.PopMin(n, func(member []byte, score float64) {
		o.f.s.Prefixes.Delivered(from, c.Now-memberDue(score, o.unit))
		effect = append(effect, bytes.Clone(member))
	})
	l.Push(effect[2:], o.left, o.f.lists.Now())
	c.EffectNumber("ZPOPMIN", from, int64(n))
	if c.Logging() {
		c.Effect(effect...)
	}
	c.Changed(to, engine.EventList, event)
	takenOut(c, from, z)
	return n, ""
}
