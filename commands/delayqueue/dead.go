package delayqueue

// Dead letters. An entry that has failed for good first is "dying" in its own
// queue, then moved to the dead-letter queue, which is another key and perhaps
// in another shard. DQ.NACK takes both locks and moves it at once. Where a
// lease ran out, or in a script, only the queue's own lock is held: then the
// keyspace calls forward in a moment. If the dead-letter queue's key holds
// something else, entries stay dying until it does not: nothing is lost.

import (
	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
)

// buryBatch is how many entries are moved under one hold of the locks.
const buryBatch = 256

// planDead locks the dead-letter queue beside the queue. Its name is in the
// queue, so that is looked at first; should it change before the command runs,
// the entries are forwarded.
func (f *family) planDead(c *command.Ctx, set *engine.LockSet) (long bool) {
	set.AddKey(c.Args[1])
	if dead := f.deadOf(c.KS, c.DB, c.Args[1]); dead != "" {
		set.AddKey([]byte(dead))
	}
	return false
}

// deadOf is the name of a queue's dead-letter queue, "" for none. No lock is
// held.
func (f *family) deadOf(ks *engine.Keyspace, db int, key []byte) (name string) {
	var own engine.LockSet
	own.AddKey(key)
	if ks.Lock(own) != nil {
		return "" // a script has it: whoever comes later is told again
	}
	v := engine.View{KS: ks, DB: db, Held: own}
	if q, ok := v.Find(key).Object().(*delayqueue.Queue); ok {
		name = q.Settings().Dead
	}
	ks.Unlock(own)
	return name
}

// bury moves up to max dying entries to the dead-letter queue, if its lock is
// held; what is left is forwarded. It reports whether any were moved.
func (f *family) bury(v *engine.View, key []byte, q *delayqueue.Queue, max int) (moved bool) {
	dead := []byte(q.Settings().Dead)
	if q.Dying() == 0 || len(dead) == 0 {
		return false
	}
	if !v.Held.Covers(dead) {
		v.ForwardSoon(key)
		return false
	}
	e := v.GetWrite(dead)
	if e.Ok() && e.Kind() != engine.KindDelayQueue {
		return false
	}
	to, _ := e.Object().(*delayqueue.Queue)
	if to == nil {
		to = delayqueue.New()
		v.PutObject(dead, engine.KindDelayQueue, to, 0)
	}
	if v.Logging() {
		w := logged(v, key, wordBury, 1)
		w.Int(int64(min(max, q.Dying())))
		w.End()
	}
	q.TakeDying(max, func(e delayqueue.Entry) {
		if v.Logging() {
			w := logged(v, dead, wordAdd, 3)
			w.Bytes(e.ID)
			w.Int(v.Now)
			w.Bytes(e.Payload)
			w.End()
		}
		to.Add(e.ID, e.Payload, v.Now, delayqueue.Put)
	})
	v.Changed(dead, engine.EventDelayQueue, "dq.dead")
	if q.Dying() > 0 {
		v.ForwardSoon(key)
	}
	return true
}

// forward moves dying entries of a queue. No lock is held.
func (f *family) forward(ks *engine.Keyspace, db int, key []byte, now int64) {
	var set engine.LockSet
	set.AddKey(key)
	if dead := f.deadOf(ks, db, key); dead != "" {
		set.AddKey([]byte(dead))
	}
	if h := ks.Lock(set); h != nil {
		h.OnRelease(func() { f.forward(ks, db, key, ks.Clock.Now()) })
		return
	}
	v := engine.View{KS: ks, DB: db, Now: now, Held: set}
	if q, ok := v.Peek(key).Object().(*delayqueue.Queue); ok && q.Dying() > 0 {
		if f.bury(&v, key, q, buryBatch) {
			changed(&v, key, q, "dq.dead")
		}
	}
	v.EndCommand(nil)
	v.Commit()
	v.ServeReady()
	v.Account()
	ks.Unlock(set)
}
