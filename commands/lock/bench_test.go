// The cost of a call through the whole server: a pipeline of a hundred calls at a time over one connection, including the
// client's part. A limiter's call is measured for comparison.
package lock_test

import (
	"fmt"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

func BenchmarkPipeline(b *testing.B) {
	key := func(i int) string { return fmt.Sprintf("lock:%011d", i/2%1000) }
	const owner = "0123456789abcdef"
	cycle := func(mode ...any) func(i int) []any {
		return func(i int) []any {
			if i%2 == 1 {
				return []any{"LK.RELEASE", key(i), owner}
			}
			return append([]any{"LK.ACQUIRE", key(i), owner, 30000}, mode...)
		}
	}
	for _, bench := range []struct {
		name    string
		command func(i int) []any
	}{
		{"rl.acquire", func(i int) []any { return []any{"RL.ACQUIRE", key(i), 1, "GCRA", 100, 60000} }},
		{"mutex", cycle()},
		{"shared", cycle("SHARED")},
		{"permits", cycle("OF", 5)},
		{"renewed", func(i int) []any { return []any{"LK.ACQUIRE", key(i), owner, 30000} }},
		{"refused", func(i int) []any { return []any{"LK.ACQUIRE", "held", owner, 30000} }},
		{"guard", func(i int) []any { return []any{"LK.GUARD", "held", fence(0)} }},
		{"set nx px", func(i int) []any {
			if i%2 == 1 {
				return []any{"DEL", key(i)}
			}
			return []any{"SET", key(i), owner, "NX", "PX", 30000}
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := livetest.Start(b)
			c := s.Client()
			c.Want(granted(0, 3600000), "LK.ACQUIRE", "held", "another", 3600000)
			const batch = 100
			var pipelines [20][]byte
			for i := range pipelines {
				for j := range batch {
					pipelines[i] = livetest.Append(pipelines[i], bench.command(i*batch+j)...)
				}
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				if n%batch == 0 {
					c.Pipeline(pipelines[n/batch%len(pipelines)], batch)
				}
				n++
			}
		})
	}
}
