// This file is for commands that follow the convention of redis-cell's CL.THROTTLE: the limit is max_burst plus one,
// and a cost that can never be granted is refused instead of being an error.

package limiter

// CellRule is the rule of CL.THROTTLE and GCRA: count per period, and at most maxBurst+1 at once. It returns Validate's
// errors.
func CellRule(maxBurst, count, periodMicros int64) (Rule, error) {
	if maxBurst < 0 || maxBurst >= CountMax {
		return Rule{}, ErrBurst
	}
	r := Rule{Algorithm: GCRA, Count: count, PeriodMicros: periodMicros, Burst: maxBurst + 1}
	return r, r.Validate()
}

// Throttle takes a quantity as redis-cell does: 0 takes nothing, and a quantity above the capacity is limited with
// RetryAfterMicros -1. redis-cell replies times in whole seconds, see CeilSeconds.
func Throttle(p []byte, now, quantity int64) ([]byte, Decision, error) {
	switch {
	case quantity < 0 || quantity > CountMax:
		return p, Decision{}, ErrCost
	case quantity == 0:
		return Take(p, now, 0, Peek)
	case quantity <= Capacity(p) || p[0]&shadowFlag != 0:
		return Take(p, now, quantity, Try)
	}
	p, d, err := Take(p, now, 0, Peek)
	d.Limited, d.RetryAfterMicros = true, -1
	return CountRefused(p), d, err
}
