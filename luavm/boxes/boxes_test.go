package boxes

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// Values do not change while thousands more are made, through garbage collections.
func TestValuesStay(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var b Boxes
	type kept struct {
		v    lua.LValue
		text string
		bits uint64
	}
	var all []kept
	check := func() {
		runtime.GC()
		for _, k := range all {
			switch v := k.v.(type) {
			case lua.LString:
				if string(v) != k.text {
					t.Fatalf("%q has become %q", k.text, v)
				}
			case lua.LNumber:
				if math.Float64bits(float64(v)) != k.bits {
					t.Fatalf("%x has become %x", k.bits, math.Float64bits(float64(v)))
				}
			default:
				t.Fatalf("%T", v)
			}
		}
	}
	numbers := []float64{0, math.Copysign(0, -1), 1, 1023, 1024, -1, 0.5, 1e300, math.Inf(1), math.Inf(-1), math.NaN(), 1 << 53}
	for i := range 20000 {
		var k kept
		switch r.IntN(3) {
		case 0:
			raw := []byte(strings.Repeat(fmt.Sprint(i, ";"), r.IntN(40)))[:]
			k.text = string(raw)
			k.v = b.String(raw)
			for j := range raw {
				raw[j] = 'x' // the caller's buffer is its own
			}
		case 1:
			f := numbers[r.IntN(len(numbers))]
			k.v, k.bits = b.Number(f), math.Float64bits(f)
		case 2:
			n := r.Int64N(3000) - 1000
			k.v, k.bits = b.Int(n), math.Float64bits(float64(n))
		}
		if all = append(all, k); len(all)%4000 == 0 {
			check()
			all = all[r.IntN(len(all)):]
		}
	}
	check()
}

// A part of a string does not change. A short part has its own memory, so that the whole string can be collected.
func TestPart(t *testing.T) {
	var b Boxes
	for _, n := range []int{0, 1, ownBytes - 1, ownBytes, ownBytes + 1, 5000} {
		whole := strings.Repeat("0123456789", n/10+2)
		part := b.Part(whole[7 : 7+n]).(lua.LString)
		if string(part) != whole[7:7+n] {
			t.Errorf("%d bytes are %q", n, part)
		}
		if shared := n > 0 && unsafe.StringData(string(part)) == unsafe.StringData(whole[7:]); shared != (n >= ownBytes) {
			t.Errorf("%d bytes: shared %v", n, shared)
		}
	}
}

// Lua compares and looks up boxed values by their value, not by their address.
func TestEqual(t *testing.T) {
	var b Boxes
	table := map[lua.LValue]int{lua.LString("key"): 1, lua.LNumber(5000): 2}
	if table[b.String([]byte("key"))] != 1 || table[b.Number(5000)] != 2 || b.String(nil) != lua.LString("") {
		t.Error("a boxed value is not equal to one that the compiler boxed")
	}
}

func BenchmarkString(b *testing.B) {
	text := []byte("limiter:000123")
	b.Run("boxes", func(b *testing.B) {
		var boxes Boxes
		b.ReportAllocs()
		for b.Loop() {
			sink = boxes.String(text)
		}
	})
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sink = lua.LString(text)
		}
	})
}

func BenchmarkNumber(b *testing.B) {
	f := 1.7e12
	b.Run("boxes", func(b *testing.B) {
		var boxes Boxes
		b.ReportAllocs()
		for b.Loop() {
			sink = boxes.Number(f)
		}
	})
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			sink = lua.LNumber(f)
		}
	})
}

var sink lua.LValue

// Small integers are shared by all goroutines, and are right from their first use on.
func TestSmall(t *testing.T) {
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			var b Boxes
			for i := -2; i < len(smallInts)+2; i++ {
				for _, v := range []lua.LValue{b.Number(float64(i)), b.Int(int64(i)), Lasting(float64(i))} {
					if v != lua.LNumber(i) {
						t.Errorf("%d is %v", i, v)
					}
				}
			}
		})
	}
	done.Wait()
	var b Boxes
	negative := math.Copysign(0, -1)
	for _, v := range []lua.LValue{b.Number(negative), Lasting(negative)} {
		if !math.Signbit(float64(v.(lua.LNumber))) {
			t.Error("-0 is 0")
		}
	}
	if testing.AllocsPerRun(100, func() { sink = b.Number(float64(len(smallInts) - 1)) }) != 0 {
		t.Error("a small integer is allocated")
	}
}
