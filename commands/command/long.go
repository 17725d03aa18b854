package command

// Commands that may run long – scripts that are not bounded – run off the
// event loop: their shards are reserved, their connection is paused, and
// others go on.

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
)

// LongRun is a command that runs off the event loop.
type LongRun struct {
	Session *Session
	Cmd     *Command
	// Cancel, if set, stops what runs. Guarded by Mu.
	Mu     sync.Mutex
	Cancel func()
	// Wrote is set once the run changed a key: it cannot be killed any more.
	Wrote  atomic.Bool
	Killed atomic.Bool
	// Function is the name of the function if FCALL runs one. Args are the
	// command's.
	Function atomic.Pointer[string]
	Args     [][]byte
	// Since is on the monotonic clock, in microseconds.
	Since       int64
	Reservation *engine.Reservation
}

// LongRuns are those that run now.
type LongRuns struct {
	// KeysOnly: while a run is slow only commands on the keys it holds are told
	// BUSY, not all as in Redis.
	KeysOnly func() bool

	slow atomic.Pointer[LongRun] // what has run for too long, the last one found
	mu   sync.Mutex
	all  []*LongRun
}

// Add registers a run.
func (l *LongRuns) Add(r *LongRun) { l.mu.Lock(); l.all = append(l.all, r); l.mu.Unlock() }

// Remove takes a run out.
func (l *LongRuns) Remove(r *LongRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.all, r); i >= 0 {
		l.all = slices.Delete(l.all, i, i+1)
	}
	l.noteSlow()
}

// noteSlow finds what has run for too long. The lock is held.
func (l *LongRuns) noteSlow() {
	var slow *LongRun
	for _, r := range l.all {
		if r.Reservation.Slow() {
			slow = r
		}
	}
	l.slow.Store(slow)
}

// MarkSlow says that the run takes too long: those who wait for its keys are told
// so, and so may be everybody.
func (l *LongRuns) MarkSlow(r *LongRun) {
	r.Reservation.MarkSlow()
	l.mu.Lock()
	l.noteSlow()
	l.mu.Unlock()
}

// Slow is a run that has taken too long, or nil.
func (l *LongRuns) Slow() *LongRun { return l.slow.Load() }

// All lists the runs.
func (l *LongRuns) All() []*LongRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*LongRun(nil), l.all...)
}

// Busy is the error for those who wait for the run for too long.
func (r *LongRun) Busy() string {
	if r.Function.Load() != nil {
		return ErrBusyFunction
	}
	return ErrBusyScript
}
