package limiter

import (
	"testing"
)

// A log never grows beyond its limit, and pays for that only with time: it never grants more than the count, and each
// cost comes back at most period/logThin late.
func TestLogThinned(t *testing.T) {
	rnd := newSeed(t)
	for _, period := range []int64{20_000, 1 * second, 3600 * second, PeriodMicrosMax} {
		r := Rule{Algorithm: Log, Count: 100_000, PeriodMicros: period}
		p := New(nil, []Rule{r}, false)
		exact := &naiveLog{rule: r}
		now, granted, late := start, 0, 0
		late100 := 4 * period / logThin
		live := 0 // first event that still counts
		used := int64(0)
		for range 150_000 {
			now += 1 + rnd.Int64N(2*period/100_000+1)
			for live < len(exact.list) && exact.list[live].at+period <= now {
				used -= exact.list[live].cost
				live++
			}
			cost := 1 + rnd.Int64N(3)
			var d Decision
			p, d, _ = Take(p, now, cost, Try)
			if len(p) > headSize+logFixed+logAreaMax+20 {
				t.Fatalf("%d bytes", len(p))
			}
			switch fits := used+cost <= r.Count; {
			case !d.Limited && !fits:
				t.Fatalf("period %d: granted %d with %d used", period, cost, used)
			case d.Limited && fits:
				// Only because costs come back late: those of the last moments.
				back := int64(0)
				for i := live - 1; i >= 0 && exact.list[i].at+period+late100 > now; i-- {
					back += exact.list[i].cost
				}
				if used+back+cost <= r.Count {
					t.Fatalf("period %d: refused %d with %d used, %d late", period, cost, used, back)
				}
				late++
			case !d.Limited:
				exact.list = append(exact.list, event{now, cost})
				used += cost
				granted++
			}
		}
		if err := Check(p); err != nil {
			t.Fatal(err)
		}
		t.Logf("period %d: %d granted, %d late, %d bytes", period, granted, late, len(p))
		if granted < 50_000 {
			t.Errorf("period %d: only %d granted", period, granted)
		}
		// When traffic becomes less, the memory is released.
		for range 1000 {
			now += period / 4
			p, _, _ = Take(p, now, 1, Try)
		}
		if len(p) > 300 {
			t.Errorf("period %d: %d bytes for a few grants", period, len(p))
		}
	}
}

// The first grants of an empty log, each at its own time, cost few allocations.
func TestLogGrowth(t *testing.T) {
	moved := 0
	p := New(nil, rulesOf(t, "LOG 1000 60000"), false)
	for i := range int64(1000) {
		before := len(p)
		p, _, _ = Take(p, start+i*1000, 1, Try)
		if len(p) != before {
			moved++
		}
	}
	if moved > 25 || moved == 0 {
		t.Errorf("moved %d times in 1000 grants", moved)
	}
}
