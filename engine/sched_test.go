package engine

// When the scheduler is woken.

import (
	"testing"
	"time"
)

// TestPastDeadlines: a key that has expired already when it is set wakes the scheduler, unless the scheduler wakes at
// the end of the millisecond anyway. So many such keys wake it once.
func TestPastDeadlines(t *testing.T) {
	ks := New(NewClock(), 1)
	s := ks.Sched // not started: the test waits instead of it
	key := []byte("key")
	var set LockSet
	set.AddKey(key)
	now := ks.Clock.Now()
	next := now/1000 + 1 // the next millisecond
	put := func(deadline int64) (woken bool) {
		t.Helper()
		ks.Lock(set)
		v := &View{KS: ks, Now: now, Held: set}
		v.Delete(key)
		_, sh := v.locate(key)
		sh.nextDue.Store(never) // as after a turn
		v.PutString(key, []byte("x"), deadline)
		if got, want := sh.nextDue.Load(), max(next, deadline+1); got != want {
			t.Errorf("a deadline %d ms from now is served after %d ms, not %d", deadline-now/1000, got-now/1000, want-now/1000)
		}
		ks.Unlock(set)
		const wait = 50 * time.Millisecond
		begin := time.Now()
		s.alarm.Wait(wait)
		return time.Since(begin) < wait
	}
	for _, deadline := range []int64{1, now/1000 - 1_000_000, now/1000 - 1, now / 1000, now/1000 + 1, now/1000 + 1_000_000} {
		due := max(next, deadline+1) * 1000
		for until, want := range map[int64]bool{never: true, due + 1: true, due: false, now: false} {
			s.until.Store(until)
			if got := put(deadline); got != want {
				t.Errorf("deadline %d ms from now, asleep until %d µs from now: woken %t", deadline-now/1000, until-now, got)
			}
		}
	}
}
