package follow

// What clients see of a replica: limitkv and Redis follow the same primary, and reply the same.

import (
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// varies are the parts of replies that belong to one server or moment.
var varies = regexp.MustCompile(`(id|addr|laddr|fd|age|idle|qbuf|qbuf-free|argv-mem|rbs|rbp|tot-mem|omem|oll|obl|io-thread|lib-name|lib-ver|events)=\S*|_seconds_ago:\d+|down_since_seconds:\d+|` +
	`mem_[a-z_]+:\d+|repl_backlog_[a-z_]+:\d+|read_repl_offset:\d+|slave_repl_offset:\d+|master_repl_offset:\d+`)

func same(t *testing.T, want, got *peer.Conn, args ...string) {
	t.Helper()
	a, b := want.Must(t, args...), got.Must(t, args...)
	if x, y := varies.ReplaceAllString(a.String(), "$1"), varies.ReplaceAllString(b.String(), "$1"); x != y {
		t.Errorf("%v\nwant %s\ngot  %s", args, x, y)
	}
}

func TestReplica(t *testing.T) {
	primary := peer.Redis(t, *required, "--repl-diskless-sync-delay", "0")
	p := primary.Dial(t)
	redis, ours := peer.Redis(t, *required), peer.LimitKV(t)
	want, got := redis.Dial(t), ours.Dial(t)
	both := func(fn func(s *peer.Server, c *peer.Conn)) { fn(redis, want); fn(ours, got) }
	host, port, _ := strings.Cut(primary.Addr, ":")

	for _, args := range [][]string{{"REPLICAOF", host, "x"}, {"REPLICAOF", host, "70000"}, {"REPLICAOF", host}, {"SLAVEOF", "no", "one"}, {"ROLE"}} {
		same(t, want, got, args...)
	}
	// Those who wait are sent away, whatever they wait for.
	var waiters []*peer.Conn
	both(func(s *peer.Server, _ *peer.Conn) {
		for _, args := range [][]string{{"BLPOP", "list", "0"}, {"XREAD", "BLOCK", "0", "STREAMS", "stream", "$"}, {"WAIT", "3", "0"}} {
			c := s.Dial(t)
			if err := c.Send(args...); err != nil {
				t.Fatal(err)
			}
			waiters = append(waiters, c)
		}
	})
	both(func(_ *peer.Server, c *peer.Conn) {
		peer.Eventually(t, "those who wait", func() bool { return c.Info(t, "blocked_clients") == "3" })
	})
	both(func(_ *peer.Server, c *peer.Conn) {
		if v := c.Must(t, "REPLICAOF", host, port); v.Text != "OK" {
			t.Fatal(v)
		}
	})
	for i := range waiters[:3] {
		a, err := waiters[i].Receive()
		b, err2 := waiters[i+3].Receive()
		if err != nil || err2 != nil || a.String() != b.String() {
			t.Errorf("who waited: want %v %v, got %v %v", a, err, b, err2)
		}
		if !waiters[i+3].Closed(5 * time.Second) {
			t.Error("the connection of who waited stays open")
		}
	}
	both(func(_ *peer.Server, c *peer.Conn) { peer.Linked(t, c) })
	same(t, want, got, "REPLICAOF", host, port)
	for _, args := range [][]string{
		{"SET", "a", "1"}, {"SET", "soon", "1", "PX", "1"}, {"HSET", "h", "f", "v"}, {"XADD", "stream", "1-1", "f", "v"},
		{"FUNCTION", "LOAD", "#!lua name=l\nredis.register_function('w', function(k) return redis.call('SET', k[1], 1) end)\n" +
			"redis.register_function{function_name='r', callback=function(k) return redis.call('GET', k[1]) end, flags={'no-writes'}}"},
	} {
		p.Must(t, args...)
	}
	p.Must(t, "DEBUG", "SET-ACTIVE-EXPIRE", "0")
	p.Must(t, "SET", "stays", "1", "PX", "1")
	p.Must(t, "SET", "stays2", "1", "PX", "1")
	p.Must(t, "HSET", "fields", "a", "1", "b", "2")
	p.Must(t, "HPEXPIRE", "fields", "1", "FIELDS", "1", "a")
	both(func(_ *peer.Server, c *peer.Conn) { peer.CaughtUp(t, p, c) })
	time.Sleep(20 * time.Millisecond)
	reads := [][]string{
		{"HGET", "fields", "a"}, {"HGETALL", "fields"}, {"HEXISTS", "fields", "a"}, {"HMGET", "fields", "a", "b"}, {"HTTL", "fields", "FIELDS", "1", "a"}, {"HSTRLEN", "fields", "a"},
		{"GET", "stays"}, {"EXISTS", "stays"}, {"TTL", "stays"}, {"TYPE", "stays"}, {"DBSIZE"}, {"STRLEN", "stays"}, {"OBJECT", "ENCODING", "stays"},
		{"SCAN", "0", "MATCH", "st*"}, {"DUMP", "stays"}, {"SORT_RO", "stays"}, {"MGET", "a", "stays"}, {"EVAL", "return redis.call('GET', KEYS[1])", "1", "stays"},
		{"EVAL_RO", "return redis.call('EXISTS', KEYS[1])", "1", "stays"}, {"TOUCH", "stays"}, {"HGETALL", "h"}, {"XLEN", "stream"},
		{"SET", "b", "1"}, {"DEL", "a"}, {"FLUSHALL"}, {"EVAL", "return redis.call('SET', KEYS[1], 1)", "1", "b"}, {"EVAL", "return redis.pcall('SET', KEYS[1], 1)", "1", "b"},
		{"EVAL", "#!lua\nreturn redis.call('GET', KEYS[1])", "1", "a"}, {"EVAL", "#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1])", "1", "a"},
		{"FCALL", "w", "1", "b"}, {"FCALL", "r", "1", "a"}, {"FCALL_RO", "r", "1", "a"}, {"SCRIPT", "LOAD", "return 1"}, {"FUNCTION", "FLUSH"}, {"PUBLISH", "c", "m"},
		{"GETEX", "a"}, {"PFCOUNT", "none"}, {"BLPOP", "list", "0.01"}, {"XREAD", "COUNT", "1", "STREAMS", "stream", "0"}, {"XREADGROUP", "GROUP", "g", "c", "STREAMS", "stream", ">"},
		{"WAIT", "0", "0"}, {"WAITAOF", "0", "0", "0"}, {"WAIT", "x", "0"}, {"MULTI"}, {"SET", "a", "1"}, {"EXEC"}, {"MULTI"}, {"GET", "a"}, {"EXEC"},
		{"CLIENT", "LIST", "TYPE", "master"}, {"CLIENT", "LIST", "TYPE", "replica"}, {"CONFIG", "GET", "replicaof"}, {"CONFIG", "SET", "replicaof", "no one"},
		{"ROLE"}, {"INFO", "replication"}, {"KEYS", "stay*"}, {"RANDOMKEY"}, {"COPY", "a", "b"}, {"SWAPDB", "0", "1"},
	}
	for _, args := range reads {
		if args[0] == "RANDOMKEY" { // which one is random
			continue
		}
		same(t, want, got, args...)
	}
	// The primary's effects and messages arrive.
	sub := ours.Dial(t)
	sub.Must(t, "SUBSCRIBE", "news")
	p.Must(t, "PUBLISH", "news", "hello")
	if v, err := sub.Receive(); err != nil || !strings.Contains(v.String(), "hello") {
		t.Errorf("the message: %v %v", v, err)
	}
	// A replica whose clients may write keeps what they do to itself.
	both(func(_ *peer.Server, c *peer.Conn) { c.Must(t, "CONFIG", "SET", "replica-read-only", "no") })
	for _, args := range [][]string{{"SET", "mine", "1"}, {"GET", "mine"}, {"SET", "stays2", "2"}, {"GET", "stays2"}, {"TTL", "stays2"}, {"INCR", "stays"}, {"WAIT", "0", "0"}, {"INFO", "replication"}} {
		same(t, want, got, args...)
	}
	both(func(_ *peer.Server, c *peer.Conn) { c.Must(t, "CONFIG", "SET", "replica-read-only", "yes") })
	// While the primary is away.
	primary.Kill()
	both(func(_ *peer.Server, c *peer.Conn) {
		peer.Eventually(t, "the loss", func() bool { return c.Info(t, "master_link_status") == "down" })
	})
	for _, args := range [][]string{{"GET", "a"}, {"CLIENT", "LIST", "TYPE", "master"}, {"PSYNC", "?", "-1"}} {
		same(t, want, got, args...)
	}
	both(func(_ *peer.Server, c *peer.Conn) { c.Must(t, "CONFIG", "SET", "replica-serve-stale-data", "no") })
	for _, args := range [][]string{
		{"GET", "a"}, {"SET", "a", "1"}, {"PING"}, {"INFO", "replication"}, {"EVAL", "return 1", "0"}, {"EVAL", "return redis.call('GET', KEYS[1])", "1", "a"},
		{"EVAL", "#!lua\nreturn 1", "0"}, {"EVAL", "#!lua flags=allow-stale\nreturn 1", "0"}, {"EVAL", "#!lua flags=allow-stale,no-writes\nreturn redis.call('GET', KEYS[1])", "1", "a"},
		{"MULTI"}, {"GET", "a"}, {"EXEC"}, {"MULTI"}, {"PING"}, {"EXEC"}, {"SUBSCRIBE", "x"}, {"UNSUBSCRIBE", "x"}, {"CONFIG", "GET", "replica-serve-stale-data"}, {"FCALL", "r", "1", "a"},
		{"REPLICAOF", "NO", "ONE"}, {"GET", "a"}, {"GET", "stays"}, {"EXISTS", "stays"}, {"ROLE"},
	} {
		if args[0] == "ROLE" { // offsets count what each has read
			continue
		}
		same(t, want, got, args...)
	}
	// What fell due is served by who leads now.
	peer.Eventually(t, "the end of what fell due", func() bool {
		return strings.HasPrefix(got.Must(t, "DEBUG", "OBJECT", "stays2").String(), "-") || got.Must(t, "GET", "stays2").Text == "2"
	})
	if out := ours.Output(); strings.Contains(out, "CRITICAL") {
		t.Error(out)
	}
}

// TestWrongPrimaries has limitkv follow what cannot be followed: it goes on trying, and serves what it has.
func TestWrongPrimaries(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	free, err := peer.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	secret := peer.Redis(t, *required, "--requirepass", "secret", "--repl-diskless-sync-delay", "0")
	s := peer.LimitKV(t, "--repl-timeout", "1")
	c := s.Dial(t)
	c.Must(t, "SET", "mine", "1")
	for _, to := range []struct{ addr, says string }{
		{strings.TrimPrefix(web.URL, "http://"), "Error reply to PING from master"},
		{silent.Addr().String(), "Timeout connecting to the MASTER"},
		{"127.0.0.1:" + free, "Error condition on socket for SYNC"},
		{s.Addr, "NOMASTERLINK"},
		{secret.Addr, "NOAUTH"},
	} {
		host, port, _ := strings.Cut(to.addr, ":")
		if v := c.Must(t, "REPLICAOF", host, port); v.Text != "OK" {
			t.Fatalf("REPLICAOF %s: %v", to.addr, v)
		}
		s.Says(t, to.says)
		if v := c.Must(t, "GET", "mine"); v.Text != "1" {
			t.Errorf("%s: GET: %v", to.addr, v)
		}
		if v := c.Info(t, "master_link_status"); v != "down" {
			t.Errorf("%s: the link is %s", to.addr, v)
		}
	}
	c.Must(t, "CONFIG", "SET", "masterauth", "secret")
	peer.Linked(t, c)
	c.Must(t, "REPLICAOF", "NO", "ONE")
	if v := c.Must(t, "SET", "mine", "2"); v.Text != "OK" {
		t.Error(v)
	}
}

// TestIdleLimiters has limiters go from a replica when they are idle, although no primary tells of that.
func TestIdleLimiters(t *testing.T) {
	primary, replica := peer.LimitKV(t, "--repl-diskless-sync-delay", "0"), peer.LimitKV(t)
	p, q := primary.Dial(t), replica.Dial(t)
	peer.Join(t, q, primary)
	p.Must(t, "SET", "stays", "1")
	for i := range 500 {
		p.Must(t, "RL.ACQUIRE", "limiter:"+strings.Repeat("x", i), "1", "GCRA", "1000", "1000")
	}
	peer.CaughtUp(t, p, q)
	peer.Eventually(t, "the end of idle limiters", func() bool { return q.Must(t, "DBSIZE").String() == ":1" && q.Info(t, "db0") != "" })
	peer.Eventually(t, "the same digest", func() bool { return p.Must(t, "DEBUG", "DIGEST").Text == q.Must(t, "DEBUG", "DIGEST").Text })
}

// TestKeysOfAReplica has clients of a replica give keys of their own deadlines. The primary does not know those keys, so the
// replica ends them, and no others: what the primary has sent, by a file or by its stream, stays until the primary ends it.
func TestKeysOfAReplica(t *testing.T) {
	primary := peer.LimitKV(t, "--repl-diskless-sync-delay", "0")
	p := primary.Dial(t)
	p.Must(t, "DEBUG", "SET-ACTIVE-EXPIRE", "0")
	p.Must(t, "SET", "file", "1", "PX", "3000")
	host, port, _ := strings.Cut(primary.Addr, ":")
	for name, replica := range map[string]*peer.Server{
		"limitkv": peer.LimitKV(t, "--appendonly", "yes", "--dir", t.TempDir()), "redis": peer.Redis(t, *required),
	} {
		q := replica.Dial(t)
		tracked := func(want string) {
			t.Helper()
			peer.Eventually(t, name+": "+want+" keys", func() bool { return q.Info(t, "slave_expires_tracked_keys") == want })
		}
		q.Must(t, "CONFIG", "SET", "replica-read-only", "no")
		q.Must(t, "REPLICAOF", host, port)
		peer.Linked(t, q)
		p.Must(t, "SET", "stream", "1", "PX", "1500")
		p.Must(t, "RPUSH", "changed", "1")
		p.Must(t, "PEXPIRE", "changed", "1000000")
		peer.CaughtUp(t, p, q)
		tracked("0")
		q.Must(t, "RPUSH", "changed", "2") // that is still the primary's deadline
		tracked("0")
		for _, args := range [][]string{
			{"SELECT", "5"}, {"SET", "a", "1", "PX", "300"}, {"SET", "b", "1"}, {"PEXPIRE", "b", "300"}, {"HSET", "h", "f", "v"}, {"PEXPIRE", "h", "300"},
			{"SETEX", "long", "1000", "1"}, {"SETEX", "kept", "1000", "1"}, {"PERSIST", "kept"}, {"EVAL", "return redis.call('SET', KEYS[1], 1, 'PX', 300)", "1", "script"},
			{"SET", "n", strings.Repeat("x", 100_000), "PX", "300"}, {"SET", "m", "1", "PX", "1000000"}, {"RENAME", "m", "long2"},
		} {
			if v := q.Must(t, args...); v.Kind == '-' {
				t.Errorf("%s: %v: %v", name, args, v)
			}
		}
		peer.Eventually(t, name+": the end of its own keys", func() bool { return q.Must(t, "DBSIZE").String() == ":3" })
		tracked("2")
		if v := q.Must(t, "KEYS", "*"); !strings.Contains(v.String(), "long2") || !strings.Contains(v.String(), "kept") {
			t.Errorf("%s: %v is left", name, v)
		}
		q.Must(t, "SELECT", "0")
		peer.Eventually(t, name+": the end of the primary's", func() bool { return q.Must(t, "EXISTS", "file", "stream").String() == ":0" })
		time.Sleep(300 * time.Millisecond)
		if v := q.Must(t, "DBSIZE"); v.String() != ":3" {
			t.Errorf("%s: %v keys are left of the primary's 3", name, v)
		}
		q.Must(t, "FLUSHALL")
		tracked("0")
		q.Must(t, "REPLICAOF", "NO", "ONE")
		p.Must(t, "SET", "file", "1", "PX", "3000")
	}
}
