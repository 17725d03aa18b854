// What a call costs through the whole server: a pipeline of a hundred at a time
// over one connection, the client's part included.
package ratelimit_test

import (
	"fmt"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

func BenchmarkPipeline(b *testing.B) {
	for name, command := range map[string]func(i int) []any{
		"set": func(i int) []any { return []any{"SET", fmt.Sprintf("limiter:%08d", i%1000), "12345678"} },
		"gcra": func(i int) []any {
			return []any{"RL.ACQUIRE", fmt.Sprintf("limiter:%08d", i%1000), 1, "GCRA", 100, 60000}
		},
		"no rule": func(i int) []any { return []any{"RL.ACQUIRE", "set"} },
		"log": func(i int) []any {
			return []any{"RL.ACQUIRE", fmt.Sprintf("limiter:%08d", i%1000), 1, "LOG", 100, 60000}
		},
		"throttle":  func(i int) []any { return []any{"CL.THROTTLE", fmt.Sprintf("limiter:%08d", i%1000), 15, 30, 60} },
		"macquire3": func(i int) []any { return []any{"RL.MACQUIRE", 3, "set", 1, "set2", 1, "set3", 1} },
	} {
		b.Run(name, func(b *testing.B) {
			s := livetest.Start(b)
			c := s.Client()
			for _, key := range []string{"set", "set2", "set3"} {
				c.Want("OK", "RL.SET", key, "GCRA", 100, 60000)
			}
			const batch = 100
			var pipelines [10][]byte
			for i := range pipelines {
				for j := range batch {
					pipelines[i] = livetest.Append(pipelines[i], command(i*batch+j)...)
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
