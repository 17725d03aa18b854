package precise

// The quick computation is compared with the slow one: they agree wherever the quick one is sure, which is nearly everywhere.

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestQuickIsTheSame(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	const rounds = 300_000
	var unsure [3]int
	for range rounds {
		// Angles of all sizes, and some beside multiples of those in the table.
		x := (rng.Float64() - 0.5) * math.Pi * math.Pow(10, -7*rng.Float64()*float64(rng.IntN(2)))
		if rng.IntN(4) == 0 {
			x = float64(rng.IntN(201)-100)/(2*tableSteps) + (rng.Float64()-0.5)*math.Pow(10, -16*rng.Float64())
		}
		if !plain(x) || math.Abs(x) > 1.57 {
			continue
		}
		s, c := sinCosDouble(double{x, 0})
		check := func(i int, name string, got float64, sure bool, want float64) {
			switch {
			case !sure:
				unsure[i]++
			case got != want:
				t.Fatalf("%s(%x) = %x, the long way gives %x", name, x, got, want)
			}
		}
		sin, sure := quickSin(x)
		check(0, "sin", sin, sure, s.hi)
		cos, sure := quickCos(x)
		check(1, "cos", cos, sure, c.hi)
		if math.Abs(s.hi) > 1e-8 && math.Abs(s.hi) < 1 {
			y := math.Asin(s.hi)
			sn, cs := sinCosDouble(double{y, 0})
			asin, sure := quickAsin(s.hi, y)
			check(2, "asin", asin, sure, double{y, 0}.plus(double{s.hi, 0}.plus(sn.timesFloat(-1)).over(cs)).hi)
		}
	}
	t.Logf("of %d, not sure: %d sines, %d cosines, %d arcsines", rounds, unsure[0], unsure[1], unsure[2])
	for i, n := range unsure {
		if n > rounds/8 { // arcsines of what is nearly 1 are those
			t.Errorf("function %d is not sure %d times of %d: that is not quick", i, n, rounds)
		}
	}
}

func BenchmarkAsin(b *testing.B) {
	x := 0.1
	for range b.N {
		x = Asin(x)*0.5 + 0.1
	}
	if x == 0 {
		b.Fatal("unused")
	}
}
