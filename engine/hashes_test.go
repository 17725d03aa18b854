package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/limitkv/limitkv/engine/hash"
)

// TestHashes: small hashes that grow, shrink, become objects, are renamed, copied and given deadlines have the fields of a
// model, and what the keyspace counts of them is right.
func TestHashes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	ks := New(NewClock(), 1)
	ks.Strict = true
	v := &View{KS: ks, Now: ks.Clock.Now()}
	v.Held.AddAll()
	model := map[string]map[string]string{}
	plain, objects, moved := 0, 0, 0
	name := func() string { return fmt.Sprintf("%0*d", 1+rnd.IntN(2)*20, rnd.IntN(8)) }
	for step := range 20_000 {
		if ks.Lock(v.Held) != nil {
			t.Fatal("somebody holds keys")
		}
		v.Forget()
		key := name()
		e := v.GetWrite([]byte(key))
		want := model[key]
		switch rnd.IntN(12) {
		case 0:
			at := int64(0)
			if rnd.IntN(2) == 0 {
				at = v.Now/1000 + 1e6
			}
			if e.Ok() {
				v.SetDeadline(e, at)
				v.Changed([]byte(key), EventGeneric, "expire")
			}
		case 1:
			if to := name(); e.Ok() && to != key {
				v.Rename([]byte(key), []byte(to))
				v.Changed([]byte(key), EventGeneric, "rename_from")
				v.Changed([]byte(to), EventGeneric, "rename_to")
				model[to] = want
				delete(model, key)
				moved++
			}
		case 2:
			if to := name(); e.Ok() && to != key {
				var clone any
				if !e.PlainHash() {
					h := e.Hash(nil).Clone()
					clone = &h
				}
				v.Copy(e, []byte(to), 0, clone)
				v.Changed([]byte(to), EventGeneric, "copy_to")
				model[to] = map[string]string{}
				for f, x := range want {
					model[to][f] = x
				}
			}
		case 3:
			if e.Ok() && rnd.IntN(4) == 0 {
				v.Delete([]byte(key))
				v.Changed([]byte(key), EventGeneric, "del")
				delete(model, key)
			}
		default:
			h := v.EditHash([]byte(key), e)
			if h == nil {
				h, want = v.NewHash([]byte(key)), map[string]string{}
				model[key] = want
			}
			lim := hash.DefaultLimits
			if rnd.IntN(4) > 0 {
				lim.Room = v.HashRoom()
			}
			for range 1 + rnd.IntN(4) {
				field := fmt.Sprintf("field %d", rnd.IntN(40))
				switch rnd.IntN(5) {
				case 0, 1:
					if h.Delete([]byte(field)) != (want[field] != "") {
						t.Fatalf("step %d: %s of %s is removed or not", step, field, key)
					}
					delete(want, field)
				default:
					value := fmt.Sprintf("%0*d", 1+rnd.IntN(60), rnd.IntN(1000))
					h.Set([]byte(field), []byte(value), lim)
					want[field] = value
				}
			}
			if rnd.IntN(300) == 0 {
				h.PrepareDeadlines()
			}
			v.Changed([]byte(key), EventHash, "hset")
			if h.Len() == 0 {
				v.Delete([]byte(key))
				delete(model, key)
			}
		}
		v.EndCommand([][]byte{[]byte("COMMAND")})
		v.Commit()
		v.Account()
		v.TakeChanges()
		for key, want := range model {
			e := v.Find([]byte(key))
			h, _ := e.Object().(*hash.Hash)
			if h == nil || h.Len() != len(want) || e.Len() != len(want) {
				t.Fatalf("step %d: %s has %d fields, want %d", step, key, e.Len(), len(want))
			}
			for it := h.Iter(); it.Next(); {
				if want[string(it.Field())] != string(it.Value()) {
					t.Fatalf("step %d: %s of %s is %q, want %q", step, it.Field(), key, it.Value(), want[string(it.Field())])
				}
			}
			if e.PlainHash() {
				plain++
			} else {
				objects++
			}
		}
		if n := v.Count(); n != len(model) {
			t.Fatalf("step %d: %d keys, want %d", step, n, len(model))
		}
		ks.Unlock(v.Held)
		if step%50 == 0 {
			if err := ks.Check(); err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
		}
	}
	if plain == 0 || objects == 0 || moved == 0 {
		t.Errorf("%d were plain bytes, %d objects, %d moved", plain, objects, moved)
	}
}

// TestHashUntold: in builds for tests a change of a hash that is not told is no silent loss.
func TestHashUntold(t *testing.T) {
	ks := New(NewClock(), 1)
	ks.Strict = true
	v := &View{KS: ks, Now: ks.Clock.Now()}
	v.Held.AddAll()
	if ks.Lock(v.Held) != nil {
		t.Fatal("somebody holds keys")
	}
	defer ks.Unlock(v.Held)
	v.PutObject([]byte("k"), KindHash, &hash.Hash{}, 0)
	for field := range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("nothing is said of field %d", field)
				}
			}()
			v.Forget()
			v.EditHash([]byte("k"), v.GetWrite([]byte("k"))).Set(fmt.Append(nil, field), make([]byte, 40*field), hash.DefaultLimits)
			v.EndCommand(nil)
		}()
	}
}

// BenchmarkHash is what a command does to a hash of ten fields: a value of the same length, and a field that comes and goes.
func BenchmarkHash(b *testing.B) {
	ks := New(NewClock(), 1)
	key, field, value := []byte("key:000000000042"), []byte("field:05"), make([]byte, 32)
	v := &View{KS: ks, Now: ks.Clock.Now()}
	v.Held.AddKey(key)
	ks.Lock(v.Held)
	v.Hint(key)
	defer ks.Unlock(v.Held)
	h := v.NewHash(key)
	for i := range 10 {
		h.Set(fmt.Appendf(nil, "field:%02d", i), value, hash.DefaultLimits)
	}
	v.Modified(key)
	b.Run("set", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v.EditHash(key, v.GetWrite(key)).Set(field, value, hash.DefaultLimits)
			v.Modified(key)
		}
	})
	b.Run("get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v.ReadHash(v.Get(key)).Get(field, nil)
		}
	})
	b.Run("ten fields, one by one", func(b *testing.B) {
		b.ReportAllocs()
		names := [10][]byte{}
		for i := range names {
			names[i] = fmt.Appendf(nil, "field:%02d", i)
		}
		for b.Loop() {
			v.Delete(key)
			v.Modified(key)
			for _, name := range names {
				v.Forget()
				v.Hint(key)
				h := v.EditHash(key, v.GetWrite(key))
				if h == nil {
					h = v.NewHash(key)
				}
				lim := hash.DefaultLimits
				lim.Room = v.HashRoom()
				h.Set(name, value, lim)
				v.Modified(key)
			}
		}
	})
	b.Run("come and go", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			h := v.EditHash(key, v.GetWrite(key))
			lim := hash.DefaultLimits
			lim.Room = v.HashRoom()
			h.Set([]byte("another"), value, lim)
			v.Modified(key)
			v.EditHash(key, v.GetWrite(key)).Delete([]byte("another"))
			v.Modified(key)
		}
	})
}
