package server_test

// The family as clients use it, where a recorded conversation cannot hold it:
// what depends on time, on several connections or on parameters.

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/commands/livetest"
)

// The arguments of every row can be read, and every row says what it does.
func TestRowsAreComplete(t *testing.T) {
	s := livetest.Start(t)
	n := 0
	for _, cmd := range s.Table.All() {
		if cmd.Summary == "" || cmd.Since == "" || cmd.Group == "" {
			t.Errorf("%s: summary, version or group is missing", cmd.FullName())
		}
		n += len(cmd.Arguments()) // panics where it cannot
	}
	if n < 100 {
		t.Errorf("only %d arguments were read", n)
	}
	c := s.Client()
	for _, cmd := range s.Table.List() {
		if len(cmd.Sub) > 0 && cmd.SubCommand([]byte("help")) != nil {
			if got := c.Do(cmd.Name, "HELP"); !strings.Contains(got, "Print this help.") {
				t.Errorf("%s HELP: %s", cmd.Name, got)
			}
		}
	}
}

func TestMonitor(t *testing.T) {
	s := livetest.Start(t)
	m, c := s.Client(), s.Client()
	m.Want("OK", "MONITOR")
	line := func() string {
		t.Helper()
		text := m.Read()
		at, rest, _ := strings.Cut(text, " [")
		if at != "1700000000.000000" {
			t.Errorf("the time is %s", at)
		}
		from, what, _ := strings.Cut(rest, "] ")
		db, from, _ := strings.Cut(from, " ")
		if from != "lua" {
			from = "client"
		}
		return db + " " + from + " " + what
	}
	want := func(lines ...string) {
		t.Helper()
		for _, l := range lines {
			if got := line(); got != l {
				t.Errorf("got  %s\nwant %s", got, l)
			}
		}
	}
	c.Want("OK", "SET", "k", "a\"b\\\n\r\t\a\b\x00\xff")
	want(`0 client "SET" "k" "a\"b\\\n\r\t\a\b\x00\xff"`)
	c.Want("OK", "AUTH", "default", "secret")
	want(`0 client "AUTH" "(redacted)" "(redacted)"`)
	c.Do("HELLO", 2, "AUTH", "default", "secret", "SETNAME", "n")
	want(`0 client "HELLO" "2" "AUTH" "(redacted)" "(redacted)" "SETNAME" "n"`)
	c.Want("OK", "SELECT", 1)
	want(`1 client "SELECT" "1"`)
	c.Want("OK", "CONFIG", "SET", "maxmemory", 0) // not shown, as it administers
	c.Want("1", "EVAL", "redis.call('incr', KEYS[1]) return 1", 1, "n")
	want(`1 client "EVAL" "redis.call('incr', KEYS[1]) return 1" "1" "n"`, `1 lua "incr" "n"`)
	c.Want("OK", "MULTI")
	c.Want("QUEUED", "INCR", "n")
	c.Want("[2]", "EXEC")
	want(`1 client "MULTI"`, `1 client "INCR" "n"`, `1 client "EXEC"`)
	m.Want("-ERR Replica can't interact with the keyspace", "GET", "k")
	m.Want("RESET", "RESET")
	c.Want("nil", "GET", "k")
	m.Silent()
	if n := s.Monitors.Load(); n != 0 {
		t.Errorf("%d clients monitor", n)
	}
}

func TestMonitorThatGoes(t *testing.T) {
	s := livetest.Start(t)
	m, c := s.Client(), s.Client()
	m.Want("OK", "MONITOR")
	m.Close()
	for range 1000 {
		c.Want("PONG", "PING")
		if s.Monitors.Load() == 0 {
			return
		}
	}
	t.Error("it monitors still")
}

func TestSlowlog(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "CLIENT", "SETNAME", "me")
	c.Want("OK", "CONFIG", "SET", "slowlog-log-slower-than", 0)
	c.Want("OK", "SLOWLOG", "RESET") // is itself the first entry
	c.Want("OK", "SET", "k", strings.Repeat("x", 200))
	args := []any{"DEL"}
	for range 40 {
		args = append(args, "a")
	}
	c.Want("0", args...)
	c.Want("OK", "AUTH", "default", "secret")
	c.Want("OK", "CONFIG", "SET", "slowlog-log-slower-than", -1)
	got := c.Do("SLOWLOG", "GET", -1)
	for _, part := range []string{
		"[AUTH (redacted) (redacted)]",
		"[DEL " + strings.Repeat("a ", 30) + "... (10 more arguments)]",
		"[SET k " + strings.Repeat("x", 128) + "... (72 more bytes)]",
		"[SLOWLOG RESET]",
	} {
		at := strings.Index(got, part)
		if at < 0 {
			t.Fatalf("there is no %s, or not in this order, in %s", part, got)
		}
		got = got[at:]
	}
	c.Want("4", "SLOWLOG", "LEN")
	c.Want("OK", "CONFIG", "SET", "slowlog-max-len", 2)
	c.Want("2", "SLOWLOG", "LEN")
	if n := strings.Count(c.Do("SLOWLOG", "GET", 1), "] 127.0.0.1:"); n != 1 {
		t.Errorf("%d entries, not 1", n)
	}
}

// The commands inside EXEC are timed, EXEC itself is not in the slow log.
func TestSlowlogOfExec(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "CONFIG", "SET", "slowlog-log-slower-than", 0)
	c.Want("OK", "MULTI")
	c.Want("QUEUED", "INCR", "k")
	c.Want("[1]", "EXEC")
	c.Want("OK", "CONFIG", "SET", "slowlog-log-slower-than", -1)
	got := c.Do("SLOWLOG", "GET")
	if !strings.Contains(got, "[INCR k]") || strings.Contains(got, "EXEC") {
		t.Error(got)
	}
}

func TestLatency(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "LKV.CLOCK", "RESUME")
	c.Want("OK", "CONFIG", "SET", "latency-monitor-threshold", 1)
	c.Want("OK", "DEBUG", "SLEEP", "0.003")
	if got := c.Do("LATENCY", "LATEST"); !strings.HasPrefix(got, "[[command ") {
		t.Fatal(got)
	}
	if got := c.Do("LATENCY", "HISTORY", "command"); strings.Count(got, "[") != 2 {
		t.Error(got)
	}
	if got := c.Do("LATENCY", "GRAPH", "command"); !strings.HasPrefix(got, "command - high ") || strings.Count(got, "\n") < 7 {
		t.Error(got)
	}
	if got := c.Do("LATENCY", "DOCTOR"); !strings.Contains(got, "command: 1 seconds with a latency") {
		t.Error(got)
	}
	c.Want("-ERR No samples available for event 'other'", "LATENCY", "GRAPH", "other")
	if got := c.Do("LATENCY", "HISTOGRAM", "debug"); !strings.HasPrefix(got, "[debug [calls 1 histogram_usec [") {
		t.Error(got)
	}
	_, p50, _ := strings.Cut(c.Do("INFO", "latencystats"), "latency_percentiles_usec_debug:p50=")
	p50, _, _ = strings.Cut(p50, ",")
	if micros, err := strconv.ParseFloat(p50, 64); err != nil || micros < 3000 {
		t.Errorf("DEBUG SLEEP took %s microseconds", p50)
	}
	c.Want("1", "LATENCY", "RESET")
	c.Want("[]", "LATENCY", "LATEST")
}

// DEBUG SLEEP holds the keys, and nothing else.
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
		"role:master", "cluster_enabled:0", "aof_enabled:0", "loading:0", "connected_clients:2", "maxclients:10000",
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
	s := livetest.StartWith(t, func(s *commands.Server) { s.Stats.Warn = func(string, ...any) {} })
	c := s.Client()
	script := "return redis.error_reply('C' .. ARGV[1] .. ' made up')"
	for i := range 300 {
		c.Do("EVAL", script, 0, i)
	}
	if n := strings.Count(c.Do("INFO", "errorstats"), "errorstat_"); n != 128 {
		t.Errorf("%d codes are kept", n)
	}
}

func TestParameters(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	for _, p := range []struct{ name, set, get string }{
		{"notify-keyspace-events", "KEA", "AKE"}, {"notify-keyspace-events", "Kgx$", "g$xK"}, {"notify-keyspace-events", "", ""},
		{"notify-keyspace-events", "Q", "-Invalid event class character. Use 'Ag$lshzxeKEtmdn'."},
		{"notify-keyspace-events", "Anm", "Am"}, {"notify-keyspace-events", "glshzxe$td", "A"},
		{"save", "900 1 300 10", "900 1 300 10"}, {"save", "900", "-Invalid save parameters"}, {"save", "", ""},
		{"maxmemory-policy", "ALLKEYS-LFU", "allkeys-lfu"},
		{"maxmemory-policy", "x", "-argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction"},
		{"maxmemory-clients", "5%", "5%"}, {"maxmemory-clients", "101%", "-percentage argument must be less or equal to 100"},
		{"maxmemory-clients", "1mb", "1048576"}, {"maxmemory-clients", "x", "-argument must be a memory or percent value"},
		{"latency-tracking-info-percentiles", "50 99.99", "50 99.99"},
		{"latency-tracking-info-percentiles", "101", "-latency-tracking-info-percentiles parameters should sit between [0.0,100.0]"},
		{"latency-tracking-info-percentiles", "x", "-Invalid latency-tracking-info-percentiles parameters"},
		{"client-output-buffer-limit", "normal 1mb 2kb 3", "normal 1048576 2048 3 slave 268435456 67108864 60 pubsub 33554432 8388608 60"},
		{"client-output-buffer-limit", "replica 0 0 0 pubsub 0 0 0", "normal 1048576 2048 3 slave 0 0 0 pubsub 0 0 0"},
		{"client-output-buffer-limit", "normal 1 2", "-Wrong number of arguments in buffer limit configuration."},
		{"client-output-buffer-limit", "master 0 0 0", "-Invalid client class specified in buffer limit configuration."},
		{"client-output-buffer-limit", "normal 0 0 -1", "-Error in hard, soft or soft_seconds setting in buffer limit configuration."},
		{"appendonly", "maybe", "-argument must be 'yes' or 'no'"}, {"appendonly", "no", "no"},
		{"hz", "20", "20"}, {"hz", "x", "-argument couldn't be parsed into an integer"},
		{"slave-priority", "7", "7"}, {"port", "1", "-limitkv listens where it was started to"},
		{"databases", "3", "-can't set immutable config"},
	} {
		got := c.Do("CONFIG", "SET", p.name, p.set)
		if want, refused := strings.CutPrefix(p.get, "-"); refused {
			if got != "-ERR CONFIG SET failed (possibly related to argument '"+p.name+"') - "+want {
				t.Errorf("%s %q: %s", p.name, p.set, got)
			}
			continue
		}
		if got != "OK" {
			t.Errorf("%s %q: %s", p.name, p.set, got)
		}
		c.Want("["+p.name+" "+p.get+"]", "CONFIG", "GET", p.name)
	}
	c.Want("[replica-priority 7]", "CONFIG", "GET", "replica-priority")
	if got := c.Do("CONFIG", "GET", "*"); strings.Count(got, " ") < 400 {
		t.Errorf("CONFIG GET * tells little: %s", got)
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
