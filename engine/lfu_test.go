package engine

import "testing"

// Two thousand accesses make a counter of about 25, whether they come at one time,
// as those of a script do, or one after the other.
func TestLFUCounter(t *testing.T) {
	for _, step := range []int64{0, 1, 1000} {
		now := int64(1_700_000_000_000_000)
		freq := lfuInitial(now)
		for n := range uint64(2000) {
			freq = lfuTouched(freq, now, n)
			now += step
		}
		if got := lfuNow(freq, now); got < 15 || got > 40 {
			t.Errorf("accesses %d µs apart: the counter is %d", step, got)
		}
	}
	freq := lfuInitial(0) + 10
	if got := lfuNow(freq, 3*60e6); got != lfuInit+10-3 {
		t.Errorf("after three minutes the counter is %d", got)
	}
}
