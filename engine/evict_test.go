package engine

// Eviction, and counting the memory of keys.

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/engine/limiter"
)

// Of two generations of keys, the policy's victims are evicted first; the more samples, the more surely. Keys that a
// policy may not touch are never evicted.
func TestEvictionPolicies(t *testing.T) {
	const keys = 1000
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, c := range []struct {
		name string
		how  Eviction
		// good is at most how many of 300 evicted keys should have stayed.
		good int
	}{
		{"allkeys-lru", Eviction{By: EvictLRU, Samples: 10}, 15},
		{"allkeys-lfu", Eviction{By: EvictLFU, Samples: 10}, 15},
		{"volatile-lru", Eviction{By: EvictLRU, Samples: 10, Volatile: true}, 15},
		{"volatile-lfu", Eviction{By: EvictLFU, Samples: 10, Volatile: true}, 15},
		{"volatile-ttl", Eviction{By: EvictTTL, Samples: 10, Volatile: true}, 15},
		{"allkeys-random", Eviction{By: EvictRandom, Samples: 1}, 300},
		{"volatile-random", Eviction{By: EvictRandom, Samples: 1, Volatile: true}, 300},
	} {
		t.Run(c.name, func(t *testing.T) {
			ks := frozen(idleEpoch)
			rng := rand.New(rand.NewPCG(seed, 1))
			c.how.Random = rng.Uint64
			ks.LFU.Store(c.how.By == EvictLFU)
			evicted := 0
			ks.EventMask.Store(uint32(EventEvicted))
			ks.Events = func(*View, int, EventClass, string, []byte) { evicted++ }
			v := all(ks)
			for i := range keys {
				soon, late := v.Now/1000+100_000, v.Now/1000+200_000
				v.DB = i % 2
				v.PutString(fmt.Appendf(nil, "bad%d", i), []byte("v"), soon)
				v.PutString(fmt.Appendf(nil, "good%d", i), []byte("v"), late)
				v.PutString(fmt.Appendf(nil, "kept%d", i), []byte("v"), 0)
			}
			v.Now += 10e6 // the bad ones are idle for ten seconds and seldom used
			for range 20 {
				for i := range keys {
					v.DB = i % 2
					v.Get(fmt.Appendf(nil, "good%d", i))
					v.Get(fmt.Appendf(nil, "kept%d", i))
				}
			}
			v.Account()
			const n = 300
			before := ks.KeysBytes()
			for range n {
				if got := ks.Evict(c.how); got != EvictedOne {
					t.Fatalf("evicted is %d", got)
				}
			}
			good, kept := keys, keys
			for i := range keys {
				v.DB = i % 2
				if v.Find(fmt.Appendf(nil, "good%d", i)).Ok() {
					good--
				}
				if v.Find(fmt.Appendf(nil, "kept%d", i)).Ok() {
					kept--
				}
			}
			if good > c.good || c.how.Volatile && kept > 0 || !c.how.Volatile && c.how.By != EvictRandom && kept > c.good {
				t.Errorf("%d good keys went, and %d without a deadline", good, kept)
			}
			if evicted != n || ks.Tally(LockSet{}).Stats.Evicted != n || ks.KeysBytes() >= before {
				t.Errorf("%d events, %d counted, %d bytes after %d", evicted, ks.Tally(LockSet{}).Stats.Evicted, ks.KeysBytes(), before)
			}
			for ks.Evict(c.how) == EvictedOne {
			}
			left := 0
			for v.DB = range 2 {
				left += v.Count()
			}
			if want := map[bool]int{true: keys, false: 0}[c.how.Volatile]; left != want || ks.Evict(c.how) != EvictedNone {
				t.Errorf("%d keys are left, not %d", left, want)
			}
			if err := ks.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Keys that a script holds are not evicted, but Evict does not report that there are none.
func TestEvictionBesideScript(t *testing.T) {
	ks := frozen(idleEpoch)
	rng := rand.New(rand.NewPCG(1, 1))
	how := Eviction{By: EvictLRU, Samples: 5, Random: rng.Uint64}
	v := all(ks)
	v.PutString([]byte("k"), []byte("v"), 0)
	v.Account()
	r := hold(ks, v.Held, nil)
	if got := ks.Evict(how); got != EvictedHeld {
		t.Errorf("with all keys held: %d", got)
	}
	r.letGo()
	if got := ks.Evict(how); got != EvictedOne {
		t.Errorf("with none held: %d", got)
	}
}

// The counted memory is what the collector finds.
func TestCountedIsAllocated(t *testing.T) {
	for _, c := range []struct {
		name     string
		value    string
		deadline int64
		keys     int
	}{
		{"short", "v", 0, 20_000}, {"integer", "12345", 0, 20_000}, {"limiter's size", strings.Repeat("v", 40), 0, 20_000},
		// Deadlines add the heads of the wheels' slots, 9 KB per shard.
		{"deadline", strings.Repeat("v", 40), idleEpoch/1000 + 1e9, 80_000},
		{"embedded", strings.Repeat("v", 800), 0, 5000}, {"large", strings.Repeat("v", 5000), 0, 2000},
	} {
		ks := frozen(idleEpoch)
		before := heapBytes()
		v := all(ks)
		for i := range c.keys {
			v.PutString(fmt.Appendf(nil, "key:%09d", i), []byte(c.value), c.deadline)
		}
		v.Account()
		took, counted := heapBytes()-before, ks.KeysBytes()
		if counted < took*85/100 || counted > took*115/100 {
			t.Errorf("%s: %d bytes are counted, %d taken", c.name, counted, took)
		}
		runtime.KeepAlive(ks)
	}
}

// Keys that promise something are never evicted, and a few other keys are found among many of them.
func TestPromisesStay(t *testing.T) {
	const promised, few = 20_000, 20
	for _, volatile := range []bool{false, true} {
		seed := uint64(time.Now().UnixNano())
		t.Logf("seed %d", seed)
		ks := frozen(idleEpoch)
		rng := rand.New(rand.NewPCG(seed, 1))
		how := Eviction{By: EvictLRU, Samples: 64, Random: rng.Uint64, Volatile: volatile}
		v := all(ks)
		at := v.Now/1000 + 100_000
		for i := range promised {
			key := fmt.Appendf(nil, "promised%d", i)
			v.DB = i % 2
			switch i % 3 {
			case 0:
				v.mutex(key, []byte("owner"), v.Now+1e9, 0)
				v.SetDeadline(v.Peek(key), at)
			case 1:
				v.PutObject(key, KindDelayQueue, delayqueue.New(), at)
			default:
				rules := []limiter.Rule{{Algorithm: limiter.GCRA, Count: 1, PeriodMicros: 1e6, Burst: 1}}
				n := limiter.NewNamed(limiter.New(nil, rules, true))
				n.Open([]byte("id"), v.Now, 1e9, &limiter.Decision{})
				v.PutNamed(key, n, at)
			}
		}
		for i := range few {
			v.DB = i % 2
			v.PutString(fmt.Appendf(nil, "goes%d", i), []byte("v"), at)
		}
		v.Account()
		if err := ks.Check(); err != nil {
			t.Fatal(err)
		}
		for i := range few {
			if got := ks.Evict(how); got != EvictedOne {
				t.Fatalf("eviction %d of %d is %d", i, few, got)
			}
		}
		left := 0
		for v.DB = range 2 {
			left += v.Count()
		}
		if got := ks.Evict(how); got != EvictedNone || left != promised {
			t.Errorf("the next eviction is %d, %d keys are left", got, left)
		}
		if err := ks.Check(); err != nil {
			t.Error(err)
		}
	}
}
