package partialsort

// A stable sort against the library's, and what it allocates.

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

type element struct{ key, at int }

func TestStable(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	moved := 0
	for n := range 300 {
		v := make([]element, n)
		for i := range v {
			v[i] = element{rnd.IntN(n/3 + 1), i}
		}
		want := slices.Clone(v)
		slices.SortStableFunc(want, func(a, b element) int { return a.key - b.key })
		if !slices.Equal(v, want) {
			moved++
		}
		Stable(v, func(a, b *element) int { return a.key - b.key })
		if !slices.Equal(v, want) {
			t.Fatalf("%d elements: %v, want %v", n, v, want)
		}
	}
	if moved < 200 {
		t.Errorf("only %d were to be sorted", moved)
	}
	v := make([]element, 1000)
	if allocs := testing.AllocsPerRun(10, func() {
		for i := range v {
			v[i] = element{rnd.IntN(1000), i}
		}
		Stable(v, func(a, b *element) int { return a.key - b.key })
	}); allocs > 1 {
		t.Errorf("%.0f allocations for a thousand elements", allocs)
	}
}
