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
	// base and start pin the wall clock to the monotonic one, which Go reads
	// without a system call; steps of the wall clock (NTP) are followed by
	// resync, at most once a second.
	base atomic.Pointer[clockBase]
}

type clockBase struct {
	start      time.Time
	wallMicros int64
}

// NewClock returns a clock that runs with the system's.
func NewClock() *Clock {
	c := &Clock{}
	c.Resync()
	return c
}

// Resync takes over the system's wall clock after a step of it.
func (c *Clock) Resync() {
	t := time.Now()
	c.base.Store(&clockBase{start: t, wallMicros: t.UnixMicro()})
}

// Now is the time in Unix microseconds.
func (c *Clock) Now() int64 {
	if c.frozen.Load() {
		return c.at.Load()
	}
	b := c.base.Load()
	return b.wallMicros + int64(time.Since(b.start)/time.Microsecond)
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
