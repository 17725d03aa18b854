package command

// Commands that may run long – scripts that are not bounded – run off the
// event loop: their shards are reserved, their connection is paused, and
// others go on.

import (
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
	mu  sync.Mutex
	all []*LongRun
}

// Add registers a run.
func (l *LongRuns) Add(r *LongRun) { l.mu.Lock(); l.all = append(l.all, r); l.mu.Unlock() }

// Remove takes a run out.
func (l *LongRuns) Remove(r *LongRun) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, x := range l.all {
		if x == r {
			l.all = append(l.all[:i], l.all[i+1:]...)
			return
		}
	}
}

// All lists the runs.
func (l *LongRuns) All() []*LongRun {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*LongRun(nil), l.all...)
}

// ScriptIsSlow tells whether something runs for longer than others are made to
// wait for it.
func (s *Server) ScriptIsSlow() bool {
	for _, r := range s.Long.All() {
		if r.Reservation.Slow() {
			return true
		}
	}
	return false
}

// Busy is the error for those who wait for the run for too long.
func (r *LongRun) Busy() string {
	if r.Function.Load() != nil {
		return ErrBusyFunction
	}
	return ErrBusyScript
}
