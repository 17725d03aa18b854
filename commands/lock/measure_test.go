// What a crowd at one lock costs, and how soon the next waiter gets it. This is measured over sockets if LIMITKV_MEASURE is
// set, because on a busy machine the numbers mean nothing.
package lock_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// The first of 10,000 waiters gets the lock within a millisecond of its release, and they cost nothing while they wait.
func TestMeasureCrowd(t *testing.T) {
	livetest.Measured(t)
	s, c, crowd := livetest.Crowd(t)
	c.Do("LK.ACQUIRE", "k", "first", 3_600_000)
	clients := s.Wait(t, crowd, func(i int) []any {
		return []any{"LK.ACQUIRE", "k", fmt.Sprint("w", i), 3_600_000, "BLOCK", 0}
	})
	owner := "first"
	took := make([]time.Duration, 0, crowd)
	for i, w := range clients {
		began := time.Now()
		c.Want("1", "LK.RELEASE", "k", owner)
		if got := w.Read(); got[:3] != "[1 " {
			t.Fatalf("waiter %d got %s", i, got)
		}
		took = append(took, time.Since(began))
		owner = fmt.Sprint("w", i)
	}
	slices.Sort(took)
	t.Logf("from before the release to the next one's reply: p50 %v, p99 %v, max %v", took[crowd/2], took[crowd*99/100], took[crowd-1])
	if took[crowd/2] > time.Millisecond {
		t.Error("that is too long")
	}
}
