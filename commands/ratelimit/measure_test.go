// What a crowd of waiting callers costs, measured over sockets if LIMITKV_MEASURE is set.
package ratelimit_test

import (
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// Thousands wait at one limiter without costing anything, and then are served
// in the order in which they came.
func TestMeasureCrowd(t *testing.T) {
	livetest.Measured(t)
	s, c, crowd := livetest.Crowd(t)
	c.Want("[0 1 0 -1 3600000]", "RL.ACQUIRE", "k", 1, "GCRA", 1, 3_600_000)
	clients := s.Wait(t, crowd, func(int) []any { return []any{"RL.ACQUIRE", "k", 1, "BLOCK", 0} })
	began := time.Now()
	c.Want("OK", "RL.SET", "k", "GCRA", 20_000, 1000, "BURST", 1)
	for i, w := range clients {
		if got := w.Read(); got != "[0 1 0 -1 1]" {
			t.Fatalf("waiter %d got %s", i, got)
		}
	}
	t.Logf("served at 20,000 a second, all in %v", time.Since(began))
}
