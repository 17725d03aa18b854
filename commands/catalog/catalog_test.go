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
