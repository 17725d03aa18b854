// Named grants and the rules that need them, over a socket: each line is a command and its reply. After each line the test
// checks that the effects make the same keys, and sometimes that a reload does.
package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// prove is converse on a server of its own. Its journal is replayed after each line, and its keys are reloaded at the end.
func prove(t *testing.T, lines string) {
	t.Helper()
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "LKV.JOURNAL", "START")
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		converse(t, s, c, line)
		if got := c.Do("LKV.JOURNAL", "CHECK"); got != "OK" {
			t.Fatalf("after %s: %s", line, got)
		}
		before := c.Do("DEBUG", "DIGEST")
		if got := c.Do("DEBUG", "RELOAD"); got != "OK" {
			t.Fatalf("after %s: %s", line, got)
		}
		if after := c.Do("DEBUG", "DIGEST"); after != before {
			t.Fatalf("after %s a reload changes the keys", line)
		}
		if err := s.Keyspace.Check(); err != nil {
			t.Fatalf("after %s: %v", line, err)
		}
	}
}

// A settled cost comes back to the window that it was taken from, and to no other.
func TestSettle(t *testing.T) {
	prove(t, `
		RL.ACQUIRE f 8 ID a FIXED 10 1000 => [0 10 2 -1 1000]
		RL.INFO f => [rules [FIXED 10 1000] capacity 10 available 2 reset_after 1000 waiters 0 granted 1 refused 0 grants 1 RateLimit "fixed";r=2;t=1 RateLimit-Policy "fixed";q=10;w=1]
		RL.SETTLE f a 3 => 5
		RL.SETTLE f a 3 => nil
		RL.ACQUIRE f PEEK => [0 10 7 -1 1000]
		RL.ACQUIRE f 5 ID b => [0 10 2 -1 1000]
		RL.SETTLE f b 7 => -2
		RL.ACQUIRE f 1 => [1 10 0 1000 1000]
		DEL f => 1
		# take 8, let the window pass, let another take 5: settling 8 wipes nothing
		RL.ACQUIRE f 8 ID a LEASE 60000 FIXED 10 1000 => [0 10 2 -1 1000]
		+1000
		RL.ACQUIRE f 5 => [0 10 5 -1 1000]
		RL.SETTLE f a 0 => 0
		RL.ACQUIRE f PEEK => [0 10 5 -1 1000]
		+1001
		EXISTS f => 0
		# whole tokens come back where the count does not divide the period
		RL.ACQUIRE g ID a LEASE 60000 GCRA 3 1000 => [0 3 2 -1 334]
		RL.ACQUIRE g ID b LEASE 60000 => [0 3 1 -1 667]
		RL.SETTLE g a 0 => 1
		RL.SETTLE g b 0 => 1
		RL.ACQUIRE g PEEK => [0 3 3 -1 0]
		DEL g => 1
		# the same with the others
		RL.ACQUIRE l 8 ID a LEASE 60000 LOG 10 1000 => [0 10 2 -1 1000]
		+600
		RL.ACQUIRE l 2 ID b LEASE 60000 => [0 10 0 -1 1000]
		+400
		RL.ACQUIRE l 5 => [0 10 3 -1 1000]
		RL.SETTLE l a 0 => 0
		RL.SETTLE l b 0 => 2
		RL.ACQUIRE l PEEK => [0 10 5 -1 1000]
		+1001
		RL.ACQUIRE w 8 ID a LEASE 60000 WINDOW 10 1000 => [0 10 2 -1 2000]
		+1500
		RL.ACQUIRE w 2 => [0 10 4 -1 1500]
		RL.SETTLE w a 4 => 2
		RL.ACQUIRE w PEEK => [0 10 6 -1 1500]
		+1501
		RL.ACQUIRE g 8 ID a LEASE 60000 GCRA 10 1000 => [0 10 2 -1 800]
		+400
		RL.ACQUIRE g 5 => [0 10 1 -1 900]
		RL.SETTLE g a 0 => 4
		RL.ACQUIRE g PEEK => [0 10 5 -1 500]
		RL.ACQUIRE g 1 ID b => [0 10 4 -1 600]
		+1000
		# open until its window is over
		RL.SETTLE g b 0 => nil
		RL.ACQUIRE c 8 ID a LEASE 172800000 CAL 10 DAY => [0 10 2 -1 6391597]
		RL.SETTLE c a 5 => 3
		RL.ACQUIRE c 1 ID b LEASE 172800000 => [0 10 4 -1 6391597]
		+6400000
		RL.ACQUIRE c 2 => [0 10 8 -1 86391597]
		RL.SETTLE c b 0 => 0
		RL.ACQUIRE c PEEK => [0 10 8 -1 86391597]
		RL.TOUCH none a 1000 => 0
		RL.SETTLE none a => nil
		SET s 1 => OK
		RL.SETTLE s a => `+wrongType+`
		RL.TOUCH s a 1 => `+wrongType+`
	`)
}

// CONC: at most n at once.
func TestConc(t *testing.T) {
	prove(t, `
		RL.ACQUIRE k ID a LEASE 1000 CONC 2 => [0 2 1 -1 1000]
		RL.ACQUIRE k ID b LEASE 2000 => [0 2 0 -1 2000]
		RL.ACQUIRE k ID c LEASE 2000 => [1 2 0 1000 2000]
		# a retry takes nothing, renews the lease and replies as the first time
		+500
		RL.ACQUIRE k ID a LEASE 1000 => [0 2 1 -1 1000]
		RL.ACQUIRE k ID c LEASE 2000 => [1 2 0 1000 1500]
		RL.TOUCH k a 5000 => 1
		RL.ACQUIRE k ID c LEASE 2000 => [1 2 0 1500 5000]
		RL.SETTLE k a => 1
		RL.SETTLE k a => nil
		RL.TOUCH k a 1000 => 0
		RL.ACQUIRE k ID c LEASE 2000 => [0 2 0 -1 2000]
		RL.INFO k => [rules [CONC 2] capacity 2 available 0 reset_after 2000 waiters 0 granted 3 refused 3 grants 2 RateLimit "conc";r=0;t=2 RateLimit-Policy "conc";q=2]
		# a lease that ends frees
		+1500
		RL.ACQUIRE k PEEK => [0 2 1 -1 500]
		RL.RELEASE k => 1
		RL.ACQUIRE k PEEK => `+noLimiter+`
		EXISTS k => 0
		RL.SET k CONC 2 => OK
		RL.ACQUIRE k 2 ID a LEASE 1000 => [0 2 0 -1 1000]
		RL.RELEASE k 1 => 1
		RL.ACQUIRE k ID b LEASE 3000 => [0 2 0 -1 3000]
		RL.SET k CONC 5 => OK
		RL.ACQUIRE k 0 => [0 5 3 -1 3000]
		COPY k all => 1
		RL.RELEASE all 1000000000000 => 2
		RL.ACQUIRE all PEEK => [0 5 5 -1 0]
		RL.RELEASE all 1 => 0
		DEL all => 1
		RENAME k j => OK
		COPY j k => 1
		RL.SETTLE k b => 1
		+1001
		RL.ACQUIRE k PEEK => [0 5 5 -1 0]
		RL.ACQUIRE j PEEK => [0 5 4 -1 1999]
	`)
}

// TOTAL: time brings nothing back; what a lease reserved comes back.
func TestTotal(t *testing.T) {
	prove(t, `
		RL.SET stock TOTAL 10 => OK
		RL.ACQUIRE stock 3 => [0 10 7 -1 -1]
		RL.ACQUIRE stock 5 ID order:1 LEASE 900000 => [0 10 2 -1 -1]
		RL.ACQUIRE stock 3 ID order:2 LEASE 900000 => [1 10 2 900000 -1]
		RL.ACQUIRE stock 8 => [1 10 2 -1 -1]
		# paid
		RL.SETTLE stock order:1 => 0
		RL.ACQUIRE stock 3 ID order:2 LEASE 900000 => [1 10 2 -1 -1]
		RL.ACQUIRE stock 2 ID order:3 LEASE 900000 => [0 10 0 -1 -1]
		+900000
		RL.ACQUIRE stock PEEK => [0 10 2 -1 -1]
		RL.ACQUIRE stock 2 ID order:4 => [0 10 0 -1 -1]
		+900000
		RL.SETTLE stock order:4 1 => 1
		# goods that come back; not those that an order holds
		RL.ACQUIRE stock 1 ID order:5 LEASE 1000 => [0 10 0 -1 -1]
		RL.RELEASE stock 100 => 9
		+1000
		RL.ACQUIRE stock PEEK => [0 10 10 -1 0]
		RL.ACQUIRE stock 4 ID order:6 => [0 10 6 -1 -1]
		RL.SET stock GCRA 10 1000 => OK
		RL.ACQUIRE stock PEEK => [0 10 6 -1 400]
		RL.SET stock RESET TOTAL 10 => OK
		RL.SETTLE stock order:6 => nil
	`)
}

func TestKeepAndAtMost(t *testing.T) {
	prove(t, `
		RL.ACQUIRE k 3 KEEP 5 GCRA 10 1000 => [0 10 7 -1 300]
		RL.ACQUIRE k 3 KEEP 5 => [1 10 7 100 300]
		RL.ACQUIRE k 2 KEEP 5 PEEK => [0 10 7 -1 300]
		RL.ACQUIRE k 2 KEEP 5 => [0 10 5 -1 500]
		RL.ACQUIRE k 6 KEEP 5 => -ERR cost is above the limiter's capacity
		RL.ACQUIRE k 3 KEEP 5 FORCE => -ERR syntax error
		RL.ACQUIRE k 100 ATMOST KEEP 2 => [0 10 2 -1 800 3]
		RL.ACQUIRE k 100 ATMOST => [0 10 0 -1 1000 2]
		RL.ACQUIRE k 100 ATMOST => [1 10 0 100 1000 0]
		+250
		RL.ACQUIRE k ATMOST => [0 10 1 -1 850 1]
		RL.ACQUIRE k 5 ATMOST ID a LEASE 1000 => [0 10 0 -1 950 1]
		RL.ACQUIRE k 5 ATMOST ID a LEASE 1000 => [0 10 0 -1 950 1]
		RL.SETTLE k a 0 => 1
		RL.ACQUIRE k 0 ATMOST => [0 10 1 -1 850 0]
		RL.ACQUIRE t 100 ATMOST TOTAL 30 => [0 30 0 -1 -1 30]
		RL.ACQUIRE t 100 ATMOST => [1 30 0 -1 -1 0]
	`)
}

func TestShadow(t *testing.T) {
	prove(t, `
		RL.SET k SHADOW FIXED 2 1000 => OK
		RL.ACQUIRE k 2 => [0 2 0 -1 1000]
		RL.ACQUIRE k 1 => [0 2 0 -1 1000]
		RL.ACQUIRE k 1 ID a LEASE 500 => [0 2 0 -1 1000]
		RL.ACQUIRE k 1 ID a LEASE 500 => [0 2 0 -1 1000]
		RL.TOUCH k a 500 => 1
		RL.SETTLE k a 5 => 0
		RL.ACQUIRE k 9 => [0 2 0 -1 1000]
		RL.ACQUIRE k 9 ATMOST => [0 2 0 -1 1000 9]
		RL.INFO k => [rules [FIXED 2 1000] capacity 2 available 0 reset_after 1000 waiters 0 granted 5 refused 0 grants 0 shadow_refused 4 RateLimit "fixed";r=0;t=1 RateLimit-Policy "fixed";q=2;w=1]
		RL.SET k FIXED 2 1000 => OK
		RL.ACQUIRE k 1 => [1 2 0 1000 1000]
		RL.SET k SHADOW GCRA 2 1000 => OK
		RL.ACQUIRE k 2 => [0 2 0 -1 1000]
		RL.ACQUIRE k 2 PEEK => [0 2 0 -1 1000]
		RL.RELEASE k 1 => 1
		RL.ACQUIRE k 2 FORCE => [0 2 0 -1 1500]
	`)
}

func TestMultiAcquireOptions(t *testing.T) {
	prove(t, `
		RL.MACQUIRE 2 a 1 b 2 RULE 2 FIXED 5 1000 RULE 1 GCRA 10 1000 => [0 5 3 -1 1000 -1]
		RL.MACQUIRE 2 a 1 b 4 => [1 5 3 1000 1000 1]
		RL.MACQUIRE 2 a 1 b 4 FORCE => [0 5 0 -1 1000 -1]
		RL.MACQUIRE 2 a 6 b 0 KEEP 5 => -ERR cost is above the limiter's capacity
		RL.MACQUIRE 2 a 4 b 0 KEEP 5 => [1 5 0 1000 1000 1]
		RL.ACQUIRE a PEEK => [0 10 8 -1 200]
		RL.MACQUIRE 2 a 8 b 0 ID x LEASE 5000 => [1 5 0 1000 1000 1]
		+1000
		RL.MACQUIRE 2 a 8 b 3 ID x LEASE 5000 RULE 1 GCRA 10 1000 RULE 2 FIXED 5 1000 => [0 10 2 -1 800 -1]
		RL.MACQUIRE 2 a 8 b 3 ID x LEASE 5000 => [0 10 2 -1 800 -1]
		RL.SETTLE a x 1 => 7
		RL.SETTLE b x 1 => 2
		RL.SETTLE b x 1 => nil
		RL.MACQUIRE 2 c 1 a 1 RULE 1 CONC 1 => -ERR CONC needs ID and LEASE, so that what is held comes back
		RL.MACQUIRE 2 c 1 a 1 ID y LEASE 1000 RULE 1 CONC 1 => [0 1 0 -1 1000 -1]
		RL.MACQUIRE 2 c 1 a 1 ID z LEASE 1000 => [1 1 0 1000 1000 0]
		RL.MACQUIRE 2 c 1 a 1 ATMOST => -ERR syntax error
		RL.MACQUIRE 2 c 1 a 1 RULE 3 FIXED 1 1 => -ERR RULE is for one of the keys, counted from 1, and at most once for each
		RL.MACQUIRE 2 c 1 a 1 RULE 1 FIXED 1 1 RULE 1 FIXED 1 1 => -ERR RULE is for one of the keys, counted from 1, and at most once for each
		RL.MACQUIRE 2 c 1 a 1 RULE 1 => -ERR syntax error
		RL.MACQUIRE 2 c 0 d 1 => `+noLimiter+`
		RL.MACQUIRE 2 new 1 a 20 RULE 1 FIXED 3 1000 => -ERR cost is above the limiter's capacity
		EXISTS new => 0
	`)
}

func TestNamedErrors(t *testing.T) {
	long := strings.Repeat("x", 513)
	const (
		lease   = "-ERR CONC needs ID and LEASE, so that what is held comes back"
		name    = "-ERR the ID is empty or too long, it can have at most 512 bytes"
		zone    = "-ERR unknown time zone, TZ takes an IANA name such as Europe/Berlin"
		from    = "-ERR FROM is out of range, it can be 0 to 59 for HOUR, 0 to 23 for DAY, 1 to 7 for WEEK and 1 to 28 for MONTH"
		unit    = "-ERR the period of CAL is HOUR, DAY, WEEK or MONTH"
		between = "-ERR lease is out of range, it can be 1 to 315576000000 ms"
		cost    = "-ERR cost is out of range, it can be 0 to 1000000000000"
	)
	prove(t, `
		RL.SET c CONC 2 => OK
		RL.SET k FIXED 2 1000 => OK
		RL.ACQUIRE c => `+lease+`
		RL.ACQUIRE c ID a => `+lease+`
		RL.ACQUIRE c BLOCK 0 => `+lease+`
		RL.ACQUIRE c FORCE => `+lease+`
		RL.ACQUIRE c 3 ID a LEASE 1 => -ERR cost is above the limiter's capacity
		RL.ACQUIRE c LEASE 1 => `+syntax+`
		RL.ACQUIRE c ID => `+syntax+`
		RL.ACQUIRE c ID a LEASE 0 => `+between+`
		RL.ACQUIRE c ID a LEASE 315576000001 => `+between+`
		RL.ACQUIRE c ID a LEASE x => `+notInt+`
		RL.ACQUIRE c ID a PEEK => `+syntax+`
		RL.ACQUIRE k ID `+long+` => `+name+`
		RL.ACQUIRE k KEEP -1 => `+cost+`
		RL.ACQUIRE k PEEK ATMOST => `+syntax+`
		RL.ACQUIRE k ID `+long[1:]+` => [0 2 1 -1 1000]
		RL.SETTLE k `+long[1:]+` -1 => `+cost+`
		RL.SETTLE k `+long[1:]+` 1 1 => `+syntax+`
		RL.SETTLE k => -ERR wrong number of arguments for 'rl.settle' command
		RL.SETTLE k `+long[1:]+` 1000000000000 => -999999999999
		RL.TOUCH k a 0 => `+between+`
		RL.TOUCH k a => -ERR wrong number of arguments for 'rl.touch' command
		RL.SET z CAL 5 DAY TZ Europe/Nowhere => `+zone+`
		RL.SET z CAL 5 DAY TZ ../../etc/passwd => `+zone+`
		RL.SET z CAL 5 DAY TZ Local => `+zone+`
		RL.SET z CAL 5 DAY TZ => `+syntax+`
		RL.SET z CAL 5 DAY FROM 24 => `+from+`
		RL.SET z CAL 5 HOUR FROM 60 => `+from+`
		RL.SET z CAL 5 WEEK FROM 0 => `+from+`
		RL.SET z CAL 5 WEEK FROM 8 => `+from+`
		RL.SET z CAL 5 MONTH FROM 29 => `+from+`
		RL.SET z CAL 5 MONTH FROM x => `+notInt+`
		RL.SET z CAL 5 1000 => `+unit+`
		RL.SET z CAL 5 => `+syntax+`
		RL.SET z CONC 0 => -ERR count is out of range, it can be 1 to 1000000000000
		RL.SET z TOTAL => -ERR wrong number of arguments for 'rl.set' command
		RL.SET z NX TOTAL => `+syntax+`
		EXISTS z => 0
		RL.SET z CAL 5 MONTH TZ Europe/Berlin FROM 28 CAL 9 HOUR CAL 7 WEEK FROM 7 TZ Asia/Tokyo => OK
		RL.INFO z => [rules [CAL 5 MONTH TZ Europe/Berlin FROM 28 CAL 9 HOUR CAL 7 WEEK TZ Asia/Tokyo FROM 7] capacity 5 available 5 reset_after 0 waiters 0 granted 0 refused 0 grants 0 RateLimit "cal-1";r=5;t=0, "cal-2";r=9;t=0, "cal-3";r=7;t=0 RateLimit-Policy "cal-1";q=5;w=2682000, "cal-2";q=9;w=3600, "cal-3";q=7;w=604800]
		HSET shared rate 2 interval 1000 type 0 => 3
		RL.ACQUIRE shared ID a => -ERR a Redisson limiter has no ID, KEEP or ATMOST
		RL.ACQUIRE shared KEEP 1 => -ERR a Redisson limiter has no ID, KEEP or ATMOST
		RL.ACQUIRE shared ATMOST => -ERR a Redisson limiter has no ID, KEEP or ATMOST
	`)
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "RL.SET", "k", "FIXED", 10, 1000)
	c.Want(name, "RL.ACQUIRE", "k", "ID", "")
}

// A waiter is served when a grant is settled or its lease ends.
func TestNamedWaits(t *testing.T) {
	s := livetest.Start(t)
	c, w := s.Client(), s.Client()
	converse(t, s, c, `
		RL.ACQUIRE k ID a LEASE 1000 CONC 1 => [0 1 0 -1 1000]
	`)
	w.Send("RL.ACQUIRE", "k", "ID", "b", "LEASE", 9000, "BLOCK", 0)
	s.Blocked(1)
	c.Want("1", "RL.SETTLE", "k", "a")
	if got := w.Read(); got != "[0 1 0 -1 9000]" {
		t.Errorf("after RL.SETTLE: %s", got)
	}
	w.Send("RL.ACQUIRE", "k", "ID", "c", "LEASE", 500, "BLOCK", 0)
	s.Blocked(1)
	c.Want("[1 1 0 -1 9000]", "RL.ACQUIRE", "k", "ID", "d", "LEASE", 500)
	s.Advance(9000)
	if got := w.Read(); got != "[0 1 0 -1 500]" {
		t.Errorf("after the lease: %s", got)
	}
	w.Send("RL.ACQUIRE", "k", "ID", "e", "LEASE", 500, "BLOCK", 100)
	s.Blocked(1)
	s.Advance(100)
	if got := w.Read(); got != "[1 1 0 400 400]" {
		t.Errorf("after the time-out: %s", got)
	}
	if err := s.Keyspace.Check(); err != nil {
		t.Error(err)
	}
}

// At the limit of open grants.
func TestNamedMany(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about size")
	}
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "RL.SET", "k", "TOTAL", 1<<30)
	const most, batch = 1 << 20, 1 << 12
	for i := 0; i < most; i += batch {
		var p []byte
		for j := i; j < i+batch; j++ {
			p = livetest.Append(p, "RL.ACQUIRE", "k", 1, "ID", fmt.Sprintf("grant:%d", j))
		}
		c.Pipeline(p, batch)
	}
	c.Want("-ERR too many open grants", "RL.ACQUIRE", "k", 1, "ID", "one more")
	c.Want("-ERR too many open grants", "RL.MACQUIRE", 1, "k", 1, "ID", "one more")
	c.Want(fmt.Sprintf("[0 %d %d -1 -1]", 1<<30, 1<<30-1), "RL.ACQUIRE", "k", 1, "ID", "grant:0")
	c.Want("0", "RL.SETTLE", "k", "grant:0")
	c.Want(fmt.Sprintf("[0 %d %d -1 -1]", 1<<30, 1<<30-most-1), "RL.ACQUIRE", "k", 1, "ID", "one more", "LEASE", 1)
	s.Advance(1)
	c.Want(fmt.Sprintf("[0 %d %d -1 -1]", 1<<30, 1<<30-most), "RL.ACQUIRE", "k", "PEEK")
	if err := s.Keyspace.Check(); err != nil {
		t.Error(err)
	}
}

// Leases of many limiters end in the order of their times, each at its own.
func TestLeasesEndInOrder(t *testing.T) {
	s := livetest.Start(t)
	c, events := s.Client(), s.Client()
	c.Want("OK", "CONFIG", "SET", "notify-keyspace-events", "Ed")
	events.Do("SUBSCRIBE", "__keyevent@0__:rl.ended")
	order := rand.New(rand.NewPCG(1, 2)).Perm(500)
	for _, at := range order {
		c.Want("[0 1 0 -1 "+fmt.Sprint(at+1)+"]", "RL.ACQUIRE", fmt.Sprintf("k:%d", at), "ID", "a", "LEASE", at+1, "CONC", 1)
	}
	s.Advance(1000)
	for at := range order {
		if got, want := events.Read(), fmt.Sprintf("[message __keyevent@0__:rl.ended k:%d]", at); got != want {
			t.Fatalf("event %d is %s", at, got)
		}
	}
	c.Want("0", "DBSIZE")
}
