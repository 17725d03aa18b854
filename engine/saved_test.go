package engine

// Saved copies against copies of the model's maps, and histograms of sizes
// against what is counted one by one.

import (
	"math/bits"
	"sync"
	"testing"
	"time"
)

// sameObject stands for writing and reading an object: the model's are strings.
func sameObject(e Entry) any                   { return e.Object() }
func thawedObject(_ Kind, frozen any) any      { return frozen }
func (m *model) kept() []map[string]modelValue { return copies(m.dbs) }

func TestSavedAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	m := newModel(t, seed)
	var saved *Saved
	var was []map[string]modelValue
	restored, merged := 0, 0
	for range 4000 {
		m.step()
		switch m.rng.IntN(40) {
		case 0:
			m.ks.Sched.Advance(int64(m.rng.IntN(300_000)))
		case 1:
			m.do(1, func(v *View) { saved = v.Save(sameObject) })
			was = m.kept()
		case 2:
			if saved == nil {
				continue
			}
			flush := m.rng.IntN(2) == 0
			m.do(2, func(v *View) {
				if flush {
					for v.DB = range m.dbs {
						v.Flush()
						clear(m.dbs[v.DB])
					}
				}
				v.Restore(saved, thawedObject)
			})
			for db := range was {
				for key, x := range was[db] {
					if x.deadline == 0 || x.deadline >= m.nowMillis() {
						m.dbs[db][key] = x
					}
				}
			}
			if restored++; !flush {
				merged++
			}
			m.compareValues()
			if err := m.ks.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if restored == 0 || merged == 0 || merged == restored {
		t.Errorf("%d times restored, %d of them merged", restored, merged)
	}
}

// compareValues looks at everything, with values and deadlines.
func (m *model) compareValues() {
	m.t.Helper()
	m.compare()
	for db := range m.dbs {
		m.do(db, func(v *View) {
			for key := range m.dbs[db] {
				x, ok := m.live(db, key)
				e := v.Peek([]byte(key))
				if e.Ok() != ok || string(e.Bytes(make([]byte, 20))) != x.text || e.Deadline() != x.deadline {
					m.t.Fatalf("%q: %v %q %d, want %v %q %d", key, e.Ok(), e.Bytes(nil), e.Deadline(), ok, x.text, x.deadline)
				}
			}
		})
	}
}

func TestSizesAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	m := newModel(t, seed)
	counted := int64(0)
	for i := range 2000 {
		m.step()
		if i%20 != 0 {
			continue
		}
		m.compare() // what has expired is forgotten on both sides
		want := make([]Sizes, len(m.dbs))
		for db := range m.dbs {
			for key := range m.dbs[db] {
				if x, ok := m.live(db, key); ok {
					want[db][KindString][bits.Len(uint(len(x.text)))]++
					counted++
				}
			}
		}
		free := View{KS: m.ks, Now: m.ks.Clock.Now()}
		for db, got := range free.Sizes() {
			if got != want[db] {
				t.Fatalf("database %d: got %v, want %v", db, got, want[db])
			}
		}
		m.do(0, func(v *View) {
			if got := v.Sizes(); got[0] != want[0] {
				t.Fatalf("held: got %v, want %v", got[0], want[0])
			}
		})
	}
	if counted == 0 {
		t.Error("nothing was counted")
	}
}

// Sizes neither waits for ever nor reads what others write, also of frozen shards.
func TestSizesBesideOthers(t *testing.T) {
	m := newModel(t, 1)
	m.do(0, func(v *View) {
		for i := range 1000 {
			v.PutString([]byte{byte(i), byte(i >> 8)}, []byte("text"), 0)
		}
	})
	snap := m.ks.Save()
	defer snap.Drop()
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for i := range 200 {
			var all LockSet
			all.AddAll()
			r := m.ks.Reserve(all, nil)
			v := View{KS: m.ks, Now: m.ks.Clock.Now(), Held: all}
			v.PutString([]byte{byte(i), 0}, []byte("longer text"), 0)
			r.Release()
		}
	}()
	for range 50 {
		free := View{KS: m.ks, Now: m.ks.Clock.Now()}
		n := int64(0)
		for _, bin := range free.Sizes()[0][KindString] {
			n += bin
		}
		if n != 1000 {
			t.Fatalf("%d keys, want 1000", n)
		}
	}
	wg.Wait()
}

func BenchmarkSizes(b *testing.B) {
	ks := New(NewClock(), 1)
	var all LockSet
	all.AddAll()
	ks.Lock(all)
	v := View{KS: ks, Now: ks.Clock.Now(), Held: all}
	const keys = 100_000
	for i := range keys {
		v.PutString([]byte{byte(i), byte(i >> 8), byte(i >> 16)}, []byte("some value of a key"), 0)
	}
	for b.Loop() {
		v.Sizes()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/keys, "ns/key")
}
