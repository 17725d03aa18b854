// This file is WINDOW and FIXED, which count in windows of one period. A window
// starts with a request, not at a round time, so that limiters do not all turn
// over together.
//
// FIXED: what was taken since the window started, and nothing once it is over.
//
// WINDOW: the windows follow each other without a gap, and what the one before
// took is weighted by the part of it that a sliding window would still cover:
//
//	used = current + ceil(previous * (period - elapsed) / period)
//
// in integers, rounded up. Stated error: this is exact if the window before was
// taken from evenly. At worst it is off by all that was taken in it, in either
// direction: never more than count in one of its windows, never more than
// count + previous*elapsed/period in any stretch of one period, which is below
// twice the count.
package limiter

import (
	"encoding/binary"
	"math/bits"
)

const (
	fixedStart = 0 // int64: when the window began
	fixedUsed  = 8 // uint48: what was taken in it; 0 if there is none, and since start
	fixedSize  = 14

	windowStart    = 0  // int64: when the current window began
	windowCurrent  = 8  // uint48: what was taken in it
	windowPrevious = 14 // uint48: and in the one before
	windowSize     = 20
)

func loadFixed(state []byte) (start, used int64) {
	return int64(binary.LittleEndian.Uint64(state[fixedStart:])), int64(uint48(state[fixedUsed:]))
}

// fixedLoad is the window as it is at now.
func (r Rule) fixedLoad(state []byte, now int64) (start, used int64) {
	start, used = loadFixed(state)
	if used == 0 || now-start >= r.PeriodMicros {
		return now, 0
	}
	return start, used
}

func fixedStore(state []byte, start, used int64) {
	binary.LittleEndian.PutUint64(state[fixedStart:], uint64(start))
	putUint48(state[fixedUsed:], uint64(used))
}

func (r Rule) fixedWait(state []byte, now, cost int64) int64 {
	start, used := r.fixedLoad(state, now)
	if used+cost <= r.Count {
		return 0
	}
	return start + r.PeriodMicros - now
}

func (r Rule) fixedRoom(state []byte, now int64) (available, reset int64) {
	start, used := r.fixedLoad(state, now)
	if used == 0 {
		return r.Count, 0
	}
	return r.Count - used, start + r.PeriodMicros - now
}

func (r Rule) fixedTake(state []byte, now, cost int64) {
	start, used := r.fixedLoad(state, now)
	fixedStore(state, start, used+cost)
}

func (r Rule) fixedGive(state []byte, now, n int64) {
	start, used := r.fixedLoad(state, now)
	if used -= min(n, used); used == 0 {
		start = now
	}
	fixedStore(state, start, used)
}

func (r Rule) fixedCarry(state []byte, now int64, old Rule, oldState []byte) {
	start, used := old.fixedLoad(oldState, now)
	fixedStore(state, start, used)
}

// window is a WINDOW's state, taken apart.
type window struct {
	start             int64
	current, previous int64
}

func loadWindow(state []byte) window {
	return window{
		start:    int64(binary.LittleEndian.Uint64(state[windowStart:])),
		current:  int64(uint48(state[windowCurrent:])),
		previous: int64(uint48(state[windowPrevious:])),
	}
}

// windowLoad is the pair of windows as it is at now: start <= now < start+period
// unless the clock was put back, where start is now.
func (r Rule) windowLoad(state []byte, now int64) window {
	w := loadWindow(state)
	switch elapsed := now - w.start; {
	case elapsed >= 2*r.PeriodMicros || w.current == 0 && w.previous == 0:
		return window{start: now}
	case elapsed >= r.PeriodMicros:
		w = window{w.start + r.PeriodMicros, 0, w.current}
		if w.previous == 0 {
			return window{start: now}
		}
	case elapsed < 0:
		w.start = now
	}
	return w
}

func (w window) store(state []byte) {
	binary.LittleEndian.PutUint64(state[windowStart:], uint64(w.start))
	putUint48(state[windowCurrent:], uint64(w.current))
	putUint48(state[windowPrevious:], uint64(w.previous))
}

// weighted is ceil(n*left/period), what n of the window before still count for.
func (r Rule) weighted(n, left int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(left))
	whole, rest := bits.Div64(hi, lo, uint64(r.PeriodMicros))
	if rest > 0 {
		whole++
	}
	return int64(whole)
}

// fades is how far into a window n of the one before weigh at most room: the
// smallest elapsed with n*(period-elapsed) <= period*room.
func (r Rule) fades(n, room int64) int64 {
	if n <= room {
		return 0
	}
	// room < n, so this is below the period.
	hi, lo := bits.Mul64(uint64(r.PeriodMicros), uint64(room))
	left, _ := bits.Div64(hi, lo, uint64(n))
	return r.PeriodMicros - int64(left)
}

func (r Rule) windowUsed(w window, now int64) int64 {
	return w.current + r.weighted(w.previous, r.PeriodMicros-(now-w.start))
}

func (r Rule) windowWait(state []byte, now, cost int64) int64 {
	w := r.windowLoad(state, now)
	if room := r.Count - cost - w.current; room >= 0 {
		return max(0, w.start+r.fades(w.previous, room)-now)
	}
	return w.start + r.PeriodMicros + r.fades(w.current, r.Count-cost) - now
}

func (r Rule) windowRoom(state []byte, now int64) (available, reset int64) {
	w := r.windowLoad(state, now)
	available = r.Count - r.windowUsed(w, now)
	switch {
	case w.current > 0:
		reset = w.start + 2*r.PeriodMicros - now
	case w.previous > 0:
		reset = w.start + r.PeriodMicros - now
	}
	return available, reset
}

func (r Rule) windowTake(state []byte, now, cost int64) {
	w := r.windowLoad(state, now)
	w.current += cost
	w.store(state)
}

// windowGive gives back n, from the window before as long as that still weighs:
// whoever gives back, the rule's bound holds.
func (r Rule) windowGive(state []byte, now, n int64) {
	w := r.windowLoad(state, now)
	left := r.PeriodMicros - (now - w.start)
	weight := r.weighted(w.previous, left)
	if n < weight {
		// The most that weighs n less; weight-n < previous, so this is below it.
		hi, lo := bits.Mul64(uint64(weight-n), uint64(r.PeriodMicros))
		previous, _ := bits.Div64(hi, lo, uint64(left))
		w.previous = min(w.previous, int64(previous))
		n = 0
	} else {
		w.previous = 0
		n -= weight
	}
	w.current -= min(n, w.current)
	if w.current == 0 && w.previous == 0 {
		w.start = now
	}
	w.store(state)
}

// windowCarry keeps the counts and the place in the window. A place that the new
// period does not have is rounded so that a shorter period never counts more
// than the old one did and a longer one never less.
func (r Rule) windowCarry(state []byte, now int64, old Rule, oldState []byte) {
	w := old.windowLoad(oldState, now)
	hi, lo := bits.Mul64(uint64(now-w.start), uint64(r.PeriodMicros))
	elapsed, rest := bits.Div64(hi, lo, uint64(old.PeriodMicros))
	if rest > 0 && r.PeriodMicros < old.PeriodMicros {
		elapsed++
	}
	w.start = now - int64(elapsed)
	w.store(state)
}
