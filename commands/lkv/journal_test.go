// The check that effects are complete, over the wire.

package lkv_test

import (
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// A refusal is counted and has no effect: the copy grants the same, and that is compared. Other differences are reported.
func TestJournalCheck(t *testing.T) {
	c := livetest.Start(t).Client()
	c.Want("OK", "LKV.JOURNAL", "START")
	for _, line := range []string{
		"RL.SET a GCRA 1 3600000", "RL.ACQUIRE a 1", "RL.ACQUIRE a 1", "RL.ACQUIRE a 1",
		"CL.THROTTLE b 0 1 3600", "CL.THROTTLE b 0 1 3600 1", "CL.THROTTLE b 0 1 3600 5",
		"RL.SET c LOG 1 3600000", "RL.ACQUIRE c 1", "RL.ACQUIRE c 1", "RL.MACQUIRE 2 a 1 c 1",
	} {
		if got := c.Line(line); strings.HasPrefix(got, "-") {
			t.Fatalf("%s: %s", line, got)
		}
		if got := c.Line("LKV.JOURNAL CHECK"); got != "OK" {
			t.Errorf("after %s: %s", line, got)
		}
	}
	if got := c.Line("RL.INFO a"); !strings.Contains(got, "refused 3") {
		t.Errorf("nothing was refused: %s", got)
	}
}
