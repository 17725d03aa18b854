package delayqueue

// DQ.POP and DQ.MPOP, and waiting for entries that fall due.

import (
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/zset"
)

func (f *family) popRow() *command.Command {
	return &command.Command{
		Name: "dq.pop", Arity: -2, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.Blocking,
		Keys:       []command.KeySpec{command.Key(1, writeKey|command.Delete)},
		Summary:    "Takes or leases what is due in a delay queue or a sorted set, or waits for it.",
		Complexity: "O(log N) for each entry",
		Syntax:     "key [COUNT n:integer] [BLOCK ms:integer] [LEASE ms:integer] [unit=(UNIT S | UNIT MS)]",
		Also:       f.alsoLimits,
		Run:        f.pop,
	}
}

func (f *family) mpopRow() *command.Command {
	return &command.Command{
		Name: "dq.mpop", Arity: -3, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.Blocking,
		Keys:       []command.KeySpec{command.NumKeys(1, writeKey|command.Delete)},
		Summary:    "Takes or leases what is due in the first of several queues that has something, or waits for it.",
		Complexity: "O(log N) for each entry",
		Syntax:     "numkeys:integer key... [COUNT n:integer] [BLOCK ms:integer] [LEASE ms:integer] [unit=(UNIT S | UNIT MS)]",
		Also:       f.alsoLimits,
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
	unit        int64 // microseconds per unit of a sorted set's scores
	// waits is set if a caller that gets nothing waits.
	waits bool
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
			o.block = readBlock(&a)
		case o.lease == byDefault && a.IsWith("LEASE", 1):
			o.lease = a.IntRange(0, delayMillisMax, errLease) * 1000
		case o.unit == 0 && a.IsWith("UNIT", 1):
			o.unit = readUnit(&a)
		default:
			a.Syntax()
		}
	}
	return o, a.Err()
}

// readBlock reads how long to wait, in ms.
func readBlock(a *command.Args) int64 {
	ms := a.Int()
	switch {
	case a.Err() == "" && ms < 0:
		a.Fail(command.ErrTimeoutNegative)
	case ms > blockMillisMax:
		a.Fail(command.ErrTimeoutRange)
	}
	return ms
}

// readUnit reads the unit of a sorted set's scores, in microseconds.
func readUnit(a *command.Args) int64 {
	switch {
	case a.Is("S"):
		return 1_000_000
	case a.Is("MS"):
	default:
		a.Syntax()
	}
	return 1_000
}

func (f *family) pop(c *command.Ctx) {
	o, text := f.readPop(c)
	if text != "" {
		c.Error(text)
		return
	}
	keys := o.of(c.Args)
	o.waits = o.block >= 0 && c.CanBlock()
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
	if !o.waits {
		c.NullArray()
		return
	}
	o.wait(c)
}

// serveLine serves the waiters of the keys before the caller looks: entries may have fallen due since the lines were served.
// Inside EXEC or a script nobody else may come in between.
func (f *family) serveLine(c *command.Ctx, keys [][]byte) {
	if c.Script || c.Exec {
		return
	}
	for _, key := range keys {
		if n, _ := c.Waiting(key, engine.KindDelayQueue); n > 0 {
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
	if w.Keys = o.of(w.Args); len(w.Keys) > 1 {
		w.Order = engine.OrderLines
	}
	c.Block(w)
	for _, key := range w.Keys {
		if at := o.nextTry(c, key); at != 0 {
			c.Alarm(key, at)
		}
	}
}

// nextTry is when a retry of a key may succeed, 0 if that is unknown: then an event wakes the waiters.
func (o *popping) nextTry(c *command.Ctx, key []byte) int64 {
	if q, ok := c.Peek(key).Object().(*delayqueue.Queue); ok && q.Limit() != "" {
		if at, ok := q.NextDelivery(c.Now); ok && at <= c.Now {
			return o.f.queueUp(c, key, []byte(q.Limit()))
		}
	}
	return nextDue(&c.View, key, o.unit)
}

// Try takes what is due in a key for the first waiter in its line.
func (o *popping) Try(c *command.Ctx, key []byte) (engine.Served, int64) {
	popped, text := o.popFrom(c, key)
	switch {
	case text == command.ErrWrongType: // as BLPOP: the key may get the right type again
		return engine.ServedHold, 0
	case text != "":
		c.Error(text)
		return engine.ServedDone, 0
	case popped:
		return engine.ServedDone, 0
	}
	return engine.ServedHold, o.nextTry(c, key)
}

// nextDue is when the first waiting entry of a key falls due, 0 if none waits.
func nextDue(v *engine.View, key []byte, unit int64) int64 {
	switch obj := v.Peek(key).Object().(type) {
	case *delayqueue.Queue:
		if at, ok := obj.NextDelivery(v.Now); ok {
			return max(at, 1)
		}
	case *zset.Set:
		if _, score, ok := obj.Min(); ok {
			if at := memberDue(score, unit); at < math.MaxInt64 {
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
		q := e.Object().(*delayqueue.Queue)
		if q.Limit() != "" {
			return o.popLimited(c, key, q)
		}
		return o.popQueue(c, key, q), ""
	case engine.KindZSet:
		if o.lease > 0 {
			return false, errZSetLease
		}
		return o.popZSet(c, key, c.EditZSet(key, e)), ""
	}
	return false, command.ErrWrongType
}

// begin replies the part before n entries.
func (o *popping) begin(c *command.Ctx, key []byte, n int) {
	if o.many {
		c.Array(2)
		c.Bulk(key)
	}
	c.Array(n)
}

func (o *popping) popQueue(c *command.Ctx, key []byte, q *delayqueue.Queue) bool {
	head, ok := q.NextHead()
	if !ok || head > c.Now || q.Paused() {
		return false
	}
	if q.Ranked() {
		return o.popRanked(c, key, q)
	}
	n := 1
	if o.count > 1 {
		n = min(o.count, q.Count(delayqueue.Ready, c.Now))
	}
	lease := o.leaseOf(q)
	o.begin(c, key, n)
	q.Pop(c.Now, lease, n, func(e delayqueue.Entry) {
		o.f.s.Prefixes.Delivered(key, c.Now-e.DueMicros)
		replyEntry(c, &e)
	})
	if lease > 0 || q.Timed() {
		rearm(&c.View, key, q)
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

func (o *popping) leaseOf(q *delayqueue.Queue) int64 {
	if o.lease == byDefault {
		return q.Settings().LeaseMicros
	}
	return o.lease
}

// popRanked is popQueue for entries with groups or priorities. Only trying shows how many can be delivered, so the effect
// names them.
func (o *popping) popRanked(c *command.Ctx, key []byte, q *delayqueue.Queue) bool {
	lease := o.leaseOf(q)
	var out []delayqueue.Entry
	q.Pop(c.Now, lease, o.count, func(e delayqueue.Entry) { out = append(out, e) })
	o.took(c, key, q, lease, out)
	return len(out) > 0
}

// took replies the entries that were taken, and logs them by id.
func (o *popping) took(c *command.Ctx, key []byte, q *delayqueue.Queue, lease int64, out []delayqueue.Entry) {
	if len(out) == 0 {
		return
	}
	o.begin(c, key, len(out))
	for i := range out {
		o.f.s.Prefixes.Delivered(key, c.Now-out[i].DueMicros)
		replyEntry(c, &out[i])
	}
	if lease > 0 || q.Timed() {
		rearm(&c.View, key, q)
	}
	if c.Logging() {
		w := logged(&c.View, key, wordTake, 1+len(out))
		w.Int(lease)
		for i := range out {
			w.Bytes(out[i].ID)
		}
		w.End()
	}
	changed(&c.View, key, q, "dq.pop")
}

// memberDue is when a member of a sorted set falls due, in Unix microseconds,
// rounded up.
func memberDue(score float64, unit int64) int64 {
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

// dueMembers is how many members are due, up to most.
func dueMembers(z *zset.Set, unit, now int64, most int) (n int) {
	z.Ascend(0, min(most, z.Len()), func(_ []byte, score float64) bool {
		if memberDue(score, unit) > now {
			return false
		}
		n++
		return true
	})
	return n
}

// takenOut announces that members were taken from a sorted set, and removes an empty one.
func takenOut(c *command.Ctx, key []byte, z *zset.Set) {
	c.Changed(key, engine.EventZSet, "zrem")
	if z.Len() == 0 {
		c.Delete(key)
		c.Changed(key, engine.EventGeneric, "del")
	}
}

// popZSet takes due members, as consume.lua does one at a time.
func (o *popping) popZSet(c *command.Ctx, key []byte, z *zset.Set) bool {
	n := dueMembers(z, o.unit, c.Now, o.count)
	if n == 0 {
		return false
	}
	o.begin(c, key, n)
	c.EffectNumber("ZPOPMIN", key, int64(n))
	z.PopMin(n, func(member []byte, score float64) {
		due := memberDue(score, o.unit)
		o.f.s.Prefixes.Delivered(key, c.Now-due)
		c.Array(2)
		c.Bulk(member)
		c.Int(ceilMillis(due))
	})
	takenOut(c, key, z)
	return true
}
