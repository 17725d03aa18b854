package engine

// Fences: the numbers of grants of locks. Each fence is greater than all earlier ones of any key in the keyspace, so
// nothing has to be kept of a lock that is gone. A fence is at least the time in microseconds, so the fences of a
// server that has lost its files, or the last second of them, are greater too. After the clock went back, fences
// continue from the time that it showed before. They follow the time until the year 3111, and as many numbers again
// are left after that.

import (
	"sync/atomic"

	"github.com/limitkv/limitkv/engine/lock"
)

// fenceTimeMax is the last time that a fence follows.
const fenceTimeMax = lock.FenceMax / 2

// Fences gives fences.
type Fences struct{ last atomic.Int64 }

// Next returns a fence for a grant at a time, 0 if none is left.
func (f *Fences) Next(nowMicros int64) int64 {
	for {
		last := f.last.Load()
		next := max(last+1, min(nowMicros, fenceTimeMax))
		if next > lock.FenceMax {
			return 0
		}
		if f.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

// After makes all later fences greater than one from elsewhere.
func (f *Fences) After(fence int64) {
	fence = min(fence, lock.FenceMax)
	for {
		last := f.last.Load()
		if fence <= last || f.last.CompareAndSwap(last, fence) {
			return
		}
	}
}

// Last is the last fence that was given or is known, 0 if there is none.
func (f *Fences) Last() int64 { return f.last.Load() }
