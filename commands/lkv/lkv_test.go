// The test clock, over the wire.

package lkv_test

import (
	"testing"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/params"
)

func TestClock(t *testing.T) {
	c := livetest.Start(t).Client()
	for _, step := range []struct{ line, want string }{
		{"LKV.CLOCK NOW", "1700000000000"},
		{"LKV.CLOCK ADVANCE 1500", "OK"},
		{"lkv.clock now", "1700000001500"},
		{"LKV.CLOCK FREEZE 1600000000000", "OK"},
		{"LKV.CLOCK NOW", "1600000000000"},
		{"LKV.CLOCK ADVANCE 0", "OK"},
		{"LKV.CLOCK NOW", "1600000000000"},
		{"LKV.CLOCK ADVANCE -1", "-ERR the time is out of range"},
		{"LKV.CLOCK ADVANCE 253402300799999", "-ERR the time is out of range"},
		{"LKV.CLOCK ADVANCE x", "-ERR value is not an integer or out of range"},
		{"LKV.CLOCK FREEZE 1 2", "-ERR syntax error"},
		{"LKV.CLOCK FREEZE -5", "-ERR the time is out of range"},
		{"LKV.CLOCK NOW", "1600000000000"},
		{"LKV.CLOCK", "-ERR wrong number of arguments for 'lkv.clock' command"},
		{"LKV.CLOCK NOON", "-ERR unknown subcommand 'NOON'. Try LKV.CLOCK HELP."},
		{"LKV.SEED 5", "OK"},
		{"MULTI", "OK"},
		{"LKV.CLOCK NOW", "-ERR Command not allowed inside a transaction"},
		{"DISCARD", "OK"},
		{"LKV.CLOCK RESUME", "OK"},
	} {
		if got := c.Line(step.line); got != step.want {
			t.Errorf("%s: %s, want %s", step.line, got, step.want)
		}
	}
	if now := c.Line("LKV.CLOCK NOW"); len(now) != 13 || now < "1700000000000" {
		t.Errorf("after RESUME the time is %s", now)
	}
}

// Everything that falls due on the way happens in order of time: a key is gone at its deadline, whatever the step.
func TestAdvance(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	for i, ms := range []int{3000, 1000, 2000} {
		c.Want("OK", "SET", string(rune('a'+i)), "v", "PX", ms)
	}
	s.Advance(1000)
	c.Want("[v v v]", "MGET", "a", "b", "c") // a key lives through its last millisecond
	s.Advance(1)
	c.Want("[v nil v]", "MGET", "a", "b", "c")
	s.Advance(60_000)
	c.Want("[nil nil nil]", "MGET", "a", "b", "c")
}

func TestOnlyWithTest(t *testing.T) {
	s, err := commands.New(server.Options{Settings: []params.Setting{{Name: "save"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Table.Find([]byte("LKV.CLOCK")) != nil || s.Table.Find([]byte("lkv.seed")) != nil {
		t.Error("LKV.* exist without --test")
	}
}
