// LIMIT: deliveries that take from a limiter, alone, together with other queues, and together with callers of RL.ACQUIRE.
package delayqueue_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/engine"
)

// limited is a server whose journal is replayed at the end.
func limited(t *testing.T) (s *livetest.Server, c *livetest.Client) {
	s = livetest.Start(t)
	c = s.Client()
	c.Want("OK", "LKV.JOURNAL", "START")
	t.Cleanup(func() {
		if !t.Failed() {
			s.Client().Want("OK", "LKV.JOURNAL", "CHECK")
			s.Client().Want("OK", "DEBUG", "RELOAD")
		}
	})
	return s, c
}

// field is a field of RL.INFO or DQ.INFO.
func field(t *testing.T, c *livetest.Client, command, key, name string) string {
	t.Helper()
	_, after, ok := strings.Cut(c.Do(command, key), name+" ")
	if !ok {
		t.Fatalf("%s %s has no %s", command, key, name)
	}
	value, _, _ := strings.Cut(strings.TrimRight(after, "]"), " ")
	return value
}

// held checks how much of a limiter of CONC 10 is taken.
func held(t *testing.T, c *livetest.Client, key string, want int) {
	t.Helper()
	if got := field(t, c, "RL.INFO", key, "available"); got != strconv.Itoa(10-want) {
		t.Errorf("%s of 10 are left, want %d held", got, want)
	}
}

func TestLimit(t *testing.T) {
	s, c := limited(t)
	converse(t, s, c, `
		RL.SET l FIXED 3 1000 => OK
		DQ.SET q LIMIT l => OK
		DQ.SET r LIMIT l LEASE 100 => OK
		DQ.ADD q ID a p => a
		DQ.ADD q ID b p => b
		DQ.ADD q ID c p => c
		DQ.ADD r ID d p => d
		DQ.POP q COUNT 2 => [[a p T 1] [b p T 1]]
		DQ.POP r => [[d#1 p T 1]]
		DQ.POP q => nil
		DQ.LEN q READY => 1
		DQ.NACK r d => 1
		# one budget with callers of the limiter
		RL.ACQUIRE l => [1 3 0 1000 1000]
		+1000
		RL.ACQUIRE l 2 => [0 3 1 -1 1000]
		DQ.MPOP 2 q r => [q [[c p T 1]]]
		DQ.MPOP 2 q r => nil
		# by group and priority
		+1000
		DQ.ADD q ID e GROUP g p => e
		DQ.ADD q ID f GROUP h p => f
		DQ.ADD q ID g GROUP g PRIO 9 p => g
		DQ.ADD q ID h GROUP h p => h
		DQ.POP q COUNT 9 => [[g p T+2000 1] [f p T+2000 1] [e p T+2000 1]]
		DQ.POP q COUNT 9 => nil
	`)
	if got := field(t, c, "DQ.INFO", "q", "limit"); got != "l" {
		t.Errorf("DQ.INFO tells of the limit %s", got)
	}
	// Without the limiter again.
	c.Want("OK", "DQ.SET", "q", "LIMIT", "")
	c.Want(times("[[h p T+2000 1]]"), "DQ.POP", "q")
}

func TestLimitErrors(t *testing.T) {
	s, c := limited(t)
	converse(t, s, c, `
		SET s v => OK
		DQ.SET q LIMIT s => -WRONGTYPE LIMIT names a key that is no limiter
		DQ.SET q LIMIT none => -NOLIMITER there is no such limiter, LIMIT takes one that RL.SET made
		RL.ACQUIRE passing FIXED 3 1000 => [0 3 2 -1 1000]
		DQ.SET q LIMIT passing => -NOLIMITER there is no such limiter, LIMIT takes one that RL.SET made
		DQ.SET q LIMIT q => -NOLIMITER there is no such limiter, LIMIT takes one that RL.SET made
		DQ.SET q LIMIT => -ERR syntax error
		EXISTS q => 0
		RL.SET l CONC 10 => OK
		DQ.SET q LIMIT l LIMIT l => -ERR syntax error
		DQ.SET q LIMIT l => OK
		DQ.SET q LIMIT q => -WRONGTYPE LIMIT names a key that is no limiter
		DQ.ADD q ID a p => a
		DQ.POP q => -ERR the queue's limiter has CONC, so entries can be taken with a LEASE only
		DQ.POP q LEASE 0 => -ERR the queue's limiter has CONC, so entries can be taken with a LEASE only
		DQ.POP q BLOCK 0 => -ERR the queue's limiter has CONC, so entries can be taken with a LEASE only
		DEL l => 1
		DQ.POP q LEASE 9 => -NOLIMITER the queue's limiter is not there, define it with RL.SET
		SET l v => OK
		DQ.MPOP 1 q LEASE 9 => -WRONGTYPE the queue's LIMIT names a key that is no limiter
		DQ.LEN q READY => 1
		# nothing due: nobody asks the limiter
		DQ.REM q a => 1
		DQ.POP q => nil
	`)
}

// A grant of CONC ends with the entry's lease, whatever ends that.
func TestLimitConc(t *testing.T) {
	s, c := limited(t)
	converse(t, s, c, `
		RL.SET l CONC 10 => OK
		DQ.SET q LIMIT l LEASE 1000 TRIES 3 DEAD {q}dead => OK
	`)
	for i := range 9 {
		c.Want("j"+strconv.Itoa(i), "DQ.ADD", "q", "ID", "j"+strconv.Itoa(i), "p")
	}
	held(t, c, "l", 0)
	converse(t, s, c, `DQ.POP q COUNT 9 LEASE 1000 => [[j0#1 p T 1] [j1#1 p T 1] [j2#1 p T 1] [j3#1 p T 1] [j4#1 p T 1] [j5#1 p T 1] [j6#1 p T 1] [j7#1 p T 1] [j8#1 p T 1]]`)
	held(t, c, "l", 9)
	for i, step := range []struct{ do, reply string }{
		{"DQ.ACK q j0", "1"}, {"DQ.ACK q j1#1", "1"}, {"DQ.NACK q j2", "1"}, {"DQ.NACK q j3 DEAD", "1"}, {"DQ.REM q j4", "1"},
		{"DQ.TOUCH q 0 j6", "1"},
	} {
		if got := c.Line(step.do); got != step.reply {
			t.Errorf("%s: %s", step.do, got)
		}
		held(t, c, "l", 8-i)
	}
	// A new version waits, and the worker continues.
	c.Want("j5", "DQ.ADD", "q", "DELAY", 9999, "ID", "j5", "again")
	held(t, c, "l", 3)
	c.Want("1", "DQ.ACK", "q", "j5#1")
	c.Want("0", "DQ.ACK", "q", "j0")
	held(t, c, "l", 2)
	c.Want("1", "DQ.TOUCH", "q", 5000, "j7")
	s.Advance(1000)
	held(t, c, "l", 1) // j8's lease has run out, j7's not
	s.Advance(3999)
	held(t, c, "l", 1)
	s.Advance(1)
	held(t, c, "l", 0)
	// A replaced queue has the same names again.
	c.Do("DQ.ADD", "other", "ID", "a", "p")
	c.Want("OK", "DQ.SET", "other", "LIMIT", "l", "LEASE", 500)
	c.Do("DQ.POP", "other")
	c.Want("1", "DEL", "other")
	held(t, c, "l", 1)
	c.Do("DQ.ADD", "other", "ID", "a", "p")
	c.Want("OK", "DQ.SET", "other", "LIMIT", "l", "LEASE", 900)
	c.Do("DQ.POP", "other")
	held(t, c, "l", 1)
	s.Advance(500)
	held(t, c, "l", 1)
	s.Advance(400)
	held(t, c, "l", 0)
	// Names that are too long for a grant.
	long := strings.Repeat("k", 600)
	c.Do("DQ.ADD", long, "ID", "a", "p")
	c.Want("OK", "DQ.SET", long, "LIMIT", "l", "LEASE", 500)
	c.Do("DQ.POP", long)
	held(t, c, "l", 1)
	c.Want("1", "DQ.ACK", long, "a#1")
	held(t, c, "l", 0)
}

// A waiter for a queue whose limiter refuses has its place in the limiter's line.
func TestLimitLine(t *testing.T) {
	s, c := limited(t)
	converse(t, s, c, `
		RL.SET l FIXED 1 1000 => OK
		DQ.SET q LIMIT l => OK
		DQ.SET r LIMIT l => OK
		DQ.ADD q ID a p => a
		DQ.ADD q ID b p => b
		DQ.ADD q ID c p => c
		DQ.ADD r ID d p => d
		DQ.ADD r ID e p => e
		DQ.POP q => [[a p T 1]]
	`)
	var clients []*livetest.Client
	for i, command := range []string{"DQ.POP q BLOCK 0", "DQ.POP q COUNT 5 BLOCK 0", "DQ.POP r BLOCK 0", "RL.ACQUIRE l BLOCK 0", "DQ.MPOP 2 r q BLOCK 0"} {
		w := s.Client()
		w.Send(anys(command)...)
		clients = append(clients, w)
		s.Blocked(int64(i + 1))
	}
	if got := field(t, c, "RL.INFO", "l", "waiters"); got != "3" { // q, r and a caller
		t.Errorf("%s wait for the limiter", got)
	}
	c.Want("nil", "DQ.POP", "q")
	c.Want("[1 1 0 1000 1000]", "RL.ACQUIRE", "l")
	// The line is q, r, the caller; then q and r again.
	for i, at := range []int{0, 2, 3, 1, 4} {
		s.Advance(999)
		clients[at].Silent()
		s.Advance(1)
		want := []string{"[[b p T 1]]", "[[d p T 1]]", "[0 1 0 -1 1000]", "[[c p T 1]]", "[r [[e p T 1]]]"}[i]
		if got := clients[at].Read(); got != times(want) {
			t.Fatalf("%d: %s, want %s", i, got, times(want))
		}
		s.Blocked(int64(4 - i))
	}
	if got := field(t, c, "RL.INFO", "l", "waiters"); got != "0" {
		t.Errorf("%s wait for the limiter", got)
	}
}

// However a wait ends, it leaves nothing in the limiter's line. Whatever happens to the limiter, nothing hangs.
func TestLimitEnds(t *testing.T) {
	for name, end := range map[string]struct {
		do    func(s *livetest.Server, c, w *livetest.Client)
		reply string
	}{
		"timeout":    {func(s *livetest.Server, c, w *livetest.Client) { s.Advance(50) }, "nil"},
		"disconnect": {func(s *livetest.Server, c, w *livetest.Client) { w.Close() }, ""},
		"unblock": {func(s *livetest.Server, c, w *livetest.Client) {
			id, _, _ := strings.Cut(strings.TrimPrefix(c.Do("CLIENT", "LIST"), "id="), " ")
			for n := 0; c.Do("CLIENT", "UNBLOCK", id) != "1" && n < 100; n++ {
				id = strconv.Itoa(n)
			}
		}, "nil"},
		"removed":  {func(s *livetest.Server, c, w *livetest.Client) { c.Want("1", "DEL", "l") }, "-NOLIMITER the queue's limiter is not there, define it with RL.SET"},
		"flushed":  {func(s *livetest.Server, c, w *livetest.Client) { c.Want("OK", "FLUSHALL"); s.Advance(50) }, "nil"},
		"replaced": {func(s *livetest.Server, c, w *livetest.Client) { c.Want("OK", "SET", "l", "v") }, "-WRONGTYPE the queue's LIMIT names a key that is no limiter"},
		"loosened": {func(s *livetest.Server, c, w *livetest.Client) { c.Want("OK", "RL.SET", "l", "FIXED", 3, 100_000) }, "[[a p T 1]]"},
		"reset": {func(s *livetest.Server, c, w *livetest.Client) {
			c.Want("OK", "RL.SET", "l", "RESET", "FIXED", 1, 100_000)
		}, "[[a p T 1]]"},
		"released": {func(s *livetest.Server, c, w *livetest.Client) { c.Want("1", "RL.RELEASE", "l") }, "[[a p T 1]]"},
		"shadow": {func(s *livetest.Server, c, w *livetest.Client) {
			c.Want("OK", "RL.SET", "l", "SHADOW", "FIXED", 1, 100_000)
		}, "[[a p T 1]]"},
		"no limit":    {func(s *livetest.Server, c, w *livetest.Client) { c.Want("OK", "DQ.SET", "q", "LIMIT", "") }, "[[a p T 1]]"},
		"other limit": {func(s *livetest.Server, c, w *livetest.Client) { c.Want("OK", "DQ.SET", "q", "LIMIT", "m") }, "[[a p T 1]]"},
		"entry gone":  {func(s *livetest.Server, c, w *livetest.Client) { c.Want("1", "DQ.REM", "q", "a"); s.Advance(50) }, "nil"},
		"queue gone":  {func(s *livetest.Server, c, w *livetest.Client) { c.Want("1", "DEL", "q"); s.Advance(50) }, "nil"},
		"paused": {func(s *livetest.Server, c, w *livetest.Client) {
			c.Want("OK", "DQ.SET", "q", "PAUSED", 1)
			s.Advance(50)
		}, "nil"},
		"queue string": {func(s *livetest.Server, c, w *livetest.Client) { c.Want("OK", "SET", "q", "v"); s.Advance(50) }, "nil"},
		"renamed":      {func(s *livetest.Server, c, w *livetest.Client) { c.Want("OK", "RENAME", "l", "k") }, "-NOLIMITER the queue's limiter is not there, define it with RL.SET"},
		"expired":      {func(s *livetest.Server, c, w *livetest.Client) { c.Want("1", "PEXPIRE", "l", 20); s.Advance(21) }, "-NOLIMITER the queue's limiter is not there, define it with RL.SET"},
		"window": {func(s *livetest.Server, c, w *livetest.Client) {
			c.Want("OK", "RL.SET", "l", "FIXED", 1, 40)
			s.Advance(40)
		}, "[[a p T 1]]"},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := limited(t)
			w := s.Client()
			converse(t, s, c, `
				RL.SET l FIXED 1 100000 => OK
				RL.SET m FIXED 1 100000 => OK
				DQ.SET q LIMIT l => OK
				RL.ACQUIRE l => [0 1 0 -1 100000]
				DQ.ADD q ID a p => a
			`)
			w.Send("DQ.POP", "q", "BLOCK", 50)
			s.Blocked(1)
			if got := field(t, c, "RL.INFO", "l", "waiters"); got != "1" {
				t.Errorf("%s wait for the limiter", got)
			}
			end.do(s, c, w)
			if end.reply != "" {
				if got := w.Read(); got != times(end.reply) {
					t.Errorf("%s, want %s", got, times(end.reply))
				}
			}
			s.Blocked(0)
			// A new limiter of that name is there for all.
			for _, key := range []string{"l", "m"} {
				c.Do("DEL", key)
				c.Want("OK", "RL.SET", key, "RESET", "FIXED", 1, 100)
				for until := time.Now().Add(5 * time.Second); field(t, c, "RL.INFO", key, "waiters") != "0"; time.Sleep(time.Millisecond) {
					if time.Now().After(until) {
						t.Fatal("somebody waits for the limiter yet")
					}
				}
				c.Want("[0 1 0 -1 100]", "RL.ACQUIRE", key)
			}
		})
	}
}

// The limiter also applies in MULTI and in scripts, and DQ.POP sees what came before it there.
func TestLimitWithin(t *testing.T) {
	s, c := limited(t)
	converse(t, s, c, `
		RL.SET l CONC 10 => OK
		DQ.ADD q ID a p => a
		DQ.ADD q ID b p => b
		MULTI => OK
		DQ.SET q LIMIT l LEASE 100 => QUEUED
		DQ.POP q => QUEUED
		EXEC => [OK [[a#1 p T 1]]]
	`)
	held(t, c, "l", 1)
	script := `local e = redis.call('DQ.POP', KEYS[1]) return {#e, redis.call('DQ.ACK', KEYS[1], 'a'), redis.call('DQ.NACK', KEYS[1], e[1][1])}`
	for range 3 { // the third time it is analysed
		c.Want("[1 1 1]", "EVAL", script, 1, "q")
		held(t, c, "l", 0)
		c.Do("DQ.ADD", "q", "ID", "a", "AT", 100_000_000_000, "p")
		if got := c.Do("DQ.POP", "q"); !strings.HasPrefix(got, "[[a#") {
			t.Fatal(got)
		}
		held(t, c, "l", 1)
	}
}

// Queues in all shards, workers of all kinds, and a limiter that changes and disappears: there are never more grants than it
// allows, each entry is delivered, and nothing hangs.
func TestLimitStorm(t *testing.T) {
	const queues, each, conc = 5, 60, 4
	rnd, _ := livetest.Random(t, 1)
	seeds := [queues]uint64{}
	for i := range seeds {
		seeds[i] = rnd.Uint64()
	}
	s, c := limited(t)
	c.Want("OK", "LKV.CLOCK", "RESUME")
	c.Want("OK", "RL.SET", "l", "CONC", conc)
	for i := range queues {
		q := "q" + strconv.Itoa(i)
		c.Want("OK", "DQ.SET", q, "LIMIT", "l", "LEASE", 60_000)
		for j := range each {
			c.Do("DQ.ADD", q, "DELAY", j%20, "ID", q+"."+strconv.Itoa(j), "p")
		}
	}
	var out, most, left atomic.Int64
	left.Store(queues * each)
	var wg sync.WaitGroup
	for i := range queues {
		for n := range 3 {
			rnd := rand.New(rand.NewPCG(seeds[i], uint64(n)))
			q, w := "q"+strconv.Itoa(i), s.Client()
			wg.Go(func() {
				for left.Load() > 0 {
					var got string
					switch rnd.IntN(3) {
					case 0:
						got = w.Do("DQ.POP", q)
					case 1:
						got = w.Do("DQ.POP", q, "BLOCK", 1+rnd.IntN(20))
					default:
						if got = w.Do("DQ.MPOP", 2, q, "q"+strconv.Itoa(rnd.IntN(queues)), "BLOCK", 1+rnd.IntN(20)); got != "nil" {
							_, got, _ = strings.Cut(got, " ")
						}
					}
					if got == "nil" {
						continue
					}
					if strings.HasPrefix(got, "-NOLIMITER") {
						continue
					}
					now := out.Add(1)
					for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
					}
					if rnd.IntN(4) == 0 {
						time.Sleep(time.Duration(rnd.IntN(1000)) * time.Microsecond)
					}
					out.Add(-1)
					id, _, _ := strings.Cut(strings.TrimLeft(got, "["), " ")
					of, _, _ := strings.Cut(id, ".")
					w.Want("1", "DQ.ACK", of, id)
					left.Add(-1)
				}
			})
		}
	}
	for n := 0; left.Load() > 0; n++ {
		time.Sleep(2 * time.Millisecond)
		switch n % 8 {
		case 3:
			c.Want("OK", "RL.SET", "l", "CONC", 1+n%conc)
		case 5:
			c.Do("RL.ACQUIRE", "l", "ID", "x", "LEASE", 5, "BLOCK", 3)
		case 7:
			c.Do("RL.SETTLE", "l", "x")
		}
		if n > 15_000 {
			t.Fatalf("%d are left: %s %s", left.Load(), c.Do("RL.INFO", "l"), c.Do("DQ.INFO", "q0"))
		}
	}
	wg.Wait()
	if m := most.Load(); m < 2 || m > conc {
		t.Errorf("%d were out at once", m)
	}
	if got := field(t, c, "RL.INFO", "l", "waiters"); got != "0" {
		t.Errorf("%s wait for the limiter", got)
	}
}

func anys(line string) (args []any) {
	for _, w := range strings.Fields(line) {
		args = append(args, w)
	}
	return args
}

// A consumer of a queue whose limiter's lock is busy is served when the lock is free, though the clock stands.
func TestLimitWhoseLockIsBusy(t *testing.T) {
	s := livetest.Start(t)
	c, w := s.Client(), s.Client()
	name := "limit"
	var q, limit engine.LockSet
	q.AddKey([]byte("q"))
	for limit = q; limit == q; name += "x" { // a key with a lock of its own
		limit.Reset()
		limit.AddKey([]byte(name + "x"))
	}
	c.Want("OK", "RL.SET", name, "FIXED", 1, 1000)
	c.Do("DQ.SET", "q", "LIMIT", name)
	w.Send("DQ.POP", "q", "BLOCK", 0)
	s.Blocked(1)
	s.Keyspace.LockWaiting(limit)
	free := sync.OnceFunc(func() { s.Keyspace.Unlock(limit) })
	defer free()
	c.Want("a", "DQ.ADD", "q", "ID", "a", "p")
	s.Blocked(1)
	free()
	if got := w.Read(); !strings.HasPrefix(got, "[[a p ") {
		t.Error(got)
	}
}
