package engine

// Limiters that disappear when they are full.

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/limitkv/limitkv/engine/limiter"
)

const idleEpoch = 1_700_000_000_000_000

// limited is a limiter with one rule, of which one token was taken at now.
func limited(now, periodMillis int64, kept bool) []byte {
	r := limiter.Rule{Algorithm: limiter.GCRA, Count: 100, PeriodMicros: periodMillis * 1000, Burst: 100}
	p, _, _ := limiter.Take(limiter.New(nil, []limiter.Rule{r}, kept), now, 1, limiter.Try)
	return p
}

func frozen(at int64) *Keyspace {
	c := NewClock()
	c.Freeze(at)
	return New(c, 2)
}

func all(ks *Keyspace) *View {
	v := &View{Held: LockSet{allShards}, KS: ks, Now: ks.Clock.Now()}
	v.Held.AddAll()
	return v
}

func TestIdleLimiterIsGone(t *testing.T) {
	ks := frozen(idleEpoch)
	v := all(ks)
	v.PutBytes(KindLimiter, []byte("auto"), limited(v.Now, 60_000, false), 0) // full after 600 ms
	v.PutBytes(KindLimiter, []byte("kept"), limited(v.Now, 60_000, true), 0)
	e := v.PutBytes(KindLimiter, []byte("dated"), limited(v.Now, 60_000, false), 0)
	v.SetDeadline(e, v.Now/1000+3_600_000)
	v.Copy(v.Get([]byte("auto")), []byte("copy"), 1, nil)
	v.Rename([]byte("auto"), []byte("moved"))
	if n := v.Count(); n != 3 {
		t.Fatalf("%d keys", n)
	}
	ks.Sched.Advance(600_999)
	v = all(ks)
	if !v.Get([]byte("moved")).Ok() || !v.Get([]byte("dated")).Ok() {
		t.Error("gone before the millisecond in which it is full is over")
	}
	// A look finds it gone at once; a request may still use its bytes.
	v.Now++
	if !v.GetLimiter([]byte("moved")).Ok() {
		t.Error("not there to be used again")
	}
	seen := 0
	v.Each(func(Entry) bool { seen++; return true })
	if v.Get([]byte("moved")).Ok() || seen != 1 {
		t.Errorf("still there when full, %d of 1 seen", seen)
	}
	// A sweep removes what nobody looks at.
	if v.Count() != 2 {
		t.Errorf("%d keys", v.Count())
	}
	ks.Sched.Advance(1)
	v = all(ks)
	if v.Count() != 1 || !v.Get([]byte("kept")).Ok() {
		t.Errorf("%d keys", v.Count())
	}
	v.DB = 1
	if v.Count() != 0 {
		t.Error("the copy in another database is still there")
	}
}

// With a running clock, all limiters are swept soon after they are full.
func TestIdleLimitersAreSwept(t *testing.T) {
	ks := New(NewClock(), 1)
	ks.Sched.Start()
	defer ks.Sched.Stop()
	const n = 20_000
	var set LockSet
	set.AddAll()
	ks.Lock(set)
	v := all(ks)
	for i := range n {
		v.PutBytes(KindLimiter, fmt.Appendf(nil, "limiter:%d", i), limited(v.Now, int64(i%10_000)+1, false), 0)
	}
	began := v.Now
	ks.Unlock(set)
	for {
		ks.Lock(set)
		left := v.Count()
		ks.Unlock(set)
		if left == 0 {
			break
		}
		if took := ks.Clock.Now() - began; took > 10e6 {
			t.Fatalf("%d left after %d us; the last was full after 100 ms", left, took)
		}
		time.Sleep(time.Millisecond)
	}
	if ks.Tally(LockSet{}).Stats.Expired != n {
		t.Errorf("%d expired of %d", ks.Tally(LockSet{}).Stats.Expired, n)
	}
	ks.Sched.mu.Lock()
	defer ks.Sched.mu.Unlock()
	for i := range ks.shards {
		if at := ks.shards[i].nextDue.Load(); at != never {
			t.Fatalf("shard %d is due at %d although it is empty", i, at)
		}
	}
}

// A limiter takes at most 96 bytes with a key of 16, its part of the table included.
func TestLimiterMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	for _, n := range []int{50_000, 115_000, 200_000} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		ks := frozen(idleEpoch)
		v := all(ks)
		for i := range n {
			v.PutBytes(KindLimiter, fmt.Appendf(nil, "limiter:%08d", i), limited(v.Now, 60_000+int64(i%1000)*7, false), 0)
		}
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&after)
		each := float64(after.HeapAlloc-before.HeapAlloc) / float64(n)
		t.Logf("%d limiters: %.1f bytes each", n, each)
		if each > 96 {
			t.Errorf("%d limiters take %.1f bytes each", n, each)
		}
		runtime.KeepAlive(ks)
	}
}

// A LOG limiter with ten grants takes at most a third of the 500 bytes that Redis uses for the three keys of a
// Redisson limiter.
func TestLogMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	const n = 100_000
	r := limiter.Rule{Algorithm: limiter.Log, Count: 10, PeriodMicros: 60_000_000}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	ks := frozen(idleEpoch)
	v := all(ks)
	for i := range n {
		key := fmt.Appendf(nil, "limiter:%08d", i)
		p := limiter.New(nil, []limiter.Rule{r}, false)
		for j := range int64(10) {
			p, _, _ = limiter.Take(p, v.Now+j*1_234_567, 1, limiter.Try)
			v.PutBytes(KindLimiter, key, p, 0)
		}
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / float64(n)
	t.Logf("%.1f bytes each", each)
	if each > 500/3 {
		t.Errorf("a LOG with ten grants takes %.1f bytes", each)
	}
	runtime.KeepAlive(ks)
}

func BenchmarkGetLimiter(b *testing.B) {
	ks := frozen(idleEpoch)
	v := all(ks)
	key := []byte("limiter")
	v.PutBytes(KindLimiter, key, limited(v.Now, 60_000, false), 0)
	for b.Loop() {
		if !v.GetLimiter(key).Ok() {
			b.Fatal("gone")
		}
	}
}

// BenchmarkSweep measures a look at limiters that are not idle, and the removal of idle ones.
func BenchmarkSweep(b *testing.B) {
	for _, idle := range []bool{false, true} {
		for _, n := range []int{100_000, 1_000_000} {
			b.Run(fmt.Sprintf("idle=%v/%d", idle, n), func(b *testing.B) {
				slots, keys, took := 0, 0, int64(0)
				for b.Loop() {
					ks := frozen(idleEpoch)
					fill(ks, n, func(v *View, key []byte) { v.PutBytes(KindLimiter, key, limited(v.Now, 1000, false), 0) })
					now := ks.Clock.Now()
					if idle {
						now += 10e6
					}
					for i := range ks.shards {
						slots += ks.shards[i].tables[0].width
					}
					keys += n
					began := Monotonic()
					for i := range ks.shards {
						v := ks.begin(LockSet{1 << i}, now, true)
						for v.sweepSome(&ks.shards[i], 0) {
						}
						v.Account()
					}
					took += Monotonic() - began
					if got := ks.Tally(LockSet{}).Kinds[KindLimiter] == 0; got != idle {
						b.Fatal(got)
					}
				}
				b.ReportMetric(float64(took)*1000/float64(slots), "ns/slot")
				b.ReportMetric(float64(took)*1000/float64(keys), "ns/limiter")
			})
		}
	}
}
