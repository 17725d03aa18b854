package generic

// partialSort against a full sort: whatever part is asked for is right.

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestPartialSort(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	compare := func(a, b item) int {
		switch {
		case a.score < b.score:
			return -1
		case a.score > b.score:
			return 1
		}
		return 0
	}
	moved := 0
	for range 2000 {
		n := rng.IntN(200)
		v := make([]item, n)
		for i := range v {
			v[i].score = float64(rng.IntN(1 + rng.IntN(300)))
		}
		want := slices.Clone(v)
		slices.SortFunc(want, compare)
		from := rng.IntN(n + 1)
		to := from + rng.IntN(n-from+1)
		partialSort(v, compare, from, to)
		for i := from; i < to; i++ {
			if v[i].score != want[i].score {
				t.Fatalf("%d of %d elements, %d to %d: at %d is %v, want %v", to-from, n, from, to, i, v[i].score, want[i].score)
			}
			moved++
		}
		slices.SortFunc(v, compare)
		if !slices.EqualFunc(v, want, func(a, b item) bool { return a.score == b.score }) {
			t.Fatal("elements were lost")
		}
	}
	if moved < 1000 {
		t.Errorf("only %d elements were compared", moved)
	}
}
