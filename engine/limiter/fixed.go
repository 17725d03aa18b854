// This file is FIXED, which counts in windows of one period. A window starts with the first request after the previous
// one ended, not at a round time, so that limiters do not all reset together.

package limiter

import (
	"encoding/binary"
	"fmt"
)

// Fixed is a window that starts with the first request after the last one ended.
const Fixed Algorithm = 3

func init() {
	register(Fixed, &algorithm{
		word: "FIXED", grammar: countPerPeriod, version: 1,
		size: func(Rule, []byte) int { return fixedSize },
		wait: Rule.fixedWait, take: Rule.fixedTake, room: Rule.fixedRoom, bears: Rule.usedBears, give: Rule.fixedGive,
		during: Rule.fixedDuring, settle: Rule.fixedSettle, over: Rule.overWhenFull,
		fullAt: Rule.fixedFullAt, carry: Rule.fixedCarry, back: Rule.startBack, check: Rule.fixedCheck,
	})
}

const (
	fixedStart = 0 // int64: when the window began
	fixedUsed  = 8 // uint48: what was taken in it; if 0, there has been no window since start
	fixedSize  = 14
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

func fixedStore(state []byte, start, used int64) []byte {
	binary.LittleEndian.PutUint64(state[fixedStart:], uint64(start))
	putUint48(state[fixedUsed:], uint64(used))
	return state
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

func (r Rule) fixedTake(state []byte, now, cost int64) []byte {
	start, used := r.fixedLoad(state, now)
	return fixedStore(state, start, used+cost)
}

func (r Rule) fixedGive(state []byte, now, n int64) {
	start, used := r.fixedLoad(state, now)
	if used -= min(n, used); used == 0 {
		start = now
	}
	fixedStore(state, start, used)
}

func (r Rule) fixedDuring(state []byte, now, _ int64, g spent) int64 {
	start, used := r.fixedLoad(state, now)
	switch {
	case used == 0:
		return g.taken + r.PeriodMicros - now // no other window has begun
	case g.taken >= start:
		return start + r.PeriodMicros - now
	}
	return 0
}

func (r Rule) fixedSettle(state []byte, now, diff int64, g spent) []byte {
	start, used := r.fixedLoad(state, now)
	if used == 0 {
		start = g.taken
	}
	if used -= min(diff, used); used == 0 {
		start = now
	}
	return fixedStore(state, start, used)
}

func (r Rule) fixedFullAt(state []byte) int64 {
	start, used := loadFixed(state)
	if used == 0 {
		return start
	}
	return start + r.PeriodMicros
}

func (r Rule) fixedCarry(state []byte, now int64, old Rule, oldState []byte) []byte {
	start, used := old.fixedLoad(oldState, now)
	return fixedStore(state, start, used)
}

func (r Rule) fixedCheck(state []byte) error {
	if start, used := loadFixed(state); start < 0 || start > TimeMax || used > UsedMax {
		return fmt.Errorf("%d used from %d", used, start)
	}
	return nil
}
