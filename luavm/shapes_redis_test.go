//go:build !race

package luavm

// Shapes at their limits, compared with Redis. They are not run with the race detector: one goroutine compiles them, so it can
// find nothing, and it would take minutes.

import "testing"

func TestShapesAsRedis(t *testing.T) {
	o := startOracle(t)
	compare := func(name string, n int, source string) {
		t.Helper()
		got, want := loadReply(source), o.load(source)
		if got != want {
			t.Errorf("%s ×%d: %.300q, want %.300q", name, n, got, want)
		}
	}
	far := []int{43690, 43691, 65535, 65536, 131070, 131071, 262142, 262143, 262144}
	for _, n := range append(append([]int(nil), around...), far...) {
		for _, s := range shapes {
			if s.slow == 0 || n <= s.slow {
				compare(s.name, n, s.source(n))
			}
		}
		for _, s := range numbered {
			compare(s.name, n, s.build(n))
		}
	}
}
