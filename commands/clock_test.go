// The system's clock steps while the server runs, and its clock follows.
package commands_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// stepping is a server whose clock follows a system clock that the test sets.
type stepping struct {
	*livetest.Server
	t    *testing.T
	skew time.Duration
}

func startStepping(t *testing.T) *stepping {
	s := &stepping{Server: livetest.Start(t), t: t}
	s.Client().Want("OK", "LKV.CLOCK", "RESUME")
	return s
}

// step sets the system's clock, and returns when the server's has followed.
func (s *stepping) step(by time.Duration) {
	s.t.Helper()
	s.skew += by
	s.Keyspace.Clock.StepSystem(by.Microseconds())
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		off := time.UnixMilli(s.Now()).Sub(time.Now().Add(s.skew))
		if off.Abs() < 100*time.Millisecond {
			return
		}
		if time.Since(begin) > 20*time.Second {
			s.t.Fatalf("after a step by %v the clock is off by %v", by, off)
		}
	}
}

// within fails if a client's reply does not come within a time that is long on a slow machine, and short compared with the
// steps.
func within(t *testing.T, c *livetest.Client, what, want string) {
	t.Helper()
	if got, ok := c.Poll(20 * time.Second); !ok || got != want {
		t.Errorf("%s: reply %q, want %q", what, got, want)
	}
}

var clockSteps = []time.Duration{time.Second, time.Hour, 30 * 24 * time.Hour}

func TestClockFollowsForward(t *testing.T) {
	for _, by := range clockSteps {
		t.Run(by.String(), func(t *testing.T) {
			s := startStepping(t)
			c, popper := s.Client(), s.Client()
			at := s.Now() + by.Milliseconds() + 100
			c.Want("OK", "SET", "k", "v", "PXAT", at)
			c.Want("OK", "SET", "later", "v", "PXAT", at+3_600_000)
			c.Want("job", "DQ.ADD", "q", "AT", at, "ID", "job", "p")
			popper.Send("DQ.POP", "q", "BLOCK", 0, "LEASE", 1_000_000)
			s.Blocked(1)
			s.step(by)
			within(t, popper, "the job", fmt.Sprintf("[[job#1 p %d 1]]", at))
			if got := c.Do("GET", "k"); got != "nil" {
				t.Errorf("the key whose time is over is %s", got)
			}
			c.Want("v", "GET", "later")
			if got := c.Info("server", "clock_offset_ms"); got != "0" {
				t.Errorf("the clock is off by %s ms", got)
			}
		})
	}
}

func TestClockFollowsBack(t *testing.T) {
	for _, by := range clockSteps {
		t.Run(by.String(), func(t *testing.T) {
			s := startStepping(t)
			c, blocked, paused := s.Client(), s.Client(), s.Client()
			blocked.Send("BLPOP", "none", "2")
			s.Blocked(1)
			at := s.Now() + 500
			c.Want("OK", "SET", "at", "v", "PXAT", at)
			s.step(-by)
			within(t, blocked, "BLPOP with 2 s", "nil")
			// The deadline of a key is a time of the wall clock.
			if got, err := strconv.ParseInt(c.Do("PEXPIRETIME", "at"), 10, 64); by > time.Second && (err != nil || got != at) {
				t.Errorf("the key ends at %d %v, want %d", got, err, at)
			}
			c.Want("OK", "SET", "k", "v", "PX", "50")
			c.Want("job", "DQ.ADD", "q", "DELAY", 50, "ID", "job", "p")
			blocked.Send("DQ.POP", "q", "BLOCK", 0)
			if got, ok := blocked.Poll(20 * time.Second); !ok || !strings.HasPrefix(got, "[[job p") {
				t.Errorf("a job that is due after the step: %q", got)
			}
			there := "1" // the key "at"
			if by == time.Second {
				there = "0"
			}
			for begin := time.Now(); c.Do("DBSIZE") != there; time.Sleep(time.Millisecond) { // nobody accesses the keys
				if time.Since(begin) > 20*time.Second {
					t.Fatal("a key that was set after the step does not end")
				}
			}
			c.Want("OK", "CLIENT", "PAUSE", 1500, "ALL")
			paused.Send("PING")
			s.step(-by)
			within(t, paused, "PING in a pause of 1.5 s", "PONG")
			c.Want("OK", "CLIENT", "PAUSE", longMs, "WRITE")
			left := func() int64 { return numbers(t, c.Info("clients", "paused_timeout_milliseconds"))[0] }
			before := left()
			s.step(-by)
			if after := left(); after > before || after == 0 {
				t.Errorf("a pause of %d ms lasts %d after the step", before, after)
			}
		})
	}
}
