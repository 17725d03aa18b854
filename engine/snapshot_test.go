package engine

// Snapshots against copies of the model's maps.

import (
	"fmt"
	"maps"
	"strconv"
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
	m.ks.Sched.Advance(0) // the clock may go back: what has expired is to be forgotten on both sides
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

// doCold is do for verbs that leave frozen shards so.
func (m *model) doCold(db int, fn func(v *View)) {
	if m.ks.LockCold() != nil {
		m.t.Fatal("reserved")
	}
	m.v = View{KS: m.ks, DB: db, Now: m.ks.Clock.Now(), Held: LockSet{allShards}}
	fn(&m.v)
	m.v.EndCommand(nil)
	m.v.Commit()
	m.v.ServeReady()
	m.v.Account()
	m.ks.unlockAll()
}

// compareCold is compare as DBSIZE and KEYS look.
func (m *model) compareCold() {
	for db := range m.dbs {
		want := map[string]bool{}
		for key := range m.dbs[db] {
			if _, ok := m.live(db, key); ok {
				want[key] = true
			}
		}
		m.doCold(db, func(v *View) {
			n := 0
			v.Each(func(e Entry) bool {
				if !want[string(e.Key())] {
					m.t.Fatalf("database %d has %q", db, e.Key())
				}
				n++
				return true
			})
			if n != len(want) || v.Count() < n {
				m.t.Fatalf("%d keys, %d of %d found", v.Count(), n, len(want))
			}
		})
	}
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
				snaps[i].Drop()
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
		case 10: // and FLUSHDB, which thaws nothing
			db := m.rng.IntN(3)
			m.doCold(db, (*View).Flush)
			clear(m.dbs[db])
		case 11, 12:
			m.compareCold()
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

// Neither saving nor restoring looks at keys; a shard is copied when it is used.
func TestSnapshotCopiesWhatIsUsed(t *testing.T) {
	m := newModel(t, 1)
	m.do(0, func(v *View) {
		for i := range 6400 {
			v.PutString(strconv.AppendInt(nil, int64(i), 10), []byte("x"), 0)
		}
	})
	frozen := func() (n int) {
		for i := range m.ks.shards {
			if m.ks.shards[i].frozen != nil {
				n++
			}
		}
		return n
	}
	snap := m.ks.Save()
	if snap.Keys != 6400 || frozen() != shardCount {
		t.Fatalf("%d keys, %d shards are frozen", snap.Keys, frozen())
	}
	at := func(key string, fn func(v *View)) {
		var set LockSet
		set.AddKey([]byte(key))
		if m.ks.Lock(set) != nil {
			t.Fatal("reserved")
		}
		fn(&View{KS: m.ks, Now: m.ks.Clock.Now(), Held: set})
		m.ks.Unlock(set)
	}
	at("7", func(v *View) { v.Get([]byte("7")) })
	if frozen() != shardCount-1 {
		t.Errorf("a look at a key leaves %d shards frozen", frozen())
	}
	again := m.ks.Save()
	at("7", func(v *View) { v.PutString([]byte("7"), []byte("y"), 0) })
	m.ks.Restore(snap)
	if frozen() != shardCount {
		t.Errorf("restored, %d shards are frozen", frozen())
	}
	at("7", func(v *View) {
		if got := v.Get([]byte("7")).Bytes(nil); string(got) != "x" {
			t.Errorf("restored is %q", got)
		}
	})
	snap.Drop()
	again.Drop()
	// What no snapshot has any more is not copied.
	before := m.ks.shards[0].tables[0].segments
	m.do(0, func(v *View) {})
	if after := m.ks.shards[0].tables[0].segments; before[0] != after[0] {
		t.Error("copied although nobody else has it")
	}
	if err := m.ks.Check(); err != nil {
		t.Error(err)
	}
	snap = m.ks.Save()
	m.doCold(0, func(v *View) {
		if n := v.Count(); n != 6400 || frozen() != shardCount {
			t.Errorf("%d keys counted, %d shards are frozen", n, frozen())
		}
		v.Flush()
	})
	if n := m.ks.Tally(LockSet{}).DBs[0].Keys; n != 0 {
		t.Errorf("%d keys in an empty database", n)
	}
	if m.ks.Restore(snap); m.ks.Tally(LockSet{}).DBs[0].Keys != 6400 {
		t.Error("emptying a database took keys out of the snapshot")
	}
}

// Deadlines of a frozen shard are met: of keys, and of limiters that are idle.
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

// Saving and restoring beside those who read, write, wait and reserve.
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
		a.Drop()
		ks.Restore(b)
		b.Drop()
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
	touch := func() {
		var set LockSet
		set.AddAll()
		ks.Lock(set)
		ks.Unlock(set)
	}
	b.Run("save", func(b *testing.B) {
		for b.Loop() {
			ks.Save().Drop()
			b.StopTimer()
			touch()
			b.StartTimer()
		}
	})
	snap := ks.Save()
	b.Run("restore", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			touch()
			b.StartTimer()
			ks.Restore(snap)
		}
	})
	b.Run("copy-all", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			ks.Restore(snap)
			b.StartTimer()
			touch()
		}
	})
}
