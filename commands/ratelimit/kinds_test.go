// Waiters for the same key but for different kinds of values: a waiter for one kind does not hold up waiters for another.
package ratelimit_test

import (
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

func TestOtherKindsInLine(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	wait := func(n int64, args ...any) *livetest.Client {
		w := s.Client()
		w.Send(args...)
		s.Blocked(n)
		return w
	}
	reads := func(w *livetest.Client, want string, left int64) {
		t.Helper()
		if got := w.Read(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		s.Blocked(left)
	}
	// A limiter, and somebody who waits for a list.
	list := wait(1, "BLPOP", "l", 0)
	c.Want("OK", "RL.SET", "l", "FIXED", 3, 1000)
	c.Want("[0 3 2 -1 1000]", "RL.ACQUIRE", "l")
	c.Want("[0 3 0 -1 1000]", "RL.ACQUIRE", "l", 2)
	// A waiter that wants much leaves: the one behind it is tried.
	much := wait(2, "RL.ACQUIRE", "l", 2, "BLOCK", 0)
	little := wait(3, "RL.ACQUIRE", "l", 1, "BLOCK", 0)
	c.Want("1", "RL.RELEASE", "l")
	much.Close()
	reads(little, "[0 3 0 -1 1000]", 1)
	// A waiter for the limiter is served, whatever other waiters are before it.
	w := wait(2, "RL.ACQUIRE", "l", "BLOCK", 0)
	s.Advance(1000)
	reads(w, "[0 3 2 -1 1000]", 1)
	c.Want("1", "DEL", "l")
	// A limiter that is full again is gone, though somebody waits for a list.
	c.Want("[0 3 2 -1 1000]", "RL.ACQUIRE", "l", "FIXED", 3, 1000)
	s.Advance(1001)
	c.Want("-NOLIMITER no such limiter, define it with RL.SET or give a rule", "RL.ACQUIRE", "l")
	c.Want("1", "RPUSH", "l", "x")
	reads(list, "[l x]", 0)

	// A sorted set: a client that waits for a due member does not hold up one that takes it sooner.
	due := wait(1, "DQ.POP", "z", "BLOCK", 0)
	least := wait(2, "BZPOPMIN", "z", 0)
	c.Want("1", "ZADD", "z", s.Now()+1000, "later")
	reads(least, "[z later 1700000003001]", 1)
	c.Want("1", "ZADD", "z", s.Now()+1000, "then")
	s.Advance(1000)
	reads(due, "[[then 1700000003001]]", 0)
}
