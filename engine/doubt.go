package engine

// What a panic leaves. A command that panics before it has changed a key left
// the keyspace as it was, and others can go on. One that had begun to change
// keys may have left a value half changed, or changed without its deadline, its
// size or its watchers knowing: nobody can tell, so nobody may use it. The verbs
// that change keys, and the look-up for doing so, say so beforehand.
//
// Locks are the other thing that a panic may leave: LocksFree finds out.

import (
	"fmt"
	"sync"
	"time"
)

// Trust begins a command: nothing has been changed by it.
func (v *View) Trust() { v.doubt = false }

// Doubt tells whether the command has begun to change keys, so that a panic now
// leaves them in doubt.
func (v *View) Doubt() bool { return v.doubt }

// OutsideLocks is the panic of a view that is asked for a key whose shard it does not hold: what the command says its keys are,
// and what it uses, differ. The key was not reached.
type OutsideLocks struct{ Key string }

func (o OutsideLocks) String() string {
	return fmt.Sprintf("key %.100q is outside of the locks that are held", o.Key)
}

//go:noinline
func outside(key []byte) { panic(OutsideLocks{string(key)}) }

// Untold tells whether the command has changed something that it has not told yet.
func (v *View) Untold() bool { return v.edit.open || v.changes != v.told }

// LocksFree tells whether each lock of the keyspace, and of those beside it, was
// free at some moment within a time. Holders of reservations hold no lock.
func (ks *Keyspace) LocksFree(within time.Duration) bool {
	end := Monotonic() + within.Microseconds()
	for _, ks := range ks.Siblings() {
		if !Free(&ks.gate.mu, end) {
			return false
		}
		for i := range ks.shards {
			if !Free(&ks.shards[i].mu, end) {
				return false
			}
		}
	}
	s := ks.Sched
	return Free(&s.mu, end) && Free(&s.changing, end) && Free(&s.run, end)
}

// Lock is a sync.Mutex or sync.RWMutex.
type Lock interface {
	sync.Locker
	TryLock() bool
}

// lockRetry is how often a lock is tried that is not free.
const lockRetry = time.Millisecond

// Free tells whether a lock was free at some moment before a time, in
// microseconds of Monotonic.
func Free(l Lock, endMicros int64) bool {
	for !l.TryLock() {
		if Monotonic() > endMicros {
			return false
		}
		time.Sleep(lockRetry)
	}
	l.Unlock()
	return true
}
