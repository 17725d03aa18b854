package engine

// In tests, a broken rule of transactions panics. Serving a line of waiters breaks none.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/engine/journal"
)

// apart returns two keys of different shards.
func apart(t *testing.T) (a, b []byte) {
	a = []byte("a")
	for c := byte('b'); c <= 'z'; c++ {
		b = []byte{c}
		if PlaceOf(b).shard != PlaceOf(a).shard {
			return a, b
		}
	}
	t.Fatal("all keys are of one shard")
	return nil, nil
}

func TestStrict(t *testing.T) {
	a, b := apart(t)
	for name, c := range map[string]struct {
		want string
		do   func(v *View)
	}{
		"another key":       {"outside of the locks", func(v *View) { v.Peek(b) }},
		"another key hint":  {"outside of the locks", func(v *View) { v.Hint(b) }},
		"another key put":   {"outside of the locks", func(v *View) { v.PutInt(b, 1, 0) }},
		"move elsewhere":    {"outside of the locks", func(v *View) { v.PutInt(a, 1, 0); v.Rename(a, b) }},
		"copy elsewhere":    {"outside of the locks", func(v *View) { v.Copy(v.PutInt(a, 1, 0), b, 0, nil) }},
		"waiting elsewhere": {"outside of the locks", func(v *View) { v.Wait(&Waiter{Keys: [][]byte{b}}) }},
		"watching":          {"outside of the locks", func(v *View) { v.Watch(&Watcher{}, b) }},
		"told of another":   {"outside of the locks", func(v *View) { v.Modified(b) }},
		"lock let go":       {"was let go", func(v *View) { v.KS.Unlock(v.Held); defer v.KS.Lock(v.Held); v.Peek(a) }},
		"count":             {"not all shards", func(v *View) { v.Count() }},
		"each":              {"not all shards", func(v *View) { v.Each(func(Entry) bool { return true }) }},
		"each stored":       {"not all shards", func(v *View) { v.EachStored(func(Entry) {}) }},
		"scan":              {"not all shards", func(v *View) { v.Scan(0, 1, func(Entry) {}) }},
		"random":            {"not all shards", func(v *View) { v.Random(func() uint64 { return 0 }) }},
		"flush":             {"not all shards", func(v *View) { v.Flush() }},
		"swap":              {"not all shards", func(v *View) { v.Swap(0, 1) }},
		"cut":               {"not all shards", func(v *View) { v.BeginCut(nil) }},
		"no effect": {"1 changes have no effect", func(v *View) {
			v.PutInt(a, 1, 0)
			v.Modified(a)
			v.Commit()
		}},
		"own effects, none named": {`no effect: "a" of database 0`, func(v *View) {
			v.OwnEffects()
			v.PutInt(a, 1, 0)
			v.Modified(a)
			v.EndCommand([][]byte{[]byte("SET")})
		}},
		"not committed": {"not committed", func(v *View) {
			v.Effect([]byte("DEL"), a)
			v.Account()
		}},
		"neither": {"no effect", func(v *View) {
			v.PutInt(a, 1, 0)
			v.Modified(a)
			v.Account()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			ks := New(NewClock(), 2)
			ks.Journal.Attach(discard{})
			ks.Strict = true
			var set LockSet
			set.AddKey(a)
			ks.Lock(set)
			v := &View{KS: ks, Now: ks.Clock.Now(), Held: set}
			defer func() {
				r := fmt.Sprint(recover())
				if !strings.Contains(r, c.want) {
					t.Errorf("the panic is %q, not %q", r, c.want)
				}
				ks.Unlock(set)
				if !ks.LocksFree(0) {
					t.Error("a lock was left")
				}
			}()
			c.do(v)
		})
	}
}

// discard is a reader of the journal that discards it.
type discard struct{}

func (discard) Append(journal.LSN, int64, []byte) {}

// kept is a reader of the journal that keeps its text.
type kept struct{ text string }

func (k *kept) Append(_ journal.LSN, _ int64, framed []byte) { k.text += string(framed) }

// Without Strict, a change without an effect is logged as the image of its key.
func TestForgottenEffectsAreImages(t *testing.T) {
	a, b := []byte("a"), []byte("b")
	for name, c := range map[string]struct {
		want string
		do   func(v *View)
	}{
		"outside of a command": {"image a, image b", func(v *View) { v.Modified(a); v.Modified(a); v.Modified(b) }},
		"own effects, none named": {"image b", func(v *View) {
			v.OwnEffects()
			v.Modified(b)
			v.EndCommand([][]byte{[]byte("SET")})
		}},
		"no command": {"image a", func(v *View) { v.Modified(a); v.EndCommand(nil) }},
		"after a command": {"SET, image b", func(v *View) {
			v.Modified(a)
			v.EndCommand([][]byte{[]byte("SET")})
			v.Modified(b)
		}},
		"beside what expired": {"DEL, image b", func(v *View) {
			v.Modified(b)
			before := v.changes
			v.Modified(a)
			if v.caused(before) {
				v.LogBefore([]byte("DEL"))
			}
		}},
		"none needed": {"", func(v *View) { v.Modified(a); v.NoEffect(); v.EndCommand(nil) }},
		"named":       {"DEL", func(v *View) { v.Modified(a); v.Effect([]byte("DEL")); v.EndCommand(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			ks := New(NewClock(), 1)
			ks.Causes.Image = func(v *View, key []byte) { v.LogBefore([]byte("image " + string(key))) }
			log := &kept{}
			ks.Journal.Attach(log)
			v := &View{KS: ks}
			v.Held.AddAll()
			c.do(v)
			v.Commit()
			var got []string
			for _, line := range strings.Split(log.text, "\r\n") {
				if line != "" && line[0] != '*' && line[0] != '$' && line != "MULTI" && line != "EXEC" && line != "SELECT" && line != "0" {
					got = append(got, line)
				}
			}
			if text := strings.Join(got, ", "); text != c.want {
				t.Errorf("the effects are %q, not %q", text, c.want)
			}
		})
	}
}

// A waiter that is served under a second key's lock may make that key ready. The line of that key is then served
// under the same lock, before anybody else comes.
func TestServingWakesTheSecondKeysLine(t *testing.T) {
	a, b := apart(t)
	ks := New(NewClock(), 1)
	ks.Strict = true
	first := waiting(ks, func(v *View, _ []byte) (Served, int64) {
		v.Delete(a)
		v.PutInt(b, 1, 0)
		v.Modified(b)
		v.EndCommand(nil)
		return ServedDone, 0
	}, string(a))
	first.Also = [][]byte{b}
	served := false
	second := waiting(ks, func(v *View, _ []byte) (Served, int64) {
		served = v.Delete(b)
		v.Modified(b)
		v.EndCommand(nil)
		return ServedDone, 0
	}, string(b))
	do := func(key []byte, fn func(v *View)) {
		var set LockSet
		set.AddKey(key)
		ks.Lock(set)
		v := &View{KS: ks, Now: ks.Clock.Now(), Held: set}
		fn(v)
		v.EndCommand(nil)
		v.Commit()
		v.ServeReady()
		v.Account()
		if v.Held != set {
			t.Errorf("%x is held after serving, not %x", v.Held.mask, set.mask)
		}
		ks.Unlock(set)
	}
	do(a, func(v *View) { v.Wait(first) })
	do(b, func(v *View) { v.Wait(second) })
	do(a, func(v *View) { v.PutInt(a, 1, 0); v.Modified(a) })
	if !served {
		t.Error("the second line was not served")
	}
	if !ks.LocksFree(0) {
		t.Error("a lock was left")
	}
}
