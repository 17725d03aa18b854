package engine

import (
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The first word of a mutex says whether it is locked, also while others wait for it and when it is handed to one of
// them.
func TestLocked(t *testing.T) {
	var mu sync.Mutex
	if locked(&mu) {
		t.Error("a new mutex is locked")
	}
	mu.Lock()
	if !locked(&mu) {
		t.Error("a locked mutex is not locked")
	}
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for range 100 {
				mu.Lock()
				if !locked(&mu) {
					t.Error("a mutex that others want is not locked")
				}
				time.Sleep(10 * time.Microsecond) // some wait for more than a millisecond
				mu.Unlock()
			}
		})
	}
	time.Sleep(3 * time.Millisecond)
	if !locked(&mu) {
		t.Error("a mutex that others wait for is not locked")
	}
	mu.Unlock()
	done.Wait()
	if locked(&mu) {
		t.Error("a mutex that was let go is locked")
	}
}

// A shard has one owner at a time, whichever way it was taken.
func TestGate(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	ks := New(NewClock(), 1)
	var owners [shardCount]int // written by the owner of the shard: two owners cause a data race or a wrong count
	var own, whole, refused atomic.Int64
	use := func(r *rand.Rand, set LockSet) {
		for m := set.mask; m != 0; m &= m - 1 {
			owners[bits.TrailingZeros64(m)]++
			ks.shards[bits.TrailingZeros64(m)].sweep.notBefore++ // everything below reads it: two owners cause a data race
		}
		if r.IntN(4) == 0 {
			runtime.Gosched()
		}
		for m := set.mask; m != 0; m &= m - 1 {
			i := bits.TrailingZeros64(m)
			if owners[i] != 1 {
				t.Errorf("shard %d has %d owners", i, owners[i])
			}
			owners[i]--
		}
		own.Add(1)
	}
	const rounds = 20_000
	var done sync.WaitGroup
	for g := range uint64(6) {
		done.Go(func() {
			r := rand.New(rand.NewPCG(seed, g))
			for range rounds {
				switch set := (LockSet{1 << r.IntN(shardCount)}); r.IntN(8) {
				case 0: // all shards, then a few of them
					all := LockSet{allShards}
					if ks.Lock(all) != nil {
						t.Error("reserved")
						return
					}
					use(r, all)
					whole.Add(1)
					if r.IntN(2) == 0 {
						set.mask |= 1 << r.IntN(shardCount)
						ks.Unlock(all.Without(set))
						use(r, set)
						all = set
					}
					ks.Unlock(all)
				case 1: // several shards, and one more out
					for range 2 {
						set.mask |= 1 << r.IntN(shardCount)
					}
					ks.Lock(set)
					also := LockSet{1 << r.IntN(shardCount)}
					if also.Within(set) {
						use(r, set)
					} else if ks.tryEnter(&ks.shards[bits.TrailingZeros64(also.mask)]) {
						use(r, LockSet{set.mask | also.mask})
						ks.Unlock(also)
					} else {
						refused.Add(1)
						use(r, set)
					}
					ks.Unlock(set)
				case 2:
					s := &ks.shards[bits.TrailingZeros64(set.mask)]
					ks.enter(s)
					use(r, set)
					s.mu.Unlock()
				case 3:
					if h := ks.Lock(LockSet{allShards}); h == nil {
						use(r, LockSet{allShards})
						ks.Unlock(LockSet{allShards})
					}
				default:
					ks.Lock(set)
					use(r, set)
					ks.Unlock(set)
				}
			}
		})
	}
	stop := make(chan struct{})
	var beside sync.WaitGroup
	beside.Go(func() { // code that goes from shard to shard
		for {
			select {
			case <-stop:
				return
			default:
				ks.Sched.rewind()
				ks.Sched.Few(1)
				ks.Tally(LockSet{})
				ks.sweepAll(ks.Clock.Now())
				ks.noteDueFree(&ks.shards[0])
			}
		}
	})
	done.Wait()
	close(stop)
	beside.Wait()
	if !ks.LocksFree(time.Second) {
		t.Error("a lock is left")
	}
	t.Logf("%d uses, %d of all shards, %d refusals", own.Load(), whole.Load(), refused.Load())
	if own.Load() < 6*rounds || whole.Load() == 0 {
		t.Error("too little was tried")
	}
}

// Reservations of all shards and of one exclude each other, and callers that come meanwhile get the holder.
func TestGateReserved(t *testing.T) {
	ks := New(NewClock(), 1)
	all, one := LockSet{allShards}, LockSet{1 << 7}
	for _, set := range []LockSet{all, one} {
		if ks.Lock(set) != nil {
			t.Fatal("reserved")
		}
		r := ks.Reserve(set, nil)
		for _, other := range []LockSet{all, one, {1<<7 | 1<<9}} {
			if ks.Lock(other) != r {
				t.Errorf("a reserved shard is locked by %x", other.mask)
			}
		}
		r.Lock()
		ks.Unlock(set)
		r.Release()
		for _, other := range []LockSet{all, one} {
			if ks.Lock(other) != nil {
				t.Error("a shard stays reserved")
			}
			ks.Unlock(other)
		}
	}
	if !ks.LocksFree(time.Second) {
		t.Error("a lock is left")
	}
}

func BenchmarkLock(b *testing.B) {
	ks := New(NewClock(), 1)
	for _, bench := range []struct {
		name string
		set  LockSet
	}{{"one", LockSet{1 << 7}}, {"two", LockSet{1<<7 | 1<<40}}, {"all", LockSet{allShards}}} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				ks.Lock(bench.set)
				ks.Unlock(bench.set)
			}
		})
	}
}

// A clock that is set back waits for the holder of all shards, like everything that looks into a shard.
func TestRewindWaitsForTheGate(t *testing.T) {
	ks := New(NewClock(), 1)
	ks.close()
	done := make(chan struct{})
	go func() {
		ks.unreserved(&ks.shards[3], func(*shard) {})
		close(done)
	}()
	select {
	case <-done:
		t.Error("a shard was changed while somebody had all of them")
	case <-time.After(20 * time.Millisecond):
	}
	ks.open()
	<-done
}
