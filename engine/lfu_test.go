package engine

// Access counters grow and fall as the parameters say.

import "testing"

func lfuRule(logFactor, decayMinutes int64) *LFURule {
	r := new(LFURule)
	r.LogFactor.Store(logFactor)
	r.DecayMinutes.Store(decayMinutes)
	return r
}

// Two thousand accesses make a counter of about 25, whether they come at one time, as in a script, or one after the
// other. A higher factor makes it lower.
func TestLFUCounter(t *testing.T) {
	for _, test := range []struct {
		factor  int64
		lo, hi  uint8
		atTimes []int64
	}{
		{10, 15, 40, []int64{0, 1, 1000}},
		{0, 255, 255, []int64{0, 1}},
		{100, 7, 20, []int64{0, 1}},
		{1<<31 - 1, lfuInit, lfuInit + 1, []int64{0, 1}},
	} {
		r := lfuRule(test.factor, 1)
		for _, step := range test.atTimes {
			now := int64(1_700_000_000_000_000)
			freq := lfuInitial(now)
			for n := range uint64(2000) {
				freq = r.touched(freq, now, n)
				now += step
			}
			if got := r.now(freq, now); got < test.lo || got > test.hi {
				t.Errorf("factor %d, accesses %d µs apart: the counter is %d", test.factor, step, got)
			}
		}
	}
}

func TestLFUDecay(t *testing.T) {
	freq := lfuInitial(0) + 10
	for _, test := range []struct {
		decay, minutes int64
		want           uint8
	}{
		{1, 0, 15}, {1, 3, 12}, {1, 200, 0}, {2, 3, 14}, {5, 4, 15}, {1000, 250, 15}, {0, 250, 15},
	} {
		if got := lfuRule(10, test.decay).now(freq, test.minutes*60e6); got != test.want {
			t.Errorf("one in %d minutes: after %d minutes the counter is %d, not %d", test.decay, test.minutes, got, test.want)
		}
	}
}
