package engine

// Locks: values of KindLock. One is plain bytes, as a limiter is, or an object if it has many holders. Its leases are
// deadlines inside, in the entry's place in the wheel: a mutex is one allocation of 80 bytes, with its key.
//
// A lease that is bound to a connection has no time. Each shard knows which of its locks have such leases; when a
// connection ends, those of the shards are looked through where it may have some.

import (
	"bytes"
	"math"
	"math/bits"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/limitkv/limitkv/engine/lock"
)

// Lock is the lock under an entry, which is of KindLock: work, made to be it, or the lock itself if it is large. PutLock
// stores what becomes of it. The owners' names are valid until then.
func (e Entry) Lock(work *lock.Lock) *lock.Lock {
	if e.h.flags&flagObject != 0 {
		return e.object().obj.(*lock.Lock)
	}
	work.Read(e.raw())
	return work
}

// lockBytes is room for a lock as bytes: enough for one with a single holder.
const lockBytes = 640

// PutLock stores what has become of a lock under a key, of which e is the entry, if there is one. A lock that is free is
// removed, which it reports.
func (v *View) PutLock(key []byte, e Entry, l *lock.Lock) (removed bool) {
	if l.Free() {
		if e.h != nil {
			_, s := v.locate(key)
			v.leaving = true // nobody loses anything by that
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

// FenceStep is by how much a fence from elsewhere may be beyond all of this server's and its clock, some 400 days: that much
// another server's clock may be ahead.
const FenceStep = 1 << 45

// TooFar tells whether the last fence of a lock that a client brings is far beyond those of this server. All fences are
// greater from then on, so taking it over would leave too few of them.
func (v *View) TooFar(packed []byte, large any) bool {
	l, ok := large.(*lock.Lock)
	if !ok {
		l = new(lock.Lock)
		l.Read(packed)
	}
	return l.LastFence() > max(v.KS.Fences.Last(), min(v.Now, fenceTimeMax)+FenceStep)
}

// EnterLock stores a lock from elsewhere, as bytes or, if it is large, as an object: grants from now on have greater fences.
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

// unlink removes an entry that was found.
func (v *View) unlink(s *shard, e Entry) {
	t := &s.tables[v.DB]
	i := t.find(HashBytes(e.Key()), e.Key())
	v.drop(s, e)
	v.remove(t, i)
}

// lockDue is when something of a lock ends, in Unix microseconds, 0 if nothing does.
func (e Entry) lockDue() int64 {
	if e.h.flags&flagObject != 0 {
		return e.object().obj.(*lock.Lock).DueMicros()
	}
	return lock.Due(e.raw())
}

// lockGone tells whether a lock is free for who looks, by what has run out.
func (v *View) lockGone(e Entry) bool {
	if e.h.kind != KindLock {
		return false
	}
	var work lock.Lock
	return e.Lock(&work).Gone(v.Now)
}

// settleLock ends what has run out of a lock, some of it if it is much. It returns the entry, or the zero Entry if the
// lock is free by that.
func (v *View) settleLock(s *shard, e Entry) Entry {
	return v.loseLeases(s, e, func(v *View, l *lock.Lock, lost func(lock.Holder)) bool {
		return l.Settle(v.Now, innerBatch, lost)
	})
}

// loseLeases does something to a lock by which holders lose it, and tells.
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

// lostLock tells a connection that is to be told.
func (v *View) lostLock(key []byte, h *lock.Holder) {
	if h.Session != 0 && v.KS.LockLost != nil {
		v.KS.LockLost(key, h.Session, h.Fence)
	}
}

// leftLock tells those who hold a lock by a connection that the key goes, or becomes something else.
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

// noteBound notes whether a lock has leases that are bound to connections.
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

// unbound is a copy of a lock's bytes in which no lease is bound to a connection that is there: a lease is bound to its
// key too.
func unbound(p []byte) []byte {
	if !lock.BoundIn(p) {
		return p
	}
	var l lock.Lock
	l.Read(p)
	l.Orphan(nobody)
	p, _ = l.Append(nil) // it is no longer than before
	return p
}

func nobody(int64) bool { return false }

// Marks are shards where a connection may have something.
type Marks struct{ mask atomic.Uint64 }

// Add marks the shard of key.
func (m *Marks) Add(key []byte) {
	_, i := locate(key)
	m.mask.Or(1 << i)
}

// EndSession ends the leases that are bound to a connection, which has ended, in the shards that are marked. No lock is
// held. A keyspace that follows changes by what it is told alone: there they end when it does not follow any more.
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

// endOrphans ends the leases of a shard that are bound to connections which are not there any more.
func (ks *Keyspace) endOrphans(shard int) {
	there := ks.Connected
	if there == nil {
		there = nobody
	}
	ks.endBound(shard, func(v *View, l *lock.Lock, lost func(lock.Holder)) bool {
		return l.Orphan(there) && l.Settle(v.Now, math.MaxInt, lost)
	})
}

// endBound does something to all locks of a shard that have leases bound to connections, once nobody has it reserved.
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
