package engine

// Transactions from beginning to end, and what a panic inside leaves.

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestUpdate(t *testing.T) {
	ks := New(NewClock(), 1)
	w, got := one(ks, "a")
	ks.Update(LocksOf([]byte("a")), func(v *View) { v.Wait(w) })
	ks.Update(LocksOf([]byte("a")), func(v *View) {
		v.PutString([]byte("a"), []byte("1"), 0)
		v.Changed([]byte("a"), EventString, "set")
	})
	if len(*got) != 1 {
		t.Error("who waits is not served")
	}
	if n := ks.Dirty.Load(); n != 1 {
		t.Errorf("%d changes are counted", n)
	}
	if err := ks.Check(); err != nil {
		t.Error(err) // the sum of the memory is right, too
	}
	run := hold(ks, LocksOf([]byte("a")), nil)
	ran := false
	change := func(*View) { ran = true }
	if h := ks.TryUpdate(LocksOf([]byte("a")), change); h != run || ran {
		t.Errorf("tried while somebody has the shard: %v, ran %v", h, ran)
	}
	if h := ks.TryInspect(LocksOf([]byte("a")), func(*Reader) { ran = true }); h != run || ran {
		t.Errorf("looked while somebody has the shard: %v, ran %v", h, ran)
	}
	done := make(chan bool)
	go func() { ks.Update(LocksOf([]byte("a")), change); done <- true }()
	run.letGo()
	if <-done; !ran {
		t.Error("nothing was done when the shard was free")
	}
}

// A panic leaves no lock behind. If keys may be half changed the process ends first, while the locks are still held.
func TestUpdatePanics(t *testing.T) {
	key := []byte("a")
	change := func(v *View) { v.PutString(key, []byte("v"), 0) }
	for _, c := range []struct {
		name  string
		do    func(ks *Keyspace)
		ends  bool // the process ends
		found bool // the caller gets the panic
	}{
		{"before a change", func(ks *Keyspace) { ks.Update(LocksOf([]byte("a")), func(v *View) { v.Get(key); panic("p") }) }, false, true},
		{"in a change", func(ks *Keyspace) { ks.Update(LocksOf([]byte("a")), func(v *View) { change(v); panic("p") }) }, true, false},
		{"in a look", func(ks *Keyspace) { ks.Inspect(LocksOf([]byte("a")), func(*Reader) { panic("p") }) }, false, true},
		{"while it serves", func(ks *Keyspace) {
			w := waiting(ks, func(*View, []byte) (Served, int64) { panic("p") }, "a")
			ks.Update(LocksOf([]byte("a")), func(v *View) { v.Wait(w); v.Ready(key) })
		}, true, false},
		{"in what is due", func(ks *Keyspace) {
			ks.upkeep(LocksOf([]byte("a")), ks.Clock.Now(), func(*View) { panic("p") })
		}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ks := New(NewClock(), 1)
			ended := 0
			ks.Sched.Panicked = func(r any) {
				ended++
				if ks.LocksFree(0) {
					t.Error("others could see what was half changed")
				}
			}
			found := func() (found bool) {
				defer func() { found = recover() == "p" }()
				c.do(ks)
				return false
			}()
			if ended > 0 != c.ends || found != c.found {
				t.Errorf("the process ends: %d times, the caller has it: %v", ended, found)
			}
			if !ks.LocksFree(time.Second) {
				t.Error("a lock is left")
			}
		})
	}
}

// What expired before a panic stays expired: that is logged, and the memory is freed.
func TestUpdateKeepsWhatExpired(t *testing.T) {
	ks := frozen(idleEpoch)
	var gone []string
	ks.Causes.Gone = func(v *View, key []byte, _ bool) { gone = append(gone, string(key)); v.LogSystem([]byte("DEL"), key) }
	ks.Update(LocksOf([]byte("a")), func(v *View) { v.PutString([]byte("a"), []byte("1"), v.Now/1000+1) })
	log := new(kept)
	ks.Journal.Attach(log)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("there was no panic")
			}
		}()
		ks.Update(LocksOf([]byte("a")), func(v *View) {
			v.Now += 10_000
			v.Get([]byte("a"))
			panic("p")
		})
	}()
	if fmt.Sprint(gone) != "[a]" || !strings.Contains(log.text, "DEL") {
		t.Errorf("gone %q, told %q", gone, log.text)
	}
	if err := ks.Check(); err != nil {
		t.Error(err)
	}
}

func TestInspectChangesNothing(t *testing.T) {
	ks := New(NewClock(), 1)
	ks.Strict = true
	defer func() {
		if recover() == nil {
			t.Error("a change by who looks is not found")
		}
		if !ks.LocksFree(time.Second) {
			t.Error("a lock is left")
		}
	}()
	ks.Inspect(LocksOf([]byte("a")), func(r *Reader) { (*View)(r).PutString([]byte("a"), []byte("1"), 0) })
}
