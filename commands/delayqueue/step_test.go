package delayqueue_test

// DQ.PEEK with MATCH over many entries, and what other clients do with its queue meanwhile.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

const (
	manyEntries = 30_000
	// costly is a pattern that only the last id matches, and that takes long to check.
	costly = "*a*a*a*a*z"
	// stepTries is how often the test tries to do something while a command runs: the command may end before.
	stepTries = 100
)

// fillMany makes the queue q.
func fillMany(c *livetest.Client) {
	tail := strings.Repeat("a", 200)
	var b []byte
	for i := range manyEntries {
		b = livetest.Append(b, "DQ.ADD", "q", "ID", fmt.Sprint(i, tail), "p")
		if i%1000 == 999 {
			c.Pipeline(b, 1000)
			b = b[:0]
		}
	}
	c.Want(tail+"z", "DQ.ADD", "q", "DELAY", 1000, "ID", tail+"z", "p")
}

// peeking sends a DQ.PEEK and waits until it runs long. It reports false if it ended before that was seen.
func peeking(t *testing.T, s *livetest.Server, c *livetest.Client) bool {
	t.Helper()
	c.Send("DQ.PEEK", "q", "MATCH", costly)
	for end := time.Now().Add(patience); !runsLong(s); {
		if _, over := c.Poll(time.Microsecond); over {
			return false
		}
		if time.Now().After(end) {
			t.Fatal("DQ.PEEK neither takes long nor is over")
		}
	}
	return true
}

const patience = 5 * time.Second

func runsLong(s *livetest.Server) bool { return len(s.Long.All()) > 0 }

// found reports whether a reply contains the entry exactly once.
func found(reply string) bool {
	return strings.HasPrefix(reply, "[["+strings.Repeat("a", 200)+"z p ") && strings.Count(reply, "[") == 2
}

// TestPeekInSteps: clients that use the queue, or another key of its shard, do not wait until DQ.PEEK ends. It replies
// entries as they were at its start, wherever they are by then.
func TestPeekInSteps(t *testing.T) {
	s := livetest.Start(t)
	a, b := s.Client(), s.Client()
	fillMany(b)
	last := strings.Repeat("a", 200) + "z"
	for name, change := range map[string]struct{ do, undo []any }{
		"another is added":   {[]any{"DQ.ADD", "q", "ID", "b" + last, "p"}, []any{"DQ.REM", "q", "b" + last}},
		"it falls due first": {[]any{"DQ.ADD", "q", "ID", last, "new"}, []any{"DQ.ADD", "q", "DELAY", 1000, "ID", last, "p"}},
		"it is removed":      {[]any{"DQ.REM", "q", last}, []any{"DQ.ADD", "q", "DELAY", 1000, "ID", last, "p"}},
		"one is taken":       {[]any{"DQ.POP", "q", "LEASE", 10_000}, []any{"PING"}},
	} {
		ok := false
		for try := 0; try < stepTries && !ok; try++ {
			if !peeking(t, s, a) {
				continue
			}
			if got := b.Do(change.do...); got[0] == '-' {
				t.Fatal(name, got)
			}
			ok = runsLong(s)
			if got := a.Read(); ok && !found(got) {
				t.Fatalf("%s: %.300s", name, got)
			}
			b.Do(change.undo...)
		}
		if !ok {
			t.Errorf("%s: only when DQ.PEEK is over", name)
		}
	}
}

// TestPeekLosesItsQueue: the queue goes while DQ.PEEK looks.
func TestPeekLosesItsQueue(t *testing.T) {
	s := livetest.Start(t)
	a, b := s.Client(), s.Client()
	fillMany(b)
	b.Want("1", "COPY", "q", "whole")
	for _, change := range [][]any{
		{"DEL", "q"}, {"RENAME", "q", "other"}, {"SET", "q", "v"}, {"SWAPDB", 0, 1}, {"COPY", "small", "q", "REPLACE"}, {"MOVE", "q", 1}, {"PEXPIRE", "q", 0},
	} {
		ok := false
		for try := 0; try < stepTries && !ok; try++ {
			b.Do("DQ.ADD", "small", "ID", "z", "p")
			b.Want("1", "COPY", "whole", "q", "REPLACE")
			if !peeking(t, s, a) {
				continue
			}
			if got := b.Do(change...); got[0] == '-' {
				t.Fatal(change, got)
			}
			ok = runsLong(s)
			if change[0] == "RENAME" { // the queue changes under its new name
				b.Do("DQ.POP", "other", "COUNT", 1000)
				b.Do("DQ.REM", "other", strings.Repeat("a", 200)+"z")
			}
			if got := a.Read(); ok && got != "[]" && !found(got) {
				t.Fatalf("%v: %.300s", change, got)
			}
			if change[0] == "SWAPDB" {
				b.Want("OK", change...)
			}
		}
		if !ok {
			t.Errorf("%v: only when DQ.PEEK is over", change)
		}
		a.Want("PONG", "PING")
		b.Do("SELECT", 1)
		b.Do("DEL", "q")
		b.Do("SELECT", 0)
	}

	// Nobody waits for it any more.
	b.Want("1", "COPY", "whole", "q", "REPLACE")
	for !peeking(t, s, a) {
	}
	a.Close()
	b.Want("OK", "FLUSHALL")
	for end := time.Now().Add(patience); runsLong(s); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it goes on")
		}
	}
	b.Want("z", "DQ.ADD", "q", "ID", "z", "p")

	// The server ends.
	fillMany(b)
	b.Send("DQ.PEEK", "q", "MATCH", costly)
}

// TestPeekWhole: in MULTI and in scripts nothing changes while DQ.PEEK looks.
func TestPeekWhole(t *testing.T) {
	s := livetest.Start(t)
	a, b := s.Client(), s.Client()
	fillMany(b)
	stop, stopped := make(chan bool), make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				stopped <- n
				return
			default:
				b.Do("DQ.ADD", "q", "ID", fmt.Sprint("new", n), "p")
			}
		}
	}()
	for range 3 {
		a.Want("OK", "MULTI")
		a.Want("QUEUED", "DQ.LEN", "q")
		a.Want("QUEUED", "DQ.PEEK", "q", "MATCH", "nosuch")
		a.Want("QUEUED", "DQ.LEN", "q")
		var before, after int
		if got := a.Do("EXEC"); !scanned(got, "[%d [] %d]", &before, &after) || before != after {
			t.Error(got)
		}
		got := a.Do("EVAL", "local n = redis.call('dq.len', KEYS[1]) redis.call('dq.peek', KEYS[1], 'MATCH', 'nosuch') return {n, redis.call('dq.len', KEYS[1])}", 1, "q")
		if !scanned(got, "[%d %d]", &before, &after) || before != after {
			t.Error(got)
		}
	}
	close(stop)
	if n := <-stopped; n == 0 {
		t.Error("nothing was added meanwhile")
	}
}

func scanned(text, form string, into ...any) bool {
	n, err := fmt.Sscanf(text, form, into...)
	return err == nil && n == len(into)
}
