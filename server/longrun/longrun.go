// Package longrun, internal to the server, keeps the commands that take long – scripts above all.
// They keep their goroutine; the event loop goes on on another one, their shards are reserved,
// their connection is paused.
package longrun

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
)

// Run is a command that takes long.
type Run struct {
	// Args are the command's.
	Args [][]byte
	// Since is on the monotonic clock, in microseconds.
	Since       int64
	Reservation *engine.Reservation

	// Of the script that the command runs now; of EXEC they are several, one after the
	// other.
	mu       sync.Mutex
	cancel   func()  // stops it, nil if there is none
	stopped  bool    // the server ends: no script is to go on
	script   bool    // the command runs one, or has
	function *string // the name of the function if it is one
	fate     fate
}

// fate is whether a script can still be killed: not once it has written, and it does
// not write once it has been.
type fate uint8

const (
	fateOpen fate = iota
	fateWrote
	fateKilled
)

// Begin is called when a script of the command takes long: it can be killed unless
// it has written. cancel makes it end. function is its name, if it is a function.
func (r *Run) Begin(function *string, wrote bool, cancel func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancel, r.function, r.fate, r.script = cancel, function, fateOpen, true
	if wrote {
		r.fate = fateWrote
	}
	if r.stopped {
		cancel()
	}
}

// End is called when the script has ended.
func (r *Run) End() {
	r.mu.Lock()
	r.cancel = nil
	r.mu.Unlock()
}

// Writes is called before the script writes. It reports false if it was killed.
func (r *Run) Writes() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fate == fateOpen {
		r.fate = fateWrote
	}
	return r.fate == fateWrote
}

// Killing is what became of a try to kill a script.
type Killing uint8

// What becomes of it.
const (
	KillNone    Killing = iota // the command runs no script
	KillDone                   // it ends
	KillTooLate                // it has written
	KillOther                  // it is a function, or is none
)

// Kill ends the script, or the function.
func (r *Run) Kill(function bool) Killing {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.cancel == nil:
		return KillNone
	case r.fate == fateWrote:
		return KillTooLate
	case (r.function != nil) != function:
		return KillOther
	}
	r.fate = fateKilled
	r.cancel()
	return KillDone
}

// Stop ends the command's scripts whatever they have done: the server ends.
func (r *Run) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	if r.cancel != nil {
		r.cancel()
	}
}

// Stopped tells whether the server ends.
func (r *Run) Stopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

// Function is the name of the function that runs, nil if none does.
func (r *Run) Function() *string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.function
}

// The errors for those who wait for a run for too long.
const (
	ErrBusyScript   = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	ErrBusyFunction = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
)

// Runs are those that run now.
type Runs struct {
	// KeysOnly: while a run is slow only commands on the keys it holds are told
	// BUSY, not all as in Redis.
	KeysOnly atomic.Bool

	slow atomic.Pointer[Run] // what has run for too long, the last one found
	mu   sync.Mutex
	all  []*Run
	over bool // the server ends

	total atomic.Int64
}

// Total is how many there ever were.
func (l *Runs) Total() int64 { return l.total.Load() }

// Guard is the lock of the list, for who looks for locks that were left.
func (l *Runs) Guard() *sync.Mutex { return &l.mu }

// Add registers a run.
func (l *Runs) Add(r *Run) {
	l.total.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, r)
	if l.over {
		r.Stop()
	}
}

// Stop ends all scripts that take long, and those that will: the server ends.
func (l *Runs) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, r := range l.all {
		r.Stop()
	}
}

// Wait waits for the commands that Stop has ended.
func (l *Runs) Wait() {
	for _, r := range l.All() {
		if r.runsScript() {
			r.Reservation.Wait()
		}
	}
}

// Scripts tells whether one of them runs a script, or has. The others end by themselves.
func (l *Runs) Scripts() bool { return slices.ContainsFunc(l.All(), (*Run).runsScript) }

func (r *Run) runsScript() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.script
}

// Remove takes a run out.
func (l *Runs) Remove(r *Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.all, r); i >= 0 {
		l.all = slices.Delete(l.all, i, i+1)
	}
	l.noteSlow()
}

// noteSlow finds what has run for too long. The lock is held.
func (l *Runs) noteSlow() {
	var slow *Run
	for _, r := range l.all {
		if r.Reservation.Slow() {
			slow = r
		}
	}
	l.slow.Store(slow)
}

// MarkSlow says that the run takes too long: those who wait for its keys are told
// so, and so may be everybody.
func (l *Runs) MarkSlow(r *Run) {
	r.Reservation.MarkSlow()
	l.mu.Lock()
	l.noteSlow()
	l.mu.Unlock()
}

// Slow is a run that has taken too long, or nil.
func (l *Runs) Slow() *Run { return l.slow.Load() }

// All lists the runs.
func (l *Runs) All() []*Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*Run(nil), l.all...)
}

// Busy is the error for those who wait for the run for too long.
func (r *Run) Busy() string {
	if r.Function() != nil {
		return ErrBusyFunction
	}
	return ErrBusyScript
}
