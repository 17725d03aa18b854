package engine

// Deadlines that are served a few at a time, and clocks that are set back.

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
)

// Other goroutines run while very many keys expire at once, and between two batches no lock is held.
func TestOthersRunWhileKeysExpire(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const keys = 200_000
	clock := NewClock()
	clock.Freeze(1_700_000_000_000_000)
	ks := New(clock, 1)
	at := clock.Now()/1000 + 1000
	fill(ks, keys, func(v *View, key []byte) { v.PutString(key, []byte("x"), at) })
	var stop atomic.Bool
	var turns, holds int
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for !stop.Load() {
			turns++
			for i := range ks.shards {
				if !ks.shards[i].mu.TryLock() {
					holds++
					break
				}
				ks.shards[i].mu.Unlock()
			}
			runtime.Gosched()
		}
	}()
	clock.Freeze((at + 1) * 1000)
	// A look does not find a key that has expired but is not removed yet.
	key := []byte("key:000000000007")
	var set LockSet
	set.AddKey(key)
	ks.Lock(set)
	v := &View{KS: ks, Now: clock.Now(), Held: set}
	if v.Peek(key).Ok() {
		t.Error("a key whose time is over is there")
	}
	v.Account()
	ks.Unlock(set)
	ks.Sched.run.Lock()
	ks.Sched.serve(clock.Now())
	ks.Sched.run.Unlock()
	stop.Store(true)
	<-ended
	if turns < 100 { // without breathe the runtime would let others run every 10 ms
		t.Errorf("another goroutine had its turn %d times", turns)
	}
	if holds > turns/4 {
		t.Errorf("in %d of %d turns a lock was held", holds, turns)
	}
	if st := ks.Tally(LockSet{}); st.DBs[0].Keys != 0 || st.Stats.Expired != keys {
		t.Errorf("%d keys are left, %d expired", st.DBs[0].Keys, st.Stats.Expired)
	}
	if err := ks.Check(); err != nil {
		t.Error(err)
	}
}

// No batch exceeds its limit, however much is due.
func TestBatchesOfExpiry(t *testing.T) {
	for _, keys := range []int{expiryBatch - 1, expiryBatch, expiryBatch + 1, 20 * expiryBatch} {
		clock := NewClock()
		clock.Freeze(1_700_000_000_000_000)
		ks := New(clock, 1)
		at := clock.Now()/1000 + 1000
		n := 0
		fill(ks, keys, func(v *View, key []byte) { v.PutString(fmt.Appendf(nil, "{one}%d", n), []byte("x"), at); n++ })
		_, i := locate([]byte("{one}"))
		clock.Freeze((at + 1) * 1000)
		for left := keys; left > 0; {
			more := ks.expireShard(&ks.shards[i], clock.Now())
			now := ks.shards[i].tables[0].used
			if left-now > expiryBatch || left == now || more != (now > 0) {
				t.Fatalf("of %d keys %d were left, then %d, more to do: %v", keys, left, now, more)
			}
			left = now
		}
	}
}

// After a clock is set back, or resumes after it was ahead, keys still expire in the background: new ones and earlier
// ones.
func TestClockSetBack(t *testing.T) {
	const year = 366 * 86400 * 1000
	for _, resume := range []bool{false, true} {
		clock := NewClock()
		ks := New(clock, 1)
		ks.Sched.Freeze(clock.Now())
		began := clock.Now() / 1000
		fill(ks, 1000, func(v *View, key []byte) { v.PutString(key, []byte("x"), began+2*year) })
		fill(ks, 1000, func(v *View, key []byte) { v.PutString(append(key, 'y'), []byte("x"), began+year-1) })
		ks.Sched.Advance(year * 1000)
		if resume {
			ks.Sched.Resume()
			ks.Sched.Freeze(clock.Now()) // to stop it at the time of the system's
		} else {
			ks.Sched.Freeze(began * 1000)
		}
		now := clock.Now() / 1000
		n := 0
		fill(ks, 1000, func(v *View, key []byte) {
			v.PutString(append(key, 'n'), []byte("x"), now+1+int64(n)%5000)
			n++
		})
		ks.Sched.Advance(5002 * 1000)
		if st := ks.Tally(LockSet{}); st.DBs[0].Keys != 1000 || st.Stats.Expired != 2000 {
			t.Errorf("resumed %v: %d keys, %d expired", resume, st.DBs[0].Keys, st.Stats.Expired)
		}
		ks.Sched.Advance(2 * year * 1000)
		if left := ks.Tally(LockSet{}).DBs[0].Keys; left != 0 {
			t.Errorf("resumed %v: %d keys have not expired", resume, left)
		}
		if err := ks.Check(); err != nil {
			t.Error(err)
		}
	}
}
