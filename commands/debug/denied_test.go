package debug_test

// DEBUG SET-DISABLE-DENY-SCRIPTS lets scripts call administrative commands. Every such command replies something that a
// script can receive, and the connection and the server continue.

import (
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/server/command"
)

func TestScriptsMayAdminister(t *testing.T) {
	t.Chdir(t.TempDir()) // SAVE is among them
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "LKV.CLOCK", "RESUME") // or CLIENT PAUSE would not end
	c.Want("OK", "DEBUG", "SET-DISABLE-DENY-SCRIPTS", "1")
	const shutdown = "-ERR SHUTDOWN without NOW or ABORT isn't allowed for DENY BLOCKING client"
	for line, want := range map[string]string{
		"SHUTDOWN":        shutdown,
		"SHUTDOWN NOSAVE": shutdown,
		"SHUTDOWN FORCE":  shutdown,
		"SHUTDOWN ABORT":  "-ERR No shutdown in progress.",
		"MONITOR":         "-ERR MONITOR isn't allowed for DENY BLOCKING client",
		"SYNC":            "-ERR a replica's connection cannot begin inside a script or a transaction",
	} {
		args := []any{"EVAL", "return redis.pcall(unpack(ARGV))", "0"}
		for _, w := range strings.Fields(line) {
			args = append(args, w)
		}
		c.Want(want, args...)
	}
	called := 0
	var call func(name []string, cmd *command.Command)
	call = func(name []string, cmd *command.Command) {
		for _, sub := range cmd.Sub {
			call(append(name[:len(name):len(name)], sub.Name), sub)
		}
		if cmd.Run == nil || cmd.Flags&command.NoScript == 0 {
			return
		}
		for _, more := range [][]any{nil, {"x"}, {"x", "y"}, {"1"}, {"NO", "ONE"}, {"?", "-1"}} {
			args := []any{"EVAL", "redis.pcall(unpack(ARGV)) return redis.pcall(unpack(ARGV))", "0"}
			for _, n := range name {
				args = append(args, n)
			}
			if got := c.Do(append(args, more...)...); strings.Contains(got, "internal error") {
				t.Errorf("%v %v: %s", name, more, got)
			}
			c.Want("PONG", "PING")
			called++
		}
	}
	for _, cmd := range s.Table.All() {
		if !strings.Contains(cmd.FullName(), "|") {
			call([]string{cmd.Name}, cmd)
		}
	}
	if called < 300 {
		t.Errorf("only %d calls were made", called)
	}
}
