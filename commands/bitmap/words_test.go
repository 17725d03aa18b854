package bitmap

// Operations on eight bytes at a time equal those bit by bit, for all lengths and ends.

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestWords(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	single := map[operation]func(x, y byte) byte{
		opAnd: func(x, y byte) byte { return x & y }, opOr: func(x, y byte) byte { return x | y }, opXor: func(x, y byte) byte { return x ^ y },
	}
	for n := range 200 {
		b, src := random(n), random(rnd.IntN(n+1))
		count := 0
		for _, x := range b {
			count += bits.OnesCount8(x)
		}
		if got := countBits(b); got != count {
			t.Fatalf("%d bytes: %d bits, want %d", n, got, count)
		}
		if got := countWords(b); got != count {
			t.Fatalf("%d bytes: %d bits by words, want %d", n, got, count)
		}
		for op, one := range single {
			want := slices.Clone(b)
			for i := range want {
				var y byte
				if i < len(src) {
					y = src[i]
				}
				want[i] = one(want[i], y)
			}
			got := slices.Clone(b)
			if combine(op, got, src); !slices.Equal(got, want) {
				t.Fatalf("operation %d of %d and %d bytes is wrong", op, n, len(src))
			}
		}
		got := random(n)
		invert(got, b)
		for i := range got {
			if got[i] != ^b[i] {
				t.Fatalf("%d bytes: byte %d is not inverted", n, i)
			}
		}
		// One bit in bytes that have none, or the other way round, is found wherever the span begins and ends.
		for _, bit := range []byte{0, 1} {
			if n == 0 {
				break
			}
			field := make([]byte, n)
			if bit == 0 {
				invert(field, field)
			}
			at := rnd.Int64N(int64(8 * n))
			field[at/8] ^= 0x80 >> (at % 8)
			s := span{from: rnd.Int64N(int64(8 * n)), to: rnd.Int64N(int64(8 * n))}
			want := int64(-1)
			if s.from <= at && at <= s.to {
				want = at
			}
			if got := findBit(field, s, bit); got != want {
				t.Fatalf("bit %d at %d of %d bytes, from %d to %d: found %d", bit, at, n, s.from, s.to, got)
			}
		}
	}
}

// TestCombineAll tests sources that do not fit into one piece.
func TestCombineAll(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		sources := make([][]byte, 1+rnd.IntN(4))
		longest := 0
		for i := range sources {
			sources[i] = make([]byte, []int{rnd.IntN(100), 8191 + rnd.IntN(3), 16383 + rnd.IntN(3), rnd.IntN(40_000)}[rnd.IntN(4)])
			for j := range sources[i] {
				sources[i][j] = byte(rnd.Uint32())
			}
			longest = max(longest, len(sources[i]))
		}
		op := operation(rnd.IntN(4))
		if op == opNot {
			sources, longest = sources[:1], len(sources[0])
		}
		got := make([]byte, longest)
		for i := range got {
			got[i] = byte(rnd.Uint32())
		}
		combineAll(op, got, sources)
		for at, x := range got {
			var want byte
			for i, b := range sources {
				var y byte
				if at < len(b) {
					y = b[at]
				}
				switch {
				case op == opNot:
					want = ^y
				case i == 0:
					want = y
				case op == opAnd:
					want &= y
				case op == opOr:
					want |= y
				case op == opXor:
					want ^= y
				}
			}
			if x != want {
				t.Fatalf("operation %d of %d strings, %d bytes: byte %d is %02x, want %02x", op, len(sources), longest, at, x, want)
			}
		}
	}
}

func BenchmarkWords(b *testing.B) {
	dst, src := make([]byte, 100_000), make([]byte, 100_000)
	three := [][]byte{src, make([]byte, 100_000), make([]byte, 100_000)}
	for name, run := range map[string]func(){
		"and of three": func() { combineAll(opAnd, dst, three) }, "or of three": func() { combineAll(opOr, dst, three) },
		"count": func() { countBits(src) }, "count-words": func() { countWords(src) }, "and": func() { combine(opAnd, dst, src) }, "or": func() { combine(opOr, dst, src) },
		"xor": func() { combine(opXor, dst, src) }, "not": func() { invert(dst, src) }, "find": func() { findBit(src, span{0, 799_999}, 1) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(src)))
			for b.Loop() {
				run()
			}
		})
	}
}
