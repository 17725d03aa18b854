// Package longrun, internal to the server, manages commands that take long, above all scripts. Such a command stays on its
// goroutine, while the event loop continues on another one. Its shards are reserved, and its connection is paused.
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
	// Since is the start on the monotonic clock, in microseconds.
	Since       int64
	Reservation *engine.Reservation

	// What follows is about the running script. EXEC can run several, one after the other.
	mu       sync.Mutex
	cancel   func()  // stops the script; nil if none runs
	stopped  bool    // the server ends: all scripts must end
	script   bool    // the command runs a script, or has run one
	function *string // name of the running function, nil if it is not a function
	fate     fate
}

// fate tells whether a script can still be killed. A script that has written cannot be killed, and a killed one cannot write.
type fate uint8

const (
	fateOpen fate = iota
	fateWrote
	fateKilled
)

// Begin is called when a script of the command takes long. cancel ends the script. function is its name if it is a function.
// It can be killed unless it has written.
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

// Writes is called before the script writes. It reports false if the script was killed.
func (r *Run) Writes() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fate == fateOpen {
		r.fate = fateWrote
	}
	return r.fate == fateWrote
}

// Killing is the result of an attempt to kill a script.
type Killing uint8

// The results.
const (
	KillNone    Killing = iota // the command runs no script
	KillDone                   // it is ending
	KillTooLate                // it has written
	KillOther                  // a script instead of a function, or the reverse
)

// Kill ends the script, or, if function is set, the function.
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

// Stop ends the command's scripts even if they have written, since the server ends.
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

// Function is the name of the running function, nil if there is none.
func (r *Run) Function() *string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.function
}

// The errors for clients that wait for a run for too long.
const (
	ErrBusyScript   = "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE."
	ErrBusyFunction = "BUSY Redis is busy running a script. You can only call FUNCTION KILL or SHUTDOWN NOSAVE."
)

// Runs holds the present runs.
type Runs struct {
	// KeysOnly: while a run is slow, only commands on its keys are refused with BUSY. In Redis all are.
	KeysOnly atomic.Bool

	slow atomic.Pointer[Run] // the last run in the list that has taken too long
	mu   sync.Mutex
	all  []*Run
	over bool // the server ends

	total atomic.Int64
}

// Total is the number of runs since the start.
func (l *Runs) Total() int64 { return l.total.Load() }

// Guard is the mutex of the list, for the check that no lock was left locked.
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

// Stop ends all present and future scripts that take long, since the server ends.
func (l *Runs) Stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, r := range l.all {
		r.Stop()
	}
}

// Wait waits until the runs that Stop ends have ended.
func (l *Runs) Wait() {
	for _, r := range l.All() {
		if r.runsScript() {
			r.Reservation.Wait()
		}
	}
}

// Scripts tells whether a run runs a script, or has run one. Other commands need no Stop to end.
func (l *Runs) Scripts() bool { return slices.ContainsFunc(l.All(), (*Run).runsScript) }

func (r *Run) runsScript() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.script
}

// Remove unregisters a run.
func (l *Runs) Remove(r *Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.all, r); i >= 0 {
		l.all = slices.Delete(l.all, i, i+1)
	}
	l.noteSlow()
}

// noteSlow finds a run that has taken too long. The caller holds mu.
func (l *Runs) noteSlow() {
	var slow *Run
	for _, r := range l.all {
		if r.Reservation.Slow() {
			slow = r
		}
	}
	l.slow.Store(slow)
}

// MarkSlow marks a run as too slow. Clients that wait for its keys get BUSY, and, unless KeysOnly, all clients do.
func (l *Runs) MarkSlow(r *Run) {
	r.Reservation.MarkSlow()
	l.mu.Lock()
	l.noteSlow()
	l.mu.Unlock()
}

// Slow returns a run that has taken too long, or nil.
func (l *Runs) Slow() *Run { return l.slow.Load() }

// All lists the runs.
func (l *Runs) All() []*Run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*Run(nil), l.all...)
}

// Busy is the error for clients that wait for the run for too long.
func (r *Run) Busy() string {
	if r.Function() != nil {
		return ErrBusyFunction
	}
	return ErrBusyScript
}
