package partialsort

// Sort against a full sort: every requested part is right.

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestPartialSort(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	compare := func(a, b *int) int { return cmp.Compare(*a, *b) }
	moved := 0
	for range 2000 {
		n := rng.IntN(200)
		v := make([]int, n)
		for i := range v {
			v[i] = rng.IntN(1 + rng.IntN(300))
		}
		want := slices.Clone(v)
		slices.Sort(want)
		from := rng.IntN(n + 1)
		to := from + rng.IntN(n-from+1)
		Sort(v, compare, from, to)
		for i := from; i < to; i++ {
			if v[i] != want[i] {
				t.Fatalf("%d of %d elements, %d to %d: at %d is %v, want %v", to-from, n, from, to, i, v[i], want[i])
			}
			moved++
		}
		slices.Sort(v)
		if !slices.Equal(v, want) {
			t.Fatal("elements were lost")
		}
	}
	if moved < 1000 {
		t.Errorf("only %d elements were compared", moved)
	}
}
