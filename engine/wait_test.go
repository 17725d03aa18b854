package engine

// Waiters are served in order, once each, and no lock is left behind.

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// serving is an Asker, and waiting makes a waiter of it in database 0.
type serving func(v *View, key []byte) (Served, int64)

func (s serving) Serve(v *View, key []byte) (Served, int64) { return s(v, key) }
func (s serving) TimedOut()                                 {}

func waiting(ks *Keyspace, serve serving, keys ...string) *Waiter {
	w := &Waiter{KS: ks, Who: serve}
	for _, k := range keys {
		w.Keys = append(w.Keys, []byte(k))
	}
	return w
}

// one makes a waiter that takes one from the counter under a key.
func one(ks *Keyspace, keys ...string) (w *Waiter, got *[]string) {
	got = new([]string)
	w = waiting(ks, func(v *View, key []byte) (Served, int64) {
		e := v.Get(key)
		n, _ := e.intOrNone()
		if n == 0 {
			return ServedHold, 0
		}
		v.SetInt(e, n-1)
		*got = append(*got, string(key))
		return ServedDone, 0
	}, keys...)
	return w, got
}

func TestWaitersAreServedInOrder(t *testing.T) {
	m := newModel(t, 1)
	var order []int
	var waiters []*Waiter
	for i := range 10 {
		w, _ := one(m.ks, "a")
		serve := w.Who
		w.Who = serving(func(v *View, key []byte) (Served, int64) {
			r, at := serve.Serve(v, key)
			if r == ServedDone {
				order = append(order, i)
			}
			return r, at
		})
		waiters = append(waiters, w)
		m.do(0, func(v *View) { v.Wait(w) })
	}
	if !waiters[3].Leave() || waiters[3].Leave() {
		t.Fatal("a waiter leaves once")
	}
	m.do(0, func(v *View) { v.PutInt([]byte("a"), 4, 0); v.Modified([]byte("a")) })
	m.do(0, func(v *View) { v.PutInt([]byte("a"), 2, 0); v.Modified([]byte("a")) })
	if fmt.Sprint(order) != "[0 1 2 4 5 6]" {
		t.Fatalf("served %v", order)
	}
	m.do(0, func(v *View) {
		if n, _ := v.Waiting([]byte("a"), KindNone); n != 3 {
			t.Fatalf("%d wait", n)
		}
	})
}

func TestNoKeyIsToldPastWhoHolds(t *testing.T) {
	m := newModel(t, 1)
	holds, got := one(m.ks, "a")
	tried, told := 0, false
	noKey := waiting(m.ks, func(v *View, key []byte) (Served, int64) {
		tried++
		told = !v.Peek(key).Ok()
		if told {
			return ServedDone, 0
		}
		return ServedSkip, 0
	}, "a")
	noKey.NoKey = true
	m.do(0, func(v *View) { v.PutInt([]byte("a"), 0, 0) })
	m.do(0, func(v *View) { v.Wait(holds); v.Wait(noKey) })
	m.do(0, func(v *View) {
		v.Lessened([]byte("a"), EventStream, "x")
		v.Altered([]byte("a"), EventStream, "x")
		v.CountChange()
	})
	if tried != 0 {
		t.Fatal("a change that makes nothing ready had somebody tried")
	}
	m.do(0, func(v *View) { v.Modified([]byte("a")) })
	if tried != 1 || told || len(*got) != 0 {
		t.Fatalf("tried %d times, told %v", tried, told)
	}
	m.do(0, func(v *View) { v.Delete([]byte("a")); v.Modified([]byte("a")) })
	if !told {
		t.Fatal("the key went, and who was to be told was not")
	}
	m.do(0, func(v *View) {
		if n, _ := v.Waiting([]byte("a"), KindNone); n != 1 || v.Tally().WaitingKeysNoKey != 0 {
			t.Fatalf("%d wait, %d keys for when they go", n, v.Tally().WaitingKeysNoKey)
		}
	})
}

func TestWaiterOfTwoKeysIsServedOnce(t *testing.T) {
	m := newModel(t, 1)
	w, got := one(m.ks, "a", "b")
	m.do(0, func(v *View) { v.Wait(w) })
	m.do(0, func(v *View) {
		for _, k := range []string{"b", "a"} {
			v.PutInt([]byte(k), 1, 0)
			v.Modified([]byte(k))
		}
	})
	if fmt.Sprint(*got) != "[b]" {
		t.Fatalf("served %v", *got)
	}
}

func TestAlarmServesAtItsTime(t *testing.T) {
	m := newModel(t, 1)
	at := m.ks.Clock.Now() + 1500
	served := int64(0)
	w := waiting(m.ks, func(v *View, key []byte) (Served, int64) {
		if v.Now < at {
			return ServedHold, at
		}
		served = v.Now
		return ServedDone, 0
	}, "a")
	m.do(0, func(v *View) { v.Wait(w); v.Alarm(w.Keys[0], at) })
	m.ks.Sched.Advance(1499)
	if served != 0 {
		t.Fatal("too early")
	}
	m.ks.Sched.Advance(1_000_000)
	if served != at {
		t.Fatalf("served at %d, not %d", served, at)
	}
}

// lapsing counts its timeouts.
type lapsing struct {
	serving
	times *int
}

func (l lapsing) TimedOut() { *l.times++ }

// A deadline ends a wait once, and no timer outlives its wait, however that ends.
func TestDeadlineEndsAWait(t *testing.T) {
	for name, test := range map[string]struct {
		keys []string
		end  func(m *model, w *Waiter)
		want int // how often it times out
	}{
		"its time comes": {[]string{"a"}, func(m *model, w *Waiter) {}, 1},
		"of two keys":    {[]string{"a", "b"}, func(m *model, w *Waiter) {}, 1},
		"of no key":      {nil, func(m *model, w *Waiter) {}, 1},
		"it is served": {[]string{"a"}, func(m *model, w *Waiter) {
			m.do(0, func(v *View) { v.PutInt([]byte("a"), 1, 0); v.Modified([]byte("a")) })
		}, 0},
		"it leaves": {[]string{"a"}, func(m *model, w *Waiter) {
			if !w.Leave() {
				t.Error("it waits no more")
			}
		}, 0},
		"no key, and it leaves": {nil, func(m *model, w *Waiter) { w.Leave() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, 1)
			times := 0
			w, _ := one(m.ks, test.keys...)
			w.Who = lapsing{w.Who.(serving), &times}
			w.Deadline = m.ks.Clock.Now() + 1000
			m.do(0, func(v *View) { v.Wait(w) })
			m.ks.Sched.Advance(999)
			if times != 0 {
				t.Fatal("too early")
			}
			test.end(m, w)
			if test.want == 0 && len(m.ks.Sched.heap) != 0 {
				t.Error("its timer outlives it")
			}
			m.ks.Sched.Advance(1)
			m.ks.Sched.Advance(1_000_000)
			if times != test.want || w.Leave() {
				t.Errorf("it timed out %d times", times)
			}
			for _, key := range test.keys {
				m.do(0, func(v *View) {
					if n, _ := v.Waiting([]byte(key), KindNone); n != 0 {
						t.Errorf("%d wait for %s", n, key)
					}
				})
			}
		})
	}
}

// A wait without keys that ends before it begins leaves no timer.
func TestDeadlineOfAWaitThatIsOver(t *testing.T) {
	m := newModel(t, 1)
	w, _ := one(m.ks)
	w.Deadline = m.ks.Clock.Now() + 1000
	if !w.Leave() {
		t.Fatal("nobody else had it leave")
	}
	m.do(0, func(v *View) { v.Wait(w) })
	if len(m.ks.Sched.heap) != 0 {
		t.Fatal("a timer is left")
	}
}

// Many goroutines wait, leave and write at once: every unit that was added is taken exactly once or still there, and
// no waiter is lost.
func TestWaitersUnderLoad(t *testing.T) {
	ks := New(NewClock(), 1)
	ks.Sched.Start()
	defer ks.Sched.Stop()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	const perWorker, keys = 300, 4
	var put, taken, left atomic.Int64
	var wg sync.WaitGroup
	with := func(key []byte, fn func(v *View)) {
		var set LockSet
		set.AddKey(key)
		for ks.Lock(set) != nil {
			t.Error("nobody reserves")
		}
		v := &View{KS: ks, Now: ks.Clock.Now(), Held: set}
		fn(v)
		v.ServeReady()
		ks.Unlock(set)
	}
	for worker := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rng := rand.New(rand.NewPCG(seed, uint64(worker)))
			for range perWorker {
				key := fmt.Appendf(nil, "key%d", rng.IntN(keys))
				if worker%2 == 0 {
					put.Add(1)
					with(key, func(v *View) {
						n, _ := v.Get(key).intOrNone()
						v.PutInt(key, n+1, 0)
						v.Modified(key)
					})
					continue
				}
				done := make(chan struct{})
				w, _ := one(ks, string(key))
				serve := w.Who
				w.Who = serving(func(v *View, key []byte) (Served, int64) {
					r, at := serve.Serve(v, key)
					if r == ServedDone {
						close(done)
					}
					return r, at
				})
				waits := true
				with(key, func(v *View) {
					waiting, _ := v.Waiting(key, KindNone)
					if n, _ := v.Get(key).intOrNone(); n > 0 && waiting == 0 {
						v.SetInt(v.Get(key), n-1)
						waits = false
						return
					}
					v.Wait(w)
				})
				if !waits {
					taken.Add(1)
					continue
				}
				select {
				case <-done:
					taken.Add(1)
				case <-time.After(time.Duration(rng.IntN(3000)) * time.Microsecond):
					if w.Leave() {
						left.Add(1)
					} else {
						<-done // the waiter was served meanwhile
						taken.Add(1)
					}
				}
			}
		}()
	}
	wg.Wait()
	rest := int64(0)
	for i := range keys {
		key := fmt.Appendf(nil, "key%d", i)
		with(key, func(v *View) {
			n, _ := v.Get(key).intOrNone()
			rest += n
			if waiting, _ := v.Waiting(key, KindNone); waiting != 0 {
				t.Errorf("%d still wait", waiting)
			}
		})
	}
	if taken.Load()+rest != put.Load() || taken.Load() == 0 {
		t.Errorf("%d put, %d taken, %d left over (%d gave up)", put.Load(), taken.Load(), rest, left.Load())
	}
}

func TestReservationKeepsOthersOut(t *testing.T) {
	ks := New(NewClock(), 1)
	var set LockSet
	set.AddKey([]byte("a"))
	r := hold(ks, set, "script")
	h := ks.Lock(set)
	if h == nil || h.Info != "script" {
		t.Fatal("the shard is not reserved")
	}
	called := make(chan bool, 2)
	h.OnReleaseOrSlow(func() { called <- h.Slow() })
	h.OnRelease(func() { called <- false })
	r.MarkSlow()
	if !<-called {
		t.Fatal("those who want to be told when the holder is slow are not")
	}
	h.OnReleaseOrSlow(func() { called <- true }) // too late to be called
	if !<-called {
		t.Fatal("who comes when the holder is slow already is not told")
	}
	h.OnRelease(func() { called <- true })
	r.letGo()
	first, second := <-called, <-called
	if first || !second {
		t.Fatal("those who wait for the shards are told otherwise than in their order")
	}
	if ks.Lock(set) != nil {
		t.Fatal("the shard is still reserved")
	}
	ks.Unlock(set)
}

// hold reserves a set, and letGo releases it.
func hold(ks *Keyspace, set LockSet, info any) *Reservation {
	ks.LockWaiting(set)
	return ks.Reserve(set, info)
}

func (r *Reservation) letGo() {
	r.Lock()
	r.ks.Unlock(r.set)
	r.Release()
}

// A waiter or a watcher that leaves does not disturb the holder of the key's shard.
func TestLeavingWhileReserved(t *testing.T) {
	ks := New(NewClock(), 1)
	key := []byte("a")
	var set LockSet
	set.AddKey(key)
	v := &View{KS: ks, Held: set}
	for range 200 {
		w := waiting(ks, func(*View, []byte) (Served, int64) { return ServedHold, 0 }, string(key))
		var watcher Watcher
		ks.Lock(set)
		v.Wait(w)
		v.Watch(&watcher, key)
		r := ks.Reserve(set, nil)
		v.Reserved = true
		done := make(chan bool)
		go func() { done <- w.Leave() }()
		go func() { ks.Unwatch(&watcher, LockSet{}); done <- true }()
		for range 20 {
			v.Modified(key)
		}
		for range 2 {
			if !<-done {
				t.Fatal("it waited no more")
			}
		}
		r.Lock()
		v.Reserved = false
		v.ServeReady()
		ks.Unlock(set)
		r.Release()
		ks.Lock(set)
		if n, _ := v.Waiting(key, KindNone); n != 0 || len(ks.shards[0].watches) != 0 {
			t.Fatalf("%d wait", n)
		}
		ks.Unlock(set)
	}
}
