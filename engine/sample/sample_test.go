package sample

// Choices are fair: each element, and each number, as often as any other.

import (
	"math/rand/v2"
	"testing"
)

func TestSelectionIsFair(t *testing.T) {
	next := rand.New(rand.NewPCG(1, 2)).Uint64
	const n, want, rounds = 10, 3, 10_000
	taken := [n]int{}
	for range rounds {
		count := 0
		s := Select(want, n)
		for i := 0; !s.Done(); i++ {
			if s.Take(next) {
				taken[i]++
				count++
			}
		}
		if count != want {
			t.Fatalf("took %d of %d", count, want)
		}
	}
	for i, c := range taken {
		if c < rounds*want/n*9/10 || c > rounds*want/n*11/10 {
			t.Errorf("%d taken %d times, expected about %d", i, c, rounds*want/n)
		}
	}
	for s := Select(5, 2); !s.Done(); {
		if !s.Take(next) {
			t.Error("of fewer than wanted, one was left out")
		}
	}
}

func TestBelow(t *testing.T) {
	for _, n := range []int{1, 2, 7, 1 << 40} {
		if Below(0, n) != 0 || Below(^uint64(0), n) != n-1 {
			t.Errorf("of %d: %d … %d", n, Below(0, n), Below(^uint64(0), n))
		}
	}
}
