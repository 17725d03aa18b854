package number

// Tests without recorded data: the table of powers, the arithmetic of long doubles against math/big, and benchmarks.

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestPowersOfTen(t *testing.T) {
	for i, p := range powersOfTen {
		k := int64(powerFirst + i*powerStep)
		f := new(big.Float).SetPrec(2000).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(max(k, -k)), nil))
		if k < 0 {
			f.Quo(new(big.Float).SetPrec(2000).SetInt64(1), f)
		}
		f.SetPrec(64).SetMode(big.ToNearestEven)
		if want := new(big.Float).SetMantExp(new(big.Float).SetUint64(p.m), p.e); f.Cmp(want) != 0 {
			t.Errorf("10^%d is %v, the table has %v", k, f, want)
		}
	}
}

func TestSpecialDoubles(t *testing.T) {
	for want, f := range map[string]float64{"-0": math.Copysign(0, -1), "nan": math.NaN(), "4611686018427387904": 1 << 62,
		"9223372036854776000": 1 << 63, "-4611686018427387904": -1 << 62} {
		if got := string(AppendDouble(nil, f)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// asBig is a as math/big has it, with the same 64 bits.
func (a LongDouble) asBig() *big.Float {
	f := new(big.Float).SetPrec(64).SetMantExp(new(big.Float).SetUint64(a.m), int(a.exp))
	if a.neg {
		f.Neg(f)
	}
	return f
}

func TestAddAgainstBig(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	operand := func() LongDouble {
		m := rng.Uint64()
		switch rng.IntN(3) {
		case 0: // long runs of equal bits, where roundings differ
			m = 1<<63 | 1<<rng.IntN(64) | 1<<rng.IntN(64)
		case 1:
			m = -(1 << rng.IntN(64))
		}
		return rounded(m|1, 0, rng.IntN(140)-100, false, rng.IntN(2) == 0)
	}
	for range 20000 {
		a, b := operand(), operand()
		got := a.Add(b)
		want := new(big.Float).SetPrec(64).SetMode(big.ToNearestEven).Add(a.asBig(), b.asBig())
		if got.asBig().Cmp(want) != 0 {
			t.Fatalf("%v + %v = %v, want %v", a.asBig(), b.asBig(), got.asBig(), want)
		}
		text := want.Text('f', 17)
		f := string(got.AppendHuman(nil))
		if back, _ := new(big.Float).SetPrec(200).SetString(text); f != trimmed(text) && back.Sign() != 0 {
			t.Fatalf("%v prints as %s, want %s", want, f, trimmed(text))
		}
	}
}

// trimmed removes zeros at the end of a text with a point.
func trimmed(s string) string {
	for s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	if s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}

func TestFromIntAndFloat(t *testing.T) {
	for _, n := range []int64{0, 1, -1, math.MaxInt64, math.MinInt64, 1e18 + 1} {
		if got := string(FromInt(n).AppendHuman(nil)); got != strconv.FormatInt(n, 10) {
			t.Errorf("FromInt(%d) prints as %s", n, got)
		}
	}
	for f, want := range map[float64]string{0.1: "0.10000000000000001", -2.5: "-2.5", 5e-324: "0",
		math.Inf(-1): "-inf", math.NaN(): "nan", 13.361389338970184: "13.36138933897018433"} {
		if got := string(FromFloat(f).AppendHuman(nil)); got != want {
			t.Errorf("FromFloat(%v) prints as %s, want %s", f, got, want)
		}
	}
}

func TestNothingAllocates(t *testing.T) {
	buf := make([]byte, 0, 64)
	in := []byte("3.14159")
	if n := testing.AllocsPerRun(100, func() {
		f, _ := ParseDouble(in)
		buf = AppendDouble(buf[:0], f)
		a, _ := ParseLongDouble(in)
		buf = a.Add(a).AppendHuman(buf[:0])
		_, _ = ParseBound(in)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"1", "-0x1.8p3", "inf", "1e400", "0.1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, ok := ParseDouble(b); ok {
			if back, ok := ParseDouble(AppendDouble(nil, v)); !ok || back != v {
				t.Errorf("%q: %v does not read back", b, v)
			}
			if w, ok := ParseLongDouble(b); !ok && len(b) <= longTextMax && v != 0 {
				t.Errorf("%q is a double but no long double, %v", b, w)
			}
		}
		if v, ok := ParseLongDouble(b); ok && v.Finite() {
			if _, ok := ParseLongDouble(v.Add(v).AppendHuman(nil)); !ok && v.Add(v).Finite() {
				t.Errorf("%q does not read back", b)
			}
		}
		if v, ok := ParseInt(b); ok && strconv.FormatInt(v, 10) != string(b) {
			t.Errorf("%q was read as %d", b, v)
		}
	})
}

func BenchmarkAppendDouble(b *testing.B) {
	buf := make([]byte, 0, 64)
	for _, f := range []float64{3, 3.1, 0.1 + 0.2, 1.2345e-30} {
		b.Run(string(AppendDouble(nil, f)), func(b *testing.B) {
			for b.Loop() {
				buf = AppendDouble(buf[:0], f)
			}
		})
	}
}

func BenchmarkParseDouble(b *testing.B) {
	for _, s := range []string{"1700000000000", "3.14159", "1e-7"} {
		b.Run(s, func(b *testing.B) {
			for b.Loop() {
				_, _ = ParseDouble([]byte(s))
			}
		})
	}
}

func BenchmarkIncrByFloat(b *testing.B) {
	buf := make([]byte, 0, 64)
	for b.Loop() {
		x, _ := ParseLongDouble([]byte("1234.5678"))
		y, _ := ParseLongDouble([]byte("0.1"))
		buf = x.Add(y).AppendHuman(buf[:0])
	}
}

// FromInt returns n, exactly.
func FromInt(n int64) LongDouble {
	u := uint64(n)
	if n < 0 {
		u = -u
	}
	return rounded(u, 0, 0, false, n < 0)
}

// FromFloat returns f, exactly.
func FromFloat(f float64) LongDouble {
	switch {
	case f != f:
		return LongDouble{class: notANumber}
	case math.IsInf(f, 0):
		return LongDouble{class: infinite, neg: f < 0}
	}
	b := math.Float64bits(f)
	m, e := b&(1<<52-1), int(b>>52&0x7ff)
	if e == 0 {
		e = 1
	} else {
		m |= 1 << 52
	}
	return rounded(m, 0, e-1075, false, math.Signbit(f))
}
