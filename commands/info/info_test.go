package info_test

// INFO where it depends on time, transactions or clients' inventions.

import (
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/server"
)

func TestInfoCounts(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "SET", "k", 1)
	c.Want("OK", "SET", "v", 1, "PX", 90000)
	c.Want("1", "GET", "k")
	c.Want("nil", "GET", "missing")
	c.Want("-WRONGTYPE Operation against a key holding the wrong kind of value", "LPUSH", "k", 1)
	c.Want("-ERR wrong number of arguments for 'get' command", "GET")
	c.Want("-ERR unknown command 'NOSUCH', with args beginning with: ", "NOSUCH")
	got := c.Do("INFO", "everything")
	for _, line := range []string{
		"db0:keys=2,expires=1,avg_ttl=90000,subexpiry=0", "keyspace_hits:1", "keyspace_misses:1",
		"errorstat_WRONGTYPE:count=1", "errorstat_ERR:count=2", "total_error_replies:3", "redis_version:8.0.6", "redis_mode:standalone",
		"role:master", "cluster_enabled:0", "aof_enabled:0", "loading:0", "connected_clients:2",
	} {
		if !strings.Contains(got, "\r\n"+line+"\r\n") {
			t.Errorf("there is no %s in %s", line, got)
		}
	}
	for cmd, counts := range map[string]string{"get": "calls=2,.rejected_calls=1,failed_calls=0", "lpush": "calls=1,.rejected_calls=0,failed_calls=1", "set": "calls=2,.rejected_calls=0,failed_calls=0"} {
		_, line, _ := strings.Cut(got, "\r\ncmdstat_"+cmd+":")
		line, _, _ = strings.Cut(line, "\r\n")
		first, last, _ := strings.Cut(counts, ".")
		if !strings.HasPrefix(line, first) || !strings.HasSuffix(line, last) {
			t.Errorf("%s: %s", cmd, line)
		}
	}
	c.Want("OK", "CONFIG", "RESETSTAT")
	for _, gone := range []string{"cmdstat_get", "errorstat_", "keyspace_hits:1"} {
		if got := c.Do("INFO", "everything"); strings.Contains(got, gone) {
			t.Errorf("after RESETSTAT there is %s", gone)
		}
	}
}

// Commands that set a string and return the old one count as looking that up, with all consequences.
func TestFormerIsLookedUp(t *testing.T) {
	s := livetest.Start(t)
	c, events := s.Client(), s.Client()
	c.Want("OK", "CONFIG", "SET", "notify-keyspace-events", "Em")
	events.Want("[subscribe __keyevent@0__:keymiss 1]", "SUBSCRIBE", "__keyevent@0__:keymiss")
	c.Want("nil", "GETSET", "a", 1)
	c.Want("1", "GETSET", "a", 2)
	c.Want("2", "SET", "a", 3, "GET")
	c.Want("3", "SET", "a", 4, "NX", "GET")
	c.Want("nil", "SET", "b", 1, "GET")
	c.Want("OK", "SET", "c", 1)
	c.Want("1", "RPUSH", "list", 1)
	c.Want("-WRONGTYPE Operation against a key holding the wrong kind of value", "GETSET", "list", 1)
	got := c.Do("INFO", "stats")
	for _, line := range []string{"keyspace_hits:4", "keyspace_misses:2"} {
		if !strings.Contains(got, "\r\n"+line+"\r\n") {
			t.Errorf("there is no %s in %s", line, got)
		}
	}
	for _, key := range []string{"a", "b"} {
		if got, want := events.Read(), "[message __keyevent@0__:keymiss "+key+"]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// INFO inside a transaction counts keys whose shards the transaction holds.
func TestInfoInExec(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "MULTI")
	for _, args := range [][]any{{"SET", "a", 1}, {"INFO", "keyspace"}, {"DBSIZE"}, {"MEMORY", "STATS"}, {"CONFIG", "RESETSTAT"}, {"FLUSHALL"}, {"INFO"}} {
		c.Want("QUEUED", args...)
	}
	if got := c.Do("EXEC"); !strings.Contains(got, "db0:keys=1") || !strings.Contains(got, " 1 [") {
		t.Error(got)
	}
	if got := c.Do("EVAL", "redis.call('set', KEYS[1], 1) return redis.call('info', 'keyspace')", 1, "k"); !strings.Contains(got, "db0:keys=1") {
		t.Error(got)
	}
}

func TestErrorCodesAreLimited(t *testing.T) {
	s := livetest.StartWith(t, func(s *server.Server) { s.Log = livetest.NoLog{} })
	c := s.Client()
	script := "return redis.error_reply('C' .. ARGV[1] .. ' made up')"
	for i := range 300 {
		c.Do("EVAL", script, 0, i)
	}
	if n := strings.Count(c.Do("INFO", "errorstats"), "errorstat_"); n != 128 {
		t.Errorf("%d codes are kept", n)
	}
}
