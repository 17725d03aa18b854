package engine

// What a panic leaves. A command that panics before it has changed a key leaves the keyspace as it was, and others
// can continue. One that had begun to change keys may have left a value half changed, or changed it without an update
// of its deadline, its size or its watchers. Nobody can tell, so nobody may use the keys any more. The verbs that
// change keys, and the look-ups for writing, set View.doubt beforehand.
//
// A panic may also leave locks locked: LocksFree finds out.

import (
	"fmt"
	"sync"
	"time"
)

// Trust begins a command, which has changed nothing yet.
func (v *View) Trust() { v.doubt = false }

// Doubt tells whether the command has begun to change keys, so that a panic now
// leaves them in doubt.
func (v *View) Doubt() bool { return v.doubt }

// OutsideLocks is the panic of a view that is asked for a key whose shard it does not hold: the command uses another
// key than it declared. The key was not reached.
type OutsideLocks struct{ Key string }

func (o OutsideLocks) String() string {
	return fmt.Sprintf("key %.100q is outside of the locks that are held", o.Key)
}

//go:noinline
func outside(key []byte) { panic(OutsideLocks{string(key)}) }

// Untold tells whether the command has made changes that are not stored, or have no effect yet.
func (v *View) Untold() bool { return v.edit.open || v.changes != v.told }

// LocksFree tells whether each lock of the keyspace and its siblings was free at some moment within a time. Holders
// of reservations hold no lock.
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

// lockRetry is how long to wait before a lock that is not free is tried again.
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
