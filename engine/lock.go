package engine

// Lock sets. A command holds the locks of its shards while it runs. If it takes long, it changes them for a
// Reservation: the shards are marked with the reservation, and their mutexes are unlocked. Whoever tries to lock one
// of the shards meanwhile gets the reservation as the reply, and waits for its end (an event loop parks the
// connection and serves others). So no loop blocks for long on a lock that a script holds.

import (
	"math/bits"
	"sync"
)

// LockSet is the set of shards that a command needs. The zero LockSet is empty.
type LockSet struct {
	mask uint64 // one bit per shard
}

const allShards = ^uint64(0)

// WholeKeyspace is the set of all shards.
func WholeKeyspace() LockSet { return LockSet{allShards} }

// LocksOf is the set of the shards of some keys.
func LocksOf(keys ...[]byte) (set LockSet) {
	for _, key := range keys {
		set.AddKey(key)
	}
	return set
}

// Reset empties the set.
func (s *LockSet) Reset() { s.mask = 0 }

// AddKey adds the shard of key.
func (s *LockSet) AddKey(key []byte) {
	_, i := locate(key)
	s.mask |= 1 << i
}

// AddAll adds all shards.
func (s *LockSet) AddAll() { s.mask = allShards }

// All tells whether the set holds every shard.
func (s *LockSet) All() bool { return s.mask == allShards }

// Within tells whether all of the set's shards are in another one.
func (s *LockSet) Within(o LockSet) bool { return s.mask&^o.mask == 0 }

// Without is the set without the shards of another one.
func (s LockSet) Without(o LockSet) LockSet { return LockSet{s.mask &^ o.mask} }

// Covers tells whether key's shard is in the set.
func (s *LockSet) Covers(key []byte) bool {
	_, i := locate(key)
	return s.mask>>i&1 != 0
}

// Reservation holds shards without their mutexes, for what takes long.
type Reservation struct {
	ks    *Keyspace
	set   LockSet
	mu    sync.Mutex
	done  chan struct{}
	after []func() // called at the end
	told  []func() // called at the end, or when the holder is marked slow
	freed bool
	slow  bool
	had   *Tally // the tally of the shards when it began
	// Info describes the holder, for those who wait.
	Info any
}

// LockWaiting is Lock for callers that may block, which event loops may not: it waits until no reservation prevents
// it.
func (ks *Keyspace) LockWaiting(set LockSet) {
	for h := ks.Lock(set); h != nil; h = ks.Lock(set) {
		h.Wait()
	}
}

// Lock takes the shards of the set, and returns nil. If a reservation prevents that, it returns the reservation, with
// nothing locked.
func (ks *Keyspace) Lock(set LockSet) *Reservation {
	if set.All() {
		return ks.lockAll()
	}
	for m := set.mask; m != 0; m &= m - 1 {
		s := &ks.shards[bits.TrailingZeros64(m)]
		s.mu.Lock()
		if ks.gate.state.Load() != gateOpen && m == set.mask { // the first one: see gate.go
			ks.enterAfter(s)
		}
		if h := s.holder; h != nil {
			ks.Unlock(LockSet{set.mask & (m&-m<<1 - 1)})
			return h
		}
	}
	return nil
}

// lockAll is Lock for all shards.
func (ks *Keyspace) lockAll() *Reservation {
	ks.close()
	for i := range ks.shards {
		if h := ks.shards[i].holder; h != nil {
			ks.open()
			return h
		}
	}
	return nil
}

// Unlock releases what Lock took, or a part of it.
func (ks *Keyspace) Unlock(set LockSet) {
	switch {
	case set.mask == 0:
		return
	case !ks.closed():
	case set.All():
		ks.open()
		return
	default:
		ks.keepOnly(LockSet{^set.mask})
		return
	}
	for m := set.mask; m != 0; m &= m - 1 {
		ks.shards[bits.TrailingZeros64(m)].mu.Unlock()
	}
}

// Reserve changes the locks of a set, which Lock took, for a reservation. A view that works under it has
// View.Reserved set.
func (ks *Keyspace) Reserve(set LockSet, info any) *Reservation {
	r := &Reservation{ks: ks, set: set, done: make(chan struct{}), Info: info, had: ks.newTally(extentSizes)}
	now := ks.Clock.Now() / 1000
	for m := set.mask; m != 0; m &= m - 1 {
		s := &ks.shards[bits.TrailingZeros64(m)]
		r.had.shard(s, now)
		s.holder = r
	}
	ks.Unlock(set)
	return r
}

// Lock changes the reservation back into the locks of its set, to serve those who wait for keys, as every command
// does at its end. Unlock and Release follow.
func (r *Reservation) Lock() {
	if r.set.All() {
		r.ks.close() // others, who find a holder, have it for a moment at most
	}
	for m := r.set.mask; m != 0; m &= m - 1 {
		s := &r.ks.shards[bits.TrailingZeros64(m)]
		if !r.set.All() {
			s.mu.Lock()
			if r.ks.gate.state.Load() != gateOpen && m == r.set.mask {
				r.ks.enterAfter(s)
			}
		}
		s.holder = nil
	}
}

// Release ends the reservation, whose shards are free: it calls those who waited for them. A second call does
// nothing.
func (r *Reservation) Release() {
	r.mu.Lock()
	if r.freed {
		r.mu.Unlock()
		return
	}
	r.freed = true
	after := append(r.after, r.told...)
	r.after, r.told = nil, nil
	r.mu.Unlock()
	close(r.done)
	for _, fn := range after {
		fn()
	}
}

// MarkSlow says that the holder has had the shards for too long. It calls the functions of OnReleaseOrSlow.
func (r *Reservation) MarkSlow() {
	r.mu.Lock()
	r.slow = true
	told := r.told
	r.told = nil
	r.mu.Unlock()
	for _, fn := range told {
		fn()
	}
}

// Slow tells whether MarkSlow was called.
func (r *Reservation) Slow() bool { r.mu.Lock(); defer r.mu.Unlock(); return r.slow }

// OnReleaseOrSlow calls fn once, when the reservation ends or is marked slow; at once if either has happened.
func (r *Reservation) OnReleaseOrSlow(fn func()) {
	r.mu.Lock()
	if !r.freed && !r.slow {
		r.told = append(r.told, fn)
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	fn()
}

// OnRelease calls fn once, when the reservation ends; at once if it has ended.
func (r *Reservation) OnRelease(fn func()) {
	r.mu.Lock()
	if !r.freed {
		r.after = append(r.after, fn)
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	fn()
}

// Wait blocks until the reservation ends.
func (r *Reservation) Wait() { <-r.done }
