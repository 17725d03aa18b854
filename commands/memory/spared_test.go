package memory_test

import (
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// With full memory, commands that free memory or only read are not refused, nor are callers that renew what they have.
func TestSparedWhereMemoryIsFull(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	for _, line := range []string{
		"LK.ACQUIRE lock me 100000", "LK.ACQUIRE pool me 100000 OF 3", "RL.SET limit FIXED 5 100000", "RL.ACQUIRE limit 1",
		"DQ.ADD q payload", "DQ.SET q PAUSED 1", "DQ.ADD leased payload", "DQ.POP leased LEASE 100000 COUNT 1",
	} {
		if got := c.Do(words(line)...); strings.HasPrefix(got, "-") {
			t.Fatal(line, got)
		}
	}
	c.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	c.Do("CONFIG", "SET", "maxmemory", 1)
	const script = "return redis.call(unpack(ARGV))"
	for _, test := range []struct {
		line    string
		refused bool
	}{
		{"SET a b", true},
		{"LK.ACQUIRE lock me 200000", false},
		{"LK.ACQUIRE lock you 200000", true},
		{"LK.ACQUIRE other me 200000", true},
		{"LK.ACQUIRE pool me 200000 OF 3", false},
		{"LK.ACQUIRE pool you 200000 OF 3", true},
		{"LK.TOUCH lock me 300000", false},
		{"RL.ACQUIRE limit PEEK", false},
		{"RL.ACQUIRE limit 1 PEEK", false},
		{"RL.ACQUIRE limit 1 KEEP 1 PEEK", false},
		{"RL.ACQUIRE new 1 PEEK FIXED 5 1000", false},
		{"RL.ACQUIRE limit 1", true},
		{"RL.ACQUIRE limit 1 ID PEEK", true},
		{"RL.ACQUIRE PEEK 1", true},
		{"RL.MACQUIRE 1 limit 1 PEEK", false},
		{"RL.MACQUIRE 1 limit 1", true},
		{"RL.MACQUIRE 1 PEEK 1", true},
		{"RL.SET limit FIXED 6 1000", true},
		{"RL.RELEASE limit 1", false},
		{"RL.INFO limit", false},
		{"DQ.SET q PAUSED 1", true},
		{"DQ.SET q LEASE 0", true},
		{"DQ.SET q PAUSED 0 LEASE 7", true},
		{"DQ.SET q PAUSED 0", false},
		{"DQ.ADD q more", true},
		{"DQ.PEEK q", false},
		{"DQ.POP q", false},
		{"LK.RELEASE lock me", false},
	} {
		if got := c.Do(words(test.line)...); strings.HasPrefix(got, "-OOM") != test.refused {
			t.Errorf("%s: %s", test.line, got)
		}
		got := c.Do(append([]any{"EVAL", script, 0}, words(test.line)...)...)
		if refused := strings.Contains(got, "OOM command not allowed"); refused != test.refused && !strings.HasPrefix(test.line, "LK.RELEASE") {
			t.Errorf("%s in a script: %s", test.line, got)
		}
		c.Want("OK", "MULTI")
		got = c.Do(words(test.line)...)
		if refused := strings.HasPrefix(got, "-OOM"); refused != test.refused {
			t.Errorf("%s in a transaction: %s", test.line, got)
		}
		got = c.Do("EXEC")
		if refused := strings.HasPrefix(got, "-"); refused != test.refused || strings.Contains(got, "OOM") {
			t.Errorf("%s: EXEC: %s", test.line, got)
		}
	}
}

// EXEC is refused for one command that needs memory, even if there was enough memory when that was queued.
func TestExecWhereMemoryIsFull(t *testing.T) {
	s := livetest.Start(t)
	c, other := s.Client(), s.Client()
	c.Want("OK", "RL.SET", "limit", "FIXED", 5, 100000)
	for _, test := range []struct {
		lines []string
		want  string
	}{
		{[]string{"RL.ACQUIRE limit PEEK", "GET none", "DEL none"}, "[[0 5 5 -1 0] nil 0]"},
		{[]string{"RL.ACQUIRE limit PEEK", "SET none value"}, "-EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'."},
	} {
		other.Want("OK", "CONFIG", "SET", "maxmemory", 0)
		c.Want("OK", "MULTI")
		for _, line := range test.lines {
			c.Want("QUEUED", words(line)...)
		}
		other.Want("OK", "CONFIG", "SET", "maxmemory", 1)
		c.Want(test.want, "EXEC")
	}
}

func words(line string) (all []any) {
	for _, w := range strings.Fields(line) {
		all = append(all, w)
	}
	return all
}
