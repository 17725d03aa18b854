package delayqueue

// DQ.POP and DQ.MPOP, and waiting for what falls due.

import (
	"math"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/zset"
)

func (f *family) popRow() *command.Command {
	return &command.Command{
		Name: "dq.pop", Arity: -2, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.Blocking,
		ACL:        acl,
		Keys:       []command.KeySpec{command.Key(1, writeKey|command.Delete)},
		Summary:    "Takes or leases what is due in a delay queue or a sorted set, or waits for it.",
		Complexity: "O(log N) for each entry",
		Syntax:     "key [COUNT n:integer] [BLOCK ms:integer] [LEASE ms:integer] [unit=(UNIT S | UNIT MS)]",
		Run:        f.pop,
	}
}

func (f *family) mpopRow() *command.Command {
	return &command.Command{
		Name: "dq.mpop", Arity: -3, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.Blocking,
		ACL:        acl,
		Keys:       []command.KeySpec{command.NumKeys(1, writeKey|command.Delete)},
		Summary:    "Takes or leases what is due in the first of several queues that has something, or waits for it.",
		Complexity: "O(log N) for each entry",
		Syntax:     "numkeys:integer key... [COUNT n:integer] [BLOCK ms:integer] [LEASE ms:integer] [unit=(UNIT S | UNIT MS)]",
		Run:        f.pop,
	}
}

// popping is what DQ.POP and DQ.MPOP ask for.
type popping struct {
	f           *family
	first, keys int  // where the keys are among the arguments, and how many
	many        bool // DQ.MPOP: the key is part of the reply
	count       int
	block       int64 // ms, 0 for ever, -1 not at all
	lease       int64 // microseconds, -1 for the queue's default
	unit        int64 // microseconds a unit of a sorted set's scores
}

const byDefault int64 = -1

// of are the keys among the arguments.
func (o *popping) of(args [][]byte) [][]byte { return args[o.first : o.first+o.keys] }

// readPop reads the arguments of either command.
func (f *family) readPop(c *command.Ctx) (o popping, text string) {
	a := c.Cursor(1)
	o = popping{f: f, first: 1, keys: 1, count: 1, block: -1, lease: byDefault, many: c.Cmd.Name == "dq.mpop"}
	if o.many {
		n := a.IntOr(errNumKeys)
		if a.Err() == "" && n <= 0 {
			a.Fail(errNumKeys)
		}
		if n > int64(a.Left()) {
			a.Syntax()
		}
		if a.Err() == "" {
			o.first, o.keys = 2, int(n)
			a = c.Cursor(2 + int(n))
		}
	} else {
		a.Bytes()
	}
	counted := false
	for a.More() {
		switch {
		case !counted && a.IsWith("COUNT", 1):
			counted = true
			o.count = int(min(a.IntRange(1, math.MaxInt64, errCount), batchMax))
		case o.block < 0 && a.IsWith("BLOCK", 1):
			if o.block = a.Int(); a.Err() == "" && o.block < 0 {
				a.Fail(command.ErrTimeoutNegative)
			} else if o.block > blockMillisMax {
				a.Fail(command.ErrTimeoutRange)
			}
		case o.lease == byDefault && a.IsWith("LEASE", 1):
			o.lease = a.IntRange(0, delayMillisMax, errLease) * 1000
		case o.unit == 0 && a.IsWith("UNIT", 1):
			switch {
			case a.Is("S"):
				o.unit = 1_000_000
			case a.Is("MS"):
				o.unit = 1_000
			default:
				a.Syntax()
			}
		default:
			a.Syntax()
		}
	}
	return o, a.Err()
}

func (f *family) pop(c *command.Ctx) {
	o, text := f.readPop(c)
	if text != "" {
		c.Error(text)
		return
	}
	keys := o.of(c.Args)
	f.serveLine(c, keys)
	for _, key := range keys {
		popped, text := o.popFrom(c, key)
		if text != "" {
			c.Error(text)
			return
		}
		if popped {
			return
		}
	}
	if o.block < 0 || !c.CanBlock() {
		c.NullArray()
		return
	}
	o.wait(c)
}

// serveLine lets those who wait for the keys have what has fallen due before the
// caller looks: the line may not have been served for it yet. Inside EXEC or a
// script nothing of others may come between.
func (f *family) serveLine(c *command.Ctx, keys [][]byte) {
	if c.Script || c.Exec {
		return
	}
	for _, key := range keys {
		if n, _ := c.Waiting(key); n > 0 {
			c.Ready(key)
			c.ServeReady()
		}
	}
}

// wait puts the caller in the lines of its keys.
func (o *popping) wait(c *command.Ctx) {
	kept, deadline := *o, int64(0)
	if o.block > 0 {
		deadline = c.Now + o.block*1000
	}
	w := c.NewWait(&kept, engine.KindDelayQueue, deadline)
	w.Keys = o.of(w.Args)
	c.Block(w)
	for _, key := range w.Keys {
		if at := nextDue(&c.View, key, o.unit); at != 0 {
			c.Alarm(key, at)
		}
	}
}

// Try takes what is due of a key for the first in its line.
func (o *popping) Try(c *command.Ctx, key []byte) (engine.Served, int64) {
	popped, text := o.popFrom(c, key)
	switch {
	case text == command.ErrWrongType: // as BLPOP: it may become right again
		return engine.ServedHold, 0
	case text != "":
		c.Error(text)
		return engine.ServedDone, 0
	case popped:
		return engine.ServedDone, 0
	}
	return engine.ServedHold, nextDue(&c.View, key, o.unit)
}

// nextDue is when the first waiting entry of a key falls due, 0 if none waits.
func nextDue(v *engine.View, key []byte, unit int64) int64 {
	switch obj := v.Peek(key).Object().(type) {
	case *delayqueue.Queue:
		if at, ok := obj.NextHead(); ok {
			return max(at, 1)
		}
	case *zset.Set:
		if _, score, ok := obj.Min(); ok {
			if at := dueOf(score, unit); at < math.MaxInt64 {
				return max(at, 1)
			}
		}
	}
	return 0
}

// popFrom takes what is due from one key and replies it. A text is an error.
func (o *popping) popFrom(c *command.Ctx, key []byte) (popped bool, text string) {
	e := c.GetWrite(key)
	switch e.Kind() {
	case engine.KindNone:
		return false, ""
	case engine.KindDelayQueue:
		if o.unit == 1_000_000 {
			return false, errUnit
		}
		return o.popQueue(c, key, e.Object().(*delayqueue.Queue)), ""
	case engine.KindZSet:
		if o.lease > 0 {
			return false, errZSetLease
		}
		return o.popZSet(c, key, e.Object().(*zset.Set)), ""
	}
	return false, command.ErrWrongType
}

// begin replies what stands before n entries.
func (o *popping) begin(c *command.Ctx, key []byte, n int) {
	if o.many {
		c.Array(2)
		c.Bulk(key)
	}
	c.Array(n)
}

func (o *popping) popQueue(c *command.Ctx, key []byte, q *delayqueue.Queue) bool {
	head, ok := q.NextHead()
	if !ok || head > c.Now {
		return false
	}
	n := 1
	if o.count > 1 {
		n = min(o.count, q.Count(delayqueue.Ready, c.Now))
	}
	lease := o.lease
	if lease == byDefault {
		lease = q.Settings().LeaseMicros
	}
	o.begin(c, key, n)
	q.Pop(c.Now, lease, n, func(e delayqueue.Entry) {
		o.f.late.note(c.Now - e.DueMicros)
		replyEntry(c, &e)
	})
	if lease > 0 {
		rearm(&c.View, key)
	}
	if c.Logging() {
		w := logged(&c.View, key, wordPop, 2)
		w.Int(lease)
		w.Int(int64(n))
		w.End()
	}
	changed(&c.View, key, q, "dq.pop")
	return true
}

// dueOf is when a member of a sorted set falls due, in Unix microseconds,
// rounded up.
func dueOf(score float64, unit int64) int64 {
	if unit == 0 {
		unit = 1_000
	}
	micros := math.Ceil(score * float64(unit))
	switch {
	case micros >= math.MaxInt64:
		return math.MaxInt64
	case micros <= 0:
		return 0
	}
	return int64(micros)
}

// popZSet takes due members, as consume.lua does one at a time.
func (o *popping) popZSet(c *command.Ctx, key []byte, z *zset.Set) bool {
	n := 0
	z.Ascend(0, min(o.count, z.Len()), func(_ []byte, score float64) bool {
		if dueOf(score, o.unit) > c.Now {
			return false
		}
		n++
		return true
	})
	if n == 0 {
		return false
	}
	o.begin(c, key, n)
	c.EffectNumber("ZPOPMIN", key, int64(n))
	z.PopMin(n, func(member []byte, score float64) {
		due := dueOf(score, o.unit)
		o.f.late.note(c.Now - due)
		c.Array(2)
		c.Bulk(member)
		c.Int(ceilMillis(due))
	})
	c.Changed(key, engine.EventZSet, "zrem")
	if z.Len() == 0 {
		c.Delete(key)
		c.Changed(key, engine.EventGeneric, "del")
	}
	return true
}
