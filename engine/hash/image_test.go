package hash

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/limitkv/limitkv/engine/packed"
)

// TestImage changes a hash in all ways while images of it are made: each has what the hash contained when it began.
func TestImage(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	lim := Limits{MaxPackedFields: 1, MaxPackedBytes: 64}
	var h Hash
	model := map[string]string{}
	did := map[string]int{}
	names := 5_000
	picture := func(value []byte, millis int64) string { return fmt.Sprintf("%s %d", value, millis) }
	note := func(field []byte) {
		value, ok := h.Get(field, new(packed.Scratch))
		if !ok {
			delete(model, string(field))
			return
		}
		at, _ := h.Deadline(field)
		model[string(field)] = picture(value, at)
	}
	set := func() {
		field, value := fmt.Appendf(nil, "field:%d", rnd.IntN(names)), fmt.Appendf(nil, "%d", rnd.IntN(1000))
		if rnd.IntN(2) == 0 {
			h.Set(field, value, lim)
		} else {
			h.SetKeepDeadline(field, value, lim)
		}
		note(field)
	}
	clock := int64(1)
	change := func() {
		field := fmt.Appendf(nil, "field:%d", rnd.IntN(names))
		switch n := rnd.IntN(100); {
		case n < 40:
			did["set"]++
			set()
			return
		case n < 70:
			did["delete"]++
			h.Delete(field)
		case n < 98:
			did["deadline"]++
			h.SetDeadline(field, max(0, clock+rnd.Int64N(200)-50))
		default:
			did["expire"]++
			clock++
			h.ExpireDue(clock*1000, 50, func(f []byte) { delete(model, string(f)) })
		}
		note(field)
	}
	early, most := 0, 0
	for round := range 20 {
		names = []int{5_000, 100, 20_000}[round%3] // so that the table grows and shrinks
		for range 5000 {
			set()
		}
		if round%5 == 4 { // to nothing and back
			did["emptied"]++
			for field := range maps.Clone(model) {
				if len(model) > 3000 || rnd.IntN(2) == 0 {
					h.Delete([]byte(field))
					delete(model, field)
				}
			}
		}
		want, got := maps.Clone(model), map[string]string{}
		in := false
		image := h.Image(func(field, value []byte, millis int64) {
			if _, twice := got[string(field)]; twice {
				t.Fatalf("%s is handed over twice", field)
			}
			got[string(field)] = picture(value, millis)
			if !in {
				early++
			}
		})
		steps := 0
		for more := true; more; steps++ {
			in = true
			more = image.Next(1 + rnd.IntN(200))
			in = false
			for range rnd.IntN(300) {
				change()
			}
			if steps == 3 && round%4 == 3 {
				for field := range maps.Clone(model) {
					h.Delete([]byte(field))
					delete(model, field)
				}
				for range 5000 {
					set()
				}
			}
		}
		if !maps.Equal(got, want) {
			for field, value := range want {
				if got[field] != value {
					t.Errorf("round %d: %s is %q, want %q", round, field, got[field], value)
					break
				}
			}
			t.Fatalf("round %d: %d fields, want %d", round, len(got), len(want))
		}
		for range 10 { // after its end
			change()
		}
		most = max(most, steps)
	}
	for _, what := range []string{"set", "delete", "deadline", "expire", "emptied"} {
		if did[what] == 0 {
			t.Errorf("no %s", what)
		}
	}
	if early < 1000 || most < 20 {
		t.Errorf("%d were handed over early, in at most %d steps", early, most)
	}
	if new(Hash).Image(nil) != nil {
		t.Error("a packed hash has an image")
	}
}
