// What a crowd at one lock costs, and how soon the next one has it, measured over sockets where LIMITKV_MEASURE asks for
// it, because a busy machine makes these numbers its own.
package lock_test

import (
	"fmt"
	"slices"
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

// Of 10,000 who wait the first has the lock within a millisecond of its release, and they cost nothing while they wait.
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
	c.Do("LK.ACQUIRE", "k", "first", 3_600_000)
	clients := make([]*livetest.Client, crowd)
	for i := range clients {
		clients[i] = s.Client()
		clients[i].Send("LK.ACQUIRE", "k", fmt.Sprint("w", i), 3_600_000, "BLOCK", 0)
		s.Blocked(int64(i + 1))
	}
	before := cpu()
	time.Sleep(3 * time.Second)
	t.Logf("%d waiters: %.3f %% of a core", crowd, float64(cpu()-before)/float64(3*time.Second)*100)
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
