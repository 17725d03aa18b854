package engine

// Idle limiters. A limiter that was not defined with RL.SET disappears once it is full again and nobody waits for it,
// because a new one is just the same. Like a key with a deadline it lives through its last millisecond, so a client
// that retries after exactly the time it was told still finds it. There are millions of such limiters, so they must
// be small. They have neither a deadline (16 bytes) nor a node of the timing wheel (16 more): their own bytes tell
// when they are full. From that moment on nobody sees them. Their memory is freed when a sweep passes over the
// shard's table.
//
// An idle limiter is mostly used again soon, and to use it again costs a fifth of making another. So it is left in
// place for a while first.
//
// Each shard knows a time before which none of its limiters can be full. It is swept a while after that. After a
// sweep it rests, so long that sweeping takes at most a hundredth of one core for all shards together. A server
// without idle limiters pays nothing. The next sweep removes what has been idle for some seconds: within ten seconds
// where there are two million.

import (
	"math/bits"

	"github.com/limitkv/limitkv/engine/limiter"
)

const (
	// sweepSlots and sweepKeys are how many slots are looked at, and how many
	// limiters removed, under one hold of the lock.
	sweepSlots = 1024
	sweepKeys  = 128
	// sweepGraceMillis is how long an idle limiter is left in place.
	sweepGraceMillis = 3000
	// A shard rests for sweepRestMinMillis, or for as much longer as it takes to keep all sweeps together to a
	// hundredth of a core. The time of a sweep is computed from its slots, not measured: on a busy machine the clock
	// would include the time that others had the processor.
	sweepRestMinMillis = 2000
	sweepRestNanos     = 100 * shardCount * sweepSlotNanos
	// sweepSlotNanos is how long it takes to look at a slot, by BenchmarkSweep.
	sweepSlotNanos = 15
)

// sweep is a shard's state of sweeping. Times are Unix milliseconds.
type sweep struct {
	// No limiter of the shard is full before earliest. The shard rests until notBefore.
	earliest, notBefore int64
	// The sweep in progress: its place (a group of a segment), the earliest time that it has met, and how many slots
	// it has looked at.
	active bool
	db     int
	walk
	met    int64
	looked int64
}

// due is when to sweep the shard, or to continue its sweep.
func (w *sweep) due() int64 {
	switch {
	case w.active:
		return 0
	case w.earliest == never:
		return never
	}
	return max(w.earliest+sweepGraceMillis, w.notBefore)
}

// markIdle notes in the header of a limiter whether it disappears when it is full.
func (e Entry) markIdle() {
	e.h.flags &^= flagIdle
	if !limiter.Kept(e.raw()) {
		e.h.flags |= flagIdle
	}
}

// idleFrom is the first millisecond in which the limiter is idle.
func (e Entry) idleFrom() int64 { return ceilMillis(limiter.FullAt(e.raw())) + 1 }

// idle tells whether an entry is a limiter that nobody sees any more.
func (v *View) idle(s *shard, e Entry) bool {
	if e.h.flags&flagIdle == 0 || e.idleFrom() > v.Now/1000 {
		return false
	}
	if len(s.waits) == 0 {
		return true
	}
	n, _ := s.waiting(waitKey{v.DB, string(e.Key())}, KindLimiter)
	return n == 0
}

// gone tells whether an entry has expired or is idle, without removing it.
func (v *View) gone(s *shard, e Entry) bool {
	return v.over(e) || v.expiry()&expiryFollows == 0 && (v.idle(s, e) || v.lockGone(e))
}

// over tells whether an entry exists and its deadline has passed.
func (v *View) over(e Entry) bool {
	if !e.Ok() {
		return false
	}
	d := e.Deadline()
	return d != 0 && d < v.Now/1000 && v.expiry()&expiryFollows == 0
}

// NoteIdle tells the keyspace that a limiter has been changed in place.
func (v *View) NoteIdle(e Entry) {
	if e.h.flags&flagIdle == 0 {
		return
	}
	_, s := v.locate(e.Key())
	v.sweepFor(s, e)
}

// sweepFor makes sure that the shard is swept when the limiter is full.
func (v *View) sweepFor(s *shard, e Entry) {
	at := e.idleFrom()
	w := &s.sweep
	if w.active {
		w.met = min(w.met, at)
	} else if at < w.earliest {
		w.earliest = at
		if !v.KS.Clock.Frozen() {
			v.KS.Sched.shardDue(s, w.due())
		}
	}
}

// GetLimiter finds a limiter for the next request on it. It is GetWrite, but also returns an idle limiter, which can
// be used again; View.Idle tells whether it is one.
func (v *View) GetLimiter(key []byte) Entry {
	hash, s := v.locate(key)
	t := &s.tables[v.DB]
	i := t.find(hash, key)
	if i < 0 {
		return Entry{}
	}
	v.doubt = true
	e := t.at(i)
	v.keep(e)
	if e.h.kind != KindLimiter || e.h.flags&flagInnerDue != 0 {
		e = v.settle(s, e)
	} else if d := e.dueRef(); d != nil && d.at != 0 && d.at < v.Now/1000 {
		v.expire(s, e)
		e = Entry{}
	}
	if e.h != nil && !v.NoTouch {
		v.touch(e)
	}
	return e
}

// Idle tells whether a limiter is gone for everybody except GetLimiter.
func (v *View) Idle(e Entry) bool {
	_, s := v.locate(e.Key())
	return v.idle(s, e)
}

// sweepSome begins or continues the shard's sweep, which removes limiters that have been idle for graceMillis. It
// reports whether there is more to do at once.
func (v *View) sweepSome(s *shard, graceMillis int64) (more bool) {
	w := &s.sweep
	if !w.active {
		w.active, w.db, w.walk, w.met, w.looked = true, 0, walk{}, never, 0
	}
	for removed, looked := 0, 0; removed < sweepKeys && looked < sweepSlots; {
		t := &s.tables[w.db]
		p := w.segment(t)
		if t.ofKind(KindLimiter) == 0 || p == nil {
			w.walk = walk{}
			if w.db++; w.db < len(s.tables) {
				continue
			}
			w.active, w.earliest = false, w.met
			rest := w.looked * sweepRestNanos / 1e6 * int64(len(v.KS.Sched.keyspaces()))
			w.notBefore = v.Now/1000 + max(rest, sweepRestMinMillis)
			return false
		}
		v.DB = w.db
		n, gone := v.sweepGroups(s, w, p, graceMillis)
		removed += gone
		looked += n
		w.looked += int64(n)
		if p == w.segment(t) && w.at >= len(p.ctrl) {
			w.leave(t)
		}
	}
	return true
}

// sweepGroups removes idle limiters in some groups of a segment. It returns how many slots these have, and how many
// limiters were removed.
func (v *View) sweepGroups(s *shard, w *sweep, p *segment, graceMillis int64) (looked, removed int) {
	var found [4 * groupSlots]Entry
	n := 0
	for ; w.at < len(p.ctrl) && n <= len(found)-groupSlots; w.at++ {
		for m := p.ctrl[w.at] & ctrlHigh; m != 0; m &= m - 1 {
			found[n] = Entry{(*header)(p.slots[w.at*groupSlots+bits.TrailingZeros64(m)>>3])}
			n++
		}
		looked += groupSlots
	}
	read := uint64(0)
	for _, e := range found[:n] {
		read += uint64(e.h.valLen) // all are read first, so that the cache misses overlap
	}
	touched.keep(read)
	for _, e := range found[:n] {
		if e.h.flags&flagIdle == 0 {
			continue
		}
		switch at := e.idleFrom(); {
		case at+graceMillis > v.Now/1000:
			w.met = min(w.met, at)
		case v.idle(s, e):
			v.expire(s, e)
			removed++
		default: // somebody waits for it
			w.met = min(w.met, v.Now/1000+1)
		}
	}
	return looked, removed
}

// sweepAll sweeps all shards in which limiters may have become full, after a frozen clock was moved. Advance does not
// do it at each step: it would repeat work whose result nobody can see.
func (ks *Keyspace) sweepAll(nowMicros int64) {
	if ks.expiryOff.Load() != 0 {
		return
	}
	for i := range ks.shards {
		s := &ks.shards[i]
		for first, more := true, true; more; first = false {
			ks.enter(s)
			due := s.sweep.active || first && s.sweep.earliest <= nowMicros/1000
			s.mu.Unlock()
			if more = false; due {
				ks.upkeep(LockSet{1 << i}, nowMicros, func(v *View) {
					s.sweep.active = s.sweep.active && !first
					more = v.sweepSome(s, 0)
				})
			}
			ks.Sched.breathe()
		}
	}
}

// noteDue notes when the shard next has something to do.
func (ks *Keyspace) noteDue(s *shard) {
	at := s.wheel.next()
	if !ks.Clock.Frozen() {
		at = min(at, s.sweep.due())
	}
	s.nextDue.Store(at)
}

// ceilMillis rounds microseconds up to milliseconds: nothing is due before its time.
func ceilMillis(micros int64) int64 { return (micros + 999) / 1000 }
