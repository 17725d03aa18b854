// RL.MACQUIRE that waits: one ticket for all its lines.
package ratelimit_test

import (
	"fmt"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// RL.MACQUIRE waits in the lines of all its limiters. What one of them has left is reserved for it.
func TestMultiAcquireWaits(t *testing.T) {
	s := livetest.Start(t)
	c, w, x := s.Client(), s.Client(), s.Client()
	converse(t, s, c, `
		RL.SET a FIXED 1 1000 => OK
		RL.SET b CONC 1 => OK
		RL.ACQUIRE a => [0 1 0 -1 1000]
		RL.ACQUIRE b ID other LEASE 60000 => [0 1 0 -1 60000]
	`)
	w.Send("RL.MACQUIRE", 2, "a", 1, "b", 1, "ID", "job", "LEASE", 5000, "BLOCK", 0)
	s.Blocked(1)
	s.Advance(2000)
	w.Silent() // b is taken
	c.Want("[1 1 1 1000 0]", "RL.ACQUIRE", "a")
	if got := c.Do("RL.INFO", "a"); !contains(got, "available 1 reset_after 0 waiters 1") {
		t.Error(got)
	}
	c.Want("1", "RL.SETTLE", "b", "other")
	if got := w.Read(); got != "[0 1 0 -1 1000 -1]" {
		t.Errorf("at the end: %s", got)
	}
	s.Blocked(0)
	// Behind a waiter for a, while b is taken.
	x.Send("RL.ACQUIRE", "a", "BLOCK", 0)
	s.Blocked(1)
	w.Send("RL.MACQUIRE", 2, "a", 1, "b", 1, "ID", "late", "LEASE", 5000, "BLOCK", 10)
	s.Blocked(2)
	s.Advance(10)
	if got := w.Read(); got != "[1 1 0 4990 4990 1]" {
		t.Errorf("after the time-out: %s", got)
	}
	s.Advance(990)
	if got := x.Read(); got != "[0 1 0 -1 1000]" {
		t.Errorf("who came later: %s", got)
	}
	w.Send("RL.MACQUIRE", 2, "a", 1, "b", 1, "ID", "gone", "LEASE", 5000, "BLOCK", 0)
	s.Blocked(1)
	w.Close()
	s.Blocked(0)
	s.Advance(10_000)
	c.Want("[0 1 1 -1 0 -1]", "RL.MACQUIRE", 2, "a", 0, "b", 0, "PEEK")
	if err := s.Keyspace.Check(); err != nil {
		t.Error(err)
	}
}

// Two limiters, of which one or the other is always taken, by one of a crowd that waits for it: a caller that wants both gets
// them in its turn.
func TestMultiAcquireInTurn(t *testing.T) {
	s := livetest.Start(t)
	c, both := s.Client(), s.Client()
	waiting := int64(0)
	type holder struct {
		*livetest.Client
		id string
	}
	lines := map[string][]holder{} // the holders of a key, and its waiters
	join := func(key string, i int) {
		h := holder{s.Client(), fmt.Sprint(key, i)}
		h.Send("RL.ACQUIRE", key, "ID", h.id, "LEASE", 60_000, "BLOCK", 0, "CONC", 1)
		if lines[key] = append(lines[key], h); len(lines[key]) > 1 || i > 0 {
			waiting++
		} else if got := h.Read(); got != "[0 1 0 -1 60000]" {
			t.Fatal(got)
		}
		s.Blocked(waiting)
	}
	next := func(key string) { // the first holder settles, and another client comes
		c.Want("1", "RL.SETTLE", key, lines[key][0].id)
		lines[key] = lines[key][1:]
	}
	for i := range 3 {
		join("a", i)
		join("b", i)
	}
	both.Send("RL.MACQUIRE", 2, "a", 1, "b", 1, "ID", "both", "LEASE", 60_000, "BLOCK", 0)
	waiting++
	s.Blocked(waiting)
	for i := range 3 { // clients that came before
		for _, key := range []string{"a", "b"} {
			join(key, 3+i)
			both.Silent()
			next(key)
			if i < 2 {
				waiting--
				if got := lines[key][0].Read(); got != "[0 1 0 -1 60000]" {
					t.Fatal(got)
				}
			}
			if key == "b" && i == 2 {
				waiting--
			}
			s.Blocked(waiting)
		}
	}
	if got := both.Read(); got != "[0 1 0 -1 60000 -1]" {
		t.Fatal(got)
	}
	for _, key := range []string{"a", "b"} { // clients that came later
		lines[key][0].Silent()
		c.Want("1", "RL.SETTLE", key, "both")
		if got := lines[key][0].Read(); got != "[0 1 0 -1 60000]" {
			t.Error(got)
		}
	}
}

// The order of tickets decides, not the order in which a transaction releases: the result is the same with crossed keys.
func TestMultiAcquireAfterExec(t *testing.T) {
	for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		s := livetest.Start(t)
		c, w, x, y, z := s.Client(), s.Client(), s.Client(), s.Client(), s.Client()
		for _, key := range order {
			c.Want("OK", "RL.SET", key, "CONC", 1)
			c.Want("[0 1 0 -1 60000]", "RL.ACQUIRE", key, "ID", "h", "LEASE", 60_000)
		}
		for i, who := range []*livetest.Client{w, x, y, z} {
			switch who {
			case w:
				w.Send("RL.ACQUIRE", "b", "ID", "w", "LEASE", 60_000, "BLOCK", 0)
			case x:
				x.Send("RL.MACQUIRE", 2, "a", 1, "b", 1, "ID", "x", "LEASE", 60_000, "BLOCK", 0)
			case y:
				y.Send("RL.MACQUIRE", 2, "b", 1, "a", 1, "ID", "y", "LEASE", 60_000, "BLOCK", 0)
			case z:
				z.Send("RL.ACQUIRE", "a", "ID", "z", "LEASE", 60_000, "BLOCK", 0)
			}
			s.Blocked(int64(i + 1))
		}
		let := func(id string) {
			t.Helper()
			c.Want("OK", "MULTI")
			for _, key := range order {
				c.Want("QUEUED", "RL.SETTLE", key, id)
			}
			c.Do("EXEC")
		}
		granted := func(who *livetest.Client, want string, left int64) {
			t.Helper()
			if got := who.Read(); got != want {
				t.Errorf("%v: %s", order, got)
			}
			s.Blocked(left)
		}
		let("h")
		granted(w, "[0 1 0 -1 60000]", 3)
		c.Want("[1 1 1 -1 0]", "RL.ACQUIRE", "a", "ID", "no", "LEASE", 1) // a is reserved
		let("w")
		granted(x, "[0 1 0 -1 60000 -1]", 2)
		let("x")
		granted(y, "[0 1 0 -1 60000 -1]", 1)
		let("y")
		granted(z, "[0 1 0 -1 60000]", 0)
		c.Want("[0 1 0 -1 1]", "RL.ACQUIRE", "b", "ID", "yes", "LEASE", 1)
	}
}

// A shadow refuses nobody, so nobody waits in its line.
func TestMultiAcquireShadow(t *testing.T) {
	s := livetest.Start(t)
	c, w, x, y := s.Client(), s.Client(), s.Client(), s.Client()
	converse(t, s, c, `
		RL.SET a SHADOW CONC 9 => OK
		RL.SET b CONC 1 => OK
		RL.SET c CONC 1 => OK
		RL.ACQUIRE b ID h LEASE 60000 => [0 1 0 -1 60000]
		RL.ACQUIRE c ID h LEASE 60000 => [0 1 0 -1 60000]
	`)
	w.Send("RL.MACQUIRE", 2, "a", 1, "b", 1, "ID", "w", "LEASE", 60_000, "BLOCK", 0)
	s.Blocked(1)
	x.Send("RL.MACQUIRE", 2, "a", 1, "c", 1, "ID", "x", "LEASE", 60_000, "BLOCK", 0)
	s.Blocked(2)
	c.Want("1", "RL.SETTLE", "c", "h")
	if got := x.Read(); got != "[0 1 0 -1 60000 -1]" {
		t.Error(got)
	}
	// It becomes a limiter, and a shadow again.
	c.Want("1", "RL.SETTLE", "c", "x")
	c.Want("OK", "RL.SET", "a", "CONC", 9)
	x.Send("RL.MACQUIRE", 2, "a", 1, "c", 1, "ID", "x2", "LEASE", 60_000, "BLOCK", 0)
	s.Blocked(2)
	y.Send("RL.ACQUIRE", "a", "ID", "y", "LEASE", 60_000, "BLOCK", 0)
	s.Blocked(3)
	c.Want("OK", "RL.SET", "a", "SHADOW", "CONC", 9)
	if got := x.Read(); got != "[0 1 0 -1 60000 -1]" {
		t.Error(got)
	}
	if got := y.Read(); got != "[0 9 6 -1 60000]" {
		t.Error(got)
	}
	s.Blocked(1)
	c.Want("1", "RL.SETTLE", "b", "h")
	if got := w.Read(); got != "[0 1 0 -1 60000 -1]" {
		t.Error(got)
	}
}

// One of the limiters is Redisson's.
func TestMultiAcquireWaitsForShared(t *testing.T) {
	s := livetest.Start(t)
	c, w, x := s.Client(), s.Client(), s.Client()
	c.Want("3", "HSET", "l", "rate", 1, "interval", 1000, "type", 0)
	c.Want("OK", "RL.SET", "b", "FIXED", 1, 10_000)
	c.Want("[0 1 0 -1 10000]", "RL.ACQUIRE", "b")
	w.Send("RL.MACQUIRE", 2, "l", 1, "b", 1, "BLOCK", 0)
	s.Blocked(1)
	x.Send("RL.ACQUIRE", "l", "BLOCK", 0)
	s.Blocked(2)
	s.Advance(9999)
	w.Silent()
	x.Silent()
	s.Advance(1)
	if got := w.Read(); got != "[0 1 0 -1 1000 -1]" {
		t.Error(got)
	}
	s.Advance(999)
	x.Silent()
	s.Advance(1)
	if got := x.Read(); got != "[0 1 0 -1 1000]" {
		t.Error(got)
	}
}
