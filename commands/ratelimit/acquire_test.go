// RL.SET, RL.ACQUIRE and related commands, over a socket: each line is a command and its reply, as in the documentation.
package ratelimit_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

const (
	noLimiter = "-NOLIMITER no such limiter, define it with RL.SET or give a rule"
	wrongType = "-WRONGTYPE Operation against a key holding the wrong kind of value"
	syntax    = "-ERR syntax error"
	notInt    = "-ERR value is not an integer or out of range"
)

// converse sends lines of "command => reply". A line "+ms" moves the clock.
func converse(t *testing.T, s *livetest.Server, c *livetest.Client, lines string) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if ms, ok := strings.CutPrefix(line, "+"); ok {
			var n int64
			fmt.Sscan(ms, &n)
			s.Advance(n)
			continue
		}
		command, want, ok := strings.Cut(line, " => ")
		if !ok {
			t.Fatalf("no reply in %q", line)
		}
		if got := c.Line(command); got != want {
			t.Errorf("%s\n got %s\nwant %s", command, got, want)
		}
	}
}

func TestAcquire(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		# inline rules define a limiter
		RL.ACQUIRE k 1 GCRA 3 3000 => [0 3 2 -1 1000]
		RL.ACQUIRE k => [0 3 1 -1 2000]
		RL.ACQUIRE k 2 => [1 3 1 1000 2000]
		RL.ACQUIRE k PEEK => [0 3 1 -1 2000]
		RL.ACQUIRE k 2 PEEK => [1 3 1 1000 2000]
		RL.ACQUIRE k 3 FORCE => [0 3 0 -1 5000]
		RL.ACQUIRE k => [1 3 0 3000 5000]
		+3000
		RL.ACQUIRE k => [0 3 0 -1 3000]
		TYPE k => ratelimit
		OBJECT ENCODING k => packed
		# full again, it is gone once that millisecond is over
		+3000
		EXISTS k => 1
		RL.ACQUIRE k PEEK => [0 3 3 -1 0]
		+1
		EXISTS k => 0
		DBSIZE => 0
		RL.ACQUIRE k => `+noLimiter+`
		RL.ACQUIRE k PEEK => `+noLimiter+`
		# peeking at what is missing defines nothing
		RL.ACQUIRE k 1 PEEK FIXED 5 1000 => [0 5 5 -1 0]
		EXISTS k => 0
		# cost 0 takes nothing
		RL.ACQUIRE k 0 LOG 5 1000 => [0 5 5 -1 0]
		EXISTS k => 0
		# forced beyond the capacity
		RL.ACQUIRE k 12 FORCE LOG 5 1000 => [0 5 0 -1 1000]
		RL.ACQUIRE k 0 => [1 5 0 1000 1000]
		DEL k => 1
		# several rules
		RL.ACQUIRE m 4 FIXED 5 1000 LOG 6 60000 => [0 5 1 -1 60000]
		RL.ACQUIRE m 2 => [1 5 1 1000 60000]
		+1000
		RL.ACQUIRE m 2 => [0 6 0 -1 60000]
		RL.ACQUIRE m 1 => [1 6 0 59000 60000]
	`)
}

func TestSet(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		RL.SET k XX GCRA 10 1000 => nil
		RL.SET k NX GCRA 10 1000 => OK
		RL.SET k NX GCRA 99 1000 => nil
		RL.ACQUIRE k 4 => [0 10 6 -1 400]
		# consumption is kept
		RL.SET k GCRA 20 1000 => OK
		RL.ACQUIRE k 1 PEEK => [0 20 16 -1 200]
		RL.SET k XX GCRA 2 1000 => OK
		RL.ACQUIRE k 1 => [1 2 0 1500 2000]
		RL.SET k RESET GCRA 2 1000 => OK
		RL.ACQUIRE k 1 => [0 2 1 -1 500]
		RL.SET k XX RESET LOG 3 1000 => OK
		RL.ACQUIRE k 3 => [0 3 0 -1 1000]
		# a rule with the call changes it as RL.SET does
		RL.ACQUIRE k 3 LOG 7 1000 => [0 7 1 -1 1000]
		RL.ACQUIRE k 3 => [1 7 1 1000 1000]
		# made by RL.SET, it stays
		+100000
		RL.ACQUIRE k 7 => [0 7 0 -1 1000]
		# keys are keys
		EXPIRE k 100 => 1
		RL.ACQUIRE k 1 PEEK => [1 7 0 1000 1000]
		TTL k => 100
		RL.SET k LOG 8 1000 => OK
		TTL k => 100
		RENAME k j => OK
		RL.ACQUIRE j 1 => [0 8 0 -1 1000]
		COPY j i => 1
		RL.ACQUIRE i 1 => [1 8 0 1000 1000]
		+200000
		EXISTS i j => 0
		SET s v => OK
		RL.SET s NX LOG 1 1 => `+wrongType+`
		RL.ACQUIRE s => `+wrongType+`
		RL.RELEASE s => `+wrongType+`
		RL.INFO s => `+wrongType+`
		CL.THROTTLE s 1 1 1 => `+wrongType+`
		GET k => nil
		RL.SET k LOG 1 1000 => OK
		GET k => `+wrongType+`
		HSET k f v => `+wrongType+`
		SET k v => OK
		GET k => v
	`)
}

// Each bad call has an error of its own and changes nothing.
func TestErrors(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "RL.SET", "k", "GCRA", 5, 5000)
	c.Want("[0 5 3 -1 2000]", "RL.ACQUIRE", "k", 2)
	before := c.Do("RL.INFO", "k")
	for command, want := range map[string]string{
		"RL.SET k":                                             "-ERR wrong number of arguments for 'rl.set' command",
		"RL.SET k NX RESET XX":                                 syntax,
		"RL.SET k NX XX LOG 1 1":                               syntax,
		"RL.SET k RESET RESET LOG 1 1":                         syntax,
		"RL.SET k LEAKY 1 1":                                   syntax,
		"RL.SET k LOG 1 1 EXTRA":                               syntax,
		"RL.SET k LOG 1 1 FIXED 2":                             syntax,
		"RL.SET k LOG x 1":                                     notInt,
		"RL.SET k LOG 1.5 1":                                   notInt,
		"RL.SET k LOG 0 1000":                                  "-ERR count is out of range, it can be 1 to 1000000000000",
		"RL.SET k LOG -5 1000":                                 "-ERR count is out of range, it can be 1 to 1000000000000",
		"RL.SET k LOG 1000000000001 1000":                      "-ERR count is out of range, it can be 1 to 1000000000000",
		"RL.SET k LOG 1 0":                                     "-ERR period is out of range, it can be 1 to 315576000000 ms",
		"RL.SET k LOG 1 -1":                                    "-ERR period is out of range, it can be 1 to 315576000000 ms",
		"RL.SET k LOG 1 315576000001":                          "-ERR period is out of range, it can be 1 to 315576000000 ms",
		"RL.SET k GCRA 1 1 BURST 0":                            "-ERR burst is out of range, it can be 1 to 1000000000000",
		"RL.SET k GCRA 1 315576000000 BURST 9999999":           "-ERR a full burst would take more than 36000 years to come back",
		"RL.SET k" + strings.Repeat(" LOG 1 1", 9):             "-ERR too many rules, a limiter has at most 8",
		"RL.ACQUIRE":                                           "-ERR wrong number of arguments for 'rl.acquire' command",
		"RL.ACQUIRE k x":                                       notInt,
		"RL.ACQUIRE k 1.0":                                     notInt,
		"RL.ACQUIRE k -1":                                      "-ERR cost is out of range, it can be 0 to 1000000000000",
		"RL.ACQUIRE k 1000000000001 FORCE":                     "-ERR cost is out of range, it can be 0 to 1000000000000",
		"RL.ACQUIRE k 6":                                       "-ERR cost is above the limiter's capacity",
		"RL.ACQUIRE k 6 PEEK":                                  "-ERR cost is above the limiter's capacity",
		"RL.ACQUIRE k 6 BLOCK 0":                               "-ERR cost is above the limiter's capacity",
		"RL.ACQUIRE k 60 GCRA 50 1000":                         "-ERR cost is above the limiter's capacity",
		"RL.ACQUIRE k 1 EXTRA":                                 syntax,
		"RL.ACQUIRE k 1 PEEK FORCE":                            syntax,
		"RL.ACQUIRE k 1 PEEK BLOCK 5":                          syntax,
		"RL.ACQUIRE k 1 BLOCK":                                 syntax,
		"RL.ACQUIRE k 1 BLOCK x":                               notInt,
		"RL.ACQUIRE k 1 BLOCK -1":                              "-ERR timeout is negative",
		"RL.ACQUIRE k 1 BLOCK 9223372036854775807":             "-ERR timeout is out of range",
		"RL.ACQUIRE k 1 GCRA":                                  syntax,
		"RL.ACQUIRE k 1000000000000 FORCE GCRA 1 315576000000": "-ERR the limiter cannot take that much debt",
		"RL.MACQUIRE 0 k 1":                                    "-ERR numkeys should be greater than 0",
		"RL.MACQUIRE x k 1":                                    "-ERR numkeys should be greater than 0",
		"RL.MACQUIRE 2 k 1":                                    syntax,
		"RL.MACQUIRE 1 k 1 EXTRA":                              syntax,
		"RL.MACQUIRE 1 k 1 ATMOST":                             syntax,
		"RL.MACQUIRE 1 k x":                                    notInt,
		"RL.MACQUIRE 1 k -1":                                   "-ERR cost is out of range, it can be 0 to 1000000000000",
		"RL.MACQUIRE 1 k 6":                                    "-ERR cost is above the limiter's capacity",
		"RL.MACQUIRE 2 k 3 k 3":                                "-ERR cost is above the limiter's capacity",
		"RL.MACQUIRE 2 k 1 none 1":                             noLimiter,
		"RL.RELEASE k -1":                                      "-ERR cost is out of range, it can be 0 to 1000000000000",
		"RL.RELEASE k x":                                       notInt,
		"RL.RELEASE k 1 2":                                     syntax,
		"RL.INFO none":                                         noLimiter,
		"RL.INFO k 1":                                          "-ERR wrong number of arguments for 'rl.info' command",
		"CL.THROTTLE k 1 1":                                    "-ERR wrong number of arguments for 'cl.throttle' command",
		"CL.THROTTLE k -1 1 1":                                 "-ERR burst is out of range, it can be 1 to 1000000000000",
		"CL.THROTTLE k 1 0 1":                                  "-ERR count is out of range, it can be 1 to 1000000000000",
		"CL.THROTTLE k 1 1 0":                                  "-ERR period is out of range, it can be 1 to 315576000000 ms",
		"CL.THROTTLE k 1 1 9223372036854775807":                "-ERR period is out of range, it can be 1 to 315576000000 ms",
		"CL.THROTTLE k 1 1 1 -1":                               "-ERR cost is out of range, it can be 0 to 1000000000000",
		"CL.THROTTLE k 1 1 1 1 1":                              syntax,
		"CL.THROTTLE k 1 1 1.5":                                notInt,
		"GCRA k 1 1 x":                                         "-ERR value is not a valid float",
		"GCRA k 1 1 0":                                         "-ERR period is out of range, it can be 1 to 315576000000 ms",
		"GCRA k 1 1 1e30":                                      "-ERR period is out of range, it can be 1 to 315576000000 ms",
		"GCRA k 1 1 1 COST 1":                                  syntax,
		"GCRA k 1 1 1 TOKENS":                                  notMissing,
		"GCRA k 1 1 1 TOKENS 1 1":                              syntax,
	} {
		if got := c.Line(command); got != want {
			t.Errorf("%s\n got %s\nwant %s", command, got, want)
		}
	}
	if after := c.Do("RL.INFO", "k"); after != before {
		t.Errorf("a bad call changed the limiter:\n%s\n%s", before, after)
	}
	c.Want("1", "DBSIZE")
}

const notMissing = syntax

func TestReleaseAndInfo(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		RL.RELEASE k 5 => 0
		RL.ACQUIRE k 8 GCRA 10 1000 BURST 20 FIXED 30 60000 => [0 20 12 -1 60000]
		RL.ACQUIRE k 13 => [1 20 12 100 60000]
		RL.RELEASE k => 1
		RL.RELEASE k 3 => 3
		RL.INFO k => [rules [GCRA 10 1000 BURST 20 FIXED 30 60000] capacity 20 available 16 reset_after 60000 waiters 0 granted 1 refused 1 grants 0 RateLimit "gcra-1";r=16;t=1, "fixed-2";r=26;t=60 RateLimit-Policy "gcra-1";q=10;w=1, "fixed-2";q=30;w=60]
		RL.RELEASE k 1000000000000 => 4
		RL.ACQUIRE k PEEK => [0 20 20 -1 0]
		+1
		EXISTS k => 0
		RL.ACQUIRE k 12 FORCE GCRA 10 1000 => [0 10 0 -1 1200]
		RL.INFO k => [rules [GCRA 10 1000] capacity 10 available -2 reset_after 1200 waiters 0 granted 1 refused 0 grants 0 RateLimit "gcra";r=0;t=2 RateLimit-Policy "gcra";q=10;w=1]
		RL.RELEASE k 5 => 5
		RL.ACQUIRE k 0 => [0 10 3 -1 700]
	`)
	c.Do("HELLO", 3)
	if got := c.Do("RL.INFO", "k"); !strings.HasPrefix(got, "[rules [GCRA 10 1000] capacity 10") {
		t.Error(got)
	}
}

func TestMacquire(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		RL.SET user GCRA 5 5000 => OK
		RL.SET tenant FIXED 8 60000 => OK
		RL.SET all LOG 9 1000 => OK
		RL.MACQUIRE 3 user 1 tenant 2 all 1 => [0 5 4 -1 1000 -1]
		RL.MACQUIRE 3 user 1 tenant 6 all 1 PEEK => [0 5 4 -1 1000 -1]
		RL.MACQUIRE 3 user 1 tenant 7 all 1 => [1 8 6 60000 60000 1]
		# nothing was taken
		RL.ACQUIRE user PEEK => [0 5 4 -1 1000]
		RL.ACQUIRE all PEEK => [0 9 8 -1 1000]
		# two refuse: the longest wait decides
		RL.MACQUIRE 3 all 9 user 5 tenant 1 => [1 9 8 1000 1000 0]
		# one limiter twice
		RL.MACQUIRE 3 user 2 all 1 user 2 => [0 5 0 -1 5000 -1]
		RL.MACQUIRE 2 all 1 user 1 => [1 5 0 1000 5000 1]
	`)
}

func TestThrottleAndGCRA(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		CL.THROTTLE user123 15 30 60 1 => [0 16 15 -1 2]
		cl.throttle user123 15 30 60 => [0 16 14 -1 4]
		RL.THROTTLE user123 15 30 60 0 => [0 16 14 -1 4]
		CL.THROTTLE user123 15 30 60 17 => [1 16 14 -1 4]
		CL.THROTTLE user123 15 30 60 14 => [0 16 0 -1 32]
		CL.THROTTLE user123 15 30 60 => [1 16 0 2 32]
		+1001
		CL.THROTTLE user123 15 30 60 => [1 16 0 1 31]
		TYPE user123 => ratelimit
		# as Redis 8.8 documents it
		GCRA api 5 10 60 => [0 6 5 -1 6]
		GCRA api 5 10 60 TOKENS 3 => [0 6 2 -1 24]
		GCRA api 5 10 60 NUM_REQUESTS 2 => [0 6 0 -1 36]
		GCRA api 5 10 60 => [1 6 0 6 36]
		GCRA half 0 1 0.5 => [0 1 0 -1 1]
		+499
		GCRA half 0 1 0.5 => [1 1 0 1 1]
		+1
		GCRA half 0 1 0.5 => [0 1 0 -1 1]
		# the same limiters are RL's
		RL.ACQUIRE user123 PEEK => [1 16 0 499 30499]
	`)
}

// A limiter in MULTI and in scripts; BLOCK does not wait there.
func TestInsideOthers(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		MULTI => OK
		RL.ACQUIRE k 2 LOG 2 1000 => QUEUED
		RL.ACQUIRE k 1 BLOCK 0 => QUEUED
		EXEC => [[0 2 0 -1 1000] [1 2 0 1000 1000]]
	`)
	c.Want("[1 2 0 1000 1000]", "EVAL", "return redis.call('RL.ACQUIRE', KEYS[1], 1, 'BLOCK', 0)", 1, "k")
	c.Want("granted", "EVAL", "return redis.call('RL.ACQUIRE', KEYS[1], 1, 'GCRA', 10, 1000)[1] == 0 and 'granted'", 1, "j")
	c.Want("[[k [RW access update insert incomplete]]]", "COMMAND", "GETKEYSANDFLAGS", "RL.ACQUIRE", "k")
	c.Want("[a b]", "COMMAND", "GETKEYS", "RL.MACQUIRE", 2, "a", 1, "b", 2)
	w := s.Client()
	w.Want("OK", "WATCH", "k")
	c.Want("[0 2 0 -1 1000]", "RL.ACQUIRE", "k", 1, "FORCE")
	w.Want("OK", "MULTI")
	w.Want("QUEUED", "GET", "x")
	w.Want("nil", "EXEC")
}

// EACH replies the decision of each limiter, in the order of the arguments.
func TestMacquireEach(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		RL.MACQUIRE 2 a 1 b 3 EACH RULE 1 FIXED 2 1000 RULE 2 FIXED 5 2000 => [[0 2 1 -1 1000] [0 5 2 -1 2000]]
		# one refuses: nothing is taken from the other
		RL.MACQUIRE 2 a 1 b 3 EACH => [[0 2 1 -1 1000] [1 5 2 2000 2000]]
		RL.MACQUIRE 2 b 3 a 2 each => [[1 5 2 2000 2000] [1 2 1 1000 1000]]
		RL.ACQUIRE a PEEK => [0 2 1 -1 1000]
		RL.MACQUIRE 2 a 2 b 1 PEEK EACH => [[1 2 1 1000 1000] [0 5 2 -1 2000]]
		RL.MACQUIRE 2 a 0 b 0 EACH => [[0 2 1 -1 1000] [0 5 2 -1 2000]]
		# a key that is named twice is one limiter, which is told of twice
		RL.MACQUIRE 3 b 1 a 1 b 1 EACH => [[0 5 0 -1 2000] [0 2 0 -1 1000] [0 5 0 -1 2000]]
		RL.MACQUIRE 2 a 7 b 1 EACH => -ERR cost is above the limiter's capacity
		RL.MACQUIRE 2 a 7 b 1 FORCE EACH => [[0 2 0 -1 1000] [0 5 0 -1 2000]]
		RL.MACQUIRE 1 a 1 EACH EACH => -ERR syntax error
		RL.MACQUIRE 1 a 1 EACH BLOCK 10 => -ERR syntax error
		RL.MACQUIRE 1 a 1 BLOCK 10 EACH => -ERR syntax error
		RL.MACQUIRE 1 n 1 EACH => `+noLimiter+`
		RL.ACQUIRE a 1 EACH => -ERR syntax error
	`)
}

// The time of a call with very many keys grows with their number, not with its square: one loop serves many other clients.
func TestMacquireOfManyKeys(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	const keys = 100_000
	args := []any{"RL.MACQUIRE", 2 * keys}
	for i := range keys {
		args = append(args, fmt.Sprint("k", i), 1)
	}
	for i := range keys { // each a second time
		args = append(args, fmt.Sprint("k", i), 1)
	}
	args = append(args, "RULE", 1, "FIXED", 5, 1000)
	began := time.Now()
	c.Want(noLimiter, args...)
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
	few := []any{"RL.MACQUIRE", 40}
	for i := range 40 {
		few = append(few, fmt.Sprint("k", i%20), 1)
	}
	for i := range 20 {
		few = append(few, "RULE", i+1, "FIXED", 2, 100000)
	}
	c.Want("[0 2 0 -1 100000 -1]", few...)
	c.Want("[1 2 0 100000 100000 0]", few[:len(few)-20*5]...)
}
