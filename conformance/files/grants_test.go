package files

import (
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// TestGrants: named grants are there again after a restart, and leases that passed while the server was down have
// ended: what CONC held is free, what TOTAL reserved is back.
func TestGrants(t *testing.T) {
	for name, args := range map[string][]string{
		"snapshot": {"--dbfilename", "dump.rdb"}, "log": {"--appendonly", "yes"}, "words": {"--appendonly", "yes", "--aof-use-rdb-preamble", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"--dir", t.TempDir()}, args...)
			s := peer.LimitKV(t, args...)
			c := s.Dial(t)
			for _, line := range []string{
				"RL.SET stock TOTAL 10", "RL.ACQUIRE stock 3 ID soon LEASE 200", "RL.ACQUIRE stock 4 ID late LEASE 600000",
				"RL.ACQUIRE jobs 1 ID soon LEASE 200 CONC 2", "RL.ACQUIRE jobs 1 ID late LEASE 600000",
				"RL.SET quota SHADOW CAL 5 MONTH TZ Asia/Tokyo", "RL.ACQUIRE quota 5 ID q LEASE 600000", "RL.ACQUIRE quota 1",
				"RL.ACQUIRE tokens 800 ID call LEASE 600000 GCRA 1000 86400000", "RL.ACQUIRE tokens 100",
			} {
				if v := do(t, c, line); v[0] == '-' {
					t.Fatal(line, v)
				}
			}
			if name == "snapshot" {
				do(t, c, "SAVE")
			}
			end(t, c)
			gone(t, s)
			time.Sleep(250 * time.Millisecond)
			s = peer.LimitKV(t, args...)
			c = s.Dial(t)
			for _, x := range [][2]string{
				{"RL.SETTLE stock soon", "$-1"}, {"RL.SETTLE jobs soon", "$-1"},
				{"RL.SETTLE stock late 1", ":3"}, {"RL.RELEASE stock 10", ":1"},
				{"RL.ACQUIRE jobs 1 PEEK KEEP 1", "[:1, :2, :1, "},
				{"RL.TOUCH jobs late 1000", ":1"}, {"RL.SETTLE jobs late", ":1"},
				{"RL.SETTLE quota q 2", ":3"}, {"RL.SETTLE tokens call 300", ":500"},
			} {
				if v := do(t, c, x[0]); !strings.HasPrefix(v, x[1]) {
					t.Errorf("%s: %s, want %s", x[0], v, x[1])
				}
			}
		})
	}
}
