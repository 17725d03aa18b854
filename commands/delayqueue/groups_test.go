// The order of deliveries: priorities and groups, as in the documentation.
package delayqueue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

func TestPrio(t *testing.T) {
	s := livetest.Start(t)
	converse(t, s, s.Client(), `
		DQ.ADD q ID low p => low
		DQ.ADD q PRIO 5 DELAY 100 ID later p => later
		DQ.ADD q PRIO 5 ID five p => five
		DQ.ADD q PRIO 255 DELAY 50 ID top p => top
		DQ.ADD q PRIO 5 ID five2 p => five2
		DQ.PEEK q READY => [[low p T 0] [five p T 0] [five2 p T 0]]
		DQ.POP q => [[five p T 1]]
		+50
		DQ.POP q COUNT 9 => [[top p T+50 1] [five2 p T 1] [low p T 1]]
		+50
		DQ.POP q LEASE 1000 => [[later#1 p T+100 1]]
		DQ.NACK q later DELAY 0 => 1
		DQ.ADD q ID plain p => plain
		DQ.POP q COUNT 9 => [[later p T+100 2] [plain p T+100 1]]
		EXISTS q => 0
		DQ.ADD q PRIO 256 p => -ERR PRIO is out of range, it can be 0 to 255
		DQ.ADD q PRIO -1 p => -ERR PRIO is out of range, it can be 0 to 255
		DQ.ADD q PRIO x p => -ERR value is not an integer or out of range
		DQ.ADD q PRIO 1 PRIO 2 p => -ERR syntax error
		DQ.ADD q PRIO 0 ID zero p => zero
		DQ.POP q => [[zero p T+100 1]]
	`)
}

func TestGroups(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		DQ.SET q GROUPS LEASE 1000 => OK
		DQ.ADD q GROUP a ID a1 p => a1
		DQ.ADD q GROUP a ID a2 p => a2
		DQ.ADD q GROUP a ID a3 p => a3
		DQ.ADD q GROUP b ID b1 p => b1
		DQ.ADD q GROUP c DELAY 100 ID c1 p => c1
		DQ.ADD q ID none p => none
		DQ.POP q COUNT 3 => [[none#1 p T 1] [a1#1 p T 1] [b1#1 p T 1]]
		DQ.ADD q GROUP b PRIO 1 ID b2 p => b2
		+100
		DQ.POP q COUNT 9 => [[c1#1 p T+100 1] [a2#1 p T 1] [b2#1 p T 1] [a3#1 p T 1]]
		DQ.POP q => nil
		DQ.INFO q => [ready 0 delayed 0 leased 7 dying 0 next_due -1 oldest_age 0 waiters 0 added 7 delivered 7 acked 0 nacked 0 expired 0 dead_lettered 0 removed 0 overdue 0 remembered 0 behind 0 lease 1000 tries 0 backoff 0 backoff_max 0 maxlen 0 paused 0 groups 3 groups_conc 0 dead  limit  groups_rules  schedules []]
		ZADD z 1 m => 1
		DQ.ADD z GROUP a p => -ERR a sorted set has no groups, GROUP is for delay queues
		DQ.ADD q GROUP a GROUP b p => -ERR syntax error
		DQ.SET q GROUPS GROUPS => -ERR syntax error
		DQ.SET q GROUPS CONC -1 => -ERR CONC is out of range, it can be 0 to 1000000000
		DQ.SET q GROUPS CONC 1000000001 => -ERR CONC is out of range, it can be 0 to 1000000000
		DQ.SET q CONC 1 => -ERR syntax error
	`)
	for name, want := range map[string]string{"": "-ERR a group has 1 to 512 bytes", strings.Repeat("g", 512): "x", strings.Repeat("g", 513): "-ERR a group has 1 to 512 bytes"} {
		c.Want(want, "DQ.ADD", "r", "GROUP", name, "ID", "x", "p")
	}
}

// CONC 1: a group's entries are delivered in order, whoever waits.
func TestGroupsConc(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		DQ.SET q GROUPS CONC 1 LEASE 1000 => OK
		DQ.ADD q GROUP a ID a1 p => a1
		DQ.ADD q GROUP a ID a2 p => a2
		DQ.ADD q GROUP a ID a3 p => a3
		DQ.ADD q GROUP a ID a4 p => a4
		DQ.POP q COUNT 9 => [[a1#1 p T 1]]
		DQ.LEN q READY => 3
	`)
	var line []*livetest.Client
	for i := range 3 {
		w := s.Client()
		w.Send("DQ.POP", "q", "BLOCK", 0)
		s.Blocked(int64(i + 1))
		line = append(line, w)
	}
	next := func(want string) {
		t.Helper()
		if got := line[0].Read(); got != times(want) {
			t.Errorf("got %s, want %s", got, times(want))
		}
		line = line[1:]
		s.Blocked(int64(len(line)))
	}
	c.Want("1", "DQ.ACK", "q", "a1#1")
	next("[[a2#1 p T 1]]")
	s.Advance(1000) // its lease ends: it is due again, behind those that were due before
	next("[[a3#1 p T 1]]")
	c.Want("OK", "DQ.SET", "q", "GROUPS", "CONC", 2)
	next("[[a4#1 p T 1]]")
	c.Want("nil", "DQ.POP", "q")
	c.Want("OK", "DQ.SET", "q", "GROUPS")
	c.Want(times("[[a2#2 p T+1000 2]]"), "DQ.POP", "q")
}

// A tenant with very many entries does not delay another's entry by more than a round.
func TestGroupsFair(t *testing.T) {
	const many = 50_000
	s := livetest.Start(t)
	c := s.Client()
	var batch []byte
	for i := range many {
		batch = livetest.Append(batch, "DQ.ADD", "q", "GROUP", "big", "ID", fmt.Sprint("big", i), "p")
		if i%1000 == 999 {
			c.Pipeline(batch, 1000)
			batch = batch[:0]
		}
	}
	c.Want(times("[[big0 p T 1]]"), "DQ.POP", "q")
	for i := range 100 {
		id := fmt.Sprint("small", i)
		c.Want(id, "DQ.ADD", "q", "GROUP", "small", "ID", id, "p")
		c.Want(id+"x", "DQ.ADD", "q", "GROUP", "other", "ID", id+"x", "p")
		got := c.Do("DQ.POP", "q", "COUNT", 3)
		if !strings.Contains(got, "["+id+" ") || !strings.Contains(got, "["+id+"x ") {
			t.Fatalf("in a round %s, without %s", got, id)
		}
	}
	c.Want("OK", "DEBUG", "RELOAD")
	c.Want(fmt.Sprint(many-101), "DQ.LEN", "q")
}

// A limiter for each group: webhooks with a limit for each tenant.
func TestGroupsRules(t *testing.T) {
	s := livetest.Start(t)
	c, w := s.Client(), s.Client()
	converse(t, s, c, `
		DQ.SET q GROUPS CONC 5 FIXED 2 1000 => OK
		DQ.ADD q GROUP a ID a1 p => a1
		DQ.ADD q GROUP a ID a2 p => a2
		DQ.ADD q GROUP a ID a3 p => a3
		DQ.ADD q GROUP b ID b1 p => b1
		DQ.ADD q ID none p => none
		DQ.POP q COUNT 9 => [[none p T 1] [a1 p T 1] [b1 p T 1] [a2 p T 1]]
		DQ.POP q => nil
		DQ.LEN q READY => 1
		# what was taken stays taken when nothing is left of the group, and over a restart
		DQ.REM q a3 => 1
		+500
		DEBUG RELOAD => OK
		DQ.ADD q GROUP a ID a4 p => a4
		DQ.ADD q GROUP b ID b2 p => b2
		DQ.ADD q GROUP b ID b3 p => b3
		DQ.POP q COUNT 9 => [[b2 p T+500 1]]
	`)
	w.Send("DQ.POP", "q", "BLOCK", 0, "COUNT", 9)
	s.Blocked(1)
	s.Advance(499)
	w.Silent()
	s.Advance(1)
	if got, want := w.Read(), times("[[a4 p T+500 1] [b3 p T+500 1]]"); got != want {
		t.Errorf("woken with %s, want %s", got, want)
	}
	converse(t, s, c, `
		DQ.ADD q GROUP a ID a5 p => a5
		DQ.ADD q GROUP a ID a6 p => a6
		DQ.POP q COUNT 9 => [[a5 p T+1000 1]]
		# other rules begin anew, none let all pass
		DQ.SET q GROUPS GCRA 1 1000 => OK
		DQ.ADD q GROUP a ID a7 p => a7
		DQ.POP q COUNT 9 => [[a6 p T+1000 1]]
		DQ.SET q GROUPS => OK
		DQ.POP q COUNT 9 => [[a7 p T+1000 1]]
		DQ.SET q GROUPS CONC 1 CONC 2 => -ERR CONC and TOTAL are no rules of groups, GROUPS CONC n bounds what is leased
		DQ.SET q GROUPS TOTAL 2 => -ERR CONC and TOTAL are no rules of groups, GROUPS CONC n bounds what is leased
		DQ.SET q GROUPS GCRA 1 => -ERR a rule of GROUPS is wrong: rule without count or period
		DQ.SET q GROUPS GCRA 0 1000 => -ERR a rule of GROUPS is wrong: count out of range
		DQ.SET q GROUPS GCRA 1 1000 x => -ERR syntax error
		DQ.SET q GROUPS GCRA 10 1000 FIXED 100 60000 MAXLEN 7 => OK
	`)
	if got := c.Do("DQ.INFO", "q"); !strings.Contains(got, " maxlen 7 ") || !strings.Contains(got, " groups_rules GCRA 10 1000 FIXED 100 60000 ") {
		t.Error(got)
	}
}

// The limiters of groups are removed once they are full, even if the queue is idle; those of former rules are removed at
// once.
func TestGroupsRest(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	const groups = 21_000
	kept := func() string { return field(t, c, "DQ.INFO", "q", "groups") }
	fill := func() {
		t.Helper()
		for i := range groups {
			c.Send("DQ.ADD", "q", "GROUP", fmt.Sprint("g", i), "p")
			if i%1000 == 999 {
				for range 1000 {
					c.Read()
				}
			}
		}
		for range groups / 1000 {
			c.Do("DQ.POP", "q", "COUNT", 1000)
		}
		if n := kept(); n != fmt.Sprint(groups) {
			t.Fatalf("%s groups have a limiter", n)
		}
	}
	size := func() (n int) {
		fmt.Sscan(c.Do("MEMORY", "USAGE", "q", "SAMPLES", "0"), &n)
		return n
	}
	c.Want("OK", "DQ.SET", "q", "GROUPS", "FIXED", "5", "60000")
	small := size()
	fill()
	if n := size(); n < 100*groups {
		t.Errorf("with their limiters it takes %d bytes", n)
	}
	s.Advance(59_000)
	if n := kept(); n == "0" {
		t.Error("limiters that are not full are gone")
	}
	s.Advance(70_000)
	if n := kept(); n != "0" {
		t.Errorf("%s groups are kept", n)
	}
	if n := size(); n > 2*small {
		t.Errorf("the queue takes %d bytes, %d before", n, small)
	}
	fill()
	c.Want("OK", "DQ.SET", "q", "GROUPS", "CONC", "1")
	s.Advance(1)
	if n := size(); n > 2*small {
		t.Errorf("without limiters it takes %d bytes, %d before", n, small)
	}
}
