package engine

// Expiry. After its deadline nobody sees a key (settle). The wheel removes it within its tick, so the event and the
// memory do not wait until somebody looks.

import (
	"bytes"
	"unsafe"
)

// expiryBatch is how many deadlines are served under one hold of a shard's
// lock, so that a million keys due at once do not stall others.
const expiryBatch = 128

// innerBatch is how many parts of one object expire under one hold.
const innerBatch = 256

// Settler is an object with deadlines of its own inside, which the keyspace serves when they fall due: those of a
// hash's fields, a delay queue's leases, a limiter's named grants. A lock has leases too, but may be plain bytes
// (locks.go).
type Settler interface {
	// NextDue is the earliest deadline inside in Unix milliseconds, 0 if none.
	NextDue() (millis int64)
	// Settle serves up to max of what is due. It returns how many it served and whether the object is now empty. It
	// calls gone, if not nil, with each part that it removes; gone must not use the object.
	Settle(nowMicros int64, max int, gone func(part []byte)) (served int, empty bool)
}

// Forwarder is a Settler with parts that must go to another key (dead letters), whose shard is not held while it is
// settled.
type Forwarder interface {
	Settler
	// Forwarding tells whether there are such parts now.
	Forwarding() bool
}

// expire removes an entry whose deadline has passed.
func (v *View) expire(s *shard, e Entry) {
	t := &s.tables[v.DB]
	key := e.Key()
	i := t.find(HashBytes(key), key)
	v.drop(s, e)
	v.remove(t, i)
	s.stats.Expired++
	before := v.changes
	// The key is no longer part of an entry, so the event's receivers may keep it.
	v.Changed(key, EventExpired, "expired")
	if v.caused(before) {
		v.KS.Causes.Gone(v, key, false)
	}
}

// innerDue is the earliest deadline inside an entry in Unix microseconds, 0 if none.
func (e Entry) innerDue() int64 {
	switch {
	case e.h.flags&flagInnerDue == 0:
		return 0
	case e.h.kind == KindLock:
		return e.lockDue()
	default:
		return e.object().obj.(Settler).NextDue() * 1000
	}
}

// settleInner ends some of what has run out inside an entry, and updates the entry's place in the wheel. It returns
// the entry, or the zero Entry if that removed the key.
func (v *View) settleInner(s *shard, e Entry) Entry {
	if e.h.kind == KindLock {
		e = v.settleLock(s, e)
	} else {
		e = v.settleObject(s, e)
	}
	if e.h == nil {
		return e
	}
	v.rearm(s, e)
	return v.bared(e)
}

// settleForLook is settleInner for readers: they must see all fields of a hash settled.
func (v *View) settleForLook(s *shard, e Entry) Entry {
	doubt := v.doubt
	e = v.settleInner(s, e)
	for e.h != nil && e.h.kind == KindHash {
		if at := e.innerDue(); at == 0 || at > v.Now {
			break
		}
		e = v.settleInner(s, e)
	}
	v.doubt = doubt
	return e
}

// ExpireFields removes the expired fields of a hash before it gets new ones. The hash stays even if none is left,
// unlike in settle.
func (v *View) ExpireFields(key []byte) {
	e := v.Find(key)
	if e.Kind() != KindHash || e.InBytes() || e.Deadline() != 0 && e.Deadline() < v.Now/1000 || v.Follows() {
		return
	}
	x := e.object().obj.(Settler)
	v.doubt = true
	v.keep(e)
	_, s := v.locate(key)
	gone := 0
	for at := x.NextDue(); at != 0 && at <= v.Now/1000; at = x.NextDue() {
		n, _ := x.Settle(v.Now, innerBatch, v.fieldGone(key))
		gone += n
	}
	if gone > 0 {
		before := v.changes
		v.settledParts(s, e, gone)
		v.caused(before)
		v.rearm(s, e)
	}
}

// fieldGone returns a function that logs fields of a hash that expire, or nil if nobody reads the log.
func (v *View) fieldGone(key []byte) func(field []byte) {
	if !v.Logging() {
		return nil
	}
	return func(field []byte) { v.KS.Causes.FieldGone(v, key, field) }
}

// settleObject is settleInner for a Settler, without the wheel.
func (v *View) settleObject(s *shard, e Entry) Entry {
	key, x := e.Key(), e.object().obj.(Settler)
	v.keep(e)
	v.objects, v.object = true, e.object()
	before := v.changes
	var gone func([]byte)
	if e.h.kind == KindHash {
		gone = v.fieldGone(key)
	}
	n, empty := x.Settle(v.Now, innerBatch, gone)
	if n > 0 {
		v.settledParts(s, e, n)
	}
	if empty {
		v.unlink(s, e)
		v.Changed(key, EventGeneric, "del")
	}
	v.caused(before)
	if empty {
		return Entry{}
	}
	if f, ok := x.(Forwarder); ok && f.Forwarding() {
		v.ForwardSoon(key)
	}
	return e
}

// settledParts counts, notifies and logs that n parts of an object have ended. Fields of a hash have been logged
// before, one by one.
func (v *View) settledParts(s *shard, e Entry, n int) {
	key := e.Key()
	switch e.h.kind {
	case KindHash:
		s.stats.ExpiredFields += int64(n)
		v.Changed(key, EventHash, "hexpired")
	case KindLimiter:
		s.stats.EndedGrants += int64(n)
		v.Changed(key, EventLimiter, "rl.ended")
		if v.Logging() {
			v.KS.Causes.Ended(v, key, n)
		}
	case KindDelayQueue:
		v.Changed(key, EventDelayQueue, "due")
		if v.Logging() {
			v.KS.Causes.Settled(v, key, n)
		}
	default:
		panic("engine: nobody tells what ends inside a " + e.h.kind.String())
	}
}

// ForwardSoon calls Keyspace.Forward for a key as soon as no lock is held. If the scheduler's own work causes it, it
// runs in that work's order of time.
func (v *View) ForwardSoon(key []byte) {
	if ks, db, name := v.KS, v.DB, bytes.Clone(key); v.system && ks.Forward != nil && !ks.fromLog() {
		ks.Sched.At(v.Now, func(int64) { ks.Forward(ks, db, name) })
		return
	}
	v.KS.ForwardSoon(v.DB, key)
}

// ForwardSoon is View.ForwardSoon for callers without a View.
func (ks *Keyspace) ForwardSoon(db int, key []byte) {
	name := bytes.Clone(key)
	switch {
	case ks.Forward == nil:
	case ks.fromLog(): // the log tells that it went, or it goes when following ends
		ks.forwards.add(db, name)
	default:
		ks.Sched.Go(func() { ks.Forward(ks, db, name) })
	}
}

// SetActiveExpire turns the background expiry off or on (DEBUG
// SET-ACTIVE-EXPIRE); keys still expire when they are looked at.
func (ks *Keyspace) SetActiveExpire(on bool) { ks.setExpiry(expiryIdle, on) }

// PauseExpiry stops the removal of expired keys, which nobody sees any more, or resumes it (CLIENT PAUSE). It does so
// for all siblings too.
func (ks *Keyspace) PauseExpiry(on bool) {
	ks.Each(func(ks *Keyspace) { ks.setExpiry(expiryPaused, !on) })
}

// Past tells whether a key would expire at once with this deadline, in Unix milliseconds.
func (v *View) Past(deadline int64) bool {
	return deadline <= v.Now/1000 && v.expiry()&expiryFollows == 0
}

// never is a deadline that does not come.
const never = int64(1<<63 - 1)

// Why the scheduler does not serve the wheels.
const (
	expiryIdle    = 1 << iota // keys expire only when they are looked at
	expiryPaused              // not even then, but nobody sees them
	expiryFollows             // they stay, visible, until the log tells their end
	expiryLeft                // the same for the primary's changes; for all others as expiryPaused
)

func (ks *Keyspace) setExpiry(bit uint32, on bool) {
	if !on {
		ks.expiryOff.Or(bit)
		return
	}
	ks.expiryOff.And(^bit)
	ks.Sched.Wake()
}

// noteDueFree is noteDue for a shard that is reserved, once it is free: a holder that was marked slow still changes
// the shard, without its lock.
func (ks *Keyspace) noteDueFree(s *shard) {
	ks.unreserved(s, func(s *shard) {
		ks.noteDue(s)
		ks.Sched.Wake()
	})
}

// expireShard serves what is due at now in the shard's wheel. It reports whether there is more to do at once.
func (ks *Keyspace) expireShard(s *shard, nowMicros int64) (more bool) {
	h := ks.upkeep(ks.setOf(s), nowMicros, func(v *View) {
		touched, enough := 0, false
		for left := expiryBatch; !more; left-- {
			node := s.wheel.due(nowMicros / 1000)
			if node == 0 {
				break
			}
			if more = enough || left == 0; more {
				break
			}
			if touched--; touched < 0 {
				touched = ks.touchDue(&s.wheel, node)
			}
			enough = v.serveDue(s, node)
		}
		if more {
			s.nextDue.Store(nowMicros / 1000)
			return
		}
		if s.sweep.due() <= nowMicros/1000 && !ks.Clock.Frozen() {
			more = v.sweepSome(s, sweepGraceMillis)
		}
		ks.noteDue(s)
	})
	if h != nil {
		s.nextDue.Store(never)
		h.OnRelease(func() { ks.noteDueFree(s) })
	}
	return more
}

// serveDue does what is due with the entry of a node whose slot has come. It reports whether that was enough work for
// one hold of the lock.
func (v *View) serveDue(s *shard, node uint32) (enough bool) {
	e := Entry{(*header)(s.wheel.nodes[node].ref)}
	d := e.dueRef()
	v.DB = int(d.db)
	if d.at != 0 && d.at < v.Now/1000 {
		v.expire(s, e)
		return false
	}
	inner := e.innerDue()
	if inner != 0 && inner <= v.Now {
		if e = v.settleInner(s, e); e.h != nil {
			inner = e.innerDue()
			return inner != 0 && inner <= v.Now
		}
		return false
	}
	if at := e.wakeAt(inner); at != never {
		s.wheel.move(node, at) // not yet
	} else {
		s.wheel.remove(node)
		d.node = 0
	}
	return false
}

func (ks *Keyspace) setOf(s *shard) LockSet {
	i := (uintptr(unsafe.Pointer(s)) - uintptr(unsafe.Pointer(&ks.shards[0]))) / unsafe.Sizeof(ks.shards[0])
	return LockSet{1 << i}
}
