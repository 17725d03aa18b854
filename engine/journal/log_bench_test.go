package journal

import (
	"sync"
	"testing"
)

// gather is the cheapest sink that stores something: it copies into one buffer, which it empties at 1 MiB.
type gather struct{ buf []byte }

func (g *gather) Append(_ LSN, _ int64, framed []byte) {
	if len(g.buf)+len(framed) > 1<<20 {
		g.buf = g.buf[:0]
	}
	g.buf = append(g.buf, framed...)
}

// effect60 is one effect of 60 bytes.
var effect60 = []byte("*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000042\r\n$13\r\nvalue-value-v\r\n")

func BenchmarkAppend(b *testing.B) {
	for _, goroutines := range []int{1, 2} {
		for _, effects := range []int{1, 3} {
			b.Run(benchName(goroutines, effects), func(b *testing.B) {
				l := New()
				l.Attach(&gather{})
				batch := batch(0)
				for range effects {
					batch.RESP = append(batch.RESP, effect60...)
					batch.Effects = append(batch.Effects, Effect{End: len(batch.RESP)})
				}
				b.ReportAllocs()
				inParallel(b, goroutines, func(n int) {
					for range n {
						l.Append(batch)
					}
				})
			})
		}
	}
}

func BenchmarkActive(b *testing.B) {
	l := New()
	n := 0
	for b.Loop() {
		if l.Active() {
			n++
		}
	}
	if n != 0 {
		b.Fatal("nobody reads")
	}
}

func benchName(goroutines, effects int) string {
	return string(rune('0'+goroutines)) + "-goroutines/" + string(rune('0'+effects)) + "-effects"
}

// inParallel runs b.N operations shared by so many goroutines.
func inParallel(b *testing.B, goroutines int, run func(n int)) {
	var wg sync.WaitGroup
	b.ResetTimer()
	for g := range goroutines {
		n := b.N / goroutines
		if g == 0 {
			n += b.N % goroutines
		}
		wg.Go(func() { run(n) })
	}
	wg.Wait()
}
