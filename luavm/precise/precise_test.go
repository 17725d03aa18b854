package precise

// The results are within a few ulp of Go's everywhere. Tests of scripts, with replies of a real Redis, check that they are the
// same as those of the C library.

import (
	"math"
	"math/big"
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

// TestTrigRounded compares sine, cosine and tangent with ones that are computed with many digits, also of angles that turn
// many times: scripts make numbers of them that look random.
func TestTrigRounded(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	angles := []float64{1.7e9, 1e15, 0x1p52 - 1, 355, 103993, 1146408, 5419351}
	for range 3000 {
		angles = append(angles, math.Ldexp(rng.Float64()*2-1, rng.IntN(70)-18), float64(rng.IntN(1<<52)))
	}
	compared := 0
	for _, x := range angles {
		if !plain(x) {
			continue
		}
		sin, cos := longSinCos(x)
		for i, got := range []float64{Sin(x), Cos(x), Tan(x)} {
			want, _ := []*big.Float{sin, cos, new(big.Float).Quo(sin, cos)}[i].Float64()
			if got != want {
				t.Errorf("%s(%v) = %v, not %v", [...]string{"sin", "cos", "tan"}[i], x, got, want)
			}
		}
		compared++
	}
	if compared < 4000 {
		t.Errorf("only %d angles were compared", compared)
	}
}

// longSinCos is sine and cosine with many digits.
func longSinCos(x float64) (sin, cos *big.Float) {
	const bits = 300
	pi, _, err := big.ParseFloat("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651", 10, bits, big.ToNearestEven)
	if err != nil {
		panic(err)
	}
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(bits).SetFloat64(x) }
	turns, _ := new(big.Float).Quo(number(x), pi).Int(nil)
	r := number(x)
	r.Sub(r, new(big.Float).SetPrec(bits).Mul(pi, new(big.Float).SetPrec(bits).SetInt(turns)))
	sin, cos = number(0), number(0)
	term := number(1)
	for n := 1; n < 100; n++ { // the terms of e^(ir) in turn
		sum := cos
		if n%2 == 0 {
			sum = sin
		}
		sum.Add(sum, term)
		term.Mul(term, r).Quo(term, number(float64(n)))
		if n%2 == 0 {
			term.Neg(term)
		}
	}
	if turns.Bit(0) == 1 {
		sin.Neg(sin)
		cos.Neg(cos)
	}
	return sin, cos
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

// BenchmarkSinOfManyTurns uses large angles, as scripts do that compute a random-looking number from the time.
func BenchmarkSinOfManyTurns(b *testing.B) {
	x := 0.0
	for i := range b.N {
		x += Sin(1.7e9 + float64(i))
	}
	if x == 0 && b.N > 1 {
		b.Fatal("unused")
	}
}
