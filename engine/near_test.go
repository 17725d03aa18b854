package engine

// What reads wait for in the journal: a read of a key waits for the changes of that key, and for changes that may
// have been of any key.

import (
	"fmt"
	"testing"

	"github.com/limitkv/limitkv/engine/journal"
)

// holding is a store that confirms nothing.
type holding struct{ journal.Store }

func (holding) Holds() bool            { return true }
func (holding) Confirmed() journal.LSN { return 0 }
func (holding) Refusal() string        { return "" }

func TestChangedNear(t *testing.T) {
	ks := New(NewClock(), 1)
	ks.Journal.Attach(discard{})
	ks.Journal.Keep(holding{})
	a := []byte("key")
	place := PlaceOf(a)
	var b []byte // in the same shard, but in another part
	for i := 0; b == nil; i++ {
		key := fmt.Appendf(nil, "other:%d", i)
		if p := PlaceOf(key); p.shard == place.shard && nearSlot(p.hash) != nearSlot(place.hash) {
			b = key
		}
	}
	other := PlaceOf(b)
	var set LockSet
	set.AddKey(a)
	v := &View{KS: ks, Now: ks.Clock.Now(), Held: set}
	ks.Lock(set)
	defer ks.Unlock(set)
	if !set.Sole(place) || !set.Sole(other) || set.Sole(Place{shard: place.shard ^ 1}) {
		t.Fatal("the set is not that of the shard alone")
	}
	write := func(commit func(), keys ...[]byte) journal.LSN {
		v.LSN = 0
		for _, key := range keys {
			v.Modified(key)
		}
		if len(keys) == 0 {
			v.CountChange()
		}
		v.EndCommand([][]byte{[]byte("SET")})
		commit()
		v.TakeChanges()
		if v.LSN == 0 || v.LSN != ks.ChangedAt(set) {
			t.Fatalf("at %d, and the shard has %d", v.LSN, ks.ChangedAt(set))
		}
		return v.LSN
	}
	sole := func() { v.CommitSole(place) }
	wide := journal.LSN(0) // the last change that may have been of any key
	for _, c := range []struct {
		name   string
		commit func()
		keys   [][]byte
		near   bool
	}{
		{"its key", sole, [][]byte{a}, true},
		{"its key twice", sole, [][]byte{a, a}, true},
		{"its key, but others may have been changed", v.Commit, [][]byte{a}, false},
		{"its key again", sole, [][]byte{a}, true},
		{"another key", sole, [][]byte{b}, false},
		{"both", sole, [][]byte{a, b}, false},
		{"both, the other way", sole, [][]byte{b, a}, false},
		{"no key that is known", sole, nil, false},
		{"apart", v.CommitApart, [][]byte{a}, false},
		{"its key at last", sole, [][]byte{a}, true},
	} {
		at := write(c.commit, c.keys...)
		if !c.near {
			wide = at
		}
		if got := ks.ChangedNear(place); got != at {
			t.Errorf("%s: its key was changed at %d, not %d", c.name, got, at)
		}
		if got := ks.ChangedNear(other); got != wide {
			t.Errorf("%s: another key was changed at %d, not %d", c.name, got, wide)
		}
	}
}
