// Schedules, as the documentation says them.
package delayqueue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

func TestEvery(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		DQ.ADD q EVERY 1000 ID tick p => tick
		DQ.PEEK q => [[tick@1700000001000 p T+1000 0]]
		DQ.PEEK q FULL => [[id tick@1700000001000 payload p state delayed due T+1000 attempt 0 lease_until -1 prio 0 expire -1 unique -1 maxwait -1 first_added -1 group  schedule EVERY 1000 reason ]]
		+1000
		DQ.POP q LEASE 5000 => [[tick@1700000001000#1 p T+1000 1]]
		DQ.LEN q => 1
		# one at a time: what is missed meanwhile is one run
		+3500
		DQ.LEN q => 1
		DQ.ACK q tick@1700000001000#1 => 1
		DQ.POP q LEASE 5000 => [[tick@1700000004000#1 p T+4000 1]]
		DQ.ACK q tick@1700000004000#1 => 1
		DQ.PEEK q => [[tick@1700000005000 p T+5000 0]]
		# late, it stands for what was missed before it was delivered
		+3700
		DQ.POP q => [[tick@1700000005000 p T+5000 1]]
		DQ.PEEK q => [[tick@1700000009000 p T+9000 0]]
		# cancelled, the next one comes
		DQ.REM q tick@1700000009000 => 1
		DQ.PEEK q => [[tick@1700000010000 p T+10000 0]]
		# replaced
		DQ.ADD q NX EVERY 500 ID tick p2 => nil
		DQ.ADD q XX EVERY 500 ID none p2 => nil
		DQ.ADD q EVERY 300 PRIO 3 ID tick p2 => tick
		DQ.PEEK q => [[tick@1700000008500 p2 T+8500 0]]
		COPY q r => 1
		DQ.REM q tick => 1
		EXISTS q => 0
		+300
		DQ.POP r => [[tick@1700000008500 p2 T+8500 1]]
		DQ.INFO r => [ready 0 delayed 1 leased 0 dying 0 next_due T+8800 oldest_age 0 waiters 0 added 7 delivered 4 acked 2 nacked 0 expired 0 dead_lettered 0 removed 1 overdue 0 remembered 0 behind 0 lease 0 tries 0 backoff 0 backoff_max 0 maxlen 0 paused 0 groups 0 groups_conc 0 dead  limit  groups_rules  schedules [[tick EVERY 300 T+8800]]]
		# a plain entry under the id ends it
		DQ.ADD r ID tick plain => tick
		DQ.POP r COUNT 9 => [[tick plain T+8500 1]]
		EXISTS r => 0
	`)
	w := s.Client()
	c.Want("beat", "DQ.ADD", "b", "EVERY", 100, "ID", "beat", "p")
	for range 3 {
		w.Send("DQ.POP", "b", "BLOCK", 0)
		s.Blocked(1)
		s.Advance(99)
		w.Silent()
		s.Advance(1)
		if got, want := w.Read(), fmt.Sprintf("[[beat@%d p %d 1]]", s.Now(), s.Now()); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	// If an occurrence is given up, dead or expired, the next one comes as well.
	converse(t, s, c, `
		DQ.SET d DEAD {d}dead TRIES 1 LEASE 50 => OK
		DQ.ADD d EVERY 100 EXPIRE 70 ID x p => x
		+100
	`)
	c.Do("DQ.POP", "d")
	s.Advance(50)
	c.Want("1", "DQ.LEN", "d", "DELAYED")
	s.Advance(120)
	c.Want("1", "DQ.LEN", "d", "DELAYED")
	c.Want("2", "DQ.LEN", "{d}dead")
	c.Want("1", "DQ.REQUEUE", "{d}dead", "d", "COUNT", 1)
	c.Want("2", "DQ.LEN", "d")
}

// A program adds its schedules at each start, and starts more often than they come.
func TestAgain(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		DQ.ADD q EVERY 1000 ID tick p1 => tick
		+600
		DQ.ADD q EVERY 1000 PRIO 7 GROUP g ID tick p2 => tick
		DQ.PEEK q => [[tick@1700000001000 p2 T+1000 0]]
		DQ.PEEK q FULL => [[id tick@1700000001000 payload p2 state delayed due T+1000 attempt 0 lease_until -1 prio 7 expire -1 unique -1 maxwait -1 first_added -1 group g schedule EVERY 1000 reason ]]
		+600
		DQ.ADD q EVERY 1000 ID tick p3 => tick
		DQ.POP q LEASE 5000 => [[tick@1700000001000#1 p3 T+1000 1]]
		# what is worked stays as it is, and the next one is as it was said last
		DQ.ADD q XX EVERY 1000 ID tick p4 => tick
		DQ.ADD q NX EVERY 1000 ID tick p5 => nil
		DQ.PEEK q => [[tick@1700000001000#1 p3 T+6200 1]]
		DQ.NACK q tick@1700000001000#1 DELAY 100 REASON busy => 1
		DQ.ADD q EVERY 1000 EXPIRE 300 ID tick p4 => tick
		DQ.PEEK q FULL => [[id tick@1700000001000 payload p4 state delayed due T+1300 attempt 1 lease_until -1 prio 0 expire 300 unique -1 maxwait -1 first_added -1 group  schedule EVERY 1000 reason busy]]
		+399
		DQ.LEN q => 1
		+1
		DQ.PEEK q => [[tick@1700000002000 p4 T+2000 0]]
		# other times count from now
		DQ.ADD q EVERY 700 ID tick p4 => tick
		DQ.PEEK q => [[tick@1700000002300 p4 T+2300 0]]
		# missed runs are one run, also then
		DQ.ADD c CRON @hourly ID tock p1 => tock
		DQ.PEEK c => [[tock@1700002800000 p1 T+2800000 0]]
		+10000000
		DQ.ADD c CRON @hourly ID tock p2 => tock
		DQ.POP c => [[tock@1700002800000 p2 T+2800000 1]]
		DQ.ADD c CRON @hourly TZ Europe/Berlin ID tock p3 => tock
		DQ.PEEK c => [[tock@1700013600000 p3 T+13600000 0]]
	`)
	c.Want("OK", "FLUSHALL")
	c.Want("OK", "LKV.JOURNAL", "START")
	runs := 0
	for range 50 {
		c.Want("job", "DQ.ADD", "q", "EVERY", 1000, "ID", "job", "p")
		s.Advance(300)
		if c.Do("DQ.POP", "q") != "nil" {
			runs++
		}
		c.Want("OK", "DEBUG", "RELOAD")
	}
	c.Want("OK", "LKV.JOURNAL", "CHECK")
	if runs != 15 {
		t.Errorf("%d runs in fifteen seconds", runs)
	}
}

func TestCron(t *testing.T) {
	s := livetest.Start(t) // 2023-11-14 22:13:20 UTC
	c := s.Client()
	at := func(text string) string {
		when, err := time.Parse(time.DateTime, text)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(when.UnixMilli())
	}
	for _, test := range []struct{ cron, zone, want string }{
		{"30 2 * * *", "", "2023-11-15 02:30:00"},
		{"30 2 * * *", "Europe/Berlin", "2023-11-15 01:30:00"},
		{"@hourly", "UTC", "2023-11-14 23:00:00"},
		{"0 9 * * mon", "America/New_York", "2023-11-20 14:00:00"},
	} {
		args := []any{"DQ.ADD", "q", "CRON", test.cron}
		if test.zone != "" {
			args = append(args, "TZ", test.zone)
		}
		c.Want("job", append(args, "ID", "job", "p")...)
		want := at(test.want)
		c.Want("[[job@"+want+" p "+want+" 0]]", "DQ.PEEK", "q")
	}
	if got := c.Do("DQ.INFO", "q"); !strings.Contains(got, "schedules [[job CRON 0 9 * * mon TZ America/New_York "+at("2023-11-20 14:00:00")+"]]") {
		t.Error(got)
	}
	// Across both daylight-saving changes it fires once a day, whatever is restarted.
	c.Want("OK", "FLUSHALL")
	c.Want("OK", "LKV.JOURNAL", "START")
	c.Want("night", "DQ.ADD", "q", "CRON", "30 2 * * *", "TZ", "Europe/Berlin", "ID", "night", "p")
	seen := map[string]int{}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for hour := range 366 * 24 {
		s.Advance(3_600_000)
		if got := c.Do("DQ.POP", "q"); got != "nil" {
			var id string
			var due int64
			fmt.Sscanf(strings.Trim(got, "["), "%s p %d", &id, &due)
			seen[time.UnixMilli(due).In(berlin).Format(time.DateOnly)]++
		}
		if hour%2000 == 0 {
			c.Want("OK", "DEBUG", "RELOAD")
			c.Want("OK", "LKV.JOURNAL", "CHECK")
		}
	}
	for day, n := range seen {
		if n != 1 {
			t.Errorf("%d times on %s", n, day)
		}
	}
	if len(seen) != 366 || seen["2024-03-31"] != 1 || seen["2024-10-27"] != 1 {
		t.Errorf("on %d days", len(seen))
	}
	for _, test := range []struct{ cron, zone, want string }{
		{"60 * * * *", "UTC", "-ERR CRON has a number that is not 0 to 59 in the minute at position 1"},
		{"* * * *", "UTC", "-ERR CRON has no day of the week at position 8"},
		{"0 0 30 2 *", "UTC", "-ERR CRON has a day that no month has at position 1"},
		{"@often", "UTC", "-ERR CRON has an unknown name at position 1"},
		{"* * * * *", "Europe/Atlantis", "-ERR unknown time zone, TZ takes an IANA name such as Europe/Berlin"},
		{"* * * * *", "Local", "-ERR unknown time zone, TZ takes an IANA name such as Europe/Berlin"},
		{"* * * * *", "", "-ERR unknown time zone, TZ takes an IANA name such as Europe/Berlin"},
		{"* * * * *", "../UTC", "-ERR unknown time zone, TZ takes an IANA name such as Europe/Berlin"},
	} {
		c.Want(test.want, "DQ.ADD", "none", "CRON", test.cron, "TZ", test.zone, "p")
	}
	converse(t, s, c, `
		DQ.ADD none EVERY 0 p => -ERR EVERY is out of range, it can be 1 to 3155760000000 ms
		DQ.ADD none EVERY 3155760000001 p => -ERR EVERY is out of range, it can be 1 to 3155760000000 ms
		DQ.ADD none EVERY 5 DELAY 5 p => -ERR DELAY, AT, EVERY and CRON exclude each other
		DQ.ADD none EVERY 5 CRON @daily p => -ERR DELAY, AT, EVERY and CRON exclude each other
		DQ.ADD none EVERY 5 UNIQUE 5 p => -ERR UNIQUE and MAXWAIT are not for schedules
		DQ.ADD none EVERY 5 MAXWAIT 5 p => -ERR UNIQUE and MAXWAIT are not for schedules
		DQ.ADD none TZ UTC p => -ERR syntax error
		DQ.ADD none EVERY 5 TZ UTC p => -ERR syntax error
		EXISTS none => 0
		DQ.SET small MAXLEN 1 => OK
		DQ.ADD small EVERY 3155760000000 ID a p => a
		DQ.ADD small EVERY 5 ID b p => -QUEUEFULL the queue has as many entries as its MAXLEN allows
		DQ.ADD small EVERY 5 ID a p => a
	`)
}
