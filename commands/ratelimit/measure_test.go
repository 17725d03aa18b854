// What a crowd of waiting callers costs, measured over sockets where
// LIMITKV_MEASURE asks for it.
package ratelimit_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// cpu is the processor time of this process, server and clients.
func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Thousands wait at one limiter without costing anything, and then are served
// in the order in which they came.
func TestMeasureCrowd(t *testing.T) {
	livetest.Measured(t)
	crowd := 10_000
	var files syscall.Rlimit
	syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)
	crowd = min(crowd, int(files.Cur)/2-200) // both ends are in this process
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "CONFIG", "SET", "maxclients", crowd+10)
	c.Want("OK", "LKV.CLOCK", "RESUME")
	c.Want("[0 1 0 -1 3600000]", "RL.ACQUIRE", "k", 1, "GCRA", 1, 3_600_000)
	clients := make([]*livetest.Client, crowd)
	for i := range clients {
		clients[i] = s.Client()
		clients[i].Send("RL.ACQUIRE", "k", 1, "BLOCK", 0)
		s.Blocked(int64(i + 1))
	}
	before := cpu()
	time.Sleep(3 * time.Second)
	t.Logf("%d waiters: %.3f %% of a core", crowd, float64(cpu()-before)/float64(3*time.Second)*100)
	began := time.Now()
	c.Want("OK", "RL.SET", "k", "GCRA", 20_000, 1000, "BURST", 1)
	for i, w := range clients {
		if got := w.Read(); got != "[0 1 0 -1 1]" {
			t.Fatalf("waiter %d got %s", i, got)
		}
	}
	t.Logf("served at 20,000 a second, all in %v", time.Since(began))
}
