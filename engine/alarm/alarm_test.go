package alarm

// An Alarm ends in time and when rung, with a timer descriptor and without.

import (
	"sort"
	"testing"
	"time"
)

// both runs a test with the system's timer and with the runtime's.
func both(t *testing.T, fn func(t *testing.T, a *Alarm)) {
	t.Run("system", func(t *testing.T) {
		a := New()
		defer a.Close()
		fn(t, a)
	})
	t.Run("runtime", func(t *testing.T) {
		a := New()
		a.Close() // as if there were no descriptor
		fn(t, a)
	})
}

func TestWait(t *testing.T) {
	both(t, func(t *testing.T, a *Alarm) {
		for _, d := range []time.Duration{-1, 0, 1, 100 * time.Microsecond, 3 * time.Millisecond} {
			begin := time.Now()
			a.Wait(d)
			if got := time.Since(begin); got < d || got > d+2*time.Second {
				t.Errorf("waited %v for %v", got, d)
			}
		}
	})
}

func TestRing(t *testing.T) {
	both(t, func(t *testing.T, a *Alarm) {
		begin := time.Now()
		a.Ring()
		a.Ring()
		a.Wait(time.Hour) // rung before
		for range 200 {
			go a.Ring()
			a.Wait(time.Hour)
		}
		for range 200 { // rung from two goroutines at about the same time, more often than waited for
			done := make(chan bool)
			go func() { a.Ring(); a.Ring(); done <- true }()
			a.Wait(time.Hour)
			<-done
			a.Wait(time.Nanosecond) // takes a second ring, if there was one
		}
		if got := time.Since(begin); got > 20*time.Second {
			t.Errorf("took %v", got)
		}
		begin = time.Now()
		a.Wait(time.Nanosecond)
		a.Wait(5 * time.Millisecond)
		if got := time.Since(begin); got < 5*time.Millisecond {
			t.Errorf("an old ring ended a wait after %v", got)
		}
	})
}

// BenchmarkLateness reports how late waits end.
func BenchmarkLateness(b *testing.B) {
	for name, wait := range map[string]func() func(time.Duration){
		"Alarm": func() func(time.Duration) { return New().Wait },
		"Sleep": func() func(time.Duration) { return time.Sleep },
	} {
		b.Run(name, func(b *testing.B) {
			w := wait()
			var late []time.Duration
			d := time.Microsecond
			for b.Loop() {
				d = d*7%(5*time.Millisecond) + 13*time.Microsecond
				begin := time.Now()
				w(d)
				late = append(late, time.Since(begin)-d)
			}
			sort.Slice(late, func(i, j int) bool { return late[i] < late[j] })
			b.ReportMetric(float64(late[len(late)/2].Microseconds()), "p50-µs")
			b.ReportMetric(float64(late[len(late)*9/10].Microseconds()), "p90-µs")
		})
	}
}
