// Waiting in line for a limiter: in order, for exactly the right time, and leaving nothing behind.
package ratelimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// First come, first served over connections: each waiter at the moment when its cost is available, even if one behind it
// could have been served before.
func TestBlockInOrder(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("[0 5 0 -1 5000]", "RL.ACQUIRE", "k", 5, "GCRA", 5, 5000)
	costs := []int64{3, 1, 2}
	var line []*livetest.Client
	for i, cost := range costs {
		w := s.Client()
		w.Send("RL.ACQUIRE", "k", cost, "BLOCK", 0)
		line = append(line, w)
		s.Blocked(int64(i + 1))
	}
	// While they wait, a caller that does not wait is refused, and learns how long the line takes.
	c.Want("[1 5 0 7000 5000]", "RL.ACQUIRE", "k", 1)
	c.Want("[1 5 0 7000 5000]", "RL.ACQUIRE", "k", 1, "PEEK")
	if got := c.Do("RL.INFO", "k"); !contains(got, "available 0 reset_after 5000 waiters 3") {
		t.Error(got)
	}
	for i, at := range []int64{3000, 4000, 6000} {
		s.Advance(at - (s.Now() - livetest.Epoch) - 1)
		line[i].Silent()
		s.Advance(1)
		if got := line[i].Read(); got != "[0 5 0 -1 5000]" {
			t.Errorf("waiter %d: %s", i, got)
		}
		s.Blocked(int64(len(costs) - 1 - i))
	}
	c.Want("[1 5 0 1000 5000]", "RL.ACQUIRE", "k", 1)
}

func TestBlockTimesOut(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("[0 2 0 -1 10000]", "RL.ACQUIRE", "k", 2, "LOG", 2, 10_000)
	long, short, last := s.Client(), s.Client(), s.Client()
	long.Send("RL.ACQUIRE", "k", 2, "BLOCK", 20_000)
	s.Blocked(1)
	short.Send("RL.ACQUIRE", "k", 1, "BLOCK", 700)
	s.Blocked(2)
	last.Send("RL.ACQUIRE", "k", 1, "BLOCK", 0)
	s.Blocked(3)
	s.Advance(699)
	short.Silent()
	s.Advance(1)
	if got := short.Read(); got != "[1 2 0 9300 9300]" {
		t.Errorf("timed out with %s", got)
	}
	s.Advance(9300)
	if got := long.Read(); got != "[0 2 0 -1 10000]" {
		t.Errorf("granted with %s", got)
	}
	s.Advance(10_000)
	if got := last.Read(); got != "[0 2 1 -1 10000]" {
		t.Errorf("granted with %s", got)
	}
	if got := c.Do("INFO", "limitkv"); !contains(got, "limiter_calls_granted:3", "limiter_calls_refused:1", "limiter_waiters:0") {
		t.Error(got)
	}
}

// A client that disconnects takes nothing and leaves the line; the next one is served when its smaller cost fits.
func TestBlockDisconnects(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("[0 4 0 -1 4000]", "RL.ACQUIRE", "k", 4, "GCRA", 4, 4000)
	first, second := s.Client(), s.Client()
	first.Send("RL.ACQUIRE", "k", 4, "BLOCK", 0)
	s.Blocked(1)
	second.Send("RL.ACQUIRE", "k", 1, "BLOCK", 0)
	s.Blocked(2)
	s.Advance(2000)
	second.Silent()
	first.Close()
	if got := second.Read(); got != "[0 4 1 -1 3000]" {
		t.Errorf("the second got %s", got)
	}
}

// Whatever changes the key, the line continues: a release, another rule, another type, no key.
func TestBlockAndTheKey(t *testing.T) {
	for what, test := range map[string]struct {
		do   []any
		want string
	}{
		"release":     {[]any{"RL.RELEASE", "k"}, "[0 2 0 -1 10000]"},
		"raised":      {[]any{"RL.SET", "k", "GCRA", 9, 10_000}, "[0 9 6 -1 3334]"},
		"lowered":     {[]any{"RL.SET", "k", "GCRA", 1, 10_000}, ""},
		"reset":       {[]any{"RL.SET", "k", "RESET", "GCRA", 2, 10_000}, "[0 2 1 -1 5000]"},
		"deleted":     {[]any{"DEL", "k"}, noLimiter},
		"renamed":     {[]any{"RENAME", "k", "j"}, noLimiter},
		"overwritten": {[]any{"SET", "k", "v"}, wrongType},
		"flushed":     {[]any{"FLUSHALL"}, noLimiter},
		"renamed to":  {[]any{"RENAME", "full", "k"}, "[0 7 6 -1 1000]"},
		"in a script": {[]any{"EVAL", "redis.call('RL.RELEASE', KEYS[1], 2)", 1, "k"}, "[0 2 1 -1 5000]"},
		"forced":      {[]any{"RL.ACQUIRE", "k", 1, "FORCE"}, ""},
	} {
		t.Run(what, func(t *testing.T) {
			s := livetest.Start(t)
			c, w := s.Client(), s.Client()
			c.Want("OK", "RL.SET", "full", "GCRA", 7, 7000)
			c.Want("[0 2 0 -1 10000]", "RL.ACQUIRE", "k", 2, "GCRA", 2, 10_000)
			w.Send("RL.ACQUIRE", "k", 1, "BLOCK", 0)
			s.Blocked(1)
			c.Do(test.do...)
			if test.want == "" {
				w.Silent()
				s.Blocked(1)
				return
			}
			if got := w.Read(); got != test.want {
				t.Errorf("%s: got %s, want %s", what, got, test.want)
			}
			s.Blocked(0)
		})
	}
}

// A caller with a rule defines the limiter again if it is gone when its turn comes.
func TestBlockWithRule(t *testing.T) {
	s := livetest.Start(t)
	c, w := s.Client(), s.Client()
	c.Want("[0 1 0 -1 1000]", "RL.ACQUIRE", "k", 1, "LOG", 1, 1000)
	w.Send("RL.ACQUIRE", "k", 1, "BLOCK", 0, "LOG", 1, 1000)
	s.Blocked(1)
	c.Want("1", "DEL", "k")
	if got := w.Read(); got != "[0 1 0 -1 1000]" {
		t.Error(got)
	}
	c.Want("[1 1 0 1000 1000]", "RL.ACQUIRE", "k")
}

// A crowd at one limiter: all are served, in order, at their times, and the
// server has nothing to do in between.
func TestBlockCrowd(t *testing.T) {
	const crowd = 300
	s := livetest.Start(t)
	c := s.Client()
	c.Want("[0 1 0 -1 10]", "RL.ACQUIRE", "k", 1, "GCRA", 1, 10)
	clients := make([]*livetest.Client, crowd)
	for i := range clients {
		clients[i] = s.Client()
		clients[i].Send("RL.ACQUIRE", "k", 1, "BLOCK", 0)
		s.Blocked(int64(i + 1))
	}
	for i := 0; i < crowd; i += 30 {
		s.Advance(300)
		s.Blocked(int64(crowd - i - 30))
		for j := i; j < i+30; j++ {
			if got := clients[j].Read(); got != "[0 1 0 -1 10]" {
				t.Fatalf("client %d: %s", j, got)
			}
		}
	}
	s.Advance(11)
	c.Want("0", "DBSIZE")
}

// CLIENT UNBLOCK and CLIENT KILL work from inside a transaction that holds the
// lock of the key that is waited for.
func TestBlockEndedInsideExec(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("[0 1 0 -1 1000]", "RL.ACQUIRE", "k", 1, "LOG", 1, 1000)
	for _, how := range []string{"UNBLOCK", "KILL"} {
		w := s.Client()
		id := w.Do("CLIENT", "ID")
		w.Send("RL.ACQUIRE", "k", 1, "BLOCK", 0)
		s.Blocked(1)
		c.Want("OK", "MULTI")
		c.Want("QUEUED", "TYPE", "k")
		if how == "UNBLOCK" {
			c.Want("QUEUED", "CLIENT", "UNBLOCK", id)
		} else {
			c.Want("QUEUED", "CLIENT", "KILL", "ID", id)
		}
		c.Want("[ratelimit 1]", "EXEC")
		if how == "UNBLOCK" {
			if got := w.Read(); got != "[1 1 0 1000 1000]" {
				t.Errorf("unblocked with %s", got)
			}
		}
		s.Blocked(0)
	}
	c.Want("[1 1 0 1000 1000]", "RL.ACQUIRE", "k", 1)
}

// With a running clock the wait takes as long as announced.
func TestBlockRealTime(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "LKV.CLOCK", "RESUME")
	c.Do("RL.SET", "k", "GCRA", 1, 20) // it stays when it is idle, which can happen on a busy machine
	c.Do("RL.ACQUIRE", "k", 1)
	began := time.Now()
	for range 5 {
		if got := c.Do("RL.ACQUIRE", "k", 1, "BLOCK", 5000); got != "[0 1 0 -1 20]" {
			t.Fatal(got)
		}
	}
	if took := time.Since(began); took < 95*time.Millisecond || took > 5*time.Second {
		t.Errorf("five waits of 20 ms took %v", took)
	}
}

func contains(text string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(text, p) {
			return false
		}
	}
	return true
}
