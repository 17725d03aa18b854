package hash

// How much memory and time a hash takes, packed and large.

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/limitkv/limitkv/engine/packed"
)

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkMemory reports bytes of heap per hash of 10 fields, and per field of one large hash.
func BenchmarkMemory(b *testing.B) {
	b.Run("10 fields", func(b *testing.B) {
		const n = 100_000
		for b.Loop() {
			before := heap()
			hashes := make([]Hash, n)
			for i := range hashes {
				for f := range 10 {
					hashes[i].Set(fmt.Append(nil, "field", f), strconv.AppendInt(nil, int64(i*10+f), 10), DefaultLimits)
				}
			}
			b.ReportMetric(float64(heap()-before)/n, "B/hash")
			runtime.KeepAlive(hashes)
		}
	})
	b.Run("large", func(b *testing.B) {
		const n = 1_000_000
		for b.Loop() {
			before := heap()
			var h Hash
			for f := range n {
				h.Set(fmt.Append(nil, "field", f), strconv.AppendInt(nil, int64(f), 10), DefaultLimits)
			}
			after := heap()
			b.ReportMetric(float64(after-before)/n, "B/field")
			b.ReportMetric(float64(h.MemoryUsage())/n, "computed-B/field")
			for f := range n {
				h.SetDeadline(fmt.Append(nil, "field", f), int64(1+f))
			}
			b.ReportMetric(float64(heap()-after)/n, "B/deadline")
			runtime.KeepAlive(&h)
		}
	})
}

func filled(n int) (*Hash, [][]byte) {
	h := &Hash{}
	keys := make([][]byte, n)
	for i := range n {
		keys[i] = fmt.Append(nil, "field", i*7919%n)
		h.Set(keys[i], fmt.Append(nil, "value", i), DefaultLimits)
	}
	return h, keys
}

func BenchmarkGet(b *testing.B) {
	for _, n := range []int{10, 100, 500, 10_000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			h, keys := filled(n)
			var s packed.Scratch
			i := 0
			for b.Loop() {
				if _, ok := h.Get(keys[i], &s); !ok {
					b.Fatal("missing")
				}
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

func BenchmarkSet(b *testing.B) {
	for _, n := range []int{10, 100, 10_000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			h, keys := filled(n)
			b.ReportAllocs()
			i := 0
			var value [8]byte
			for b.Loop() {
				h.Set(keys[i], strconv.AppendInt(value[:0], int64(i), 10), DefaultLimits)
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

// BenchmarkBuild is the time per field of filling a hash from nothing.
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{10, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			_, keys := filled(n)
			for b.Loop() {
				var h Hash
				for _, k := range keys {
					h.Set(k, k, DefaultLimits)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/field")
		})
	}
}

func BenchmarkIterate(b *testing.B) {
	h, _ := filled(10)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for it := h.Iter(); it.Next(); {
			n += len(it.Field()) + len(it.Value())
		}
	}
}
