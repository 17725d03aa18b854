package list

import (
	"fmt"
	"testing"

	"github.com/limitkv/limitkv/engine/packed"
)

// BenchmarkQueue is one push at the tail and one pop at the head of a list of that length.
func BenchmarkQueue(b *testing.B) {
	for _, n := range []int{1, 100, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var l List
			v := [][]byte{[]byte("a job of twenty byte")}
			for range n {
				l.Push(v, false, DefaultLimits)
			}
			b.ReportMetric(float64(l.MemoryUsage())/float64(n), "B/element")
			b.ReportAllocs()
			var s packed.Scratch
			for b.Loop() {
				l.Push(v, false, DefaultLimits)
				l.Index(0, &s)
				l.Remove(0, 1, DefaultLimits)
			}
			b.ReportMetric(float64(l.MemoryUsage())/float64(l.Len()), "B/element")
		})
	}
}

func BenchmarkPush(b *testing.B) {
	v := [][]byte{[]byte("a job of twenty byte")}
	for _, head := range []bool{false, true} {
		b.Run(fmt.Sprint("head=", head), func(b *testing.B) {
			var l List
			b.ReportAllocs()
			for b.Loop() {
				l.Push(v, head, DefaultLimits)
			}
			b.ReportMetric(float64(l.MemoryUsage())/float64(l.Len()), "B/element")
		})
	}
}

func BenchmarkIndex(b *testing.B) {
	var l List
	for i := range 1_000_000 {
		l.Push([][]byte{fmt.Append(nil, i)}, false, DefaultLimits)
	}
	var s packed.Scratch
	i := 0
	for b.Loop() {
		l.Index(i, &s)
		if i += 7919; i >= l.Len() {
			i -= l.Len()
		}
	}
}
