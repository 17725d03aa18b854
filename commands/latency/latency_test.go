package latency_test

// Long commands, in the slow log and in the latency monitor.

import (
	"strconv"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

func TestSlowlog(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "CLIENT", "SETNAME", "me")
	c.Want("OK", "CONFIG", "SET", "slowlog-log-slower-than", 0)
	c.Want("OK", "SLOWLOG", "RESET") // is itself the first entry
	c.Want("OK", "SET", "k", strings.Repeat("x", 200))
	args := []any{"DEL"}
	for range 40 {
		args = append(args, "a")
	}
	c.Want("0", args...)
	c.Want("OK", "AUTH", "default", "secret")
	c.Want("OK", "CONFIG", "SET", "slowlog-log-slower-than", -1)
	got := c.Do("SLOWLOG", "GET", -1)
	for _, part := range []string{
		"[AUTH (redacted) (redacted)]",
		"[DEL " + strings.Repeat("a ", 30) + "... (10 more arguments)]",
		"[SET k " + strings.Repeat("x", 128) + "... (72 more bytes)]",
		"[SLOWLOG RESET]",
	} {
		at := strings.Index(got, part)
		if at < 0 {
			t.Fatalf("there is no %s, or not in this order, in %s", part, got)
		}
		got = got[at:]
	}
	c.Want("4", "SLOWLOG", "LEN")
	c.Want("OK", "CONFIG", "SET", "slowlog-max-len", 2)
	c.Want("2", "SLOWLOG", "LEN")
	if n := strings.Count(c.Do("SLOWLOG", "GET", 1), "] 127.0.0.1:"); n != 1 {
		t.Errorf("%d entries, not 1", n)
	}
}

// The commands inside EXEC are timed, EXEC itself is not in the slow log.
func TestSlowlogOfExec(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "CONFIG", "SET", "slowlog-log-slower-than", 0)
	c.Want("OK", "MULTI")
	c.Want("QUEUED", "INCR", "k")
	c.Want("[1]", "EXEC")
	c.Want("OK", "CONFIG", "SET", "slowlog-log-slower-than", -1)
	got := c.Do("SLOWLOG", "GET")
	if !strings.Contains(got, "[INCR k]") || strings.Contains(got, "EXEC") {
		t.Error(got)
	}
}

func TestLatency(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "LKV.CLOCK", "RESUME")
	c.Want("OK", "CONFIG", "SET", "latency-monitor-threshold", 1)
	c.Want("OK", "DEBUG", "SLEEP", "0.003")
	if got := c.Do("LATENCY", "LATEST"); !strings.HasPrefix(got, "[[command ") {
		t.Fatal(got)
	}
	if got := c.Do("LATENCY", "HISTORY", "command"); strings.Count(got, "[") != 2 {
		t.Error(got)
	}
	if got := c.Do("LATENCY", "GRAPH", "command"); !strings.HasPrefix(got, "command - high ") || strings.Count(got, "\n") < 7 {
		t.Error(got)
	}
	if got := c.Do("LATENCY", "DOCTOR"); !strings.Contains(got, "command: 1 seconds with a latency") {
		t.Error(got)
	}
	c.Want("-ERR No samples available for event 'other'", "LATENCY", "GRAPH", "other")
	if got := c.Do("LATENCY", "HISTOGRAM", "debug"); !strings.HasPrefix(got, "[debug [calls 1 histogram_usec [") {
		t.Error(got)
	}
	_, p50, _ := strings.Cut(c.Do("INFO", "latencystats"), "latency_percentiles_usec_debug:p50=")
	p50, _, _ = strings.Cut(p50, ",")
	if micros, err := strconv.ParseFloat(p50, 64); err != nil || micros < 3000 {
		t.Errorf("DEBUG SLEEP took %s microseconds", p50)
	}
	c.Want("1", "LATENCY", "RESET")
	c.Want("[]", "LATENCY", "LATEST")
}

func TestSlowlogGoesByNoClockThatIsMoved(t *testing.T) {
	s := livetest.Start(t) // its clock stands
	c := s.Client()
	c.Want("OK", "CONFIG", "SET", "slowlog-log-slower-than", "15000")
	c.Want("OK", "SLOWLOG", "RESET")
	c.Want("OK", "DEBUG", "SLEEP", "0.02") // that clock does not move
	c.Want("1", "SLOWLOG", "LEN")
	c.Want("OK", "CONFIG", "SET", "slowlog-log-slower-than", "60000000")
	c.Want("OK", "SLOWLOG", "RESET")
	// On that clock a year passes while other commands run: in a transaction, in a script, concurrently.
	const year = "31536000000"
	c.Want("OK", "MULTI")
	c.Want("QUEUED", "PING")
	c.Want("QUEUED", "EVAL", "return redis.call('PING')", "0")
	s.Advance(31_536_000_000)
	c.Want("[PONG PONG]", "EXEC")
	c.Want("OK", "LKV.CLOCK", "ADVANCE", year)
	c.Want("PONG", "PING")
	other := s.Client()
	other.Send("DEBUG", "SLEEP", "0.05")
	c.Want("OK", "LKV.CLOCK", "ADVANCE", year)
	if got := other.Read(); got != "OK" {
		t.Error(got)
	}
	c.Want("0", "SLOWLOG", "LEN")
}

// A command that a script calls has no client, as in Redis.
func TestSlowlogOfScripts(t *testing.T) {
	c := livetest.Start(t).Client()
	c.Want("OK", "CLIENT", "SETNAME", "me")
	c.Want("OK", "CONFIG", "SET", "slowlog-log-slower-than", 0)
	c.Do("EVAL", "return redis.call('SET', KEYS[1], 'v')", 1, "k")
	got := c.Do("SLOWLOG", "GET", 2)
	if !strings.Contains(got, "[SET k v]  ]") || strings.Count(got, " me]") != 1 {
		t.Errorf("the slow log is %s", got)
	}
}
