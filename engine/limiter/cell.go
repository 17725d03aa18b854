// This file is the form that redis-cell's CL.THROTTLE made the convention, for
// the commands that keep it: max_burst tokens beside the one at hand, and a cost
// that can never be granted is refused instead of being an error.

package limiter

// CellRule is the rule that CL.THROTTLE and GCRA mean: count per period, and
// maxBurst+1 at once. It returns Validate's errors.
func CellRule(maxBurst, count, periodMicros int64) (Rule, error) {
	if maxBurst < 0 || maxBurst >= CountMax {
		return Rule{}, ErrBurst
	}
	r := Rule{Algorithm: GCRA, Count: count, PeriodMicros: periodMicros, Burst: maxBurst + 1}
	return r, r.Validate()
}

// Throttle takes a quantity as redis-cell does: 0 looks and takes nothing, one
// above the capacity is limited with RetryAfterMicros -1. The times are whole
// seconds in redis-cell's reply, see CeilSeconds.
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
