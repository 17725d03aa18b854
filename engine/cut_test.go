package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// TestCut changes keys in all ways while cuts are walked: each cut has the keys as they were when it began.
func TestCut(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	const dbs, keys = 3, 4000
	ks := New(NewClock(), dbs)
	v := &View{KS: ks, Now: ks.Clock.Now(), Held: LockSet{allShards}}
	model := map[string]string{} // "db key" → value and deadline
	did := map[string]int{}
	name := func(db int, key []byte) string { return fmt.Sprintf("%d %s", db, key) }
	picture := func(e Entry) string { return fmt.Sprintf("%q %d", e.Bytes(nil), e.Deadline()) }
	note := func(db int, key []byte) {
		v.DB = db
		if e := v.Find(key); e.Ok() {
			model[name(db, key)] = picture(e)
		} else {
			delete(model, name(db, key))
		}
	}
	change := func() {
		key := fmt.Appendf(nil, "k%d", rnd.IntN(keys))
		db := rnd.IntN(dbs)
		v.DB = db
		switch n := rnd.IntN(1000); {
		case n == 0:
			did["flush"]++
			v.Flush()
			maps.DeleteFunc(model, func(k, _ string) bool { return k[0] == byte('0'+db) })
			return
		case n < 3:
			did["swap"]++
			a, b := rnd.IntN(dbs), rnd.IntN(dbs)
			v.Swap(a, b)
			next := map[string]string{}
			for k, val := range model {
				switch int(k[0] - '0') {
				case a:
					k = fmt.Sprint(b) + k[1:]
				case b:
					k = fmt.Sprint(a) + k[1:]
				}
				next[k] = val
			}
			clear(model)
			maps.Copy(model, next)
			return
		case n < 300:
			did["put"]++
			v.PutString(key, fmt.Appendf(nil, "v%06d", rnd.IntN(1e6)), 0) // of the same length: changed in place
		case n < 400:
			did["int"]++
			v.PutInt(key, rnd.Int64N(1e6), 0)
		case n < 500:
			did["edit"]++
			if e := v.Peek(key); e.Ok() {
				if _, ok := e.Int(); ok {
					v.SetInt(e, rnd.Int64N(1e6))
				} else {
					copy(v.EditString(key, 0, e.Len()), "x")
				}
			}
		case n < 600:
			did["long"]++
			v.PutString(key, make([]byte, 2000+rnd.IntN(10)), 0)
		case n < 700:
			did["deadline"]++
			if e := v.Peek(key); e.Ok() {
				v.SetDeadline(e, v.Now/1000+1e6+rnd.Int64N(1e6))
			}
		case n < 850:
			did["delete"]++
			v.Delete(key)
		default:
			did["rename"]++
			if v.Peek(key).Ok() {
				to := fmt.Appendf(nil, "k%d", rnd.IntN(keys))
				if string(to) != string(key) {
					v.Rename(key, to)
					note(db, to)
				}
			}
		}
		note(db, key)
	}
	change()
	for range 3 * keys {
		change()
	}
	for round := range 30 {
		want := maps.Clone(model)
		got := map[string]string{}
		cut := v.BeginCut(func(v *View, e Entry) {
			k := name(v.DB, e.Key())
			if _, twice := got[k]; twice {
				t.Fatalf("%s is handed over twice", k)
			}
			got[k] = picture(e)
		})
		steps := 0
		if round%10 == 9 {
			cut.Abort()
			continue
		}
		if !cut.Walk(func() {
			steps++
			for range rnd.IntN(8) {
				change()
			}
		}) {
			t.Fatal("the cut failed")
		}
		if !maps.Equal(got, want) {
			for k, val := range want {
				if got[k] != val {
					t.Errorf("round %d: %s is %s, want %s", round, k, got[k], val)
					break
				}
			}
			t.Fatalf("round %d: %d keys, want %d", round, len(got), len(want))
		}
		if steps == 0 || len(want) == 0 {
			t.Fatal("nothing was walked")
		}
	}
	for _, what := range []string{"flush", "swap", "put", "int", "edit", "long", "deadline", "delete", "rename"} {
		if did[what] == 0 {
			t.Errorf("no %s", what)
		}
	}
}

// TestCutSteps walks over values of each size: the walk hands over little under one hold of a lock.
func TestCutSteps(t *testing.T) {
	const most = cutStep<<10 + 32<<10
	for _, size := range []int{10, 500, 1023, 1025, 10_000, 30_000, 1_000_000} {
		ks := New(NewClock(), 1)
		v := &View{KS: ks, Now: ks.Clock.Now(), Held: LockSet{allShards}}
		keys := min(2_000, 50_000_000/size)
		for i := range keys {
			v.PutString(fmt.Appendf(nil, "k%d", i), make([]byte, size), 0)
		}
		v.Account()
		step, largest, total := 0, 0, 0
		cut := v.BeginCut(func(_ *View, e Entry) { step++; total++ })
		if !cut.Walk(func() { largest, step = max(largest, step), 0 }) || total != keys {
			t.Fatalf("%d of %d keys were handed over", total, keys)
		}
		if largest > 1 && largest*size > most || largest > cutStep || size < 500 && largest < 10 {
			t.Errorf("%d values of %d bytes were handed over at once", largest, size)
		}
	}
}
