package journal

// The guarantees of EverySecond, however slow syncs are: a power failure loses at most two seconds of acknowledged
// writes, and the end of the process less than one.

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// look calls Look regularly, as the server does.
func look(w *writer, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(100 * time.Millisecond):
			w.Look()
		}
	}
}

func TestLate(t *testing.T) {
	runs, lostRuns, waited, delayed := 60, 0, 0, int64(0)
	for seed := range uint64(runs) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			disk, o := simPlace(t)
			_, l, w := start(t, o, WriterOptions{Checksums: true})
			slow := time.Duration(rng.IntN(9000)) * time.Millisecond
			disk.During(func(string) { time.Sleep(slow) })
			stop := make(chan struct{})
			go look(w, stop)
			var acked []time.Time
			end := time.Now().Add(time.Duration(3000+rng.IntN(20_000)) * time.Millisecond)
			for n := 0; time.Now().Before(end); n++ {
				at := l.Append(one("SET", "n", strconv.Itoa(n)))
				for w.Confirmed() < at && time.Now().Before(end) {
					time.Sleep(time.Millisecond)
					waited++
				}
				if w.Confirmed() < at {
					break
				}
				acked = append(acked, time.Now())
				time.Sleep(time.Duration(1+rng.IntN(40)) * time.Millisecond)
			}
			close(stop)
			delayed += w.Delayed()
			disk.During(nil)
			disk.Crash()
			time.Sleep(time.Minute) // running syncs find the machine down
			_ = w.close()
			disk.Restart(true)
			f, _, got := open(t, o)
			defer f.Close()
			if len(got) >= len(acked) {
				return
			}
			lostRuns++
			if span := acked[len(acked)-1].Sub(acked[len(got)]); span > 2*time.Second {
				t.Errorf("seed %d, syncs of %v: %d of %d that were acknowledged are lost, within %v", seed, slow, len(acked)-len(got), len(acked), span)
			}
		})
	}
	t.Logf("of %d runs %d lost something; replies waited %d ms, %d times for a sync that was late", runs, lostRuns, waited, delayed)
	if lostRuns < runs/10 || waited == 0 || delayed == 0 {
		t.Error("that is too seldom for the test to mean something")
	}
}

// TestStuck checks a new file that waits for the sync of the one before: nothing is written meanwhile, and soon nothing
// is acknowledged.
func TestStuck(t *testing.T) {
	for _, policy := range []Policy{Never, EverySecond} {
		synctest.Test(t, func(t *testing.T) {
			disk, o := simPlace(t)
			_, l, w := start(t, o, WriterOptions{Policy: policy, Checksums: true})
			stop := make(chan struct{})
			go look(w, stop)
			l.Append(one("SET", "first", "1"))
			time.Sleep(300 * time.Millisecond)
			disk.During(func(string) { time.Sleep(5 * time.Second) })
			if _, err := w.Rotate(); err != nil {
				t.Fatal(err)
			}
			var acked []time.Time
			end := time.Now().Add(3 * time.Second)
			for time.Now().Before(end) {
				at := l.Append(one("SET", "n", strconv.Itoa(len(acked))))
				for w.Confirmed() < at && time.Now().Before(end) {
					time.Sleep(time.Millisecond)
				}
				if w.Confirmed() >= at {
					acked = append(acked, time.Now())
				}
				time.Sleep(10 * time.Millisecond)
			}
			disk.During(nil)
			disk.Crash()
			time.Sleep(time.Minute)
			close(stop)
			_ = w.close()
			disk.Restart(false) // only the process ended
			f, _, got := open(t, o)
			defer f.Close()
			lost := len(acked) - max(len(got)-1, 0)
			if lost < 5 {
				t.Fatalf("only %d of %d are lost: that is too few for the test to mean something", lost, len(acked))
			}
			if span := acked[len(acked)-1].Sub(acked[len(acked)-lost]); span > 700*time.Millisecond {
				t.Errorf("%v: %d of %d that were acknowledged are lost, within %v", policy, lost, len(acked), span)
			}
		})
	}
}
