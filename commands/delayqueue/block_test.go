// Waiting for entries that fall due: in the order in which consumers asked, exactly when due, whatever changes the key, and
// each entry to one consumer.
package delayqueue_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// On both kinds of key: consumers are served in order, each when something
// falls due.
func TestBlockInOrder(t *testing.T) {
	for kind, add := range map[string]func(c *livetest.Client, at int64, id string){
		"delayqueue": func(c *livetest.Client, at int64, id string) {
			c.Want(id, "DQ.ADD", "q", "AT", livetest.Epoch+at, "ID", id, "p")
		},
		"zset": func(c *livetest.Client, at int64, id string) { c.Want("1", "ZADD", "q", livetest.Epoch+at, id) },
	} {
		t.Run(kind, func(t *testing.T) {
			s := livetest.Start(t)
			c := s.Client()
			var line []*livetest.Client
			for i := range 4 {
				w := s.Client()
				w.Send("DQ.POP", "q", "BLOCK", 0)
				s.Blocked(int64(i + 1))
				line = append(line, w)
			}
			add(c, 500, "late")
			add(c, 100, "early") // an earlier one re-arms the line
			add(c, 500, "later")
			for i, step := range []struct {
				at int64
				id string
			}{{100, "early"}, {500, "late"}, {500, "later"}} {
				if wait := livetest.Epoch + step.at - s.Now(); wait > 0 {
					s.Advance(wait - 1)
					line[i].Silent()
					s.Advance(1)
				}
				if got := line[i].Read(); !strings.HasPrefix(got, "[["+step.id+" ") {
					t.Errorf("consumer %d got %s, want %s", i, got, step.id)
				}
			}
			s.Blocked(1)
			// One that asks now, without waiting, does not get ahead of the line.
			add(c, 600, "next")
			s.Advance(100)
			c.Want("nil", "DQ.POP", "q")
			if got := line[3].Read(); !strings.HasPrefix(got, "[[next ") {
				t.Errorf("the last got %s", got)
			}
		})
	}
}

// Whatever is done to the key wakes or re-arms the line.
func TestBlockAndTheKey(t *testing.T) {
	for what, test := range map[string]struct {
		do   []string
		at   int64  // when the waiter is served, ms after the epoch; -1: not before 900
		want string // what it gets
	}{
		"earlier member":    {[]string{"ZADD z T+100 x"}, 100, "[[x T+100]]"},
		"due member":        {[]string{"ZADD z T x"}, 0, "[[x T]]"},
		"later member":      {[]string{"ZADD z T+950 x"}, 400, "[[head T+400]]"},
		"head removed":      {[]string{"ZREM z head"}, 800, "[[second T+800]]"},
		"head rescheduled":  {[]string{"ZADD z T+850 head"}, 800, "[[second T+800]]"},
		"head moved up":     {[]string{"ZINCRBY z -350 head"}, 50, "[[head T+50]]"},
		"popped by others":  {[]string{"ZPOPMIN z"}, 800, "[[second T+800]]"},
		"deleted":           {[]string{"DEL z"}, -1, ""},
		"deleted and added": {[]string{"DEL z", "ZADD z T+60 y"}, 60, "[[y T+60]]"},
		"renamed away":      {[]string{"RENAME z y"}, -1, ""},
		"renamed to":        {[]string{"ZADD y T+30 x", "RENAME y z"}, 30, "[[x T+30]]"},
		"copied to":         {[]string{"ZADD y T+30 x", "COPY y z REPLACE"}, 30, "[[x T+30]]"},
		"expires":           {[]string{"PEXPIRE z 200"}, -1, ""},
		"persists":          {[]string{"PEXPIRE z 200", "PERSIST z"}, 400, "[[head T+400]]"},
		"flushed":           {[]string{"FLUSHALL"}, -1, ""},
		"another type":      {[]string{"SET z v"}, -1, ""},
		"a delay queue":     {[]string{"DEL z", "DQ.ADD z DELAY 70 ID i p"}, 70, "[[i p T+70 1]]"},
		"in a transaction":  {[]string{"MULTI", "ZADD z T+10 x", "ZREM z x", "ZADD z T+20 y", "EXEC"}, 20, "[[y T+20]]"},
		"due in between":    {[]string{"MULTI", "ZADD z T x", "ZREM z x", "EXEC"}, 400, "[[head T+400]]"},
		"in a script":       {[]string{"EVAL return(redis.call('zadd',KEYS[1],ARGV[1],'x')) 1 z T+40"}, 40, "[[x T+40]]"},
		"stored":            {[]string{"ZADD y T+30 x", "ZUNIONSTORE z 1 y"}, 30, "[[x T+30]]"},
	} {
		t.Run(what, func(t *testing.T) {
			s := livetest.Start(t)
			c, w := s.Client(), s.Client()
			converse(t, s, c, "ZADD z T+400 head T+800 second => 2")
			w.Send("DQ.POP", "z", "BLOCK", 0)
			s.Blocked(1)
			for _, line := range test.do {
				if got := c.Line(times(line)); strings.HasPrefix(got, "-") {
					t.Fatalf("%s: %s", line, got)
				}
			}
			at := test.at
			if at < 0 {
				at = 900
			}
			if at > 0 {
				s.Advance(at - 1)
				w.Silent()
				s.Advance(1)
			}
			if test.at < 0 {
				w.Silent()
				s.Blocked(1)
				return
			}
			if got := w.Read(); got != times(test.want) {
				t.Errorf("got %s, want %s", got, times(test.want))
			}
		})
	}
}

// Leases that end, entries that come back and renewed leases also wake the line.
func TestBlockAndLeases(t *testing.T) {
	for what, test := range map[string]struct {
		do   string
		at   int64
		want string
	}{
		"lease runs out": {"PING", 300, "[[a#2 p T+300 2]]"},
		"given back":     {"DQ.NACK q a", 0, "[[a#2 p T 2]]"},
		"with a delay":   {"DQ.NACK q a DELAY 40", 40, "[[a#2 p T+40 2]]"},
		"touched":        {"DQ.TOUCH q 90 a", 90, "[[a#2 p T+90 2]]"},
		"another":        {"DQ.ADD q DELAY 20 ID b p", 20, "[[b#1 p T+20 1]]"},
		"replaced":       {"DQ.ADD q DELAY 20 ID a p2", 300, "[[a#2 p2 T+20 2]]"},
	} {
		t.Run(what, func(t *testing.T) {
			s := livetest.Start(t)
			c, w := s.Client(), s.Client()
			c.Want("a", "DQ.ADD", "q", "ID", "a", "p")
			c.Want(times("[[a#1 p T 1]]"), "DQ.POP", "q", "LEASE", 300)
			w.Send("DQ.POP", "q", "BLOCK", 0, "LEASE", 1000)
			s.Blocked(1)
			c.Line(test.do)
			if test.at > 0 {
				s.Advance(test.at - 1)
				w.Silent()
				s.Advance(1)
			}
			if got := w.Read(); got != times(test.want) {
				t.Errorf("got %s, want %s", got, times(test.want))
			}
		})
	}
}

// consumeScript is what pollers call: KEYS is the sorted set, ARGV the time in
// seconds.
const consumeScript = `
local first = redis.call('zrange', KEYS[1], 0, 0, 'withscores')
if first[2] and tonumber(first[2]) <= tonumber(ARGV[1]) then
  redis.call('zrem', KEYS[1], first[1])
  return first[1]
end
return nil`

// DQ.POP on a sorted set does the same as the poller's script, call for call.
func TestAsConsumeScript(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	s := livetest.Start(t)
	c := s.Client()
	taken, nothing := 0, 0
	for range 2000 {
		switch rnd.IntN(4) {
		case 0:
			score, member := s.Now()/1000+rnd.Int64N(20)-5, fmt.Sprint("m", rnd.IntN(50))
			a := c.Do("ZADD", "polled", score, member)
			c.Want(a, "ZADD", "popped", score, member)
		case 1:
			s.Advance(rnd.Int64N(1500))
		default:
			want := c.Do("EVAL", consumeScript, 1, "polled", s.Now()/1000)
			got := c.Do("DQ.POP", "popped", "UNIT", "S")
			if want != "nil" {
				taken++
				got, _, _ = strings.Cut(strings.TrimPrefix(got, "[["), " ")
			} else {
				nothing++
			}
			if got != want {
				t.Fatalf("DQ.POP takes %s, the script %s", got, want)
			}
		}
	}
	if taken < 200 || nothing < 200 {
		t.Errorf("only %d taken, %d times nothing", taken, nothing)
	}
}

func TestBlockEnds(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	short, gone, last := s.Client(), s.Client(), s.Client()
	short.Send("DQ.POP", "q", "BLOCK", 100)
	s.Blocked(1)
	gone.Send("DQ.POP", "q", "BLOCK", 0)
	s.Blocked(2)
	last.Send("DQ.MPOP", 2, "other", "q", "BLOCK", 0)
	s.Blocked(3)
	c.Want("a", "DQ.ADD", "q", "DELAY", 200, "ID", "a", "p")
	s.Advance(100)
	if got := short.Read(); got != "nil" {
		t.Errorf("timed out with %s", got)
	}
	gone.Close()
	s.Blocked(1)
	s.Advance(100)
	if got := last.Read(); got != times("[q [[a p T+200 1]]]") {
		t.Errorf("the last got %s", got)
	}
	c.Want("0", "DBSIZE")
	// Any of several keys wakes a waiter, and only once.
	last.Send("DQ.MPOP", 3, "x", "y", "z", "BLOCK", 0)
	s.Blocked(1)
	c.Want("OK", "MULTI")
	c.Want("QUEUED", "DQ.ADD", "z", "DELAY", 50, "ID", "b", "p")
	c.Want("QUEUED", "DQ.ADD", "y", "DELAY", 50, "ID", "c", "p")
	c.Want("[b c]", "EXEC")
	s.Advance(50)
	if got := last.Read(); got != times("[y [[c p T+250 1]]]") {
		t.Errorf("woken with %s", got)
	}
	c.Want("1", "DBSIZE")
}

// Many consumers and many entries: each entry to one consumer, in order.
func TestBlockCrowd(t *testing.T) {
	const crowd = 200
	s := livetest.Start(t)
	c := s.Client()
	clients := make([]*livetest.Client, crowd)
	for i := range clients {
		clients[i] = s.Client()
		clients[i].Send("DQ.POP", "q", "BLOCK", 0)
		s.Blocked(int64(i + 1))
	}
	for i := range crowd {
		c.Want(fmt.Sprint("job", i), "DQ.ADD", "q", "DELAY", 1+i/10, "ID", fmt.Sprint("job", i), "p")
	}
	s.Advance(crowd / 10)
	for i, w := range clients {
		if got, want := w.Read(), fmt.Sprintf("[[job%d ", i); !strings.HasPrefix(got, want) {
			t.Fatalf("consumer %d got %s", i, got)
		}
	}
}

// With a running clock a consumer has the entry within a moment of its time.
func TestBlockRealTime(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "LKV.CLOCK", "RESUME")
	var waits []time.Duration
	for range 10 {
		began := time.Now()
		c.Do("DQ.ADD", "q", "DELAY", 10, "p")
		if got := c.Do("DQ.POP", "q", "BLOCK", 10_000); !strings.HasPrefix(got, "[[") {
			t.Fatal(got)
		}
		waits = append(waits, time.Since(began))
	}
	// The machine may be busy at times: the shortest wait counts.
	if least := slices.Min(waits); least < 10*time.Millisecond || least > 50*time.Millisecond {
		t.Errorf("waits of 10 ms took %v", waits)
	}
	t.Log(c.Do("INFO", "limitkv"))
}
