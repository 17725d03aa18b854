package engine

// A long string is overwritten in place if the new length is similar, and is counted like a new one.

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestLongStringsInPlace(t *testing.T) {
	clock := NewClock()
	clock.Freeze(1_700_000_000_000_000)
	ks := New(clock, 1)
	key := []byte("k")
	put := func(n int, deadline int64) {
		t.Helper()
		value := bytes.Repeat([]byte{byte('a' + n%26)}, n)
		v := View{Held: LockSet{allShards}, KS: ks, Now: clock.Now()}
		v.Held.AddKey(key)
		ks.Lock(v.Held)
		v.PutString(key, value, deadline)
		e := v.Peek(key)
		if !bytes.Equal(e.Bytes(nil), value) || e.Deadline() != deadline {
			t.Errorf("%d bytes: %d are there, until %d", n, len(e.Bytes(nil)), e.Deadline())
		}
		v.Commit()
		v.Account()
		ks.Unlock(v.Held)
		if err := ks.Check(); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	later := clock.Now()/1000 + 1000
	for _, n := range []int{inlineStringMax + 1, inlineStringMax, inlineStringMax + 1, 100_000, 99_000, 90_000, 10_000, 100_000, 100_001, 106_000, 120_000, 5} {
		for _, deadline := range []int64{0, later, later + 1, 0} {
			put(n, deadline)
		}
	}
	value := bytes.Repeat([]byte("v"), 100_000)
	v := View{Held: LockSet{allShards}, KS: ks, Now: clock.Now()}
	v.Held.AddKey(key)
	ks.Lock(v.Held)
	if n := testing.AllocsPerRun(100, func() {
		value[0]++
		v.PutString(key, value, 0)
	}); n != 0 {
		t.Errorf("a string of the same length over another takes %.0f allocations", n)
	}
	v.Commit()
	v.Account()
	ks.Unlock(v.Held)
}

// TestShared: the shared bytes of a string stay as they are, however the string changes.
func TestShared(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	ks := New(NewClock(), 1)
	key := []byte("k")
	v := View{KS: ks, Now: ks.Clock.Now(), Held: LockSet{allShards}}
	var model, shared, then []byte
	done := func() {}
	share := func() {
		shared, done = v.Share(v.Peek(key))
		then = bytes.Clone(shared)
	}
	var given, thenGiven []byte // given to TakeString
	kept := 0                   // changes in place of a shared string
	for step := range 20_000 {
		e := v.Peek(key)
		n := inlineStringMax + 1 + rnd.IntN(4000)
		switch op := rnd.IntN(10); {
		case !e.Ok() || op == 0:
			model = bytes.Repeat([]byte{byte(step)}, n)
			if step%2 == 0 {
				v.PutString(key, model, 0)
				break
			}
			given, thenGiven = bytes.Clone(model), bytes.Clone(model)
			v.TakeString(key, given, 0)
			if b := v.Peek(key).raw(); &b[0] != &given[0] {
				t.Fatalf("step %d: what was given away was copied", step)
			}
		case op < 3 && step%5 == 0:
			v.Copy(e, []byte("twin"), 0, nil)
			if twin := v.Peek([]byte("twin")).raw(); !bytes.Equal(twin, model) {
				t.Fatalf("step %d: %d bytes were copied, want %d", step, len(twin), len(model))
			}
		case op < 3:
			done()
			if b := v.Peek(key).raw(); given != nil && &b[0] == &given[0] {
				share()
				break
			}
			if b := e.raw(); &v.EditString(key, 0, len(b))[0] != &b[0] {
				t.Fatalf("step %d: a string that nobody shares is not edited in place", step)
			}
			share()
		case op < 7: // at the end
			if len(model) > 8000 {
				break
			}
			from := len(model)
			model = append(model, make([]byte, rnd.IntN(50))...)
			b := v.EditString(key, from, len(model))
			for i := from; i < len(model); i++ {
				model[i], b[i] = byte(step), byte(step)
			}
			if &b[0] == &shared[0] {
				kept++
			}
		default:
			n = max(n, min(len(model), n+rnd.IntN(2000)))
			model = append(model, make([]byte, max(n-len(model), 0))...)[:n]
			from := rnd.IntN(n)
			b := v.EditString(key, from, n)
			model[from], b[from] = byte(step), byte(step)
		}
		if !bytes.Equal(given, thenGiven) {
			t.Fatalf("step %d: what was given away has changed", step)
		}
		if !bytes.Equal(shared, then) {
			t.Fatalf("step %d: what was shared has changed", step)
		}
		if got := v.Peek(key).Bytes(nil); !bytes.Equal(got, model) {
			t.Fatalf("step %d: %d bytes, want %d", step, len(got), len(model))
		}
		if shared == nil {
			share()
		}
	}
	if kept < 100 {
		t.Errorf("%d changes were made in place", kept)
	}
}

// TestTwins changes a large string and its copy in turn: neither sees the changes of the other.
func TestTwins(t *testing.T) {
	ks := New(NewClock(), 1)
	v := View{KS: ks, Now: ks.Clock.Now(), Held: LockSet{allShards}}
	keys := [][]byte{[]byte("a"), []byte("b")}
	v.PutString(keys[0], bytes.Repeat([]byte("x"), twinBytes), 0)
	copy(v.EditString(keys[0], twinBytes, twinBytes+3)[twinBytes:], "end") // leaves spare room behind the bytes
	models := [][]byte{bytes.Clone(v.Peek(keys[0]).raw())}
	v.Copy(v.Peek(keys[0]), keys[1], 0, nil)
	models = append(models, bytes.Clone(models[0]))
	if &v.Peek(keys[0]).raw()[0] != &v.Peek(keys[1]).raw()[0] {
		t.Error("the copy has bytes of its own")
	}
	for step := range 20 {
		i := step % 2
		from := len(models[i])
		if step%6 > 2 {
			from = step
		}
		n := max(from+1, len(models[i]))
		models[i] = append(models[i], make([]byte, n-len(models[i]))...)
		v.EditString(keys[i], from, n)[from] = byte(step)
		models[i][from] = byte(step)
		for j, k := range keys {
			if !bytes.Equal(v.Peek(k).raw(), models[j]) {
				t.Fatalf("step %d: %s is not what it was made", step, k)
			}
		}
	}
}
