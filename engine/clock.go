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
	// offset is how far the wall clock is ahead of Monotonic, which Go reads without a system call. The two run at
	// the same rate, so only steps of the wall clock change it (NTP, an administrator, a machine that was suspended).
	// The scheduler follows these.
	offset atomic.Int64
	skew   atomic.Int64 // what a test adds to the system's clock
	past   atomic.Int64 // see Passed
}

// NewClock returns a clock that runs with the system's.
func NewClock() *Clock {
	c := &Clock{}
	c.Resync()
	return c
}

// Resync takes over the system's wall clock after a step of it.
func (c *Clock) Resync() {
	offset, _ := c.system()
	c.offset.Store(offset)
}

// system returns how far the system's wall clock is ahead of Monotonic, and how wrong that may be: a goroutine that
// is stopped between two readings sees a step where there is none.
func (c *Clock) system() (offset, unsure int64) {
	before := Monotonic()
	t := time.Now()
	unsure = Monotonic() - before
	return t.UnixMicro() - int64(t.Sub(processStart)/time.Microsecond) + c.skew.Load(), unsure
}

// OffMicros is how far the clock is ahead of the system's, negative if it is behind.
func (c *Clock) OffMicros() int64 {
	offset, _ := c.system()
	return c.Now() - Monotonic() - offset
}

// StepSystem makes a step of the system's clock, as seen by this clock alone: tests cannot set the machine's.
func (c *Clock) StepSystem(micros int64) { c.skew.Add(micros) }

// stepMicros is the smallest step of the system's clock that is followed.
const stepMicros = 1000

// stepped is how far the system's clock has stepped since the last step was followed, 0 if it has not, or the clock
// is frozen.
func (c *Clock) stepped() int64 {
	if c.frozen.Load() {
		return 0
	}
	offset, unsure := c.system()
	step := offset - c.offset.Load()
	if max(step, -step) < stepMicros+unsure {
		return 0
	}
	return step
}

// step moves the clock by a step, in microseconds.
func (c *Clock) step(micros int64) {
	if micros < 0 {
		c.Passed(c.Now())
	}
	if c.frozen.Load() {
		c.at.Add(micros)
	} else {
		c.offset.Add(micros)
	}
}

// Passed notes that the clock has shown a time before, in Unix microseconds, as files say: numbers made from the time
// may have been that large. The clock still shows the system's time.
func (c *Clock) Passed(micros int64) {
	for {
		past := c.past.Load()
		if micros <= past || c.past.CompareAndSwap(past, micros) {
			return
		}
	}
}

// ForNumbers is the time from which to make a number that must not have been given before: now, or the latest time
// that the clock showed before it went back.
func (c *Clock) ForNumbers(now int64) int64 { return max(now, c.past.Load()) }

// Now is the time in Unix microseconds.
func (c *Clock) Now() int64 {
	if c.frozen.Load() {
		return c.at.Load()
	}
	return c.offset.Load() + Monotonic()
}

// At is what Now was when Monotonic was read. So a caller that measures how long something takes reads one clock, not
// two.
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

// Monotonic is a running count of microseconds for measuring how long work took. It never stands still, not even
// while the clock is frozen.
func Monotonic() int64 { return int64(time.Since(processStart) / time.Microsecond) }

var processStart = time.Now()
