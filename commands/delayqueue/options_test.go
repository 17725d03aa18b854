// Options of entries and queues: each as in the documentation, at its limits, and with its errors.
package delayqueue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

func TestMaxLen(t *testing.T) {
	s := livetest.Start(t)
	converse(t, s, s.Client(), `
		DQ.SET q MAXLEN 2 => OK
		DQ.ADD q ID a p => a
		DQ.ADD q DELAY 100 ID b p => b
		DQ.ADD q ID c p => -QUEUEFULL the queue has as many entries as its MAXLEN allows
		DQ.ADD q NX ID c p => -QUEUEFULL the queue has as many entries as its MAXLEN allows
		DQ.LEN q => 2
		# what is there already can be replaced
		DQ.ADD q DELAY 50 ID b p2 => b
		DQ.ADD q XX ID c p => nil
		DQ.ADD q NX ID b p => nil
		# a leased entry is one
		DQ.POP q LEASE 1000 => [[a#1 p T 1]]
		DQ.ADD q ID c p => -QUEUEFULL the queue has as many entries as its MAXLEN allows
		DQ.ACK q a#1 => 1
		DQ.ADD q ID c p => c
		DQ.SET q MAXLEN 3 => OK
		DQ.ADD q ID d p => d
		DQ.SET q MAXLEN 1 => OK
		DQ.LEN q => 3
		DQ.SET q MAXLEN 0 => OK
		DQ.ADD q ID e p => e
		DQ.SET q MAXLEN 1000000000000 => OK
		DQ.SET q MAXLEN 1000000000001 => -ERR MAXLEN is out of range, it can be 0 to 1000000000000
		DQ.SET q MAXLEN -1 => -ERR MAXLEN is out of range, it can be 0 to 1000000000000
	`)
}

func TestPaused(t *testing.T) {
	s := livetest.Start(t)
	c, w := s.Client(), s.Client()
	converse(t, s, c, `
		DQ.ADD q ID a p => a
		DQ.ADD q ID b p => b
		DQ.POP q LEASE 1000 => [[a#1 p T 1]]
		DQ.SET q PAUSED 1 => OK
		DQ.POP q => nil
		DQ.ADD q ID c p => c
	`)
	w.Send("DQ.POP", "q", "BLOCK", 0, "COUNT", 2)
	s.Blocked(1)
	converse(t, s, c, `
		DQ.TOUCH q 2000 a#1 => 1
		+1500
		DQ.ACK q a#1 => 1
		DQ.LEN q READY => 2
	`)
	w.Silent()
	c.Want("OK", "DQ.SET", "q", "PAUSED", 0)
	if got, want := w.Read(), times("[[b p T 1] [c p T 1]]"); got != want {
		t.Errorf("after the pause %s, want %s", got, want)
	}
	converse(t, s, c, `
		DQ.SET q PAUSED 2 => -ERR PAUSED can be 0 or 1
		DQ.SET q PAUSED -1 => -ERR PAUSED can be 0 or 1
		DQ.SET q LEASE 1 PAUSED => -ERR syntax error
	`)
}

func TestReason(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		DQ.SET q LEASE 1000 TRIES 2 DEAD {q}dead => OK
		DQ.ADD q ID a p => a
		DQ.POP q => [[a#1 p T 1]]
		DQ.NACK q a#1 REASON timeout => 1
		DQ.PEEK q FULL => [[id a payload p state ready due T attempt 1 lease_until -1 prio 0 expire -1 unique -1 maxwait -1 first_added -1 group  schedule  reason timeout]]
		DQ.POP q => [[a#2 p T 2]]
		# without a reason the last one stays, and goes with it
		DQ.NACK q a#2 => 1
		DQ.PEEK {q}dead FULL => [[id a payload p state ready due T attempt 2 lease_until -1 prio 0 expire -1 unique -1 maxwait -1 first_added -1 group  schedule  reason timeout]]
		# options in any order, and a reason that looks like one
		DQ.ADD q ID b p => b
		DQ.POP q => [[b#1 p T 1]]
		DQ.NACK q b REASON DEAD DELAY 10 => 1
		DQ.PEEK q => [[b p T+10 1]]
		+10
		DQ.POP q => [[b#2 p T+10 2]]
		DQ.NACK q b DEAD REASON gone => 1
		DQ.LEN {q}dead => 2
		# a new entry under the id has none
		DQ.ADD {q}dead ID b p => b
		DQ.PEEK {q}dead FROM b FULL => [[id b payload p state ready due T+10 attempt 2 lease_until -1 prio 0 expire -1 unique -1 maxwait -1 first_added -1 group  schedule  reason ]]
		DQ.NACK q REASON x => 0
	`)
	c.Want("x", "DQ.ADD", "r", "ID", "x", "p")
	c.Do("DQ.POP", "r", "LEASE", 1000)
	c.Want("-ERR a reason has at most 1024 bytes", "DQ.NACK", "r", "x", "REASON", strings.Repeat("r", 1025))
	c.Want("1", "DQ.LEN", "r", "LEASED")
	c.Want("1", "DQ.NACK", "r", "x", "REASON", strings.Repeat("r", 1024))
	if got := c.Do("DQ.PEEK", "r", "FULL"); !strings.Contains(got, strings.Repeat("r", 1024)) {
		t.Error(got)
	}
}

func TestExpire(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		DQ.ADD q DELAY 100 EXPIRE 50 ID a p => a
		DQ.ADD q DELAY 100 EXPIRE 51 ID b p => b
		DQ.ADD q EXPIRE 150 ID c p => c
		+100
		DQ.POP q LEASE 1000 => [[c#1 p T 1]]
		+49
		DQ.LEN q READY => 2
		+1
		# without a dead-letter queue it is gone; what somebody took stays
		DQ.LEN q READY => 1
		DQ.POP q LEASE 10 => [[b#1 p T+100 1]]
		DQ.LEN q => 2
		# due again, it can expire again
		+10
		DQ.LEN q READY => 1
		+50
		DQ.LEN q READY => 1
		+1
		DQ.LEN q READY => 0
		DQ.ACK q c#1 => 1
		EXISTS q => 0
		DQ.SET q DEAD {q}dead PAUSED 1 => OK
		DQ.ADD q EXPIRE 1 ID d p => d
		+1
		DQ.LEN q => 0
		DQ.PEEK {q}dead FULL => [[id d payload p state ready due T+212 attempt 0 lease_until -1 prio 0 expire -1 unique -1 maxwait -1 first_added -1 group  schedule  reason expired]]
		DQ.TOUCH {q}dead 5000 d => 1
		DQ.ADD q EXPIRE 0 p => -ERR EXPIRE is out of range, it can be 1 to 3155760000000 ms
		DQ.ADD q EXPIRE 3155760000001 p => -ERR EXPIRE is out of range, it can be 1 to 3155760000000 ms
		DQ.ADD q EXPIRE x p => -ERR value is not an integer or out of range
		DQ.ADD q EXPIRE 5 EXPIRE 5 p => -ERR syntax error
		DQ.ADD q EXPIRE 3155760000000 ID e p => e
	`)
	if got := c.Do("DQ.INFO", "q"); !strings.Contains(got, " overdue 1 ") {
		t.Error(got)
	}
}

func TestUnique(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		DQ.ADD q UNIQUE 1000 ID a p => a
		# while it is there the id means what it always does
		DQ.ADD q UNIQUE 1000 ID a p2 => a
		DQ.POP q => [[a p2 T 1]]
		EXISTS q => 1
		DQ.LEN q => 0
		DQ.ADD q ID a p => nil
		DQ.ADD q XX ID a p => nil
		DQ.ADD q NX ID a p => nil
		DQ.PEEK q => []
		+999
		DQ.ADD q ID a p => nil
		+1
		EXISTS q => 0
		DQ.ADD q UNIQUE 500 ID a p => a
		DQ.POP q LEASE 100 => [[a#1 p T+1000 1]]
		# a lease that ends is not done
		+100
		DQ.POP q LEASE 100 => [[a#2 p T+1100 2]]
		DQ.ACK q a#2 => 1
		DQ.ADD q ID a p => nil
		# DQ.REM forgets
		DQ.REM q a#2 => 0
		DQ.REM q a => 1
		DQ.ADD q ID a p => a
		DQ.REM q a => 1
		EXISTS q => 0
		# what was cancelled is not done
		DQ.ADD q UNIQUE 500 ID a p => a
		DQ.REM q a => 1
		DQ.ADD q UNIQUE 500 ID a p => a
		DQ.POP q => [[a p T+1100 1]]
		COPY q r => 1
		RENAME q p => OK
		DQ.ADD p ID a p => nil
		DQ.ADD r ID a p => nil
		+500
		EXISTS p r => 0
		DQ.ADD q UNIQUE 0 p => -ERR UNIQUE is out of range, it can be 1 to 3155760000000 ms
	`)
}

// Debouncing: the last call counts, but no later than MAXWAIT after the first.
func TestMaxWait(t *testing.T) {
	s := livetest.Start(t)
	converse(t, s, s.Client(), `
		DQ.ADD q DELAY 100 MAXWAIT 250 ID a p1 => a
		+90
		DQ.ADD q DELAY 100 MAXWAIT 250 ID a p2 => a
		DQ.PEEK q => [[a p2 T+190 0]]
		+90
		DQ.ADD q DELAY 100 MAXWAIT 250 ID a p3 => a
		DQ.PEEK q => [[a p3 T+250 0]]
		+60
		# the first call's limit stands
		DQ.ADD q DELAY 100 ID a p4 => a
		DQ.PEEK q => [[a p4 T+250 0]]
		+10
		DQ.POP q LEASE 1000 => [[a#1 p4 T+250 1]]
		# taken: another time begins, behind the lease as well
		DQ.ADD q DELAY 100 MAXWAIT 250 ID a p5 => a
		+90
		DQ.ADD q DELAY 1000 MAXWAIT 250 ID a p6 => a
		DQ.ACK q a#1 => 1
		DQ.PEEK q FULL => [[id a payload p6 state delayed due T+500 attempt 1 lease_until -1 prio 0 expire -1 unique -1 maxwait 250 first_added T+250 group  schedule  reason ]]
		DQ.ADD q MAXWAIT 0 p => -ERR MAXWAIT is out of range, it can be 1 to 3155760000000 ms
	`)
}

func TestRequeue(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	for i := range 20 { // the shards of both keys, in either order
		q, dead := fmt.Sprint("queue", i), fmt.Sprint("letters", i)
		c.Want("0", "DQ.REQUEUE", dead, q)
		c.Want("OK", "DQ.SET", q, "LEASE", 1000, "DEAD", dead, "MAXLEN", 4)
		for _, id := range []string{"a", "b", "c", "d"} {
			c.Want(id, "DQ.ADD", q, "ID", id, "p"+id)
		}
		c.Do("DQ.POP", q, "COUNT", 9)
		c.Want("4", "DQ.NACK", q, "a", "b", "c", "d", "DEAD", "REASON", "why")
		c.Want("1", "DQ.REQUEUE", dead, q, "COUNT", 1)
		c.Want("2", "DQ.REQUEUE", dead, q, "ID", "d", "none", "c")
		c.Want("[[b pb "+fmt.Sprint(s.Now())+" 1]]", "DQ.PEEK", dead)
		c.Want("[[a#1 pa "+fmt.Sprint(s.Now())+" 1]]", "DQ.POP", q)
		// entries that the queue has stay where they are
		c.Want("a", "DQ.ADD", dead, "ID", "a", "older")
		c.Want("1", "DQ.REQUEUE", dead, q)
		c.Want("-QUEUEFULL the queue has as many entries as its MAXLEN allows", "DQ.REQUEUE", dead, q)
		c.Want("1", "DQ.LEN", dead)
		if got := c.Do("DQ.PEEK", q, "FROM", "b", "FULL"); !strings.Contains(got, "attempt 0") || !strings.HasSuffix(got, "reason why]]") {
			t.Error(got)
		}
	}
	converse(t, s, c, `
		DQ.REQUEUE q q => -ERR the two queues are the same key
		SET s v => OK
		DQ.ADD q ID x p => x
		DQ.REQUEUE q s => -WRONGTYPE Operation against a key holding the wrong kind of value
		DQ.REQUEUE s q => -WRONGTYPE Operation against a key holding the wrong kind of value
		DQ.REQUEUE q r COUNT 0 => -ERR value is out of range, must be positive
		DQ.REQUEUE q r COUNT 1 x => -ERR syntax error
		DQ.REQUEUE q r ID => -ERR syntax error
		DQ.REQUEUE q r x => -ERR syntax error
		EXISTS r => 0
		# the other queue has a schedule of that name
		DQ.ADD scheduled ID x EVERY 60000 p => x
		DQ.ADD named ID x old => x
		DQ.REQUEUE named scheduled => 0
		DQ.LEN named => 1
		DQ.REQUEUE named scheduled ID x => 0
		DQ.LEN named => 1
		# a leased letter stays with who looks at it
		DQ.POP q LEASE 1000 => [[x#1 p T 1]]
		DQ.REQUEUE q r => 0
		DQ.REQUEUE q r ID x => 0
		EXISTS r => 0
		DQ.NACK q x => 1
		DQ.REQUEUE q r => 1
		EXISTS q => 0
	`)
	w := s.Client()
	w.Send("DQ.POP", "woken", "BLOCK", 0)
	s.Blocked(1)
	c.Want("1", "DQ.REQUEUE", "r", "woken")
	if got := w.Read(); got != times("[[x p T 1]]") {
		t.Errorf("the waiting consumer got %s", got)
	}
}

func TestPeekFrom(t *testing.T) {
	s := livetest.Start(t)
	converse(t, s, s.Client(), `
		DQ.ADD q ID user:1 p => user:1
		DQ.ADD q ID user:2 p => user:2
		DQ.ADD q ID job:1 p => job:1
		DQ.ADD q DELAY 100 ID user:3 p => user:3
		DQ.ADD q DELAY 200 ID user:4 p => user:4
		DQ.POP q LEASE 500 => [[user:1#1 p T 1]]
		DQ.PEEK q FROM user:2 COUNT 2 => [[user:2 p T 0] [job:1 p T 0]]
		DQ.PEEK q FROM user:3 => [[user:3 p T+100 0] [user:4 p T+200 0] [user:1#1 p T+500 1]]
		DQ.PEEK q FROM user:1#1 => [[user:1#1 p T+500 1]]
		DQ.PEEK q LEASED FROM user:1 => [[user:1#1 p T+500 1]]
		DQ.PEEK q READY FROM job:1 => [[job:1 p T 0]]
		DQ.PEEK q DELAYED FROM user:4 => [[user:4 p T+200 0]]
		DQ.PEEK q MATCH user:* => [[user:2 p T 0] [user:3 p T+100 0] [user:4 p T+200 0] [user:1#1 p T+500 1]]
		DQ.PEEK q DELAYED MATCH user:* COUNT 1 => [[user:3 p T+100 0]]
		DQ.PEEK q MATCH none => []
		DQ.PEEK q FROM user:3 MATCH *:4 => [[user:4 p T+200 0]]
		DQ.PEEK q FROM none => -ERR FROM names an entry that is not there in that state
		DQ.PEEK q READY FROM user:4 => -ERR FROM names an entry that is not there in that state
		DQ.PEEK q LEASED FROM user:2 => -ERR FROM names an entry that is not there in that state
		DQ.PEEK none FROM a => -ERR FROM names an entry that is not there in that state
		DQ.PEEK q FROM => -ERR syntax error
		DQ.PEEK q FULL FULL => -ERR syntax error
		DQ.PEEK q LEASED FULL => [[id user:1#1 payload p state leased due T attempt 1 lease_until T+500 prio 0 expire -1 unique -1 maxwait -1 first_added -1 group  schedule  reason ]]
	`)
}

func TestMove(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		DQ.MOVE z l => 0
		ZADD z T+100 a T+200 b T+300 c T+9000 d => 4
		DQ.MOVE z l => 0
		EXISTS l => 0
		+200
		DQ.MOVE z l COUNT 1 => 1
		DQ.MOVE z l => 1
		LRANGE l 0 -1 => [a b]
		+100
		DQ.MOVE z l LEFT => 1
		LRANGE l 0 -1 => [c a b]
		ZADD s 1700000000 x 1700000001 y => 2
		DQ.MOVE s l UNIT S RIGHT => 1
		LRANGE l 0 -1 => [c a b x]
		+1000
		DQ.MOVE s l LEFT UNIT S => 1
		EXISTS s => 0
		DQ.MOVE z z => -ERR the sorted set and the list are the same key
		DQ.MOVE l z => -WRONGTYPE Operation against a key holding the wrong kind of value
		SET str v => OK
		ZADD due 1 m => 1
		DQ.MOVE due str => -WRONGTYPE Operation against a key holding the wrong kind of value
		ZCARD due => 1
		DQ.MOVE due l LEFT RIGHT => -ERR syntax error
		DQ.MOVE due l COUNT 0 => -ERR value is out of range, must be positive
		DQ.MOVE due l BLOCK -1 => -ERR timeout is negative
		DQ.MOVE due l UNIT H => -ERR syntax error
		DQ.MOVE due => -ERR wrong number of arguments for 'dq.move' command
		MULTI => OK
		DQ.MOVE z l BLOCK 0 => QUEUED
		EXEC => [0]
	`)
	c.Want("[z l]", "COMMAND", "GETKEYS", "DQ.MOVE", "z", "l", "BLOCK", 0)
}

// One call in place of a poller: it waits for due members, and wakes waiters for the list.
func TestMoveBlock(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	for i := range 20 { // in either order of shards
		z, l := fmt.Sprint("schedule", i), fmt.Sprint("work", i)
		poller, worker := s.Client(), s.Client()
		worker.Send("BLPOP", l, 0)
		s.Blocked(1)
		poller.Send("DQ.MOVE", z, l, "BLOCK", 0)
		s.Blocked(2)
		c.Want("2", "ZADD", z, s.Now()+50, "a", s.Now()+100, "b")
		s.Advance(49)
		poller.Silent()
		s.Advance(1)
		if got := poller.Read(); got != "1" {
			t.Fatalf("moved %s", got)
		}
		if got := worker.Read(); got != "["+l+" a]" {
			t.Fatalf("the worker got %s", got)
		}
		poller.Send("DQ.MOVE", z, l, "BLOCK", 30)
		s.Blocked(1)
		s.Advance(30)
		if got := poller.Read(); got != "0" {
			t.Fatalf("timed out with %s", got)
		}
		// The schedule becomes something else and back; the list something else.
		poller.Send("DQ.MOVE", z, l, "BLOCK", 0)
		s.Blocked(1)
		c.Want("OK", "SET", z, "v")
		poller.Silent()
		c.Want("OK", "SET", l, "v")
		c.Want("1", "DEL", z)
		c.Want("1", "ZADD", z, 1, "c")
		if got := poller.Read(); got != wrongType {
			t.Fatalf("with a string for a list: %s", got)
		}
		c.Want("1", "ZCARD", z)
		s.Blocked(0)
	}
}
