package hyperloglog

// HyperLogLogs against the bytes that Redis stores, a model of all registers, and the promised error.

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func counter(t testing.TB, n int) []byte {
	b := New()
	Invalidate(b)
	for i := range n {
		var err error
		if b, _, err = Add(b, fmt.Append(nil, "element:", i), DefaultSparseMax); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// The strings and the counts of Redis 8.0.6 after PFADD of element:0, element:1 …
func TestBytesAreRedis(t *testing.T) {
	for _, c := range []struct {
		n, count, length int
		sum              string
	}{
		{0, 0, 18, "e2c2a4d6f667db2d3180523f3c7a9bda5a4db0fc"},
		{1, 1, 21, "d111dd27cb94748a8cf3c3c1bf002fe0e1b6b277"},
		{10, 10, 48, "dd7cf3784918baa4c956f1723b1cebdb193228f7"},
		{100, 99, 285, "adb8b211e8f1c583accacde62d6a276b6655b70e"},
		{500, 502, 1050, "6c8940e3bb8e4085470524fec02bd03b03437d86"},
		{1000, 997, 1897, "0e960765508b760a1d14e0dbf53a47cda116bf34"},
		{2000, 2004, 12304, "5b5af8349628ff2f83fe6cfca50f1c2cc671e307"},
		{10000, 10017, 12304, "32cf9c38b2d7a8345ede610f2f852e2e99d96921"},
		{100000, 100039, 12304, "e93ddd40b895726dee7091c32a113a2d5fc36aa8"},
	} {
		b := counter(t, c.n)
		if sum := sha1.Sum(b); hex.EncodeToString(sum[:]) != c.sum || len(b) != c.length || !Valid(b) {
			t.Errorf("%d elements: %d bytes, want %d, or others", c.n, len(b), c.length)
		}
		if got, err := Count(b); got != uint64(c.count) || err != nil {
			t.Errorf("%d elements: counted %d, want %d", c.n, got, c.count)
		}
	}
	b := New()
	for _, e := range []string{"a", "b", "c"} {
		b, _, _ = Add(b, []byte(e), DefaultSparseMax)
	}
	if got, want := Decode(b), "Z:8436 v:1,1 Z:4274 v:2,1 Z:3068 v:1,1 Z:603"; got != want {
		t.Errorf("decoded: %s, want %s", got, want)
	}
}

func TestCachedCount(t *testing.T) {
	b := New()
	if n, ok := Cached(b); n != 0 || !ok {
		t.Errorf("new: %d %v", n, ok)
	}
	b, changed, _ := Add(b, []byte("a"), DefaultSparseMax)
	if _, ok := Cached(b); ok || !changed {
		t.Error("a new element leaves the stored count valid")
	}
	SetCached(b, 1)
	b, changed, _ = Add(b, []byte("a"), DefaultSparseMax)
	if n, ok := Cached(b); n != 1 || !ok || changed {
		t.Errorf("an element that was there: %d %v %v", n, ok, changed)
	}
}

// Any counter has the registers of the naive one: an array of the highest ranks.
func TestAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	forms := map[string]int{}
	for round := range 60 {
		sparseMax := []int{DefaultSparseMax, 60, 0, 100_000}[round%4]
		a, b := New(), New()
		var modelA, modelB Registers
		for range rnd.IntN(1 << (3 + round%10)) {
			e := fmt.Append(nil, rnd.IntN(5000))
			i, rank := place(e)
			model, c := &modelA, &a
			if rnd.IntN(2) == 0 {
				model, c = &modelB, &b
			}
			next, changed, err := Add(*c, e, sparseMax)
			if err != nil || changed != (rank > model[i]) {
				t.Fatalf("round %d: changed %v, %v", round, changed, err)
			}
			*c = next
			model[i] = max(model[i], rank)
		}
		check := func(name string, c []byte, model *Registers) {
			t.Helper()
			forms[Encoding(c)]++
			var got Registers
			if err := got.Merge(c); err != nil || got != *model || !Valid(c) {
				t.Fatalf("round %d: %s: other registers, %v", round, name, err)
			}
			if n, err := Count(c); n != model.Count() || err != nil {
				t.Fatalf("round %d: %s: counted %d, want %d, %v", round, name, n, model.Count(), err)
			}
		}
		check("a", a, &modelA)
		check("b", b, &modelB)
		var union, model Registers
		for i := range model {
			model[i] = max(modelA[i], modelB[i])
		}
		if union.Merge(a) != nil || union.Merge(b) != nil || union != model {
			t.Fatalf("round %d: union", round)
		}
		toDense := Encoding(a) == "dense" || Encoding(b) == "dense"
		stored, err := union.Store(slices.Clone(a), toDense, sparseMax)
		if err != nil {
			t.Fatal(err)
		}
		check("stored union", stored, &model)
		if !toDense { // the bytes are the same as if the registers were raised one after the other
			one := slices.Clone(a)
			for i, v := range union {
				if v > 0 && one[4] == dense {
					raise(one[headerBytes:], i, v)
				} else if v > 0 {
					if one, _, err = setSparse(one, i, v, sparseMax, new(spot)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if Invalidate(one); !bytes.Equal(one, stored) {
				t.Fatalf("round %d: stored %s, want %s", round, Decode(stored), Decode(one))
			}
			forms["stored"]++
		}
		if _, ok := Cached(stored); ok {
			t.Fatalf("round %d: the stored union's count is not stale", round)
		}
		d, _ := ToDense(slices.Clone(a))
		check("a made dense", d, &modelA)
	}
	if forms["sparse"] < 20 || forms["dense"] < 20 || forms["stored"] < 10 {
		t.Errorf("%v: the test did no work", forms)
	}
}

// TestEightRuns: eight codes at once contain as many registers as one by one, unless one of them has two bytes.
func TestEightRuns(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 0))
	long, all := 0, 0
	for range 100_000 {
		data := make([]byte, 8)
		for i := range data {
			if data[i] = byte(rng.Uint32()); data[i]&0xC0 == 0x40 && rng.IntN(8) > 0 {
				data[i] &= 0x3F
			}
		}
		n := 0
		for p := range data {
			r := runAt(data, p)
			if r.size > 1 {
				n = 0
				break
			}
			n += r.n
		}
		if n == 0 {
			long++
		} else {
			all++
		}
		if got := eightRuns(binary.LittleEndian.Uint64(data)); got != n {
			t.Fatalf("seed %d: % x: %d registers, want %d", seed, data, got, n)
		}
	}
	if got := eightRuns(0x3f3f3f3f3f3f3f3f); got != 8*zerosMax {
		t.Errorf("eight of the longest runs: %d registers", got)
	}
	if long < 1000 || all < 1000 {
		t.Errorf("seed %d: %d with codes of two bytes, %d without", seed, long, all)
	}
}

func TestErrorOfEstimate(t *testing.T) {
	for n := 1; n <= 300_000; n = n*3 + 1 {
		got, _ := Count(counter(t, n))
		if e := math.Abs(float64(got)-float64(n)) / float64(n); e > 0.03 {
			t.Errorf("%d elements counted as %d", n, got)
		}
	}
}

func TestCorrupt(t *testing.T) {
	head := New()[:headerBytes]
	for name, c := range map[string][]byte{
		"no registers":          {},
		"too few registers":     {0x7F, 0xFE},
		"too many registers":    {0x7F, 0xFF, 0x00},
		"half of a code":        {0x7F},
		"values beyond the end": {0x7F, 0xFF, 0x80},
	} {
		b := append(slices.Clone(head), c...)
		var r Registers
		if _, err := Count(b); err != ErrCorrupt {
			t.Errorf("%s: count: %v", name, err)
		}
		if err := r.Merge(b); err != ErrCorrupt {
			t.Errorf("%s: merge: %v", name, err)
		}
		if _, err := ToDense(b); err != ErrCorrupt {
			t.Errorf("%s: dense: %v", name, err)
		}
	}
	for name, b := range map[string][]byte{
		"short":            []byte("HYLL"),
		"magic":            bytes.Replace(New(), []byte("HYLL"), []byte("HELL"), 1),
		"encoding":         append([]byte("HYLL\x02"), make([]byte, 20)...),
		"length of dense":  append([]byte("HYLL\x00"), make([]byte, denseBytes-6)...),
		"length of dense+": append([]byte("HYLL\x00"), make([]byte, denseBytes-4)...),
	} {
		if Valid(b) {
			t.Errorf("%s: valid", name)
		}
	}
}

// FuzzAdd: no string that Valid accepts makes a panic, and what is read from it never exceeds the registers.
func FuzzAdd(f *testing.F) {
	f.Add([]byte{0x7F, 0xFF}, []byte("a"), 3000)
	f.Add([]byte{0x7F, 0xFE, 0x84}, []byte("b"), 20)
	f.Fuzz(func(t *testing.T, data, element []byte, sparseMax int) {
		b := append(New()[:headerBytes:headerBytes], data...)
		if !Valid(b) {
			return
		}
		_, before := Count(b)
		next, _, err := Add(b, element, sparseMax)
		if before == nil && err != nil {
			t.Fatalf("valid registers, but %v", err)
		}
		if _, after := Count(next); before == nil && after != nil {
			t.Fatalf("adding left them invalid: %v", after)
		}
		Decode(New())
	})
}

func BenchmarkAdd(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		c := counter(b, n)
		b.Run(fmt.Sprint(Encoding(c), "/", n), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				c, _, _ = Add(c, []byte{byte(i), byte(i >> 3 & 1)}, DefaultSparseMax)
				i++
			}
		})
	}
}

func BenchmarkCount(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		c := counter(b, n)
		b.Run(fmt.Sprint(Encoding(c), "/", n), func(b *testing.B) {
			for b.Loop() {
				Count(c)
			}
		})
	}
}

func BenchmarkStoreSparse(b *testing.B) {
	var r Registers
	if err := r.Merge(counter(b, 1000)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Store(New(), false, DefaultSparseMax); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMerge(b *testing.B) {
	c := counter(b, 10_000)
	var r Registers
	for b.Loop() {
		r.Merge(c)
	}
}

func BenchmarkMergeSparse(b *testing.B) {
	for _, n := range []int{10, 1000} {
		c := counter(b, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var r Registers
			for b.Loop() {
				r.Merge(c)
			}
		})
	}
}

func BenchmarkCountUnion(b *testing.B) {
	for _, n := range []int{10, 1000, 10_000} {
		var r Registers
		if err := r.Merge(counter(b, n)); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				r.Count()
			}
		})
	}
}
