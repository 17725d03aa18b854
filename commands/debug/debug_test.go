package debug_test

// DEBUG and INFO keysizes where no comparison with Redis is possible: limiters and delay queues, scripts that hold some of
// the keys, clients that write meanwhile.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// Kinds that Redis does not have also have a digest, which depends on their contents.
func TestDigestOfOwnKinds(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Do("DQ.ADD", "q", "DELAY", 70, "ID", "i", "p")
	c.Do("RL.ACQUIRE", "l", 1, "GCRA", 3, 3000)
	before := c.Do("DEBUG", "DIGEST-VALUE", "q", "l")
	all := c.Do("DEBUG", "DIGEST")
	if len(all) != 40 || strings.Contains(before, strings.Repeat("0", 40)) {
		t.Errorf("digests are %s and %s", all, before)
	}
	c.Want("OK", "DEBUG", "RELOAD")
	c.Want(all, "DEBUG", "DIGEST")
	c.Want("2", "DBSIZE")
	c.Do("DQ.ADD", "q", "DELAY", 70, "ID", "j", "p")
	c.Do("RL.ACQUIRE", "l", 1, "GCRA", 3, 3000)
	after := c.Do("DEBUG", "DIGEST-VALUE", "q", "l")
	was, is := strings.Fields(strings.Trim(before, "[]")), strings.Fields(strings.Trim(after, "[]"))
	if len(was) != 2 || len(is) != 2 || was[0] == is[0] || was[1] == is[1] {
		t.Errorf("digests were %s, are %s", before, after)
	}
	// Refusals are counted, but make no difference: replicas do not learn of them.
	c.Do("RL.SET", "counted", "FIXED", 1, 3000)
	c.Do("RL.ACQUIRE", "counted")
	same := c.Do("DEBUG", "DIGEST-VALUE", "counted")
	if got := c.Do("RL.ACQUIRE", "counted"); !strings.HasPrefix(got, "[1 ") {
		t.Errorf("got %s", got)
	}
	c.Want(same, "DEBUG", "DIGEST-VALUE", "counted")
	// The queue works after it is read back.
	s.Advance(70)
	if got := c.Do("DQ.POP", "q", "COUNT", 2); !strings.Contains(got, "i p") || !strings.Contains(got, "j p") {
		t.Errorf("popped %s", got)
	}
}

// A script that may call everything still touches only keys that it holds.
func TestScriptsThatMayAll(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	const refused = "-ERR This Redis command is not allowed from script"
	c.Want("OK", "DEBUG", "SET-DISABLE-DENY-SCRIPTS", 1)
	c.Want("OK", "SET", "k", "v")
	digest := c.Do("DEBUG", "DIGEST")
	c.Want(digest, "EVAL", "return redis.call('debug', 'digest')", 0)
	c.Want("OK", "EVAL", "return redis.call('debug', 'reload')", 1, "k")
	c.Want("12345", "EVAL", "return redis.call('debug', 'protocol', 'integer')", 0)
	for _, call := range []string{"'lkv.snapshot', 'save', 'x'", "'eval', 'return 1', 0", "'multi'", "'subscribe', 'x'", "'auth', 'x'"} {
		if got := c.Do("EVAL", "return redis.call("+call+")", 0); !strings.HasPrefix(got, refused) {
			t.Errorf("%s: %s", call, got)
		}
	}
	c.Want("OK", "DEBUG", "SET-DISABLE-DENY-SCRIPTS", 0)
	if got := c.Do("EVAL", "return redis.call('debug', 'digest')", 0); !strings.HasPrefix(got, refused) {
		t.Error(got)
	}
}

// INFO all counts sizes while others write, in EXEC, and in scripts.
func TestKeysizesBesideWrites(t *testing.T) {
	s := livetest.Start(t)
	c, writer := s.Client(), s.Client()
	done := make(chan bool)
	go func() {
		defer close(done)
		for i := range 300 {
			writer.Do("SET", "k", strings.Repeat("x", i))
			writer.Do("RPUSH", "l", i)
		}
	}()
	for range 50 {
		for _, section := range []string{"all", "everything", "keysizes"} {
			if got := c.Do("INFO", section); !strings.Contains(got, "# Keysizes") {
				t.Fatalf("INFO %s: %s", section, got)
			}
		}
	}
	<-done
	const want = "db0_distrib_strings_sizes:256=1\r\ndb0_distrib_lists_items:256=1\r\n"
	for _, got := range []string{
		c.Do("INFO", "keysizes"), c.Do("INFO", "ALL"), c.Do("INFO", "server", "keysizes"),
		c.Do("EVAL", "return redis.call('info', 'keysizes', 'stats')", 0),
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %s", got)
		}
	}
	c.Want("OK", "MULTI")
	c.Want("QUEUED", "INFO", "everything")
	if got := c.Do("EXEC"); !strings.Contains(got, want) {
		t.Errorf("EXEC: %s", got)
	}
	if got := c.Do("INFO"); !strings.Contains(got, want) {
		t.Errorf("INFO: %s", got)
	}
}

// DEBUG OBJECT describes a quicklist's nodes as Redis would.
func TestDebugObjectOfQuicklists(t *testing.T) {
	c := livetest.Start(t).Client()
	c.Want("OK", "CONFIG", "SET", "list-max-listpack-size", -1)
	for range 3000 {
		c.Do("RPUSH", "l", 7)
	}
	c.Want("OK", "CONFIG", "SET", "list-compress-depth", 2)
	const want = " ql_nodes:2 ql_avg_node:1500.00 ql_listpack_max:-1 ql_compressed:1 ql_uncompressed_size:6014"
	if got := c.Do("DEBUG", "OBJECT", "l"); !strings.HasSuffix(got, want) {
		t.Errorf("%s, want%s", got, want)
	}
	c.Do("RPUSH", "short", 1)
	if got := c.Do("DEBUG", "OBJECT", "short"); strings.Contains(got, "ql_") {
		t.Error(got)
	}
}

// DEBUG SLEEP blocks the keys, and nothing else.
func TestDebugSleep(t *testing.T) {
	s := livetest.Start(t)
	a, b := s.Client(), s.Client()
	a.Send("DEBUG", "SLEEP", "0.05")
	for s.Long.All() == nil {
		b.Want("PONG", "PING")
	}
	b.Want("PONG", "PING")
	b.Send("GET", "k")
	b.Silent()
	if got := a.Read() + b.Read(); got != "OKnil" {
		t.Error(got)
	}
}

// DEBUG OBJECT knows the length of every type as DUMP writes it.
func TestDebugObject(t *testing.T) {
	c := livetest.Start(t).Client()
	for _, line := range []string{"SET string hello", "SET number 12345", "RPUSH list a b", "SADD set a b", "ZADD zset 1 a", "HSET hash f v", "XADD stream 1-1 f v"} {
		c.Line(line)
		key := strings.Fields(line)[1]
		want := fmt.Sprintf(" serializedlength:%d lru:", len(c.Do("DUMP", key))-11)
		if got := c.Do("DEBUG", "OBJECT", key); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want%s", key, got, want)
		}
	}
	c.Line("DQ.ADD queue payload")
	if got := c.Do("DEBUG", "OBJECT", "queue"); !strings.HasPrefix(got, "Value at:") {
		t.Error(got)
	}
}
