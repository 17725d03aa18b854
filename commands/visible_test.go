// What operators see of limitkv's own commands: each row of queues and limiters has its documentation, its ACL category, its
// keyspace event and its place in the slow log, and INFO counts the keys.
package commands_test

import (
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

func TestOwnCommandsAreVisible(t *testing.T) {
	// For each command: what runs before it, a call, and its event on k, "" for none.
	examples := map[string]struct{ before, call, event string }{
		"dq.add":      {"", "DQ.ADD k ID a p", "dq.add"},
		"dq.pop":      {"DQ.ADD k ID a p", "DQ.POP k", "dq.pop"},
		"dq.mpop":     {"DQ.ADD k ID a p", "DQ.MPOP 1 k LEASE 9", "dq.pop"},
		"dq.ack":      {"DQ.ADD k ID a p; DQ.POP k LEASE 99", "DQ.ACK k a", "dq.ack"},
		"dq.nack":     {"DQ.ADD k ID a p; DQ.POP k LEASE 99", "DQ.NACK k a", "dq.nack"},
		"dq.touch":    {"DQ.ADD k ID a p", "DQ.TOUCH k 99 a", "dq.touch"},
		"dq.rem":      {"DQ.ADD k ID a p", "DQ.REM k a", "dq.rem"},
		"dq.set":      {"", "DQ.SET k LEASE 9", "dq.set"},
		"dq.requeue":  {"DQ.ADD other ID a p", "DQ.REQUEUE other k", "dq.requeue"},
		"dq.move":     {"ZADD k 1 a", "DQ.MOVE k other", "zrem"},
		"dq.peek":     {"DQ.ADD k ID a p", "DQ.PEEK k", ""},
		"dq.len":      {"DQ.ADD k ID a p", "DQ.LEN k", ""},
		"dq.info":     {"DQ.ADD k ID a p", "DQ.INFO k", ""},
		"rl.set":      {"", "RL.SET k FIXED 9 1000", "rl.set"},
		"rl.acquire":  {"RL.SET k FIXED 9 1000", "RL.ACQUIRE k", "rl.acquire"},
		"rl.macquire": {"RL.SET k FIXED 9 1000", "RL.MACQUIRE 1 k 1", "rl.acquire"},
		"rl.settle":   {"RL.ACQUIRE k 2 ID a FIXED 9 1000", "RL.SETTLE k a 1", "rl.settle"},
		"rl.touch":    {"RL.ACQUIRE k 2 ID a LEASE 9 FIXED 9 1000", "RL.TOUCH k a 99", "rl.touch"},
		"rl.release":  {"RL.ACQUIRE k 2 FIXED 9 1000", "RL.RELEASE k", "rl.release"},
		"rl.info":     {"RL.SET k FIXED 9 1000", "RL.INFO k", ""},
		"rl.throttle": {"", "RL.THROTTLE k 5 10 60", "rl.acquire"},
	}
	s := livetest.Start(t)
	c, events, own := s.Client(), s.Client(), s.Client()
	c.Want("OK", "CONFIG", "SET", "notify-keyspace-events", "EA", "slowlog-log-slower-than", "0")
	events.Want("[psubscribe __keyevent@0__:* 1]", "PSUBSCRIBE", "__keyevent@0__:*")
	seen := 0
	for _, prefix := range []string{"dq.", "rl."} {
		category := map[string]string{"dq.": "delayqueue", "rl.": "ratelimit"}[prefix]
		c.Want("OK", "ACL", "SETUSER", category, "reset", "on", "nopass", "~*", "+@"+category)
		own.Want("OK", "AUTH", category, "x")
		for _, name := range strings.Fields(strings.Trim(c.Do("COMMAND", "LIST", "FILTERBY", "PATTERN", prefix+"*"), "[]")) {
			if name == "dq.apply" || name == "rl.apply" || name == "rl.grants" { // only journals have these
				continue
			}
			docs := c.Do("COMMAND", "DOCS", name)
			for _, part := range []string{"summary ", "since ", "group ", "complexity ", "arguments "} {
				if !strings.Contains(docs, part) {
					t.Errorf("COMMAND DOCS %s has no %s: %s", name, part, docs)
				}
			}
			if got := c.Do("ACL", "CAT", category); !strings.Contains(got, name) {
				t.Errorf("%s is not in %s: %s", name, category, got)
			}
			example, ok := examples[name]
			if !ok {
				t.Errorf("there is no example of %s", name)
				continue
			}
			seen++
			c.Want("OK", "FLUSHALL")
			for _, line := range strings.Split(example.before, "; ") {
				if line == "" {
					continue
				}
				if got := c.Line(line); strings.HasPrefix(got, "-") {
					t.Errorf("%s: %s", line, got)
				}
			}
			c.Want("OK", "SLOWLOG", "RESET")
			for { // earlier events
				if _, more := events.Poll(20 * time.Millisecond); !more {
					break
				}
			}
			if got := own.Line(example.call); strings.HasPrefix(got, "-") {
				t.Errorf("%s: %s", example.call, got)
			}
			if log := c.Do("SLOWLOG", "GET", "-1"); !strings.Contains(log, "["+example.call+"]") {
				t.Errorf("%s is not in the slow log: %s", example.call, log)
			}
			got := ""
			for example.event != "" {
				text, more := events.Poll(time.Second)
				if got += text; !more || strings.Contains(text, ":"+example.event+" ") {
					break
				}
			}
			if !strings.Contains(got, ":"+example.event+" k]") && example.event != "" {
				t.Errorf("%s tells %q, not %s", example.call, got, example.event)
			}
		}
	}
	if seen != len(examples) {
		t.Errorf("%d commands of %d were looked at", seen, len(examples))
	}
}

func TestInfoOfQueuesAndLimiters(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	for _, line := range []string{
		"RL.SET l CONC 9", "DQ.SET q LIMIT l LEASE 100 PAUSED 0", "DQ.SET r PAUSED 1", "DQ.ADD q ID a p", "DQ.ADD q ID b GROUP g p",
		"DQ.ADD q ID c GROUP h p", "DQ.ADD r ID a GROUP g p", "DQ.POP q COUNT 2", "RL.ACQUIRE l ID x LEASE 200", "RL.ACQUIRE l ID y LEASE 900", "RL.SETTLE l y",
	} {
		if got := c.Line(line); strings.HasPrefix(got, "-") {
			t.Fatalf("%s: %s", line, got)
		}
	}
	check := func(want ...string) {
		t.Helper()
		got := c.Do("INFO", "limitkv")
		for _, line := range want {
			if !strings.Contains(got, line+"\r\n") {
				t.Errorf("INFO has no %s: %s", line, got)
			}
		}
	}
	check("delay_queues:2", "delay_queue_entries_waiting:2", "delay_queue_entries_leased:2", "delay_queue_groups:3", "delay_queues_paused:1",
		"delay_queues_limited:1", "limiter_grants_open:3", "limiter_grants_settled:1", "limiter_grants_ended:0")
	s.Advance(150)
	check("delay_queue_entries_leased:0", "limiter_grants_open:1", "limiter_grants_ended:2")
	c.Want("OK", "DEBUG", "RELOAD")
	check("delay_queue_groups:3", "limiter_grants_open:1", "delay_queues_limited:1")
	s.Advance(50)
	c.Want("1", "DEL", "r")
	c.Want("OK", "DQ.SET", "q", "LIMIT", "")
	check("delay_queue_groups:2", "limiter_grants_open:0", "limiter_grants_ended:3", "delay_queues_paused:0", "delay_queues_limited:0")
}
