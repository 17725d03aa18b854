package engine

// The clock goes back. Keys expire, and entries of queues are due, at times of the wall clock, whatever it shows. What was
// given for a length of time – a lease, a limiter's window – ends after that length all the same, so its times are moved as
// the clock is, under all locks, with nobody between the one and the other. Journals have it as an effect, so that all copies
// agree.
//
// Rejected: a second clock that never goes back, for all that is relative. It would have to be told to files and replicas as
// well, every command would have two times, queues and CAL need both, and all deadlines in payloads would be of one server.

import (
	"bytes"

	"github.com/limitkv/limitkv/engine/limiter"
	"github.com/limitkv/limitkv/engine/lock"
)

// setBacker is an object that has such times.
type setBacker interface {
	SetBack(nowMicros, byMicros int64)
}

// SetBack moves what lasts for a length of time, in all databases: the clock was set by byMillis, which is below 0, and showed
// nowMicros then. All shards are held. It reports whether any key can have such times. Nobody is told: of how long it lasts
// yet nothing has changed.
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

// SetBack has the clock go back by some microseconds, above 0, as a step of the system's would, also one that stands: for
// tests. No lock is held, nor is any key for longer.
func (s *Scheduler) SetBack(micros int64) {
	s.run.Lock()
	defer s.run.Unlock()
	if !s.back(-micros) {
		panic("engine: somebody holds keys")
	}
	s.Wake()
}

// back has the clock go back by a step, below 0, and what lasts for a length of time with it. It reports false, with nothing
// changed, if somebody holds keys for longer: then it is called again when these are free.
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
	// Loops go on with what needs no keys.
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
			if !ks.fromLog() { // else what is told of the step moves it
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

// CameBack is called when files were loaded whose last time, in Unix microseconds, is ahead of the clock: it went back between
// that and now, and what lasts for a length of time goes on from there. How long the server was down nobody knows.
func (ks *Keyspace) CameBack(lastMicros int64) {
	ks.Update(LockSet{allShards}, func(v *View) {
		if by := (v.Now - lastMicros) / 1000; by < 0 && !ks.fromLog() {
			ks.setBack(v, by)
			v.TakeChanges() // which are not counted, as nobody made them
		}
	})
}

// setBack is View.SetBack as what the keyspace does by itself.
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
