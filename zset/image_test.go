package zset

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// TestImage changes a set in all ways while images of it are made: each has what the set contained when it began.
func TestImage(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	lim := Limits{MaxPacked: 0, MaxPackedBytes: 64}
	s := New(1, 1, lim)
	model := map[string]float64{}
	did := map[string]int{}
	names := 20_000
	name := func() []byte { return fmt.Appendf(nil, "member:%d", rnd.IntN(names)) }
	add := func() {
		m, score := name(), float64(rnd.IntN(1000))
		s.Add(m, score, 0, lim)
		model[string(m)] = score
	}
	change := func() {
		switch n := rnd.IntN(1000); {
		case n < 500:
			did["add"]++
			add()
		case n < 998:
			m := name()
			if s.Remove(m) {
				did["remove"]++
			}
			delete(model, string(m))
		default:
			did["range"]++
			lo := rnd.IntN(s.Len() + 1)
			hi := min(lo+rnd.IntN(s.Len()+1), s.Len())
			s.Ascend(lo, hi, func(m []byte, _ float64) bool {
				delete(model, string(m))
				return true
			})
			s.RemoveRange(lo, hi)
		}
	}
	early, most := 0, 0
	for round := range 30 {
		names = []int{20_000, 200, 60_000}[round%3]
		for range 10_000 {
			add()
		}
		want, got := maps.Clone(model), map[string]float64{}
		in := false
		image := s.Image(func(m []byte, score float64) {
			if _, twice := got[string(m)]; twice {
				t.Fatalf("%s is handed over twice", m)
			}
			got[string(m)] = score
			if !in {
				early++
			}
		})
		steps := 0
		for more := true; more; steps++ {
			in = true
			more = image.Next(1 + rnd.IntN(200))
			in = false
			for range rnd.IntN(200) {
				change()
			}
			if round%10 == 9 && steps == 5 {
				did["end"]++
				image.End()
				before := len(got)
				for range 100 {
					change()
				}
				if image.Next(1) || len(got) != before || s.big.image != nil {
					t.Fatal("an image goes on after its end")
				}
				got = want
				break
			}
		}
		if !maps.Equal(got, want) {
			for m, score := range want {
				if have, ok := got[m]; !ok || have != score {
					t.Errorf("round %d: %s has %v, %v, want %v", round, m, have, ok, score)
					break
				}
			}
			t.Fatalf("round %d: %d members, want %d", round, len(got), len(want))
		}
		if s.big.image != nil {
			t.Fatalf("round %d: the image goes on", round)
		}
		most = max(most, steps)
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
	}
	for _, what := range []string{"add", "remove", "range", "end"} {
		if did[what] == 0 {
			t.Errorf("no %s", what)
		}
	}
	if early < 1000 || most < 20 {
		t.Errorf("%d were handed over early, in at most %d steps", early, most)
	}
	if new(Set).Image(nil) != nil {
		t.Error("a packed set has an image")
	}
}

// TestImageForgets adds and removes members while an image is made: the image does not remember removed ones.
func TestImageForgets(t *testing.T) {
	lim := Limits{MaxPacked: 0, MaxPackedBytes: 64}
	s := New(1, 1, lim)
	for i := range 1000 {
		s.Add(fmt.Appendf(nil, "stays:%d", i), 1, 0, lim)
	}
	image, n := s.Image(func([]byte, float64) {}), 0
	for i := range 100_000 {
		m := fmt.Appendf(nil, "goes:%d", i)
		s.Add(m, 1, 0, lim)
		s.Add(m, 2, 0, lim)
		n = max(n, len(image.noted))
		s.Remove(m)
	}
	if n != 1 || len(image.noted) != 0 {
		t.Errorf("%d members are noted, %d at most", len(image.noted), n)
	}
}
