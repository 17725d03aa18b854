// The commands of delay queues over a socket: each line is a command and its reply, as in the documentation.
package delayqueue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

const (
	wrongType = "-WRONGTYPE Operation against a key holding the wrong kind of value"
	syntax    = "-ERR syntax error"
	notInt    = "-ERR value is not an integer or out of range"
)

// converse sends lines of "command => reply". A line "+ms" moves the clock. T
// stands for the epoch in the lines, T+n for n ms later.
//
// The effects of a conversation make the same keys again.
func converse(t *testing.T, s *livetest.Server, c *livetest.Client, lines string) {
	t.Helper()
	proof := s.Client()
	if c.Do("DBSIZE") == "0" {
		proof.Want("OK", "LKV.JOURNAL", "START")
	}
	defer func() {
		if got := proof.Do("LKV.JOURNAL", "CHECK"); got != "OK" && got != "-ERR the journal is not read, see LKV.JOURNAL START" {
			t.Errorf("the effects make something else: %s", got)
		}
	}()
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if ms, ok := strings.CutPrefix(line, "+"); ok {
			var n int64
			fmt.Sscan(ms, &n)
			s.Advance(n)
			continue
		}
		command, want, ok := strings.Cut(times(line), " => ")
		if !ok {
			t.Fatalf("no reply in %q", line)
		}
		if got := c.Line(command); got != want {
			t.Errorf("%s\n got %s\nwant %s", command, got, want)
		}
	}
}

// times replaces T and T+n by numbers.
func times(line string) string {
	words := strings.Split(line, " ")
	for i, w := range words {
		bare := strings.Trim(w, "[]")
		if bare != "T" && !strings.HasPrefix(bare, "T+") {
			continue
		}
		var n int64
		fmt.Sscan(strings.TrimPrefix(bare, "T+"), &n)
		words[i] = strings.Replace(w, bare, fmt.Sprint(livetest.Epoch+n), 1)
	}
	return strings.Join(words, " ")
}

func TestAddPop(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		DQ.POP q => nil
		DQ.ADD q DELAY 1000 hello => 1700000000000-0
		TYPE q => delayqueue
		OBJECT ENCODING q => btree
		DQ.POP q => nil
		DQ.LEN q => 1
		DQ.LEN q READY => 0
		DQ.LEN q DELAYED => 1
		+999
		DQ.POP q => nil
		+1
		DQ.LEN q READY => 1
		DQ.POP q => [[1700000000000-0 hello T+1000 1]]
		# an empty queue without defaults is gone
		EXISTS q => 0
		# order of due times, then of adding
		DQ.ADD q AT T+2000 ID c pc => c
		DQ.ADD q AT T+2000 ID a pa => a
		DQ.ADD q DELAY 500 ID b pb => b
		DQ.ADD q ID now pn => now
		DQ.PEEK q => [[now pn T+1000 0] [b pb T+1500 0] [c pc T+2000 0] [a pa T+2000 0]]
		DQ.PEEK q DELAYED COUNT 2 => [[b pb T+1500 0] [c pc T+2000 0]]
		DQ.PEEK q READY => [[now pn T+1000 0]]
		DQ.PEEK q LEASED => []
		+5000
		DQ.POP q COUNT 3 => [[now pn T+1000 1] [b pb T+1500 1] [c pc T+2000 1]]
		DQ.POP q COUNT 3 => [[a pa T+2000 1]]
		DQ.POP q COUNT 3 => nil
		# existing ids
		DQ.ADD q XX ID x p => nil
		EXISTS q => 0
		DQ.ADD q NX DELAY 100 ID x p1 => x
		DQ.ADD q NX ID x p2 => nil
		DQ.ADD q XX DELAY 300 ID x p3 => x
		DQ.ADD q XX ID y p => nil
		DQ.PEEK q => [[x p3 T+6300 0]]
		DQ.ADD q DELAY 200 ID x p4 => x
		DQ.PEEK q => [[x p4 T+6200 0]]
		DQ.LEN q => 1
		# a time that has passed is due before what is due now
		DQ.ADD q ID n p => n
		DQ.ADD q AT 100000000000 ID old p => old
		DQ.POP q COUNT 9 => [[old p 100000000000 1] [n p T+6000 1]]
		DQ.REM q x none => 1
		EXISTS q => 0
		# a payload that looks like an option
		DQ.ADD q ID i NX => i
		DQ.POP q => [[i NX T+6000 1]]
	`)
}

func TestLease(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		DQ.ADD q ID a pa => a
		DQ.ADD q ID b pb => b
		DQ.ADD q ID d pd => d
		DQ.POP q LEASE 1000 => [[a#1 pa T 1]]
		DQ.POP q LEASE 2000 => [[b#1 pb T 1]]
		DQ.LEN q LEASED => 2
		DQ.PEEK q LEASED => [[a#1 pa T+1000 1] [b#1 pb T+2000 1]]
		# without a lease it is removed
		DQ.POP q => [[d pd T 1]]
		DQ.ACK q d a#2 none => 0
		DQ.ACK q b => 1
		+999
		DQ.POP q => nil
		+1
		# a's lease ran out: its worker is too late
		DQ.LEN q READY => 1
		DQ.ACK q a#1 => 0
		DQ.POP q LEASE 1000 => [[a#2 pa T+1000 2]]
		DQ.ACK q a#1 => 0
		DQ.NACK q a#1 => 0
		DQ.TOUCH q 5000 a#1 => 0
		DQ.REM q a#1 => 0
		DQ.TOUCH q 5000 a#2 => 1
		+4999
		DQ.POP q => nil
		DQ.NACK q a#2 DELAY 100 => 1
		DQ.PEEK q => [[a pa T+6099 2]]
		DQ.TOUCH q 50 a => 1
		DQ.PEEK q => [[a pa T+6049 2]]
		+50
		DQ.POP q LEASE 1000 => [[a#3 pa T+6049 3]]
		DQ.ACK q a#3 => 1
		EXISTS q => 0
	`)
}

func TestDefaults(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		DQ.SET q LEASE 1000 TRIES 3 DEAD {q}:dead BACKOFF 100 MAX 150 => OK
		EXISTS q => 1
		DQ.ADD q ID a pa => a
		DQ.POP q => [[a#1 pa T 1]]
		DQ.NACK q a#1 => 1
		+99
		DQ.POP q => nil
		+1
		DQ.POP q => [[a#2 pa T+100 2]]
		DQ.NACK q a => 1
		+150
		# the backoff doubled, up to MAX
		DQ.POP q => [[a#3 pa T+250 3]]
		EXISTS {q}:dead => 0
		# the third lease runs out
		+1000
		DQ.LEN q => 0
		DQ.POP q => nil
		DQ.PEEK {q}:dead FULL => [[id a payload pa state ready due T+1250 attempt 3 lease_until -1 prio 0 expire -1 unique -1 maxwait -1 first_added -1 group  schedule  reason lease ended]]
		DQ.POP {q}:dead => [[a pa T+1250 4]]
		# straight to the dead letters
		DQ.ADD q ID b pb => b
		DQ.POP q => [[b#1 pb T+1250 1]]
		DQ.NACK q b#1 none DEAD => 1
		DQ.LEN q => 0
		DQ.PEEK {q}:dead => [[b pb T+1250 1]]
		# LEASE 0 takes although the queue has a default
		DQ.ADD q ID c pc => c
		DQ.POP q LEASE 0 => [[c pc T+1250 1]]
		DQ.LEN q => 0
		DQ.INFO q => [ready 0 delayed 0 leased 0 dying 0 next_due -1 oldest_age 0 waiters 0 added 3 delivered 5 acked 0 nacked 3 expired 1 dead_lettered 2 removed 0 overdue 0 remembered 0 behind 0 lease 1000 tries 3 backoff 100 backoff_max 150 maxlen 0 paused 0 groups 0 groups_conc 0 dead {q}:dead limit  groups_rules  schedules []]
		# settings are changed one by one
		DQ.SET q TRIES 0 => OK
		DQ.SET q DEAD other => OK
		DQ.ADD q DELAY 5000 ID d pd => d
		DQ.ADD q AT T+250 ID e pe => e
		DQ.INFO q => [ready 1 delayed 1 leased 0 dying 0 next_due T+250 oldest_age 1000 waiters 0 added 5 delivered 5 acked 0 nacked 3 expired 1 dead_lettered 2 removed 0 overdue 0 remembered 0 behind 0 lease 1000 tries 0 backoff 100 backoff_max 150 maxlen 0 paused 0 groups 0 groups_conc 0 dead other limit  groups_rules  schedules []]
	`)
}

// A dead-letter queue in another shard is filled as well, after a lease that ended, from DQ.NACK, EXEC and a script; and
// nothing is lost if its key has another type.
func TestDeadElsewhere(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	for i := range 20 {
		q, dead := fmt.Sprint("queue", i), fmt.Sprint("letters", i)
		c.Want("OK", "DQ.SET", q, "LEASE", 100, "TRIES", 1, "DEAD", dead)
		for _, id := range []string{"a", "b", "c", "d"} {
			c.Want(id, "DQ.ADD", q, "ID", id, "p")
		}
		c.Do("DQ.POP", q, "COUNT", 9)
		c.Want("1", "DQ.NACK", q, "a")
		c.Want("1", "DQ.LEN", dead)
		c.Want("OK", "MULTI")
		c.Want("QUEUED", "DQ.NACK", q, "b", "DEAD")
		c.Want("QUEUED", "DQ.LEN", dead)
		c.Want("[1 2]", "EXEC")
		c.Want("1", "EVAL", "return redis.call('DQ.NACK', KEYS[1], 'c', 'DEAD')", 1, q)
		s.Advance(100)
		c.Want("0", "DQ.LEN", q)
	}
	s.Advance(0)
	for i := range 20 {
		dead := fmt.Sprint("letters", i)
		for end := 0; c.Do("DQ.LEN", dead) != "4" && end < 1000; end++ {
			// the script's letter is on its way
		}
		if got := c.Do("DQ.LEN", dead); got != "4" {
			t.Errorf("%s has %s of 4", dead, got)
		}
	}
	converse(t, s, c, `
		SET taken v => OK
		DQ.SET q DEAD taken => OK
		DQ.ADD q ID a p => a
		DQ.POP q LEASE 1000 => [[a#1 p T+2000 1]]
		DQ.NACK q a DEAD => 1
		DQ.LEN q => 1
		DQ.PEEK q => [[a p T+2000 1]]
		DQ.POP q => nil
		DEL taken => 1
		DQ.SET q DEAD taken => OK
		DQ.LEN q => 0
		DQ.LEN taken => 1
	`)
}

// Entries that move by themselves when leases end count as changes since the last snapshot.
func TestDeadLettersCount(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		DQ.SET q LEASE 100 TRIES 1 DEAD elsewhere => OK
		DQ.ADD q ID a p => a
		DQ.POP q => [[a#1 p T 1]]
	`)
	before := s.Keyspace.Dirty.Load()
	s.Advance(100)
	for end := time.Now().Add(10 * time.Second); c.Do("DQ.LEN", "elsewhere") != "1"; {
		if time.Now().After(end) {
			t.Fatal("no dead letter after ten seconds")
		}
	}
	if got := s.Keyspace.Dirty.Load(); got <= before {
		t.Errorf("%d changes, as many as before", got)
	}
}

func TestSortedSet(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		ZADD z T+500 m1 T+100 m2 1700000000300.25 m3 => 3
		DQ.POP z => nil
		+100
		DQ.POP z => [[m2 T+100]]
		+200
		DQ.POP z COUNT 5 => nil
		+1
		DQ.POP z COUNT 5 => [[m3 T+301]]
		+1000
		DQ.POP z LEASE 0 COUNT 5 => [[m1 T+500]]
		EXISTS z => 0
		# seconds, as consume.lua has them
		ZADD s 1700000001 a 1700000002 b 1700000002 c => 3
		DQ.POP s UNIT S => [[a T+1000]]
		DQ.POP s UNIT S => nil
		+699
		DQ.POP s UNIT S COUNT 9 => [[b T+2000] [c T+2000]]
		ZADD s inf never -inf always => 2
		DQ.POP s COUNT 9 => [[always 0]]
		DQ.POP s UNIT MS => nil
		TYPE s => zset
	`)
}

func TestMpop(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		DQ.MPOP 2 a b => nil
		DQ.ADD b ID b1 p => b1
		ZADD z T m => 1
		DQ.MPOP 3 a b z COUNT 4 => [b [[b1 p T 1]]]
		DQ.MPOP 3 a b z COUNT 4 => [z [[m T]]]
		DQ.MPOP 3 a b z COUNT 4 => nil
	`)
	c.Want("[a b]", "COMMAND", "GETKEYS", "DQ.MPOP", 2, "a", "b")
	c.Want("[q d]", "COMMAND", "GETKEYS", "DQ.SET", "q", "LEASE", 5, "DEAD", "d")
}

// Each bad call has an error of its own and changes nothing.
func TestErrors(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("a", "DQ.ADD", "q", "ID", "a", "p")
	c.Want("OK", "DQ.SET", "q", "TRIES", 5)
	c.Want("1", "ZADD", "z", 1, "m")
	c.Want("OK", "SET", "s", "v")
	before := c.Do("DQ.INFO", "q")
	for command, want := range map[string]string{
		"DQ.ADD q":                             "-ERR wrong number of arguments for 'dq.add' command",
		"DQ.ADD q DELAY 5 AT 6 p":              "-ERR DELAY and AT exclude each other",
		"DQ.ADD q AT 6 DELAY 5 p":              "-ERR DELAY and AT exclude each other",
		"DQ.ADD q NX XX ID a p":                syntax,
		"DQ.ADD q XX p":                        syntax,
		"DQ.ADD q EXTRA p":                     syntax,
		"DQ.ADD q p EXTRA":                     syntax,
		"DQ.ADD q DELAY 1 DELAY 2 p":           syntax,
		"DQ.ADD q DELAY x p":                   notInt,
		"DQ.ADD q DELAY -1 p":                  "-ERR delay is out of range, it can be 0 to 3155760000000 ms",
		"DQ.ADD q DELAY 9223372036854775807 p": "-ERR delay is out of range, it can be 0 to 3155760000000 ms",
		"DQ.ADD q AT 1700000000 p":             "-ERR AT takes Unix milliseconds, and this seems to be in seconds",
		"DQ.ADD q AT 99999999999 p":            "-ERR AT takes Unix milliseconds, and this seems to be in seconds",
		"DQ.ADD q AT 0 p":                      "-ERR AT takes Unix milliseconds, and this seems to be in seconds",
		"DQ.ADD q AT -1 p":                     "-ERR time is out of range, it can be 100000000000 to 253402300799999 ms",
		"DQ.ADD q AT 253402300800000 p":        "-ERR time is out of range, it can be 100000000000 to 253402300799999 ms",
		"DQ.ADD q ID a#1 p":                    "-ERR an id has 1 to 512 bytes and no #",
		"DQ.ADD z p":                           wrongType,
		"DQ.ADD s p":                           wrongType,
		"DQ.POP s":                             wrongType,
		"DQ.POP z LEASE 5":                     "-ERR a sorted set has no leases, LEASE is for delay queues",
		"DQ.POP q UNIT S":                      "-ERR UNIT S is for sorted sets, delay queues count in milliseconds",
		"DQ.POP q UNIT H":                      syntax,
		"DQ.POP q COUNT 0":                     "-ERR value is out of range, must be positive",
		"DQ.POP q COUNT -1":                    "-ERR value is out of range, must be positive",
		"DQ.POP q COUNT x":                     notInt,
		"DQ.POP q COUNT":                       syntax,
		"DQ.POP q COUNT 1 COUNT 1":             syntax,
		"DQ.POP q BLOCK -1":                    "-ERR timeout is negative",
		"DQ.POP q BLOCK 9223372036854775807":   "-ERR timeout is out of range",
		"DQ.POP q LEASE -1":                    "-ERR lease is out of range, it can be 0 to 3155760000000 ms",
		"DQ.POP q EXTRA":                       syntax,
		"DQ.MPOP 0 q":                          "-ERR numkeys should be greater than 0",
		"DQ.MPOP x q":                          "-ERR numkeys should be greater than 0",
		"DQ.MPOP 2 q":                          syntax,
		"DQ.MPOP 1 q q":                        syntax,
		"DQ.ACK q":                             "-ERR wrong number of arguments for 'dq.ack' command",
		"DQ.ACK z a":                           wrongType,
		"DQ.NACK q a DEAD":                     "-ERR the queue has no dead-letter queue, name one with DQ.SET key DEAD",
		"DQ.NACK q a DELAY 5 DEAD":             syntax,
		"DQ.NACK q a DELAY -1":                 "-ERR delay is out of range, it can be 0 to 3155760000000 ms",
		"DQ.NACK q a DELAY x":                  notInt,
		"DQ.TOUCH q -1 a":                      "-ERR delay is out of range, it can be 0 to 3155760000000 ms",
		"DQ.TOUCH q x a":                       notInt,
		"DQ.TOUCH q 5":                         "-ERR wrong number of arguments for 'dq.touch' command",
		"DQ.SET q":                             "-ERR wrong number of arguments for 'dq.set' command",
		"DQ.SET q LEASE 5 LEASE 6":             syntax,
		"DQ.SET q MAX 5":                       syntax,
		"DQ.SET q LEASE -1":                    "-ERR lease is out of range, it can be 0 to 3155760000000 ms",
		"DQ.SET q TRIES -1":                    "-ERR tries is out of range, it can be 0 to 1000000000",
		"DQ.SET q BACKOFF 10 MAX 5":            "-ERR backoff is out of range, it can be 0 to 3155760000000 ms and at most MAX",
		"DQ.SET q BACKOFF -5":                  "-ERR backoff is out of range, it can be 0 to 3155760000000 ms and at most MAX",
		"DQ.SET q DEAD q":                      "-ERR a queue cannot be its own dead-letter queue",
		"DQ.SET s LEASE 5":                     wrongType,
		"DQ.PEEK q DYING":                      syntax,
		"DQ.PEEK q COUNT 0":                    "-ERR value is out of range, must be positive",
		"DQ.PEEK z":                            wrongType,
		"DQ.LEN q READY DELAYED":               syntax,
		"DQ.LEN s":                             wrongType,
		"DQ.INFO none":                         "-ERR no such key",
	} {
		if got := c.Line(command); got != want {
			t.Errorf("%s\n got %s\nwant %s", command, got, want)
		}
	}
	if after := c.Do("DQ.INFO", "q"); after != before {
		t.Errorf("a bad call changed the queue:\n%s\n%s", before, after)
	}
	c.Want("-ERR an id has 1 to 512 bytes and no #", "DQ.ADD", "q", "ID", "", "p")
	c.Want("-ERR an id has 1 to 512 bytes and no #", "DQ.ADD", "q", "ID", strings.Repeat("x", 513), "p")
	c.Want("3", "DBSIZE")
}

// A leased id belongs to one worker. If it is added again, the new version waits.
func TestOneWorker(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		DQ.SET q LEASE 1000 DEAD {q}dead GROUPS CONC 1 => OK
		DQ.ADD q ID a GROUP g p1 => a
		DQ.ADD q ID b GROUP g other => b
		DQ.POP q => [[a#1 p1 T 1]]
		# of several versions the last one waits, and CONC counts the lease
		DQ.ADD q ID a GROUP g p2 => a
		DQ.ADD q XX ID a GROUP g DELAY 300 p3 => a
		DQ.ADD q NX ID a p4 => nil
		DQ.ADD q UNIQUE 1000 ID a p4 => nil
		DQ.POP q COUNT 9 => nil
		DQ.PEEK q LEASED => [[a#1 p1 T+1000 1]]
		DQ.LEN q => 2
		+100
		DQ.TOUCH q 1000 a => 1
		DQ.ACK q a#1 => 1
		DQ.PEEK q => [[b other T 0] [a p3 T+300 1]]
		DQ.POP q => [[b#1 other T 1]]
		DQ.ACK q b => 1
		+200
		DQ.POP q => [[a#2 p3 T+300 2]]
		# given back: the new version comes in its place, at its own time
		DQ.ADD q ID a GROUP h p5 => a
		DQ.NACK q a DELAY 9999 => 1
		DQ.POP q => [[a#3 p5 T+300 3]]
		# so when the lease ends
		DQ.ADD q ID a DELAY 2000 p6 => a
		+1000
		DQ.PEEK q => [[a p6 T+2300 3]]
		+1000
		DQ.POP q => [[a#4 p6 T+2300 4]]
		# what failed for good is a dead letter
		DQ.ADD q ID a p7 => a
		DQ.NACK q a DEAD REASON why => 1
		DQ.PEEK {q}dead => [[a p6 T+2300 4]]
		DQ.POP q => [[a#5 p7 T+2300 5]]
		# both are cancelled
		DQ.ADD q ID a p8 => a
		DQ.REM q a# => 0
		DQ.REM q a => 1
		DQ.LEN q => 0
		# who has an id that is unique keeps it
		DQ.ADD q ID u UNIQUE 500 p1 => u
		DQ.POP q => [[u#1 p1 T+2300 1]]
		DQ.ADD q ID u p2 => nil
		DQ.ACK q u => 1
		DQ.ADD q ID u p2 => nil
		# a schedule leaves the entry of its name to the worker
		DQ.ADD q ID s p1 => s
		DQ.POP q => [[s#1 p1 T+2300 1]]
		DQ.ADD q ID s EVERY 1000 p2 => s
		DQ.PEEK q => [[s@1700000003300 p2 T+3300 0] [s#1 p1 T+3300 1]]
		DQ.ACK q s#1 => 1
		# an occurrence is replaced by one
		+1000
		DQ.POP q => [[s@1700000003300#1 p2 T+3300 1]]
		DQ.ADD q ID s@1700000003300 again => s@1700000003300
		DQ.ACK q s@1700000003300 => 1
		DQ.POP q COUNT 9 => [[s@1700000003300#2 again T+3300 2]]
		DQ.ACK q s@1700000003300 => 1
		DQ.PEEK q => [[s@1700000004300 p2 T+4300 0]]
	`)
}

// A new version that waits is saved wherever queues are saved.
func TestOneWorkerKept(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "LKV.JOURNAL", "START")
	c.Want("a", "DQ.ADD", "q", "ID", "a", "GROUP", "g", "p1")
	c.Want(times("[[a#1 p1 T 1]]"), "DQ.POP", "q", "LEASE", 60000)
	c.Want("a", "DQ.ADD", "q", "ID", "a", "PRIO", 3, "EXPIRE", 5000, "DELAY", 50, "p2")
	c.Want("1", "COPY", "q", "copied")
	c.Want("OK", "EVAL", "return redis.call('RESTORE', KEYS[2], 0, redis.call('DUMP', KEYS[1]))", 2, "q", "restored")
	digest := c.Do("DEBUG", "DIGEST")
	c.Want("OK", "DEBUG", "RELOAD")
	if got := c.Do("DEBUG", "DIGEST"); got != digest {
		t.Errorf("loaded again it has the digest %s, not %s", got, digest)
	}
	for _, q := range []string{"q", "copied", "restored"} {
		c.Want("1", "DQ.LEN", q)
		if got := field(t, c, "DQ.INFO", q, "behind"); got != "1" {
			t.Errorf("%s entries are behind others in %s", got, q)
		}
		c.Want("nil", "DQ.POP", q)
		c.Want("1", "DQ.ACK", q, "a#1")
		c.Want(times("[[id a payload p2 state delayed due T+50 attempt 1 lease_until -1 prio 3 expire 5000 unique -1 maxwait -1 first_added -1 group  schedule  reason ]]"), "DQ.PEEK", q, "FULL")
	}
	c.Want("OK", "LKV.JOURNAL", "CHECK")
}

func TestKeyCommands(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	converse(t, s, c, `
		DQ.ADD q ID a p => a
		DQ.ADD q DELAY 50 ID b p => b
		DQ.POP q LEASE 1000 => [[a#1 p T 1]]
		COPY q r => 1
		RENAME q p => OK
		DQ.ACK p a#1 => 1
		+1000
		DQ.POP r COUNT 9 => [[b p T+50 1] [a p T+1000 2]]
		DQ.POP p COUNT 9 => [[b p T+50 1]]
		DBSIZE => 0
		DQ.ADD q DELAY 5000 ID a p => a
		PEXPIRE q 100 => 1
		+101
		DQ.LEN q => 0
		DQ.ADD q ID a p => a
		MULTI => OK
		DQ.POP q BLOCK 0 => QUEUED
		DQ.POP q BLOCK 0 => QUEUED
		EXEC => [[[a p T+1101 1]] nil]
	`)
	c.Want("nil", "EVAL", "return redis.call('DQ.POP', KEYS[1], 'BLOCK', 0)", 1, "q")
	if got := c.Do("SCAN", 0, "TYPE", "delayqueue"); got != "[0 []]" {
		t.Error(got)
	}
	c.Want("x", "DQ.ADD", "q", "ID", "x", "p")
	if got := c.Do("SCAN", 0, "COUNT", 1000, "TYPE", "delayqueue"); got != "[0 [q]]" {
		t.Error(got)
	}
	if got := c.Do("INFO", "limitkv"); !strings.Contains(got, "delay_queues:1\r\ndelay_queue_entries_waiting:1\r\n") {
		t.Error(got)
	}
}
