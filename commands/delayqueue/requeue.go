package delayqueue

// DQ.REQUEUE: moves dead letters back into a queue.

import (
	"bytes"
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/server/command"
)

func (f *family) requeueRow() *command.Command {
	return &command.Command{
		Name: "dq.requeue", Arity: -3, Group: command.GroupDelayQueue, Since: since,
		Flags:      command.Write | command.DenyOOM,
		Keys:       []command.KeySpec{command.Key(1, writeKey|command.Delete), command.Key(2, command.RW|command.Update|command.Insert)},
		Summary:    "Puts dead letters back into a queue, due now, as if they had never been tried.",
		Complexity: "O(log N) for each entry",
		Syntax:     "dead:key queue:key@1 [which=(COUNT n:integer | ID id:string...)]",
		Plan:       f.planRequeue,
		Run:        f.requeue,
	}
}

// planRequeue locks both queues. Moving all entries of a large queue takes long.
func (f *family) planRequeue(c *command.Ctx, set *engine.LockSet) (long bool) {
	set.AddKey(c.Args[1])
	set.AddKey(c.Args[2])
	return len(c.Args) == 3 && f.sizeOf(c.KS, c.DB, c.Args[1]) > batchMax
}

// sizeOf is how many entries a queue has. The caller holds no lock.
func (f *family) sizeOf(ks *engine.Keyspace, db int, key []byte) (n int) {
	f.glance(ks, db, key, func(q *delayqueue.Queue) { n = q.Len() })
	return n
}

func (f *family) requeue(c *command.Ctx) {
	count, ids := math.MaxInt, [][]byte(nil)
	a := c.Cursor(3)
	switch {
	case a.IsWith("COUNT", 1):
		count = int(min(a.IntRange(1, math.MaxInt64, errCount), batchMax))
		if a.More() {
			a.Syntax()
		}
	case a.IsWith("ID", 1):
		ids = a.Rest()
	case a.More():
		a.Syntax()
	}
	if a.Err() == "" && bytes.Equal(c.Args[1], c.Args[2]) {
		a.Fail(errSameQueue)
	}
	if a.Failed(c) {
		return
	}
	from, ok := lookupWrite(c, c.Args[1])
	if !ok {
		return
	}
	to, ok := lookupWrite(c, c.Args[2])
	if !ok {
		return
	}
	if from == nil {
		c.Int(0)
		return
	}
	if to != nil && to.Full() && from.Len() > 0 {
		c.Error(errFull)
		return
	}
	c.Int(f.revive(c, from, to, chosen(from, c.Now, count, ids)))
}

// chosen returns the ids of the entries to move: the named ones, or up to count waiting ones.
func chosen(q *delayqueue.Queue, now int64, count int, ids [][]byte) (names [][]byte) {
	if ids != nil {
		for _, name := range ids {
			id, attempt := delayqueue.ParseName(name)
			if attempt == 0 {
				names = append(names, id)
			}
		}
		return names
	}
	q.Walk(delayqueue.Any, now, nil, func(e delayqueue.Entry) bool {
		if e.State != delayqueue.Ready && e.State != delayqueue.Delayed || len(names) == count {
			return false
		}
		names = append(names, e.ID)
		return true
	})
	return names
}

// revive moves entries. An entry stays if it is leased, if the other queue has no room, or if the other queue knows its id as
// an entry or a schedule.
func (f *family) revive(c *command.Ctx, from, to *delayqueue.Queue, ids [][]byte) (n int64) {
	dead, key := c.Args[1], c.Args[2]
	for _, id := range ids {
		e, ok := from.Look(id, c.Now)
		if !ok || e.State != delayqueue.Ready && e.State != delayqueue.Delayed {
			continue
		}
		if to == nil {
			to = delayqueue.New()
			c.PutObject(key, engine.KindDelayQueue, to, 0)
		}
		if to.Full() {
			break
		}
		x := e.Extra()
		x.Occurrence = false
		if !to.Add(c.Now, e.ID, e.Payload, c.Now, &x, delayqueue.OnlyNew) {
			continue
		}
		if c.Logging() {
			logAdd(&c.View, key, e.ID, c.Now, e.Payload, &x, 0)
			w := logged(&c.View, dead, wordRem, 1)
			w.Bytes(e.ID)
			w.End()
		}
		from.Remove(e.ID, 0, c.Now)
		n++
	}
	if n > 0 {
		rearm(&c.View, key, to)
		c.Changed(key, engine.EventDelayQueue, "dq.requeue")
		changed(&c.View, dead, from, "dq.rem")
	}
	return n
}
