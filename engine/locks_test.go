package engine

// Locks in the keyspace: their memory, and that nothing remains of free ones.

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/limitkv/limitkv/engine/lock"
)

func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// mutex takes the lock under a key for an owner.
func (v *View) mutex(key, owner []byte, untilMicros, session int64) bool {
	var work lock.Lock
	e, l := v.GetWrite(key), &work
	if e.Ok() {
		l = e.Lock(&work)
	}
	_, _, err := l.Acquire(&lock.Ask{Owner: owner, UntilMicros: untilMicros, Session: session, Take: 1}, v.Now,
		func() int64 { return v.KS.Fences.Next(v.Now) })
	if err == nil {
		v.PutLock(key, e, l)
	}
	return err == nil
}

// A mutex with a key and an owner of 16 bytes takes at most 128 bytes, including its place in the table and its
// deadline, however full the tables are. When it is free it takes none.
func TestMutexMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	const mutexBytesMax = 128
	clock := NewClock()
	clock.Freeze(1_700_000_000_000_000)
	for _, session := range []int64{0, 1_000_000} { // a RESP3 session is notified of the loss
		ks := New(clock, 1)
		free := func(v *View, key []byte) {
			var work lock.Lock
			e := v.GetWrite(key)
			l := e.Lock(&work)
			if !l.Release(key[:16], 0) || !v.PutLock(key, e, l) {
				t.Fatal("a mutex was not held")
			}
		}
		take := func(v *View, key []byte) {
			if !v.mutex(key, key[:16], v.Now+30_000_000, session) {
				t.Fatal("a mutex was not free")
			}
		}
		fillFrom(ks, 0, 2000, take) // then each shard has its wheel
		fillFrom(ks, 0, 2000, free)
		before := heapBytes()
		locks := 0
		for _, n := range []int{40_000, 60_000, 80_000, 120_000} {
			fillFrom(ks, locks, n, take)
			locks = n
			if each := float64(heapBytes()-before) / float64(n); each > mutexBytesMax {
				t.Errorf("session %d: %d mutexes take %.1f bytes each", session, n, each)
			} else {
				t.Logf("session %d: %d mutexes take %.1f bytes each", session, n, each)
			}
		}
		if each := float64(ks.KeysBytes()) / float64(locks); each < 90 || each > mutexBytesMax {
			t.Errorf("they are counted with %.1f bytes each", each)
		}
		if err := ks.Check(); err != nil {
			t.Error(err)
		}
		fillFrom(ks, 0, locks, free)
		const placesKept = shardCount * 4096 * 16 // nodes of the wheels, kept for later deadlines
		if left := heapBytes() - before; left > placesKept+200<<10 || ks.KeysBytes() > 64<<10 {
			t.Errorf("%d bytes are left of no locks, %d of them are said to be keys", left, ks.KeysBytes())
		}
		if err := ks.Check(); err != nil {
			t.Error(err)
		}
		runtime.KeepAlive(ks)
	}
}

// fillFrom calls do with the keys of a range of numbers, each under its lock.
func fillFrom(ks *Keyspace, from, to int, do func(v *View, key []byte)) {
	for i := from; i < to; i++ {
		key := []byte(fmt.Sprintf("%016d", i))
		v := View{Held: LockSet{allShards}, KS: ks, Now: ks.Clock.Now()}
		v.Held.AddKey(key)
		ks.Lock(v.Held)
		do(&v, key)
		v.Commit()
		v.Account()
		ks.Unlock(v.Held)
	}
}

// Fences given by many goroutines at once are all different, and rise for each of them.
func TestFencesAreUnique(t *testing.T) {
	const each, givers = 20_000, 4
	var f Fences
	all := make([][]int64, givers)
	var done sync.WaitGroup
	for i := range all {
		done.Go(func() {
			for n := range each {
				all[i] = append(all[i], f.Next(int64(n/10)))
			}
		})
	}
	done.Wait()
	seen := map[int64]bool{}
	for _, list := range all {
		for i, fence := range list {
			if seen[fence] || i > 0 && fence <= list[i-1] {
				t.Fatalf("fence %d comes twice, or too late", fence)
			}
			seen[fence] = true
		}
	}
	f.After(1 << 40)
	f.After(5)
	if got := f.Next(7); got != 1<<40+1 || len(seen) != each*givers {
		t.Errorf("after 2^40 comes %d; %d fences", got, len(seen))
	}
	if got := f.Next(1 << 41); got != 1<<41 || f.Last() != got {
		t.Errorf("at 2^41 it is %d", got)
	}
}
