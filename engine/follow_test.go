package engine

import (
	"fmt"
	"testing"
	"time"
)

// stepped returns a keyspace whose clock followed a step of the system's, and the possible error of that in
// microseconds, which depends on how busy the machine was. The scheduler is not started.
func stepped(t *testing.T, by time.Duration, before func(ks *Keyspace, now int64)) (ks *Keyspace, exact int64) {
	t.Helper()
	began := Monotonic()
	ks = New(NewClock(), 2)
	before(ks, ks.Clock.Now())
	was := ks.Clock.Now()
	ks.Clock.StepSystem(by.Microseconds())
	ks.Sched.followed = -followMicros
	ks.Sched.follow()
	off := ks.Clock.Now() - was - by.Microseconds()
	exact = 2*stepMicros + Monotonic() - began
	if max(off, -off) > exact {
		t.Fatalf("the clock went by %v, and is off by %d µs, within %d", by, off, exact)
	}
	return ks, exact
}

// Timers end after a length of time, and keys at times of the wall clock, however small the step is.
func TestFollow(t *testing.T) {
	const second = int64(1_000_000)
	for _, by := range []time.Duration{time.Second, time.Hour, 720 * time.Hour, -time.Second, -time.Hour, -720 * time.Hour} {
		t.Run(fmt.Sprint(by), func(t *testing.T) {
			var timer *Timer
			var began, deadline int64
			ks, exact := stepped(t, by, func(ks *Keyspace, now int64) {
				began, deadline = now, now/1000+500
				timer = ks.Sched.At(now+second/2, func(int64) {})
				fill(ks, 100, func(v *View, key []byte) { v.PutString(key, []byte("x"), deadline) })
			})
			want := began + second/2
			if by < 0 {
				want += by.Microseconds()
			}
			if off := timer.at - want; max(off, -off) > exact {
				t.Errorf("a timer is off by %d µs", off)
			}
			// The scheduler wakes up in time for both.
			if next := ks.Sched.next(); next > min(timer.at, (deadline+1)*1000)+exact {
				t.Errorf("the scheduler sleeps for %d µs too long", next-min(timer.at, (deadline+1)*1000))
			}
			for i := range ks.shards {
				if w := &ks.shards[i].wheel; w.count > 0 && w.tick > ks.Clock.Now()/1000 {
					t.Fatalf("a wheel was turned to %d", w.tick)
				}
			}
		})
	}
}
