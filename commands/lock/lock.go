// Package lock, internal to the server, is the family of locks, LK.*, which also respect plain locks (SET key owner NX PX
// ms). engine/lock implements the lock; this package handles arguments, replies, the waiting line, and the keys of locks.
package lock

import (
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/lock"
	"github.com/limitkv/limitkv/server/command"
)

// family is what the commands share.
type family struct {
	s    *command.Server
	lost atomic.Int64
}

// Commands are the rows of the family.
func Commands(s *command.Server) []*command.Command {
	f := &family{s: s}
	ks := s.Keyspace
	ks.Causes.Lost = f.logLost
	ks.LockLost = f.tell
	ks.Connected = func(session int64) bool { return s.Clients.Get(session) != nil }
	s.OwnInfo = append(s.OwnInfo, f.info)
	return []*command.Command{
		f.acquireRow(), f.releaseRow(), f.touchRow(), f.guardRow(), infoRow, f.applyRow(), f.fenceRow(),
	}
}

const since = "0.1.0"

const writeKey = command.RW | command.Access | command.Update

// Limits of what a client may ask for.
const (
	// leaseMillisMax is the longest lease or delay, a hundred years.
	leaseMillisMax = 3_155_760_000_000
	// blockMillisMax is the longest wait, as for BLPOP.
	blockMillisMax = 1<<53 - 1
	// lineShown is how many waiters LK.INFO shows, and how many holders.
	lineShown = 100
)

// Error texts. Those of numbers and syntax are Redis's own.
const (
	errOwner     = "ERR an owner has 1 to 512 bytes"
	errLease     = "ERR lease is out of range, it can be 0 to 3155760000000 ms"
	errDelay     = "ERR delay is out of range, it can be 0 to 3155760000000 ms"
	errShared    = "ERR SHARED and OF exclude each other"
	errPermits   = "ERR the number of permits is out of range, it can be 1 to 1000000000"
	errTake      = "ERR TAKE is out of range, it can be 1 to the number of permits"
	errChanged   = "ERR the lock has another number of permits while some of them are out"
	errOtherwise = "ERR this owner holds the lock in another way, release it first"
	errFences    = "ERR no fence is left, a lock that was taken over from elsewhere has the last one"
	errHolders   = "ERR too many holders, a lock has at most 1048576"
	errFenced    = "FENCED the lock was lost"
)

// textOf is the error text for an error of the structure.
func textOf(err error) string {
	switch err {
	case lock.ErrPermits:
		return errChanged
	case lock.ErrOtherwise:
		return errOtherwise
	case lock.ErrFences:
		return errFences
	}
	return errHolders
}

// info writes the locks' part of INFO's section limitkv.
func (f *family) info(w *command.InfoWriter) {
	granted, refused := f.s.Prefixes.All.Locks.Sum()
	w.Line("locks", w.Tally().Kinds[engine.KindLock])
	w.Line("lock_calls_granted", granted)
	w.Line("lock_calls_refused", refused)
	w.Line("lock_waiters", w.Tally().Waiters[engine.KindLock])
	w.Line("lock_leases_lost", f.lost.Load())
	w.Line("lock_last_fence", f.s.Keyspace.Fences.Last())
}

// readOwner takes an owner's name.
func readOwner(a *command.Args) []byte {
	owner := a.Bytes()
	if a.Err() == "" && (len(owner) == 0 || len(owner) > lock.OwnerMax) {
		a.Fail(errOwner)
	}
	return owner
}

func ceilMillis(micros int64) int64 { return (micros + 999) / 1000 }

// until is when a lease that begins now ends, 0 if it is bound to a connection.
func until(now, leaseMicros int64) int64 {
	if leaseMicros == 0 {
		return 0
	}
	return now + leaseMicros
}

// told is the session of a lease: the one that the lease is bound to, or one whose protocol can notify it of the loss. It is
// 0 if there is none.
func told(s *command.Session, leaseMicros int64) int64 {
	if leaseMicros == 0 || s.Proto() == 3 {
		return s.ID
	}
	return 0
}
