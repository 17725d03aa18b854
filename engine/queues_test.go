package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/limitkv/limitkv/engine/delayqueue"
)

// Queues shows all queues, whatever was added and removed before, also after a restore; for reserved shards it shows
// none.
func TestQueues(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	m := newModel(t, seed)
	m.ks.Clone = func(obj any) any { return obj.(*delayqueue.Queue).Clone() }
	want := map[string]bool{}
	change := func(n int) {
		for range n {
			key, db := fmt.Sprint("q", rng.IntN(3000)), rng.IntN(2)
			m.do(db, func(v *View) {
				switch name := fmt.Sprint(db, key); rng.IntN(4) {
				case 0:
					v.Delete([]byte(key))
					delete(want, name)
				case 1:
					v.PutString([]byte(key), []byte("text"), 0)
					delete(want, name)
				default:
					v.PutObject([]byte(key), KindDelayQueue, delayqueue.New(), 0)
					want[name] = true
				}
			})
		}
	}
	compare := func(when string) {
		t.Helper()
		got := map[string]bool{}
		for shard := range Shards {
			for db := range 2 {
				for from, ok := math.MaxInt, true; from > 0; {
					calls := 0
					from, ok = m.ks.Queues(shard, db, from, func(e Entry) {
						calls++
						got[fmt.Sprint(db, string(e.Key()))] = true
					})
					if !ok || calls > QueuesMax {
						t.Fatalf("%s: %d calls, %v", when, calls, ok)
					}
				}
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d queues, want %d", when, len(got), len(want))
		}
		for name := range want {
			if !got[name] {
				t.Errorf("%s: %s is missing", when, name)
			}
		}
		if err := m.ks.Check(); err != nil {
			t.Error(when, err)
		}
	}
	change(5000)
	compare("at first")
	snap := m.ks.Save()
	change(200)
	compare("changed")
	if len(want) < 500 {
		t.Errorf("only %d queues", len(want))
	}
	m.ks.Restore(snap)
	if err := m.ks.Check(); err != nil {
		t.Error(err)
	}

	var all LockSet
	all.AddAll()
	r := hold(m.ks, all, nil)
	if _, ok := m.ks.Queues(0, 0, math.MaxInt, func(Entry) { t.Error("called") }); ok {
		t.Error("of a shard that is reserved")
	}
	r.letGo()

	// A walk through a list that changes meanwhile misses no queue that stays.
	var one LockSet
	many := map[string]bool{}
	for i := 0; len(many) < 3*QueuesMax; i++ {
		if key := fmt.Sprint("same", i); shardOf(HashBytes([]byte(key))) == 5 {
			one.AddKey([]byte(key))
			m.do(1, func(v *View) { v.PutObject([]byte(key), KindDelayQueue, delayqueue.New(), 0) })
			many[key] = true
		}
	}
	seen := map[string]bool{}
	for from := math.MaxInt; from > 0; {
		from, _ = m.ks.Queues(5, 1, from, func(e Entry) { seen[string(e.Key())] = true })
		for key := range many {
			m.do(1, func(v *View) { v.Delete([]byte(key)) })
			delete(many, key)
			break
		}
	}
	for key := range many {
		if !seen[key] {
			t.Errorf("%s was there all the time", key)
		}
	}
}
