// The effects of limiters: applied again they make the same limiter, and an effect that no journal of this server contains is
// an error.
package ratelimit_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/server/command"
)

// effects keeps what the journal logs.
type effects struct {
	mu   sync.Mutex
	text string
}

func (e *effects) Append(_ journal.LSN, _ int64, framed []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.text += string(framed)
}

// take returns what was logged since the last take.
func (e *effects) take() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := e.text
	e.text = ""
	return text
}

func TestApply(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	told := &effects{}
	s.Keyspace.Journal.Attach(told)
	c.Want("[0 5 4 -1 200]", "RL.ACQUIRE", "l", "GCRA", "5", "1000")
	c.Want("1", "PEXPIRE", "l", "100000")
	told.take()
	c.Want("[0 5 3 -1 400]", "RL.ACQUIRE", "l")
	words := strings.Split(told.take(), "\r\n")
	if len(words) != 10 || words[2] != "RL.APPLY" || words[4] != "l" {
		t.Fatalf("the effect is %q", words)
	}
	deadline, image := words[6], words[8]
	sess := &command.Session{Authenticated: true}
	apply := func(args ...string) string {
		t.Helper()
		raw := make([][]byte, len(args))
		for i, a := range args {
			raw[i] = []byte(a)
		}
		if err := s.Apply(sess, raw); err != nil {
			return err.Error()
		}
		return "OK"
	}
	if got := apply("RL.APPLY", "again", deadline, image); got != "OK" {
		t.Error(got)
	}
	c.Want("100000", "PTTL", "again")
	c.Want("[0 5 2 -1 600]", "RL.ACQUIRE", "again")
	c.Want("OK", "SET", "string", "v")
	for _, key := range []string{"again", "string"} {
		if got := apply("RL.APPLY", key, "0", image); got != "OK" {
			t.Error(got)
		}
		c.Want("-1", "PTTL", key)
		c.Want("[0 5 2 -1 600]", "RL.ACQUIRE", key)
	}
	for _, bad := range [][]string{
		{"RL.APPLY", "l", "x", image}, {"RL.APPLY", "l", "-1", image}, {"RL.APPLY", "l", "0", ""}, {"RL.APPLY", "l", "0", image[:len(image)-1]},
		{"RL.APPLY", "l", "0", image + "x"}, {"RL.APPLY", "l", "0", "\xff" + image[1:]},
	} {
		if got := apply(bad...); !strings.Contains(got, "this is no effect of a limiter") {
			t.Errorf("%q: %s", bad, got)
		}
	}
	if got := apply("RL.APPLY", "l", "0"); !strings.Contains(got, "wrong number of arguments") {
		t.Error(got)
	}
	c.Want("[0 5 2 -1 600]", "RL.ACQUIRE", "l")
	// A grant that the log stores as what was taken: the limiter must exist.
	now := strconv.FormatInt(livetest.Epoch*1000, 10)
	if got := apply("RL.GRANTS", "l", now, "TAKEN", "1", "1"); got != "OK" {
		t.Error(got)
	}
	c.Want("[0 5 0 -1 1000]", "RL.ACQUIRE", "l")
	if got := apply("RL.GRANTS", "none", now, "TAKEN", "1", "1"); !strings.Contains(got, "this is no effect of a limiter") {
		t.Error(got)
	}
	c.Want("0", "EXISTS", "none")
	for _, bad := range [][]string{{"x", "1"}, {"-1", "1"}, {"1", "0"}, {"1"}, {"1", "1", "id", "grant"}} {
		if got := apply(append([]string{"RL.GRANTS", "l", now, "TAKEN"}, bad...)...); got == "OK" {
			t.Errorf("TAKEN %v is applied", bad)
		}
	}
	if got := c.Line("RL.APPLY l 0 x"); !strings.HasPrefix(got, "-ERR unknown command 'RL.APPLY'") {
		t.Errorf("to a client it says %s", got)
	}
}

// Random commands on limiters with logs, with and without grants: the effects make the same limiters, and the effect of a
// grant of a long log contains the grant, not the log.
func TestRandomEffects(t *testing.T) {
	rnd, steps := livetest.Random(t, 3000)
	s := livetest.Start(t)
	c, w := s.Client(), s.Client()
	c.Want("OK", "LKV.JOURNAL", "START")
	told := &effects{}
	s.Keyspace.Journal.Attach(told)
	c.Want("OK", "RL.SET", "l", "LOG", 1000, 100_000)
	for range 999 {
		c.Do("RL.ACQUIRE", "l")
		s.Advance(7)
	}
	told.take()
	c.Do("RL.ACQUIRE", "l")
	if got := told.take(); len(got) > 100 || !strings.Contains(got, "TAKEN") {
		t.Errorf("a grant of a long log takes %d bytes: %q", len(got), got)
	}
	c.Want("OK", "LKV.JOURNAL", "CHECK")

	rules := map[string][]any{
		"a": {"LOG", 250, 20_000}, "b": {"LOG", 250, 20_000, "GCRA", 200, 15_000}, "c": {"LOG", 600, 20_000, "CONC", 90}, "d": {"LOG", 250, 20_000, "TOTAL", 100_000},
	}
	names := []string{"a", "b", "c", "d"}
	taken, back, short := 0, 0, 0
	for n := range steps {
		key, id := names[rnd.IntN(4)], "id"+string(rune('a'+rnd.IntN(26)))
		args := []any{"RL.ACQUIRE", key, 1 + rnd.IntN(3)}
		switch rnd.IntN(12) {
		case 0:
			args = append(args, "ATMOST")
		case 1, 2, 3:
			args = append(args, "ID", id, "LEASE", 1+rnd.IntN(5000))
		case 4:
			args = []any{"RL.SETTLE", key, id, rnd.IntN(4)}
		case 5:
			args = []any{"RL.RELEASE", key, rnd.IntN(4)}
		case 6:
			args = append(args, "PEEK")
		case 7:
			w.Send("RL.ACQUIRE", key, 1, "ID", id+"w", "LEASE", 50, "BLOCK", 1+rnd.IntN(500))
			s.Advance(1000)
			w.Read()
			continue
		}
		if args[0] == "RL.ACQUIRE" && rnd.IntN(3) > 0 || n < 20 {
			args = append(args, rules[key]...)
		}
		if key == "c" && len(args) == 3 {
			args = append(args, "FORCE")
		}
		got := c.Do(args...)
		if strings.HasPrefix(got, "[0") {
			taken++
		}
		if args[0] != "RL.ACQUIRE" && got != "0" && got != "nil" && got[0] != '-' {
			back++
		}
		short += strings.Count(told.take(), "TAKEN")
		s.Advance(rnd.Int64N(60))
		switch rnd.IntN(300) {
		case 0:
			c.Want("OK", "DEBUG", "RELOAD")
			told = &effects{} // the log begins again
			s.Keyspace.Journal.Attach(told)
		case 1:
			s.Advance(30_000) // limiters that are not kept are gone
		}
		if n%50 == 0 {
			c.Want("OK", "LKV.JOURNAL", "CHECK")
		}
	}
	c.Want("OK", "LKV.JOURNAL", "CHECK")
	if taken < steps/5 || back < steps/50 || short < steps/50 {
		t.Errorf("%d granted, %d given back, %d told short, of %d steps", taken, back, short, steps)
	}
}
