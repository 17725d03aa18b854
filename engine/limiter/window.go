// This file is WINDOW, the sliding window made of two counters. The windows of one period follow each other without a gap,
// and what the one before took is weighted by the part of it that a sliding window would still cover:
//
//	used = current + ceil(previous * (period - elapsed) / period)
//
// in integers, rounded up. This is exact if the previous window was taken from evenly. At worst it is off by all that
// was taken in it, in either direction: never more than count in one of its windows, never more than count +
// previous*elapsed/period in any stretch of one period, which is below twice the count. A window starts with a request,
// as in FIXED.

package limiter

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Window is the sliding window made of two counters, the older one weighted.
const Window Algorithm = 2

func init() {
	register(Window, &algorithm{
		word: "WINDOW", grammar: countPerPeriod, version: 1,
		size: func(Rule, []byte) int { return windowSize },
		wait: Rule.windowWait, take: Rule.windowTake, room: Rule.windowRoom, bears: Rule.windowBears, give: Rule.windowGive,
		during: Rule.windowDuring, settle: Rule.windowSettle, over: Rule.overWhenFull,
		fullAt: Rule.windowFullAt, carry: Rule.windowCarry, back: Rule.startBack, check: Rule.windowCheck,
	})
}

const (
	windowStart    = 0  // int64: when the current window began
	windowCurrent  = 8  // uint48: what was taken in it
	windowPrevious = 14 // uint48: and in the one before
	windowSize     = 20
)

// window is a WINDOW's state, decoded.
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

// windowLoad is the pair of windows as it is at now: start <= now < start+period. If the clock was set back, start is
// now.
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

func (w window) store(state []byte) []byte {
	binary.LittleEndian.PutUint64(state[windowStart:], uint64(w.start))
	putUint48(state[windowCurrent:], uint64(w.current))
	putUint48(state[windowPrevious:], uint64(w.previous))
	return state
}

// weighted is ceil(n*left/period): what n of the previous window still count.
func (r Rule) weighted(n, left int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(left))
	whole, rest := bits.Div64(hi, lo, uint64(r.PeriodMicros))
	if rest > 0 {
		whole++
	}
	return int64(whole)
}

// fades is how far into a window n of the previous one count for room or less: the smallest elapsed with
// n*(period-elapsed) <= period*room.
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

func (r Rule) windowTake(state []byte, now, cost int64) []byte {
	w := r.windowLoad(state, now)
	w.current += cost
	return w.store(state)
}

func (r Rule) windowBears(state []byte, now, cost int64) bool {
	return r.windowLoad(state, now).current+cost < UsedMax
}

// windowGive gives back n, first from the previous window while that still counts: so the rule's bound holds, whoever
// gives back.
func (r Rule) windowGive(state []byte, now, n int64) {
	w := r.windowLoad(state, now)
	left := r.PeriodMicros - (now - w.start)
	weight := r.weighted(w.previous, left)
	if n < weight {
		// The most that counts n less. weight-n < previous, so this is below previous.
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

// windowCarry keeps the counts and the place in the window. A place that the new period cannot express is rounded so
// that a shorter period never counts more than the old one did, and a longer one never less.
func (r Rule) windowCarry(state []byte, now int64, old Rule, oldState []byte) []byte {
	w := old.windowLoad(oldState, now)
	hi, lo := bits.Mul64(uint64(now-w.start), uint64(r.PeriodMicros))
	elapsed, rest := bits.Div64(hi, lo, uint64(old.PeriodMicros))
	if rest > 0 && r.PeriodMicros < old.PeriodMicros {
		elapsed++
	}
	w.start = now - int64(elapsed)
	return w.store(state)
}

func (r Rule) windowDuring(state []byte, now, _ int64, g spent) int64 {
	switch w := r.windowLoad(state, now); {
	case g.taken >= w.start, w.current == 0 && w.previous == 0:
		return g.taken + 2*r.PeriodMicros - now
	case g.taken >= w.start-r.PeriodMicros:
		return w.start + r.PeriodMicros - now
	}
	return 0
}

func (r Rule) windowSettle(state []byte, now, diff int64, g spent) []byte {
	w := r.windowLoad(state, now)
	if w.current == 0 && w.previous == 0 { // no other window has begun
		if w.start = g.taken; now-g.taken >= r.PeriodMicros {
			w.start += r.PeriodMicros
		}
	}
	count := &w.current
	if g.taken < w.start {
		count = &w.previous
	}
	*count -= min(diff, *count)
	if w.current == 0 && w.previous == 0 {
		w.start = now
	}
	return w.store(state)
}

func (r Rule) windowFullAt(state []byte) int64 {
	w := loadWindow(state)
	switch {
	case w.current > 0:
		return w.start + 2*r.PeriodMicros
	case w.previous > 0:
		return w.start + r.PeriodMicros
	}
	return w.start
}

func (r Rule) windowCheck(state []byte) error {
	if w := loadWindow(state); w.start < 0 || w.start > TimeMax || w.current > UsedMax || w.previous > UsedMax {
		return fmt.Errorf("%d and %d used from %d", w.current, w.previous, w.start)
	}
	return nil
}
