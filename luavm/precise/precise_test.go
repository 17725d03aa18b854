package precise

// Within a few ulp of Go's everywhere. That they are what the C library gives is tested where scripts are, against the
// replies of a real Redis.

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestNearGo(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	functions := []struct {
		name          string
		precise, near func(float64) float64
		from, to      float64
	}{
		{"sin", Sin, math.Sin, -4, 4}, {"cos", Cos, math.Cos, -4, 4}, {"tan", Tan, math.Tan, -1.5, 1.5},
		{"asin", Asin, math.Asin, -1, 1}, {"acos", Acos, math.Acos, -1, 1}, {"atan", Atan, math.Atan, -50, 50},
		{"exp", Exp, math.Exp, -700, 700}, {"log", Log, math.Log, 1e-9, 1e9}, {"log10", Log10, math.Log10, 1e-9, 1e9},
		{"sinh", Sinh, math.Sinh, -20, 20}, {"cosh", Cosh, math.Cosh, -20, 20}, {"tanh", Tanh, math.Tanh, -20, 20},
	}
	differ := 0
	for _, f := range functions {
		for range 2000 {
			x := f.from + rng.Float64()*(f.to-f.from)
			got, near := f.precise(x), f.near(x)
			if got != near {
				differ++
			}
			// Near a zero of the function Go's own error is relative to the argument.
			if d := math.Abs(got - near); d > 1e-14*math.Max(math.Abs(near), math.Min(1, math.Abs(x))) {
				t.Fatalf("%s(%v) = %v, Go has %v", f.name, x, got, near)
			}
		}
	}
	if differ == 0 {
		t.Error("nothing differs from Go in the last digit: then nothing here is needed")
	}
}

func BenchmarkSin(b *testing.B) {
	x := 0.1
	for range b.N {
		x = Sin(x) + 0.5
	}
	if x == 0 {
		b.Fatal("unused")
	}
}
