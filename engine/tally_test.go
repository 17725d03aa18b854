package engine

// The counts of the keyspace, compared with its contents.

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Histograms of sizes, compared with sizes counted one by one.
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
		m.compare() // expired keys are forgotten
		want := make([]Sizes, len(m.dbs))
		for db := range m.dbs {
			for key := range m.dbs[db] {
				if x, ok := m.live(db, key); ok {
					want[db][KindString-1][bits.Len(uint(len(x.text)))]++
					counted++
				}
			}
		}
		free := View{KS: m.ks, Now: m.ks.Clock.Now()}
		for _, less := range []*Tally{free.Totals(), free.Tables()} {
			for db, got := range less.DBs {
				if all := free.Tally().DBs[db]; got.Keys != all.Keys || got.Expires != all.Expires || got.VolatileHashes != all.VolatileHashes ||
					got.TableBytes != all.TableBytes || got.Sizes != nil {
					t.Fatalf("database %d without sizes: got %+v, want %+v", db, got, all)
				}
			}
		}
		for db, got := range free.Tally().DBs {
			if got.Sizes.Of(KindString) != want[db].Of(KindString) {
				t.Fatalf("database %d: got %v, want %v", db, got.Sizes, want[db])
			}
		}
		m.do(0, func(v *View) {
			if got := v.Tally().DBs[0].Sizes; got.Of(KindString) != want[0].Of(KindString) {
				t.Fatalf("held: got %v, want %v", got, want[0])
			}
		})
	}
	if counted == 0 {
		t.Error("nothing was counted")
	}
}

// A tally does not wait, and does not race with writers.
func TestTallyBesideOthers(t *testing.T) {
	m := newModel(t, 1)
	m.do(0, func(v *View) {
		for i := range 1000 {
			v.PutString([]byte{byte(i), byte(i >> 8)}, []byte("text"), 0)
		}
	})
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for i := range 200 {
			var all LockSet
			all.AddAll()
			r := hold(m.ks, all, nil)
			v := View{KS: m.ks, Now: m.ks.Clock.Now(), Held: all, Reserved: true}
			v.PutString([]byte{byte(i), 0}, []byte("longer text"), 0)
			r.letGo()
		}
	}()
	for range 50 {
		free := View{KS: m.ks, Now: m.ks.Clock.Now()}
		n := int64(0)
		for _, bin := range free.Tally().DBs[0].Sizes.Of(KindString) {
			n += bin
		}
		if n != 1000 {
			t.Fatalf("%d keys, want 1000", n)
		}
	}
	wg.Wait()
}

// A reserved shard is counted as it was when the reservation began.
func TestTallyOfReserved(t *testing.T) {
	m := newModel(t, 2)
	key := []byte("k")
	m.do(1, func(v *View) { v.PutString(key, []byte("text"), m.ks.Clock.Now()/1000+5000) })
	var set LockSet
	set.AddKey(key)
	for _, all := range []bool{false, true} {
		if all {
			set.AddAll()
		}
		r := hold(m.ks, set, nil)
		v := View{KS: m.ks, DB: 1, Now: m.ks.Clock.Now(), Held: set, Reserved: true}
		v.Delete(key)
		if st := m.ks.Tally(LockSet{}).DBs[1]; st.Keys != 1 || st.Expires != 1 || st.AverageTTLMillis() != 5000 || st.Sizes.Of(KindString)[3] != 1 {
			t.Errorf("reserved: %+v", st)
		}
		if st := v.KS.Tally(set).DBs[1]; st.Keys != 0 || st.Expires != 0 {
			t.Errorf("who holds them sees %+v", st)
		}
		v.PutString(key, []byte("text"), m.ks.Clock.Now()/1000+5000)
		v.Account()
		r.letGo()
	}
	if st := m.ks.Tally(LockSet{}).DBs[1]; st.Keys != 1 {
		t.Errorf("released: %+v", st)
	}
}

// Entries that came into a database without an insertion are counted: by SWAPDB, by a restored snapshot, by Take.
func TestTallyOfExchanged(t *testing.T) {
	m := newModel(t, 1)
	put := func(v *View) { v.PutString([]byte("k"), []byte("text"), 0) }
	keys := func(ks *Keyspace) (list []int) {
		for _, st := range ks.Tally(LockSet{}).DBs {
			list = append(list, st.Keys)
		}
		return list
	}
	m.do(0, put)
	if got := keys(m.ks); !slices.Equal(got, []int{1, 0, 0}) {
		t.Errorf("put: %v", got)
	}
	snap := m.ks.Save()
	m.do(0, func(v *View) { v.Swap(0, 2) })
	if got := keys(m.ks); !slices.Equal(got, []int{0, 0, 1}) {
		t.Errorf("swapped: %v", got)
	}
	m.ks.Restore(snap)
	if got := keys(m.ks); !slices.Equal(got, []int{1, 0, 0}) {
		t.Errorf("restored: %v", got)
	}
	m.do(1, put)
	other := newModel(t, 1)
	other.do(0, func(v *View) { v.Take(m.ks) })
	if got := keys(other.ks); !slices.Equal(got, []int{1, 1, 0}) {
		t.Errorf("taken over: %v", got)
	}
}

func TestDigits(t *testing.T) {
	seen := 0
	for _, base := range []int64{0, 1, math.MaxInt64, math.MinInt64, math.MinInt64 + 1} {
		for p := int64(1); p > 0 && p <= 1e18; p *= 10 {
			for d := int64(-2); d <= 2; d++ {
				for _, n := range []int64{base + d, p + d, -p + d, base ^ p} {
					seen++
					if got := digits(n); got != len(strconv.FormatInt(n, 10)) {
						t.Fatalf("%d has %d digits", n, got)
					}
				}
			}
		}
	}
	if seen < 1000 {
		t.Error(seen)
	}
}

// BenchmarkTally measures what INFO asks of the keyspace. It does not depend on the number of keys.
func BenchmarkTally(b *testing.B) {
	for _, keys := range []int{1_000, 1_000_000} {
		b.Run(strconv.Itoa(keys), func(b *testing.B) {
			ks := New(NewClock(), 16)
			at := time.Now().UnixMilli() + 1e9
			fill(ks, keys, func(v *View, key []byte) { v.PutString(key, []byte("some value of a key"), at) })
			b.ResetTimer()
			for b.Loop() {
				if ks.Tally(LockSet{}).DBs[0].Keys != keys {
					b.Fatal("lost")
				}
			}
		})
	}
}

// fill calls put with so many keys.
func fill(ks *Keyspace, keys int, put func(v *View, key []byte)) {
	v := &View{Held: LockSet{allShards}, KS: ks}
	for i := range keys {
		key := fmt.Appendf(nil, "key:%012d", i)
		ks.Lock(v.Held)
		v.Now = ks.Clock.Now()
		put(v, key)
		v.Account()
		ks.Unlock(v.Held)
	}
}
