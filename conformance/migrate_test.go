// MIGRATE between servers: limitkv and limitkv, and both ways with the real Redis.
package conformance

import (
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

func TestMigrate(t *testing.T) {
	t.Run("limitkv to limitkv", func(t *testing.T) { migrate(t, peer.LimitKV(t), peer.LimitKV(t)) })
	t.Run("limitkv to redis", func(t *testing.T) { migrate(t, peer.LimitKV(t), redis(t)) })
	t.Run("redis to limitkv", func(t *testing.T) { migrate(t, redis(t), peer.LimitKV(t)) })
}

// migrate moves keys from one server to the other, whichever they are: the replies must be Redis's.
func migrate(t *testing.T, source, target *peer.Server) {
	from, to := source.Dial(t), target.Dial(t)
	host, port, _ := net.SplitHostPort(target.Addr)
	closed, _ := peer.FreePort()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_, silentPort, _ := net.SplitHostPort(silent.Addr().String())
	words := strings.NewReplacer("HOST", host, "PORT", port, "CLOSED", closed, "SILENT", silentPort)
	steps := []struct {
		at         *peer.Conn
		line, want string
	}{
		{from, "SET s hello", "+OK"},
		{from, "MIGRATE HOST PORT s 0 1000", "+OK"},
		{from, "EXISTS s", ":0"},
		{to, "GET s", `"hello"`},
		{from, "MIGRATE HOST PORT s 0 1000", "+NOKEY"},

		// A copy stays; what is there is not overwritten unless asked for.
		{from, "RPUSH l a b c", ":3"},
		{from, "MIGRATE HOST PORT l 0 1000 COPY", "+OK"},
		{from, "MIGRATE HOST PORT l 0 1000", "-ERR Target instance replied with error: BUSYKEY Target key name already exists."},
		{from, "LLEN l", ":3"},
		{to, "RPUSH l more", ":4"},
		{from, "MIGRATE HOST PORT l 0 1000 COPY REPLACE", "+OK"},
		{to, "LLEN l", ":3"},
		{from, "EXISTS l", ":1"},

		// Several keys, another database, deadlines.
		{from, "ZADD z 1.5 m", ":1"},
		{from, "HSET h f v", ":1"},
		{from, "PEXPIREAT h 4102444800000", ":1"},
		{from, "MIGRATE HOST PORT KEY 3 0 KEYS z missing h", "+OK"},
		{from, "EXISTS z h", ":0"},
		{to, "SELECT 3", "+OK"},
		{to, "ZSCORE z m", `"1.5"`},
		{to, "HGET h f", `"v"`},
		{to, "SELECT 0", "+OK"},

		// Of several keys those go that can.
		{from, "MSET a 1 b 2 c 3", "+OK"},
		{to, "SET b there", "+OK"},
		{from, "MIGRATE HOST PORT KEY 0 1000 KEYS a b c", "-ERR Target instance replied with error: BUSYKEY Target key name already exists."},
		{from, "EXISTS a b c", ":1"},
		{to, "MGET a b c", `["1", "there", "3"]`},

		// What goes wrong loses nothing.
		{from, "MIGRATE HOST PORT b 99 1000 REPLACE", "-ERR Target instance replied with error: ERR DB index is out of range"},
		{from, "MIGRATE HOST CLOSED b 0 1000", "-IOERR error or timeout writing to target instance"},
		{from, "MIGRATE HOST SILENT b 0 50", "-IOERR error or timeout reading to target instance"},
		{from, "GET b", `"2"`},

		// A password.
		{to, "CONFIG SET requirepass secret", "+OK"},
		{from, "MIGRATE HOST PORT b 0 1000 REPLACE AUTH wrong", "-ERR Target instance replied with error: WRONGPASS invalid username-password pair or user is disabled."},
		{from, "MIGRATE HOST PORT b 0 1000 REPLACE AUTH secret", "+OK"},
		{to, "GET b", `"2"`},
		{from, "SET b 3", "+OK"},
		{from, "MIGRATE HOST PORT b 0 1000 AUTH2 default secret REPLACE", "+OK"},
		{to, "GET b", `"3"`},
		{to, "CONFIG SET requirepass EMPTY", "+OK"},

		// In a transaction.
		{from, "SET b 4", "+OK"},
		{from, "MULTI", "+OK"},
		{from, "MIGRATE HOST PORT b 0 1000 REPLACE", "+QUEUED"},
		{from, "EXISTS b", "+QUEUED"},
		{from, "EXEC", `[+"OK", :0]`},
	}
	for _, step := range steps {
		args := strings.Fields(words.Replace(step.line))
		for i := range args {
			if args[i] == "KEY" || args[i] == "EMPTY" {
				args[i] = ""
			}
		}
		if got := step.at.Must(t, args...).String(); got != step.want {
			t.Errorf("%s\n got %s\nwant %s", step.line, got, step.want)
		}
	}
	to.Must(t, "SELECT", "3")
	if got := integer(t, to.Must(t, "PEXPIRETIME", "h")); got < 4102444800000-50 || got > 4102444800000+5000 {
		t.Errorf("the deadline became %d", got)
	}
}

// TestMigrateWaits: while a target is silent the key waits, and all others are served.
func TestMigrateWaits(t *testing.T) {
	server := peer.LimitKV(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	host, port, _ := net.SplitHostPort(silent.Addr().String())
	a, b, same := server.Dial(t), server.Dial(t), server.Dial(t)
	a.Must(t, "SET", "moving", "1")
	began := time.Now()
	if err := a.Send("MIGRATE", host, port, "moving", "0", "700"); err != nil {
		t.Fatal(err)
	}
	if conn, err := silent.Accept(); err != nil {
		t.Fatal(err)
	} else {
		defer conn.Close()
	}
	if err := same.Send("GET", "moving"); err != nil {
		t.Fatal(err)
	}
	served := 0
	for range 200 { // keys that share the shard would wait as well
		b.Must(t, "PING")
		served++
	}
	if d := time.Since(began); d > 600*time.Millisecond {
		t.Errorf("%d commands took %v: they waited", served, d)
	}
	if v, err := a.Receive(); err != nil || v.String() != "-IOERR error or timeout reading to target instance" {
		t.Errorf("the reply is %v, %v", v, err)
	}
	if d := time.Since(began); d < 650*time.Millisecond {
		t.Errorf("the time-out was %v", d)
	}
	if v, err := same.Receive(); err != nil || v.String() != `"1"` {
		t.Errorf("the key is %v, %v", v, err)
	}
	if got := a.Must(t, "EVAL", "return redis.call('MIGRATE', ARGV[1], ARGV[2], KEYS[1], 0, 100)", "1", "moving", host, port).String(); !strings.HasPrefix(got, "-ERR limitkv does not run MIGRATE in scripts") {
		t.Errorf("a script: %s", got)
	}
}

// TestMigrateOwn: what Redis has no type for goes to another limitkv, and a real Redis refuses it.
func TestMigrateOwn(t *testing.T) {
	from, to := peer.LimitKV(t), peer.LimitKV(t)
	a, b := from.Dial(t), to.Dial(t)
	a.Must(t, "RL.SET", "limiter", "GCRA", "10", "60000")
	a.Must(t, "RL.ACQUIRE", "limiter", "3")
	a.Must(t, "DQ.SET", "queue", "LEASE", "100000", "TRIES", "2", "DEAD", "dead")
	for i := range 5 {
		a.Must(t, "DQ.ADD", "queue", "ID", "id"+strconv.Itoa(i), "payload"+strconv.Itoa(i))
	}
	a.Must(t, "DQ.POP", "queue", "COUNT", "2")
	digests := map[string]string{}
	for _, key := range []string{"limiter", "queue"} {
		digests[key] = a.Must(t, "DUMP", key).Text
		b.Must(t, "RESTORE", key, "0", digests[key])
		if got := b.Must(t, "DUMP", key).Text; got != digests[key] {
			t.Errorf("restored, the %s is %q, not %q", key, got, digests[key])
		}
		b.Must(t, "DEL", key)
	}
	oracle := redis(t)
	host, port, _ := net.SplitHostPort(oracle.Addr)
	if got := a.Must(t, "MIGRATE", host, port, "limiter", "0", "1000").String(); got != "-ERR Target instance replied with error: ERR Bad data format" {
		t.Errorf("Redis takes a limiter: %s", got)
	}
	host, port, _ = net.SplitHostPort(to.Addr)
	if got := a.Must(t, "MIGRATE", host, port, "", "0", "1000", "KEYS", "limiter", "queue").String(); got != "OK" && got != "+OK" {
		t.Errorf("another limitkv: %s", got)
	}
	if n := integer(t, a.Must(t, "EXISTS", "limiter", "queue")); n != 0 {
		t.Errorf("%d of them are still here", n)
	}
	for key, want := range digests {
		if got := b.Must(t, "DUMP", key).Text; got != want {
			t.Errorf("moved, the %s is %q, not %q", key, got, want)
		}
	}
	if v := b.Must(t, "DQ.LEN", "queue", "LEASED"); v.Text != "2" {
		t.Errorf("%v leases went along", v)
	}
}

func integer(t *testing.T, v peer.Value) int64 {
	t.Helper()
	n, err := strconv.ParseInt(v.Text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
