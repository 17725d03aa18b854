package engine

// The clock: the only place that reads the system's time. Everything that
// has a deadline (TTLs, limiters, queues, blocking timeouts, TIME) asks it,
// so a test can freeze the whole server and move it forward.

import (
	"sync/atomic"
	"time"
)

// Clock tells the time in Unix microseconds. It is real until it is frozen.
type Clock struct {
	frozen atomic.Bool
	at     atomic.Int64 // the time while frozen
	// offset pins the wall clock to Monotonic, which Go reads without a system call:
	// it is what the wall clock is ahead. Steps of the wall clock (NTP) are followed
	// by Resync.
	offset atomic.Int64
}

// NewClock returns a clock that runs with the system's.
func NewClock() *Clock {
	c := &Clock{}
	c.Resync()
	return c
}

// Resync takes over the system's wall clock after a step of it.
func (c *Clock) Resync() {
	c.offset.Store(time.Now().UnixMicro() - Monotonic())
}

// NotBefore has the clock go on from a time, in Unix microseconds, if the system's is
// behind that: what was logged then has happened.
func (c *Clock) NotBefore(micros int64) {
	if ahead := micros - Monotonic(); ahead > c.offset.Load() {
		c.offset.Store(ahead)
	}
}

// Now is the time in Unix microseconds.
func (c *Clock) Now() int64 {
	if c.frozen.Load() {
		return c.at.Load()
	}
	return c.offset.Load() + Monotonic()
}

// At is what Now was when Monotonic was read: who measures how long something
// takes reads one clock, not two.
func (c *Clock) At(monotonic int64) int64 {
	if c.frozen.Load() {
		return c.at.Load()
	}
	return c.offset.Load() + monotonic
}

// Freeze stops the clock at the given Unix time in microseconds.
func (c *Clock) Freeze(atMicros int64) {
	c.at.Store(atMicros)
	c.frozen.Store(true)
}

// Resume lets the clock run with the system's again.
func (c *Clock) Resume() {
	c.Resync()
	c.frozen.Store(false)
}

// Frozen tells whether the clock stands still.
func (c *Clock) Frozen() bool { return c.frozen.Load() }

// Monotonic is a running count of microseconds for measuring how long work
// took. It never stands still, also while the clock is frozen.
func Monotonic() int64 { return int64(time.Since(processStart) / time.Microsecond) }

var processStart = time.Now()
