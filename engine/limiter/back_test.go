package limiter

import (
	"fmt"
	"testing"
)

// After the clock was set back, however far, the remaining wait is the same.
func TestSetBack(t *testing.T) {
	const second = 1_000_000
	for _, rule := range []string{
		"GCRA 3 7000", "GCRA 7 3000 BURST 9", "LOG 5 7000", "WINDOW 5 7000", "FIXED 5 7000", "GCRA 9 7000 LOG 9 9000", "CONC 3 FIXED 9 7000", "TOTAL 9",
	} {
		for _, by := range []int64{-1000, -3600 * second, -30 * 86400 * second, -1 << 59} {
			t.Run(fmt.Sprint(rule, by), func(t *testing.T) {
				now := int64(1_700_000_000) * second
				n := NewNamed(New(nil, rulesOf(t, rule), true))
				for i := range 3 {
					p, d, err := n.Decide(n.State(), now, Call{Cost: 1, Lease: true})
					if err != nil || d.Limited {
						t.Fatal(d, err)
					}
					n.SetState(p)
					n.Open([]byte{'a' + byte(i)}, now, int64(i)*5*second, &d)
					now += 1234
				}
				_, was, _ := n.Decide(n.State(), now, Call{Cost: 3, Mode: Peek})
				due := n.NextDue()
				if by != -1<<59 {
					now += by
				} else {
					now = 0 // as far as there is time
				}
				n.SetBack(now, by)
				if err := n.Check(); err != nil {
					t.Fatal(err)
				}
				if by == -1<<59 {
					return
				}
				if _, is, _ := n.Decide(n.State(), now, Call{Cost: 3, Mode: Peek}); is != was {
					t.Errorf("%+v became %+v", was, is)
				}
				if due != 0 && n.NextDue() != due+by/1000 {
					t.Errorf("a grant ended at %d, and does at %d", due, n.NextDue())
				}
			})
		}
	}
}

// What was taken on a day that is now in the future counts for today.
func TestSetBackCalendar(t *testing.T) {
	const day = int64(86_400_000_000)
	now := 20_000*day + 5
	p, _, _ := Take(New(nil, rulesOf(t, "CAL 3 DAY"), true), now, 2, Try)
	now -= 10
	SetBack(p, now, -10)
	if _, d, _ := Take(p, now, 2, Peek); !d.Limited || d.RetryAfterMicros != 5 || d.Remaining != 1 {
		t.Errorf("before midnight: %+v", d)
	}
	if _, d, _ := Take(p, now+5, 2, Peek); d.Limited {
		t.Errorf("after midnight: %+v", d)
	}
}

// A period that was over when the clock was set back stays over: a limiter that was idle by then may be removed.
func TestSetBackCalendarOver(t *testing.T) {
	const day = int64(86_400_000_000)
	midnight := 20_000 * day
	p, _, _ := Take(New(nil, rulesOf(t, "CAL 3 DAY"), true), midnight-5, 3, Try)
	SetBack(p, midnight-8, -9)
	if _, d, _ := Take(p, midnight-8, 3, Peek); d.Limited || d.Remaining != 3 {
		t.Errorf("the day that was over is %+v", d)
	}
}
