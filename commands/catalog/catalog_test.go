package catalog_test

// The rows of all commands.

import (
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// The arguments of every row can be read, and every row says what it does.
func TestRowsAreComplete(t *testing.T) {
	s := livetest.Start(t)
	n := 0
	for _, cmd := range s.Table.All() {
		if cmd.Summary == "" || cmd.Since == "" || cmd.Group == "" {
			t.Errorf("%s: summary, version or group is missing", cmd.FullName())
		}
		n += len(cmd.Arguments()) // panics where it cannot
	}
	if n < 100 {
		t.Errorf("only %d arguments were read", n)
	}
	c := s.Client()
	for _, cmd := range s.Table.List() {
		if len(cmd.Sub) > 0 && cmd.SubCommand([]byte("help")) != nil {
			if got := c.Do(cmd.Name, "HELP"); !strings.Contains(got, "Print this help.") {
				t.Errorf("%s HELP: %s", cmd.Name, got)
			}
		}
	}
}

// A kept reply to COMMAND DOCS equals the first one, in each protocol, and in scripts.
func TestDocsAreKept(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	for _, protocol := range []string{"2", "3", "2"} {
		c.Do("HELLO", protocol)
		first, again := c.Do("COMMAND", "DOCS"), c.Do("COMMAND", "DOCS")
		if first != again || !strings.Contains(first, "sorted-set") {
			t.Errorf("protocol %s: %d bytes at first, then %d", protocol, len(first), len(again))
		}
		if one := c.Do("COMMAND", "DOCS", "get"); !strings.Contains(one, "summary") || len(one) > len(first)/10 {
			t.Errorf("of one command: %s", one)
		}
		const count = "return #redis.call('COMMAND', 'DOCS')"
		if a, b := c.Do("EVAL", count, "0"), c.Do("EVAL", count, "0"); a != b {
			t.Errorf("in scripts: %s, then %s", a, b)
		}
	}
}
