package engine

// The clock goes back. Keys expire, and entries of queues become due, at times of the wall clock, whatever it shows.
// What lasts for a length of time (a lease, a limiter's window) still ends after that length. So its times are moved
// together with the clock, under all locks, and nobody sees one moved without the other. Journals get that as an
// effect, so that all copies agree.
//
// Rejected: a second clock that never goes back, for everything with a length. Files and replicas would have to know
// it as well, every command would have two times, queues and CAL need both, and all deadlines in payloads would be
// valid on one server only.

import (
	"bytes"

	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/engine/lock"
)

// setBacker is an object with times that move with the clock.
type setBacker interface {
	SetBack(nowMicros, byMicros int64)
}

// SetBack moves what lasts for a length of time, in all databases: the clock was set by byMillis, which is below 0,
// and showed nowMicros before. All shards are held. It reports whether there are keys that can have such times.
// Nobody is notified: the remaining times have not changed.
func (v *View) SetBack(nowMicros, byMillis int64) (moved bool) {
	v.whole()
	v.doubt = true
	db := v.DB
	var found []Entry
	for i := range v.KS.shards {
		s := &v.KS.shards[i]
		for v.DB = range s.tables {
			t := &s.tables[v.DB]
			if t.ofKind(KindLimiter)+t.ofKind(KindLock)+t.ofKind(KindDelayQueue) == 0 {
				continue
			}
			found = found[:0]
			t.each(func(e Entry) bool {
				switch e.Kind() {
				case KindLimiter, KindLock, KindDelayQueue:
					found = append(found, e)
				}
				return true
			})
			for _, e := range found {
				v.setBack(s, e, nowMicros, byMillis*1000)
			}
			moved = moved || len(found) > 0
		}
	}
	v.DB = db
	return moved
}

func (v *View) setBack(s *shard, e Entry, now, by int64) {
	v.keep(e)
	if e.h.kind == KindLock {
		var work lock.Lock
		l := e.Lock(&work)
		l.SetBack(by)
		v.PutLock(bytes.Clone(e.Key()), e, l)
		return
	}
	x, ok := setBacker(nil), false
	if e.h.flags&flagObject != 0 {
		x, ok = e.object().obj.(setBacker)
	}
	if !ok {
		limiter.SetBack(e.Bytes(nil), now, by)
		v.NoteIdle(e)
		return
	}
	x.SetBack(now, by)
	v.grown += s.tables[v.DB].recount(e.object())
	if e.h.flags&flagInnerDue != 0 {
		v.rearm(s, e)
	}
}

// SetBack sets the clock back by some microseconds, above 0, as a step of the system's clock would, also a frozen
// one: for tests. The caller holds no lock, and nothing is reserved.
func (s *Scheduler) SetBack(micros int64) {
	s.run.Lock()
	defer s.run.Unlock()
	if !s.back(-micros) {
		panic("engine: somebody holds keys")
	}
	s.Wake()
}

// back moves the clock by a step, below 0, and with it what lasts for a length of time. If a shard is reserved it
// returns false and changes nothing; the scheduler tries again when the reservation ends.
func (s *Scheduler) back(step int64) bool {
	all := s.keyspaces()
	every := LockSet{allShards}
	for i, ks := range all {
		if h := ks.Lock(every); h != nil {
			for _, ks := range all[:i] {
				ks.Unlock(every)
			}
			h.OnRelease(s.Wake)
			return false
		}
	}
	// Meanwhile loops can serve what needs no keys.
	held := make([]*Reservation, len(all))
	for i, ks := range all {
		held[i] = ks.Reserve(every, nil)
	}
	s.clock.step(step)
	s.mu.Lock()
	for _, t := range s.heap {
		t.at += step
	}
	s.mu.Unlock()
	for i, ks := range all {
		v := ks.begin(every, s.clock.Now(), true)
		v.Reserved = true
		for i := range ks.shards {
			ks.shards[i].rewind(v.Now / 1000)
		}
		v.transact(func(v *View) {
			if !ks.fromLog() { // else the log's effect of the step moves it
				ks.setBack(v, step/1000)
			}
			held[i].Lock()
			v.Reserved = false
			for i := range ks.shards {
				ks.noteDue(&ks.shards[i])
			}
		})
		held[i].Release()
	}
	return true
}

// CameBack is called after files were loaded whose last time, in Unix microseconds, is ahead of the clock. So the
// clock went back between that time and now, and what lasts for a length of time continues from that time. Nobody
// knows how long the server was down.
func (ks *Keyspace) CameBack(lastMicros int64) {
	ks.Update(LockSet{allShards}, func(v *View) {
		if by := (v.Now - lastMicros) / 1000; by < 0 && !ks.fromLog() {
			ks.setBack(v, by)
			v.TakeChanges() // these are not counted, as nobody made them
		}
	})
}

// setBack is View.SetBack for what the keyspace does by itself.
func (ks *Keyspace) setBack(v *View, byMillis int64) {
	if byMillis == 0 || !v.SetBack(v.Now, byMillis) {
		return
	}
	before := v.changes
	v.CountChange()
	if v.caused(before) {
		ks.Causes.SetBack(v, byMillis)
	}
}
