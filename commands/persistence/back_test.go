// The system's clock is set while the server is down, or its files are from a time when it was ahead.
package persistence_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestClockBackOverRestart(t *testing.T) {
	const at, patience = int64(1_700_000_000_000), 20 * time.Second
	for name, settings := range map[string][]string{
		"log":      {"appendonly", "yes"},
		"snapshot": {"save", "3600 1"},
	} {
		for _, by := range []time.Duration{time.Second, time.Hour, 30 * 24 * time.Hour} {
			t.Run(fmt.Sprint(name, by), func(t *testing.T) {
				t.Chdir(t.TempDir())
				var v *served
				defer func() { v.close() }()
				begin := func(now int64) {
					t.Helper()
					var err error
					if v, err = serve(t, nil, now, settings...); err != nil {
						t.Fatal(err)
					}
					want := fmt.Sprint("[", now/1000, " ", now%1000*1000, "]")
					if got := v.do(t, "TIME", patience); got != want {
						t.Errorf("TIME is %s, want %s", got, want)
					}
				}
				do := func(line string) string {
					t.Helper()
					got := v.do(t, line, patience)
					if got == "" || got[0] == '-' {
						t.Fatalf("%s: %q", line, got)
					}
					return got
				}
				begin(at)
				fence := strings.Fields(do("LK.ACQUIRE lock a 100000"))[1]
				for _, line := range []string{
					"RL.ACQUIRE g GCRA 1 100000", "RL.ACQUIRE f FIXED 1 100000", "DQ.ADD q ID job x", "DQ.POP q LEASE 100000",
					fmt.Sprint("SET key v PXAT ", at+100_000),
				} {
					do(line)
				}
				id, entry := do("DQ.ADD ids DELAY 100000 x"), do("XADD stream * a b")
				v.close()

				now := at - by.Milliseconds()
				left := int64(100_000)
				check := func() {
					t.Helper()
					for line, want := range map[string]string{
						"LK.ACQUIRE lock b 1":         fmt.Sprint("[:0 ", fence, " :", left, " :0]"),
						"RL.ACQUIRE g GCRA 1 100000":  fmt.Sprint("[:1 :1 :0 :", left, " :", left, "]"),
						"RL.ACQUIRE f FIXED 1 100000": fmt.Sprint("[:1 :1 :0 :", left, " :", left, "]"),
						"DQ.PEEK q":                   fmt.Sprint("[[job#1 x :", now+left, " :1]]"),
						"PEXPIRETIME key":             fmt.Sprint(":", at+100_000),
					} {
						if got := do(line); got != want {
							t.Errorf("at %+d ms: %s: %s, want %s", now-at, line, got, want)
						}
					}
					for _, x := range []struct {
						line string
						last *string
					}{{"DQ.ADD ids x", &id}, {"XADD stream * a b", &entry}} {
						got := do(x.line)
						var a, b, c, d int64
						fmt.Sscanf(*x.last, "%d-%d", &a, &b)
						fmt.Sscanf(got, "%d-%d", &c, &d)
						if c < a || c == a && d <= b {
							t.Errorf("%s: %s comes after %s", x.line, got, *x.last)
						}
						*x.last = got
					}
					if next := strings.Fields(do(fmt.Sprint("LK.ACQUIRE other", now, " a 1")))[1]; next <= fence {
						t.Errorf("fence %s comes after %s", next, fence)
					}
				}
				begin(now)
				check()
				v.close()
				now += 5000
				left -= 5000
				begin(now) // what was moved is not moved again
				check()
				v.close()
				now += left
				begin(now)
				if got := do("LK.ACQUIRE lock b 1"); !strings.HasPrefix(got, "[:1 ") {
					t.Errorf("the lease is not over: %s", got)
				}
			})
		}
	}
}
