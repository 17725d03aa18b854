package engine

// Lock sets. A command takes the locks of its shards for the moment it runs.
// One that turns out to take long changes them for a Reservation: the shards are
// marked as held, their mutexes are let go, and whoever comes meanwhile is
// told to wait for the holder (an event loop parks the connection and serves
// others). So no loop blocks for long on a lock that a script holds.

import (
	"math/bits"
	"sync"
)

// LockSet is the set of shards that a command needs. The zero LockSet is
// empty; Reset makes it so again.
type LockSet struct {
	mask uint64 // one bit a shard
}

const allShards = ^uint64(0)

// WholeKeyspace is the set of all shards.
func WholeKeyspace() LockSet { return LockSet{allShards} }

// LocksOf is the set with the shards of some keys.
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

// AddAll makes the set that of the whole keyspace.
func (s *LockSet) AddAll() { s.mask = allShards }

// All tells whether the set holds every shard.
func (s *LockSet) All() bool { return s.mask == allShards }

// Within tells whether all of the set's shards are in another one.
func (s *LockSet) Within(o LockSet) bool { return s.mask&^o.mask == 0 }

// Without is the set but for the shards of another one.
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
	told  []func() // called at the end, or when it is marked slow
	freed bool
	slow  bool
	had   *Tally // what the shards had when it began
	// Info is the holder's own description, for those who wait.
	Info any
}

// LockWaiting is Lock for who has the time: it waits until those have gone that prevent it. An event loop has not.
func (ks *Keyspace) LockWaiting(set LockSet) {
	for h := ks.Lock(set); h != nil; h = ks.Lock(set) {
		h.Wait()
	}
}

// Lock takes the shards of the set. It returns the holder that prevents it,
// with nothing locked, or nil.
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

// Unlock lets go what Lock took, or a part of it.
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

// Reserve changes the locks of a set, which Lock took, for a reservation. What
// runs under it says so in View.Reserved.
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

// Lock changes the reservation for the locks of its set again: to serve those who
// wait for keys, as every command does before it lets go. Unlock and Release follow.
func (r *Reservation) Lock() {
	if r.set.All() {
		r.ks.close() // for a moment others have it who find a holder
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

// Release calls those who waited for the shards, which are free. It does nothing the second time.
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

// MarkSlow says that the holder has had them for too long: those who asked to be
// told are.
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

// OnReleaseOrSlow calls fn once when the shards are given back or the holder is
// marked slow; at once if either has happened.
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

// OnRelease calls fn once when the shards are given back; at once if they are.
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

// Wait blocks until the shards are given back.
func (r *Reservation) Wait() { <-r.done }
