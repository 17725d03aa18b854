package engine

// Waiters in several lines, and waiters whose serving needs several locks.

import (
	"fmt"
	"testing"
	"time"
)

// A served waiter leaves all its lines at once, even while they are walked, and those behind it are tried.
func TestServedLeavesAllLines(t *testing.T) {
	for _, keys := range [][]string{{"a", "b"}, {"b", "a"}, {"a", "b", "a", "b"}, {"b", "c", "a"}} {
		m := newModel(t, 1)
		first, got := one(m.ks, keys...)
		var second, third []string
		behind := func(into *[]string) *Waiter {
			return waiting(m.ks, func(v *View, key []byte) (Served, int64) {
				*into = append(*into, string(key))
				return ServedHold, 0
			}, "a", "b")
		}
		m.do(0, func(v *View) { v.Wait(first); v.Wait(behind(&second)); v.Wait(behind(&third)) })
		m.do(0, func(v *View) { v.PutInt([]byte("a"), 1, 0); v.Modified([]byte("a")) })
		if fmt.Sprint(*got, second, third) != "[a] [a b] []" {
			t.Errorf("%v: the first is served at %v, the others are tried at %v and %v", keys, *got, second, third)
		}
		m.do(0, func(v *View) {
			for key, want := range map[string]int{"a": 2, "b": 2, "c": 0} {
				if n, _ := v.Waiting([]byte(key), KindNone); n != want {
					t.Errorf("%v: %d wait for %s", keys, n, key)
				}
			}
		})
		if err := m.ks.Check(); err != nil {
			t.Error(err)
		}
	}
}

// A walk through a line begins another walk through it: each waiter is served once, and the line ends once.
func TestLineWithinItself(t *testing.T) {
	m := newModel(t, 1)
	ended := map[string]int{}
	m.ks.LineLeft = func(_ *Keyspace, _ int, key string) { ended[key]++ }
	order := ""
	joins := func(name string, before func(v *View), keys ...string) *Waiter {
		w := waiting(m.ks, func(v *View, key []byte) (Served, int64) {
			before(v)
			order += name
			return ServedDone, 0
		}, keys...)
		m.do(0, func(v *View) { v.Wait(w) })
		return w
	}
	nothing := func(*View) {}
	joins("c", func(v *View) { v.ServeLine([]byte("a")) }, "c")
	joins("m", nothing, "c", "a").Order = OrderLines
	for _, name := range []string{"1", "2", "3"} {
		joins(name, nothing, "a", "b")
	}
	m.do(0, func(v *View) { v.Ready([]byte("a")); v.Ready([]byte("c")) })
	if order != "m123c" {
		t.Errorf("served %s", order)
	}
	if fmt.Sprint(ended) != "map[a:1 b:1 c:1]" {
		t.Errorf("lines that ended: %v", ended)
	}
	if err := m.ks.Check(); err != nil {
		t.Error(err)
	}
}

// A waiter that needs the lock of a second key, which is busy, is served when that lock is free. Nothing polls, so it
// works also with a frozen clock.
func TestBusySecondLock(t *testing.T) {
	a, b := []byte("a"), []byte("b")
	var setA, setB LockSet
	setA.AddKey(a)
	setB.AddKey(b)
	for name, busy := range map[string]func(ks *Keyspace) (free func()){
		"locked":   func(ks *Keyspace) func() { ks.LockWaiting(setB); return func() { ks.Unlock(setB) } },
		"reserved": func(ks *Keyspace) func() { r := hold(ks, setB, nil); return r.letGo },
	} {
		t.Run(name, func(t *testing.T) {
			clock := NewClock()
			clock.Freeze(1_700_000_000_000_000)
			ks := New(clock, 1)
			ks.Sched.Start()
			defer ks.Sched.Stop()
			served := make(chan LockSet, 1)
			w := waiting(ks, func(v *View, key []byte) (Served, int64) {
				served <- v.Held
				return ServedDone, 0
			}, "a")
			w.Also = [][]byte{b}
			ks.LockWaiting(setA)
			v := &View{KS: ks, Now: clock.Now(), Held: setA}
			v.Wait(w)
			ks.Unlock(setA)
			free := busy(ks)
			ks.LockWaiting(setA)
			v = &View{KS: ks, Now: clock.Now(), Held: setA}
			v.Ready(a)
			v.ServeReady()
			ks.Unlock(setA)
			if len(served) != 0 {
				t.Fatal("served without the second lock")
			}
			free()
			select {
			case held := <-served:
				if !held.Covers(a) || !held.Covers(b) {
					t.Errorf("%x is held", held.mask)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("it is not served")
			}
			ks.LockWaiting(setA)
			if n, _ := v.Waiting(a, KindNone); n != 0 {
				t.Errorf("%d wait", n)
			}
			ks.Unlock(setA)
		})
	}
}
