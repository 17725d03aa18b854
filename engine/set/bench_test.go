package set

// How much memory and time a set takes, by its form.

import (
	"fmt"
	"runtime"
	"testing"
)

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func member(kind string, i int) []byte {
	if kind == "integers" {
		return fmt.Append(nil, i)
	}
	return fmt.Append(nil, "member:", i)
}

// BenchmarkMemory reports bytes of heap per member.
func BenchmarkMemory(b *testing.B) {
	for _, c := range []struct {
		name, kind    string
		sets, members int
	}{
		{"intset of 10", "integers", 10_000, 10},
		{"listpack of 10", "strings", 10_000, 10},
		{"table of 1000000", "strings", 1, 1_000_000},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				sets := make([]Set, c.sets)
				for i := range sets {
					for m := range c.members {
						sets[i].Add(member(c.kind, m), DefaultLimits)
					}
				}
				b.ReportMetric(float64(heap()-before)/float64(c.sets*c.members), "B/member")
				runtime.KeepAlive(sets)
			}
		})
	}
}

func BenchmarkContains(b *testing.B) {
	for _, c := range []struct {
		kind string
		n    int
	}{{"integers", 10}, {"integers", 500}, {"strings", 10}, {"strings", 100}, {"strings", 100_000}} {
		b.Run(fmt.Sprint(c.kind, "/", c.n), func(b *testing.B) {
			var s Set
			keys := make([][]byte, c.n)
			for i := range keys {
				keys[i] = member(c.kind, i)
				s.Add(keys[i], DefaultLimits)
			}
			i := 0
			for b.Loop() {
				if !s.Contains(keys[i]) {
					b.Fatal("missing")
				}
				if i++; i == c.n {
					i = 0
				}
			}
		})
	}
}

// BenchmarkAdd is the time per member of filling a set from nothing.
func BenchmarkAdd(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			keys := make([][]byte, n)
			for i := range keys {
				keys[i] = member("strings", i)
			}
			for b.Loop() {
				var s Set
				for _, k := range keys {
					s.Add(k, DefaultLimits)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/member")
		})
	}
}

func BenchmarkInter(b *testing.B) {
	x, y := &Set{}, &Set{}
	for i := range 10_000 {
		x.Add(member("strings", i), DefaultLimits)
		y.Add(member("strings", i+5000), DefaultLimits)
	}
	for b.Loop() {
		Inter([]*Set{x, y}, 0, nil)
	}
}

// BenchmarkInterStore stores the intersection of two listpacks.
func BenchmarkInterStore(b *testing.B) {
	x, y := &Set{}, &Set{}
	for i := range 10 {
		x.Add(member("strings", i), DefaultLimits)
		y.Add(member("strings", i+2), DefaultLimits)
	}
	sets := []*Set{x, y}
	for b.Loop() {
		InterStore(sets, DefaultLimits)
	}
}
