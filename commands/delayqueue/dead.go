package delayqueue

// Dead letters. An entry that has failed for good is first "dying" in its own queue, then moves to the dead-letter queue,
// which is another key and perhaps in another shard. DQ.NACK takes both locks and moves the entry at once. When a lease ends,
// or in a script, only the queue's own lock is held; then the keyspace calls forward shortly after. While the dead-letter
// queue's key has another type, entries stay dying, so nothing is lost.

import (
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/server/command"
)

// buryBatch is how many entries are moved before the locks are released.
const buryBatch = 256

// alsoDead locks the dead-letter queue and the limiter together with the queue. The queue contains their names, so it is read
// first. If they change before the command runs, entries are forwarded and grants end shortly after.
func (f *family) alsoDead(c *command.Ctx, set *engine.LockSet) {
	f.glance(c.KS, c.DB, c.Args[1], func(q *delayqueue.Queue) {
		s := q.Settings()
		for _, name := range []string{s.Dead, s.Limit} {
			if name != "" {
				set.AddKey([]byte(name))
			}
		}
	})
}

// deadOf is the name of a queue's dead-letter queue, "" for none. The caller holds no lock.
func (f *family) deadOf(ks *engine.Keyspace, db int, key []byte) (name string) {
	f.glance(ks, db, key, func(q *delayqueue.Queue) { name = q.Settings().Dead })
	return name
}

// glance shows a queue, if there is one, to fn, before a command locks its key. It shows nothing while a script holds the
// key.
func (f *family) glance(ks *engine.Keyspace, db int, key []byte, fn func(q *delayqueue.Queue)) {
	ks.TryInspect(engine.LocksOf(key), func(r *engine.Reader) {
		r.DB = db
		if q, ok := r.Find(key).Object().(*delayqueue.Queue); ok {
			fn(q)
		}
	})
}

// bury moves up to max dying entries to the dead-letter queue if its lock is held; the others are forwarded later. It reports
// whether any were moved.
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
	q.TakeDying(v.Now, max, func(e delayqueue.Entry) {
		x := e.Extra()
		// A dead letter waits until somebody looks at it.
		x = delayqueue.Extra{Group: x.Group, Prio: x.Prio, UniqueMicros: x.UniqueMicros, Reason: x.Reason}
		if to.Knows(e.ID) && !to.Has(e.ID) {
			forget(v, dead, to, e.ID)
		}
		if v.Logging() {
			logAdd(v, dead, e.ID, v.Now, e.Payload, &x, e.Attempt)
		}
		to.Bury(v.Now, e.ID, e.Payload, v.Now, e.Attempt, &x)
	})
	v.Changed(dead, engine.EventDelayQueue, "dq.dead")
	if q.Timed() { // a schedule's next occurrence was added
		rearm(v, key, q)
	}
	if q.Dying() > 0 {
		v.ForwardSoon(key)
	}
	return true
}

// forget removes an id that a queue remembers.
func forget(v *engine.View, key []byte, q *delayqueue.Queue, id []byte) {
	if v.Logging() {
		w := logged(v, key, wordRem, 1)
		w.Bytes(id)
		w.End()
	}
	q.Remove(id, 0, v.Now)
}

// forward moves dying entries of a queue. The caller holds no lock.
func (f *family) forward(ks *engine.Keyspace, db int, key []byte) {
	set := engine.LocksOf(key)
	if dead := f.deadOf(ks, db, key); dead != "" {
		set.AddKey([]byte(dead))
	}
	h := ks.TryUpdate(set, func(v *engine.View) {
		v.DB = db
		if q, ok := v.Peek(key).Object().(*delayqueue.Queue); ok && q.Dying() > 0 && f.bury(v, key, q, buryBatch) {
			changed(v, key, q, "dq.dead")
		}
	})
	if h != nil {
		h.OnRelease(func() { f.forward(ks, db, key) })
	}
}
