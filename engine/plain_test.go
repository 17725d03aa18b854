package engine

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/engine/hash"
	"github.com/limitkv/limitkv/zset"
)

// elements is a structure that a test changes.
type elements interface {
	put(field, value string, lim []byte)
	delete(field string) bool
	Len() int
	each(fn func(field, value string))
}

type testHash struct{ *hash.Hash }

func (h testHash) put(field, value string, room []byte) {
	lim := hash.DefaultLimits
	lim.Room = room
	h.Set([]byte(field), []byte(value), lim)
}

func (h testHash) delete(field string) bool { return h.Delete([]byte(field)) }

func (h testHash) each(fn func(field, value string)) {
	for it := h.Iter(); it.Next(); {
		fn(string(it.Field()), string(it.Value()))
	}
}

// testZSet stores a field as a member "field.value", whose score is the length of the value.
type testZSet struct{ *zset.Set }

func (z testZSet) find(field string) (member string) {
	z.each(func(f, value string) {
		if f == field {
			member = f + "." + value
		}
	})
	return member
}

func (z testZSet) put(field, value string, room []byte) {
	z.delete(field)
	lim := zset.DefaultLimits
	lim.Room = room
	z.Add([]byte(field+"."+value), float64(len(value)), 0, lim)
}

func (z testZSet) delete(field string) bool { return z.Remove([]byte(z.find(field))) }

func (z testZSet) each(fn func(field, value string)) {
	z.Ascend(0, z.Len(), func(member []byte, score float64) bool {
		field, value, _ := strings.Cut(string(member), ".")
		if float64(len(value)) != score {
			panic(fmt.Sprintf("the score of %s is %v", member, score))
		}
		fn(field, value)
		return true
	})
}

// elementsOf are the elements of a hash or sorted set, nil if it is neither.
func elementsOf(obj any) elements {
	switch x := obj.(type) {
	case *hash.Hash:
		return testHash{x}
	case *zset.Set:
		return testZSet{x}
	}
	return nil
}

// TestPlain: small hashes and sorted sets grow, shrink, become objects, are renamed, copied and given deadlines. They
// have the elements of a model, and the keyspace counts them correctly.
func TestPlain(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	ks := New(NewClock(), 1)
	ks.Strict = true
	v := &View{Held: LockSet{allShards}, KS: ks, Now: ks.Clock.Now()}
	v.Held.AddAll()
	model := map[string]map[string]string{}
	plain, objects, moved := map[Kind]int{}, map[Kind]int{}, 0
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
				switch {
				case e.InBytes():
				case e.Kind() == KindHash:
					h := e.Hash(nil).Clone()
					clone = &h
				default:
					clone = e.ZSet(nil).Clone()
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
			var x elements
			switch kind := e.Kind(); {
			case kind == KindHash:
				x = testHash{v.EditHash([]byte(key), e)}
			case kind == KindZSet:
				x = testZSet{v.EditZSet([]byte(key), e)}
			default:
				want = map[string]string{}
				model[key] = want
				if x = (testHash{v.NewHash([]byte(key))}); rnd.IntN(2) == 0 {
					x = testZSet{v.NewZSet([]byte(key))}
				}
			}
			var room []byte
			if rnd.IntN(4) > 0 {
				room = v.EditRoom()
			}
			for range 1 + rnd.IntN(4) {
				field := fmt.Sprintf("field %d", rnd.IntN(40))
				switch rnd.IntN(5) {
				case 0, 1:
					if x.delete(field) != (want[field] != "") {
						t.Fatalf("step %d: %s of %s is removed or not", step, field, key)
					}
					delete(want, field)
				default:
					value := fmt.Sprintf("%0*d", 1+rnd.IntN(60), rnd.IntN(1000))
					x.put(field, value, room)
					want[field] = value
				}
			}
			if h, ok := x.(testHash); ok && rnd.IntN(300) == 0 {
				h.PrepareDeadlines()
			}
			v.Changed([]byte(key), EventGeneric, "changed")
			if x.Len() == 0 {
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
			x := elementsOf(e.Object())
			if x == nil || x.Len() != len(want) || e.Len() != len(want) {
				t.Fatalf("step %d: %s has %d elements, want %d", step, key, e.Len(), len(want))
			}
			x.each(func(field, value string) {
				if want[field] != value {
					t.Fatalf("step %d: %s of %s is %q, want %q", step, field, key, value, want[field])
				}
			})
			if e.InBytes() {
				plain[e.Kind()]++
			} else {
				objects[e.Kind()]++
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
	if len(plain) != 2 || len(objects) != 2 || moved == 0 {
		t.Errorf("%v were plain bytes, %v objects, %d moved", plain, objects, moved)
	}
}

// TestUntold: in builds for tests, an unreported change of a small value panics, also if another change of its key
// would lose it.
func TestUntold(t *testing.T) {
	ks := New(NewClock(), 1)
	ks.Strict = true
	v := &View{Held: LockSet{allShards}, KS: ks, Now: ks.Clock.Now()}
	v.Held.AddAll()
	if ks.Lock(v.Held) != nil {
		t.Fatal("somebody holds keys")
	}
	defer ks.Unlock(v.Held)
	same := new(hash.Hash)
	same.Set([]byte("same"), []byte("y"), hash.DefaultLimits)
	v.PutObject([]byte("k"), KindHash, same, 0)
	v.PutObject([]byte("z"), KindZSet, &zset.Set{}, 0)
	for n := range 7 {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("nothing is said of change %d", n)
				}
			}()
			v.Forget()
			name, long := []byte("k"), make([]byte, 60*(n%2))
			e := v.GetWrite(name)
			switch {
			case n == 6: // in place, of the same length
				v.EditHash(name, e).Set([]byte("same"), []byte("x"), hash.DefaultLimits)
			case n < 2:
				v.EditHash(name, e).Set(fmt.Append(nil, n), long, hash.DefaultLimits)
			default:
				name = []byte("z")
				e = v.GetWrite(name)
				v.EditZSet(name, e).Add(fmt.Appendf(long, "%d", n), 1, 0, zset.DefaultLimits)
			}
			if n == 4 || n == 5 {
				v.SetDeadline(e, v.Now/1000+1e6)
				v.Changed(name, EventGeneric, "expire")
			}
			v.EndCommand(nil)
		}()
	}
}

// BenchmarkWindow measures a sliding window of ten requests.
func BenchmarkWindow(b *testing.B) {
	ks := New(NewClock(), 1)
	key := []byte("key:000000000042")
	v := &View{Held: LockSet{allShards}, KS: ks, Now: ks.Clock.Now()}
	v.Held.AddKey(key)
	ks.Lock(v.Held)
	defer ks.Unlock(v.Held)
	b.ReportAllocs()
	var member [16]byte
	n := 0
	add := func() {
		z := v.EditZSet(key, v.GetWrite(key))
		if z == nil {
			z = v.NewZSet(key)
		}
		lim := zset.DefaultLimits
		lim.Room = v.EditRoom()
		z.Add(strconv.AppendInt(member[:0], int64(1e9+n), 10), float64(n), 0, lim)
		v.Modified(key)
		n++
	}
	b.Run("grows", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v.Forget()
			v.Hint(key)
			if n%10 == 0 {
				v.Delete(key)
				v.Modified(key)
			}
			add()
		}
	})
	b.Run("moves", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v.Forget()
			v.Hint(key)
			if z := v.EditZSet(key, v.GetWrite(key)); z != nil && z.Len() >= 10 {
				z.RemoveRange(0, 1)
				v.Modified(key)
			}
			add()
		}
	})
}

// BenchmarkHash measures commands on a hash of ten fields.
func BenchmarkHash(b *testing.B) {
	ks := New(NewClock(), 1)
	key, field, value := []byte("key:000000000042"), []byte("field:05"), make([]byte, 32)
	v := &View{Held: LockSet{allShards}, KS: ks, Now: ks.Clock.Now()}
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
				lim.Room = v.EditRoom()
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
			lim.Room = v.EditRoom()
			h.Set([]byte("another"), value, lim)
			v.Modified(key)
			v.EditHash(key, v.GetWrite(key)).Delete([]byte("another"))
			v.Modified(key)
		}
	})
}
