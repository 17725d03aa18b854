package engine

// How late keys expire in the background, by the real clock: many that fall
// due within a second, and many that fall due at once.

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// lateness lets keys expire and returns, sorted, by how many milliseconds each one exceeded its last millisecond of
// life.
func lateness(tb testing.TB, keys int, spread int64) []float64 {
	tb.Helper()
	ks := New(NewClock(), 1)
	var mu sync.Mutex
	due := make(map[string]int64, keys)
	var late []float64
	done := make(chan struct{})
	ks.EventMask.Store(uint32(EventExpired | EventKeyevent))
	ks.Events = func(_ *View, _ int, class EventClass, _ string, key []byte) {
		if class != EventExpired {
			return
		}
		now := ks.Clock.Now()
		mu.Lock()
		late = append(late, float64(now-(due[string(key)]+1)*1000)/1000)
		if len(late) == keys {
			close(done)
		}
		mu.Unlock()
	}
	// The scheduler must not begin before all keys are in.
	first := ks.Clock.Now()/1000 + 300 // milliseconds, enough to put them in
	for i := range keys {
		key := fmt.Appendf(nil, "key:%d", i)
		at := first + int64(i)*spread/int64(keys)
		due[string(key)] = at
		var set LockSet
		set.AddKey(key)
		ks.Lock(set)
		v := &View{KS: ks, Now: ks.Clock.Now(), Held: set}
		v.PutString(key, []byte("x"), at)
		ks.Unlock(set)
	}
	ks.Sched.Start()
	defer ks.Sched.Stop()
	select {
	case <-done:
	case <-time.After(time.Minute):
		tb.Fatalf("%d of %d keys expired", len(late), keys)
	}
	slices.Sort(late)
	return late
}

func BenchmarkExpiryLateness(b *testing.B) {
	for _, c := range []struct {
		name   string
		spread int64
	}{{"within_a_second", 1000}, {"at_once", 0}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				const keys = 100_000
				late := lateness(b, keys, c.spread)
				b.ReportMetric(late[keys/2], "ms-p50")
				b.ReportMetric(late[keys*99/100], "ms-p99")
				b.ReportMetric(late[keys-1], "ms-max")
			}
		})
	}
}

// BenchmarkExpire measures the removal of keys that are due at once.
func BenchmarkExpire(b *testing.B) {
	for _, keys := range []int{1_000, 1_000_000} {
		b.Run(strconv.Itoa(keys), func(b *testing.B) {
			now := time.Now().UnixMilli()
			var took int64
			n := 0
			for b.Loop() {
				clock := NewClock()
				clock.Freeze(now * 1000)
				ks := New(clock, 1)
				fill(ks, keys, func(v *View, key []byte) { v.PutString(key, []byte("some value of a key"), now+1000) })
				clock.Freeze((now + 1001) * 1000)
				began := Monotonic()
				ks.Sched.serve(clock.Now())
				took += Monotonic() - began
				n += keys
				if left := ks.Tally(LockSet{}).DBs[0].Keys; left != 0 {
					b.Fatalf("%d are left", left)
				}
			}
			b.ReportMetric(float64(took)*1000/float64(n), "ns/key")
		})
	}
}
