package limiter

import "testing"

// The five integers that redis-cell documents for a sequence of calls: its rule
// of 5 at once and one a second, times in ms.
func TestThrottleSequence(t *testing.T) {
	r, err := CellRule(4, 60, 60*second)
	if err != nil {
		t.Fatal(err)
	}
	p := New(nil, []Rule{r}, false)
	for i, c := range []struct {
		atMillis, quantity int64
		want               [5]int64
	}{
		{0, 6, [5]int64{1, 5, 5, -1, 0}},
		{0, 1, [5]int64{0, 5, 4, -1, 1}},
		{0, 1, [5]int64{0, 5, 3, -1, 2}},
		{0, 1, [5]int64{0, 5, 2, -1, 3}},
		{0, 1, [5]int64{0, 5, 1, -1, 4}},
		{0, 1, [5]int64{0, 5, 0, -1, 5}},
		{0, 1, [5]int64{1, 5, 0, 1, 5}},
		{3000, 1, [5]int64{0, 5, 2, -1, 3}},
		{3100, 1, [5]int64{0, 5, 1, -1, 4}}, // 3.9 s
		{4000, 1, [5]int64{0, 5, 1, -1, 4}},
		{8000, 1, [5]int64{0, 5, 4, -1, 1}},
		{9500, 1, [5]int64{0, 5, 4, -1, 1}},
		{9500, 0, [5]int64{0, 5, 4, -1, 1}},
		{9500, 2, [5]int64{0, 5, 2, -1, 3}},
		{9500, 5, [5]int64{1, 5, 2, 3, 3}},
		{9500, 6, [5]int64{1, 5, 2, -1, 3}},
	} {
		var d Decision
		p, d, err = Throttle(p, start+c.atMillis*1000, c.quantity)
		got := [5]int64{0, d.Limit, d.Remaining, CeilSeconds(d.RetryAfterMicros), CeilSeconds(d.ResetAfterMicros)}
		if d.Limited {
			got[0] = 1
		}
		if err != nil || got != c.want {
			t.Errorf("call %d: %v %v, want %v", i, got, err, c.want)
		}
	}
	if _, _, err := Throttle(p, start, -1); err != ErrCost {
		t.Errorf("negative quantity: %v", err)
	}
}

// cellModel is redis-cell's arithmetic as in its source: nanoseconds, a truncated emission interval, seconds rounded up
// if milliseconds are left over.
type cellModel struct{ tat int64 }

func (m *cellModel) throttle(nowMicros, maxBurst, count, periodSeconds, quantity int64) [5]int64 {
	now, interval := nowMicros*1000, periodSeconds*1_000_000_000/count
	tolerance, increment := interval*(maxBurst+1), interval*quantity
	if m.tat < now { // the key expired
		m.tat = now
	}
	reply := [5]int64{0, maxBurst + 1, 0, -1, 0}
	ttl := m.tat - now
	if wait := m.tat + increment - tolerance - now; wait > 0 {
		reply[0] = 1
		if increment <= tolerance {
			reply[3] = cellSeconds(wait)
		}
	} else {
		m.tat += increment
		ttl = m.tat - now
	}
	if next := tolerance - ttl; next > -interval {
		reply[2] = int64(float64(next/1000) / float64(interval/1000))
	}
	reply[4] = cellSeconds(ttl)
	return reply
}

func cellSeconds(nanos int64) int64 {
	seconds := nanos / 1_000_000_000
	if nanos/1_000_000%1000 > 0 {
		seconds++
	}
	return seconds
}

// The same integers for the same calls, for rates whose interval is a whole number of microseconds, and times of whole
// milliseconds. For others redis-cell rounds, and this does not.
func TestThrottleAsRedisCell(t *testing.T) {
	rnd := newSeed(t)
	limited, passed := 0, 0
	for range 400 {
		period := []int64{1, 2, 10, 60, 3600, 86400}[rnd.IntN(6)]
		count := []int64{1, 2, 4, 5, 10, 20, 50, 100, 1000}[rnd.IntN(9)]
		maxBurst := rnd.Int64N(20)
		r, err := CellRule(maxBurst, count, period*second)
		if err != nil {
			t.Fatal(err)
		}
		p, model, now := New(nil, []Rule{r}, false), &cellModel{}, start
		for range 100 {
			now += 1000 * rnd.Int64N(1+period*1000/count) * rnd.Int64N(3)
			quantity := rnd.Int64N(4)
			if rnd.IntN(10) == 0 {
				quantity = rnd.Int64N(maxBurst + 4)
			}
			var d Decision
			p, d, err = Throttle(p, now, quantity)
			got := [5]int64{0, d.Limit, d.Remaining, CeilSeconds(d.RetryAfterMicros), CeilSeconds(d.ResetAfterMicros)}
			if d.Limited {
				got[0] = 1
				limited++
			} else {
				passed++
			}
			if want := model.throttle(now, maxBurst, count, period, quantity); got != want || err != nil {
				t.Fatalf("%v, quantity %d: %v %v, redis-cell %v", r, quantity, got, err, want)
			}
		}
	}
	if limited < 1000 || passed < 1000 {
		t.Errorf("only %d limited, %d passed", limited, passed)
	}
}
