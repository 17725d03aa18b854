package engine

// Snapshots compared with copies of the model's maps.

import (
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/limitkv/limitkv/engine/limiter"
)

type modelSnapshot struct {
	*Snapshot
	dbs []map[string]modelValue
}

func (m *model) save() modelSnapshot {
	m.ks.Sched.Advance(0) // the clock may go back later: expired keys must be forgotten on both sides
	for db := range m.dbs {
		for key := range m.dbs[db] {
			m.live(db, key)
		}
	}
	return modelSnapshot{m.ks.Save(), copies(m.dbs)}
}

func (m *model) restore(s modelSnapshot) {
	m.ks.Restore(s.Snapshot)
	m.dbs = copies(s.dbs)
}

func copies(dbs []map[string]modelValue) (copies []map[string]modelValue) {
	for _, db := range dbs {
		copies = append(copies, maps.Clone(db))
	}
	return copies
}

func TestSnapshotsAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	m := newModel(t, seed)
	var snaps []modelSnapshot
	restored := 0
	for i := range 12_000 {
		m.step()
		switch m.rng.IntN(60) {
		case 0, 1, 2, 3:
			m.ks.Sched.Advance(int64(m.rng.IntN(300_000)))
		case 4, 5:
			if len(snaps) < 5 {
				snaps = append(snaps, m.save())
			}
		case 6:
			if n := len(snaps); n > 0 {
				i := m.rng.IntN(n)
				snaps[i] = snaps[n-1]
				snaps = snaps[:n-1]
			}
		case 7, 8:
			if len(snaps) > 0 {
				m.restore(snaps[m.rng.IntN(len(snaps))])
				restored++
			}
		case 9:
			if len(snaps) > 0 { // back in time, as LKV.CLOCK FREEZE can
				m.ks.Clock.Freeze(1_700_000_000_000_000)
				m.restore(snaps[m.rng.IntN(len(snaps))])
			}
		case 10:
			db := m.rng.IntN(3)
			m.do(db, (*View).Flush)
			clear(m.dbs[db])
		}
		if i%50 == 0 {
			m.compare()
			if err := m.ks.Check(); err != nil {
				t.Fatalf("after %d steps: %v", i, err)
			}
		}
	}
	if restored == 0 || m.ks.Tally(LockSet{}).Stats.Expired == 0 {
		t.Errorf("%d times restored, %d expired", restored, m.ks.Tally(LockSet{}).Stats.Expired)
	}
}

// The deadlines of restored keys are served, also those of idle limiters.
func TestSnapshotDeadlines(t *testing.T) {
	m := newModel(t, 1)
	m.do(0, func(v *View) {
		v.PutString([]byte("k"), []byte("x"), m.nowMillis()+1000)
		r := limiter.Rule{Algorithm: limiter.GCRA, Count: 100, PeriodMicros: 60_000_000, Burst: 100}
		p, _, _ := limiter.Take(limiter.New(nil, []limiter.Rule{r}, false), v.Now, 1, limiter.Try)
		v.PutBytes(KindLimiter, []byte("l"), p, 0) // full after 600 ms
	})
	start := m.ks.Clock.Now()
	snap := m.ks.Save()
	for range 3 {
		m.ks.Sched.Advance(500_000)
		if n := m.ks.Tally(LockSet{}).DBs[0].Keys; n != 2 {
			t.Fatalf("%d keys after 500 ms", n)
		}
		m.ks.Sched.Advance(501_000)
		if n := m.ks.Tally(LockSet{}).DBs[0].Keys; n != 0 {
			t.Fatalf("%d keys after their time", n)
		}
		m.ks.Restore(snap) // too late for both
		if n := m.ks.Tally(LockSet{}).DBs[0].Keys; n != 0 {
			t.Fatalf("%d keys restored after their time", n)
		}
		m.ks.Clock.Freeze(start)
		m.ks.Restore(snap)
	}
}

// Saving and restoring while others read, write, wait and reserve.
func TestSnapshotsBesideOthers(t *testing.T) {
	ks := New(NewClock(), 2)
	ks.Sched.Start()
	defer ks.Sched.Stop()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				key := fmt.Appendf(nil, "k%d", i%500)
				var set LockSet
				set.AddKey(key)
				places := [TouchMax]Place{PlaceOf(key)}
				ks.Touch(0, &places, 1)
				if w == 0 && i%20 == 0 {
					r := hold(ks, set, nil)
					v := &View{KS: ks, Now: ks.Clock.Now(), Held: set}
					v.PutString(key, []byte("reserved"), 0)
					v.Account()
					r.letGo()
					continue
				}
				ks.LockWaiting(set)
				v := &View{KS: ks, Now: ks.Clock.Now(), Held: set}
				v.PutString(key, fmt.Appendf(nil, "%d", i), v.Now/1000+int64(i%7))
				v.Get(key)
				v.Account()
				ks.Unlock(set)
			}
		}()
	}
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		a := ks.Save()
		b := ks.Save()
		time.Sleep(time.Millisecond)
		ks.Restore(a)
		time.Sleep(time.Millisecond)
		ks.Restore(b)
	}
	close(stop)
	wg.Wait()
	if err := ks.Check(); err != nil {
		t.Error(err)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	clock := NewClock()
	ks := New(clock, 16)
	value := []byte("a value of thirty-two bytes, so.")
	fill := func(from, to int, deadline int64) {
		v := all(ks)
		for i := from; i < to; i++ {
			v.PutString(fmt.Appendf(nil, "key:%012d", i), value, deadline)
		}
	}
	fill(0, 50_000, 0)
	fill(50_000, 100_000, clock.Now()/1000+3_600_000)
	b.Run("save", func(b *testing.B) {
		for b.Loop() {
			ks.Save()
		}
	})
	snap := ks.Save()
	b.Run("restore", func(b *testing.B) {
		for b.Loop() {
			ks.Restore(snap)
		}
	})
}
