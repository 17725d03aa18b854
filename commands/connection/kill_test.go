package connection_test

import (
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// A client that was killed while it waited is not served, in the same transaction or right after it; the waiter behind it is.
func TestKilledGetsNothing(t *testing.T) {
	for _, test := range []struct {
		name            string
		wait, give      []any
		replied, served string
	}{
		{"list", []any{"BLPOP", "k", 0}, []any{"RPUSH", "k", "x"}, "1", "[k x]"},
		{"two lists", []any{"BLPOP", "j", "k", 0}, []any{"RPUSH", "k", "x"}, "1", "[k x]"},
		{"sorted set", []any{"BZPOPMIN", "k", 0}, []any{"ZADD", "k", 1, "x"}, "1", "[k x 1]"},
		{"limiter", []any{"RL.ACQUIRE", "limited", "BLOCK", 0}, []any{"RL.RELEASE", "limited"}, "1", "[0 1 0 -1 1000]"},
		{"limiters", []any{"RL.MACQUIRE", 2, "other", 1, "limited", 1, "BLOCK", 0}, []any{"RL.RELEASE", "limited"}, "1", "[0 1 0 -1 1000 -1]"},
	} {
		for _, within := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				s := livetest.Start(t)
				c, killed, behind := s.Client(), s.Client(), s.Client()
				c.Want("OK", "RL.SET", "limited", "LOG", 1, 1000)
				c.Want("OK", "RL.SET", "other", "LOG", 2, 1000)
				c.Want("[0 1 0 -1 1000]", "RL.ACQUIRE", "limited")
				id := killed.Do("CLIENT", "ID")
				killed.Send(test.wait...)
				s.Blocked(1)
				behind.Send(test.wait...)
				s.Blocked(2)
				kill := []any{"CLIENT", "KILL", "ID", id}
				if within {
					c.Want("OK", "MULTI")
					c.Want("QUEUED", kill...)
					c.Want("QUEUED", test.give...)
					c.Want("[1 "+test.replied+"]", "EXEC")
				} else if err := c.Write(append(livetest.Append(nil, kill...), livetest.Append(nil, test.give...)...)); err != nil {
					t.Fatal(err)
				} else if one, two := c.Read(), c.Read(); one != "1" || two != test.replied {
					t.Fatal(one, two)
				}
				if got := behind.Read(); got != test.served {
					t.Errorf("who was behind got %s", got)
				}
				if !killed.Ended() {
					t.Error("it is not ended")
				}
				s.Blocked(0)
			})
		}
	}
}
