package engine

// Locks: values of KindLock. A lock is plain bytes, as a limiter is, or an object if it has many holders. Its leases
// are deadlines inside the value, which the entry's node in the wheel serves. So a lock with one holder is one
// allocation of 80 bytes, key included.
//
// A lease that is bound to a connection has no deadline. Each shard knows which of its locks have such leases. When a
// connection ends, these locks are looked through, in the shards where it may have some.

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/limitkv/limitkv/engine/lock"
)

// Lock is the lock under an entry, which is of KindLock: the object if it is large, else work, filled from the
// entry's bytes. PutLock stores a changed lock. Until then the owners' names are valid.
func (e Entry) Lock(work *lock.Lock) *lock.Lock {
	if e.h.flags&flagObject != 0 {
		return e.object().obj.(*lock.Lock)
	}
	work.Read(e.raw())
	return work
}

// lockBytes is memory for a lock as bytes: enough for one with a single holder.
const lockBytes = 640

// PutLock stores a changed lock under a key. e is the key's entry, if there is one. PutLock removes a lock that is
// free, and reports that.
func (v *View) PutLock(key []byte, e Entry, l *lock.Lock) (removed bool) {
	if l.Free() {
		if e.h != nil {
			_, s := v.locate(key)
			v.leaving = true // the holders have released it, and need not be told
			v.unlink(s, e)
			v.leaving = false
		}
		return e.h != nil
	}
	if e.h != nil && e.h.flags&flagObject != 0 && e.object().obj == any(l) {
		v.InnerDue(e)
		return false
	}
	deadline := e.Deadline()
	v.leaving = true
	var room [lockBytes]byte
	if p, ok := l.Append(room[:0]); ok {
		v.putBytes(KindLock, key, p, deadline)
	} else {
		v.PutObject(key, KindLock, l.Large(), deadline)
	}
	v.leaving = false
	return false
}

// FenceStep is how far a fence from elsewhere may be above all of this server's fences and its clock: about 400 days,
// since another server's clock may be ahead.
const FenceStep = 1 << 45

// TooFar tells whether the last fence of a lock that a client brings is too far above those of this server. To accept
// it would leave too few fences, since all later ones are greater.
func (v *View) TooFar(packed []byte, large any) bool {
	l, ok := large.(*lock.Lock)
	if !ok {
		l = new(lock.Lock)
		l.Read(packed)
	}
	return l.LastFence() > max(v.KS.Fences.Last(), min(v.Now, fenceTimeMax)+FenceStep)
}

// EnterLock stores a lock from elsewhere, as bytes or, if it is large, as an object. Grants from now on have greater
// fences.
func (v *View) EnterLock(key, packed []byte, large any, deadline int64) Entry {
	var e Entry
	if large != nil {
		e = v.PutObject(key, KindLock, large, deadline)
	} else {
		e = v.putBytes(KindLock, key, packed, deadline)
	}
	var work lock.Lock
	v.KS.Fences.After(e.Lock(&work).LastFence())
	return e
}

// unlink removes an entry that was found, from the wheel and the table.
func (v *View) unlink(s *shard, e Entry) {
	t := &s.tables[v.DB]
	i := t.find(HashBytes(e.Key()), e.Key())
	v.drop(s, e)
	v.remove(t, i)
}

// lockDue is when something of a lock ends next, in Unix microseconds, 0 if nothing does.
func (e Entry) lockDue() int64 {
	if e.h.flags&flagObject != 0 {
		return e.object().obj.(*lock.Lock).DueMicros()
	}
	return lock.Due(e.raw())
}

// lockGone tells whether a lock is free by now because everything in it has run out.
func (v *View) lockGone(e Entry) bool {
	if e.h.kind != KindLock {
		return false
	}
	var work lock.Lock
	return e.Lock(&work).Gone(v.Now)
}

// settleLock ends what has run out of a lock, or some of it if that is much. It returns the entry, or the zero Entry
// if the lock became free.
func (v *View) settleLock(s *shard, e Entry) Entry {
	return v.loseLeases(s, e, func(v *View, l *lock.Lock, lost func(lock.Holder)) bool {
		return l.Settle(v.Now, innerBatch, lost)
	})
}

// loseLeases calls do, by which holders may lose a lock. It stores the lock, and tells and logs who lost it.
func (v *View) loseLeases(s *shard, e Entry, do func(v *View, l *lock.Lock, lost func(lock.Holder)) bool) Entry {
	var work lock.Lock
	key := append([]byte(nil), e.Key()...)
	v.keep(e)
	v.doubt = true
	if e.h.flags&flagObject != 0 {
		v.objects, v.object = true, e.object()
	}
	l := e.Lock(&work)
	var lost []lock.Holder
	if !do(v, l, func(h lock.Holder) {
		h.Owner = nil
		lost = append(lost, h)
	}) {
		return e
	}
	before := v.changes
	removed := v.PutLock(key, e, l)
	v.Modified(key)
	for i := range lost {
		v.Notify(EventLock, "lklost", key)
		v.lostLock(key, &lost[i])
	}
	if v.caused(before) {
		v.KS.Causes.Lost(v, key, lost)
	}
	if !removed {
		return s.tables[v.DB].entry(key)
	}
	before = v.changes
	v.Changed(key, EventGeneric, "del")
	v.caused(before)
	return Entry{}
}

// lostLock tells the connection of a lease that it lost the lock, if there is one.
func (v *View) lostLock(key []byte, h *lock.Holder) {
	if h.Session != 0 && v.KS.LockLost != nil {
		v.KS.LockLost(key, h.Session, h.Fence)
	}
}

// leftLock tells the connections that hold a lock that its key is removed, or becomes something else.
func (v *View) leftLock(e Entry) {
	if v.leaving || v.KS.LockLost == nil {
		return
	}
	var work lock.Lock
	e.Lock(&work).Each(func(h lock.Holder) bool {
		v.lostLock(e.Key(), &h)
		return true
	})
}

// noteBound notes whether a lock has leases that are bound to connections. there is false if the lock is removed.
func (s *shard) noteBound(e Entry, there bool) {
	if there && e.h.flags&flagObject != 0 {
		there = e.object().obj.(*lock.Lock).Bound()
	} else if there {
		there = lock.BoundIn(e.raw())
	}
	switch {
	case there && s.bound == nil:
		s.bound = map[unsafe.Pointer]struct{}{unsafe.Pointer(e.h): {}}
	case there:
		s.bound[unsafe.Pointer(e.h)] = struct{}{}
	case s.bound != nil:
		delete(s.bound, unsafe.Pointer(e.h))
	}
}

// unbound is a copy of a lock's bytes in which no lease is bound to an open connection, because such a lease is bound
// to its key too.
func unbound(p []byte) []byte {
	if !lock.BoundIn(p) {
		return p
	}
	var l lock.Lock
	l.Read(p)
	l.Orphan(nobody)
	p, _ = l.Append(nil) // it is not longer than before
	return p
}

func nobody(int64) bool { return false }

// Marks are the shards where a connection may have something.
type Marks struct{ mask atomic.Uint64 }

// Add marks the shard of key.
func (m *Marks) Add(key []byte) {
	_, i := locate(key)
	m.mask.Or(1 << i)
}

// EndSession ends the leases that are bound to a connection, which has ended, in the marked shards. The caller holds
// no lock. A keyspace that follows a log changes by that alone: there the leases end when it stops following.
func (ks *Keyspace) EndSession(session int64, in *Marks) {
	if ks.fromLog() {
		return
	}
	for m := in.mask.Load(); m != 0; m &= m - 1 {
		ks.endBound(bits.TrailingZeros64(m), func(v *View, l *lock.Lock, lost func(lock.Holder)) bool {
			return l.LoseSession(session, v.Now, lost)
		})
	}
}

// endOrphans ends the leases of a shard that are bound to connections which are gone.
func (ks *Keyspace) endOrphans(shard int) {
	there := ks.Connected
	if there == nil {
		there = nobody
	}
	ks.endBound(shard, func(v *View, l *lock.Lock, lost func(lock.Holder)) bool {
		return l.Orphan(there) && l.Settle(v.Now, math.MaxInt, lost)
	})
}

// endBound calls do with each lock of a shard that has leases bound to connections. It waits for a reservation of the
// shard without blocking.
func (ks *Keyspace) endBound(shard int, do func(v *View, l *lock.Lock, lost func(lock.Holder)) bool) {
	s := &ks.shards[shard]
	h := ks.upkeep(LockSet{1 << shard}, 0, func(v *View) {
		if len(s.bound) == 0 {
			return
		}
		v.Now = ks.Clock.Now()
		all := make([]Entry, 0, len(s.bound))
		for p := range s.bound {
			all = append(all, Entry{(*header)(p)})
		}
		slices.SortFunc(all, func(a, b Entry) int { return bytes.Compare(a.Key(), b.Key()) }) // the map's order must not show
		for _, e := range all {
			v.DB = int(e.dueRef().db)
			v.loseLeases(s, e, do)
		}
		ks.noteDue(s)
		ks.Sched.Wake()
	})
	if h != nil {
		h.OnRelease(func() { ks.endBound(shard, do) })
	}
}
