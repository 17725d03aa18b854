package connection_test

// The family as clients use it, for what a recorded conversation cannot contain: time, limits, passwords, one client acting
// on another.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// eventually waits for something on another connection's loop.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}

func TestPauseEndsWithItsTime(t *testing.T) {
	s := livetest.Start(t)
	a, b := s.Client(), s.Client()
	a.Want("OK", "CLIENT", "PAUSE", 100, "WRITE")
	b.Want("nil", "GET", "k")
	b.Send("SET", "k", 1)
	b.Send("GET", "k")
	b.Silent()
	if got := a.Info("everything", "paused_actions") + a.Info("everything", "blocked_clients"); got != "write1" {
		t.Errorf("INFO shows %s", got)
	}
	a.Want("OK", "CLIENT", "PAUSE", 20, "WRITE") // does not make it shorter
	s.Advance(99)
	b.Silent()
	s.Advance(1)
	if got := b.Read() + b.Read(); got != "OK1" {
		t.Errorf("after the pause: %s", got)
	}
	if got := a.Info("everything", "paused_actions"); got != "" {
		t.Errorf("INFO still shows %s", got)
	}
}

// TestPauseStopsExpiry: an expired key is missing while the server pauses, and is removed after the pause.
func TestPauseStopsExpiry(t *testing.T) {
	s := livetest.Start(t)
	a := s.Client()
	a.Want("OK", "CONFIG", "SET", "notify-keyspace-events", "Kx")
	a.Want("OK", "SET", "k", "v", "PX", 10)
	a.Want("OK", "CLIENT", "PAUSE", 100, "WRITE")
	s.Advance(50)
	a.Want("nil", "GET", "k")
	a.Want("k", "RANDOMKEY") // there is no other
	if got := a.Info("everything", "expired_keys") + a.Info("everything", "db0"); !strings.HasPrefix(got, "0keys=1,") {
		t.Errorf("while it pauses: %s", got)
	}
	s.Advance(50)
	eventually(t, "the key is removed", func() bool { return a.Info("everything", "expired_keys")+a.Info("everything", "db0") == "1" })
}

func TestPauseOfAll(t *testing.T) {
	s := livetest.Start(t)
	a, b := s.Client(), s.Client()
	a.Want("OK", "CLIENT", "PAUSE", 1000)
	b.Send("PING")
	b.Silent()
	a.Send("CLIENT", "UNPAUSE") // it is delayed as well, as in Redis
	a.Silent()
	s.Advance(1000)
	if got := a.Read() + b.Read(); got != "OKPONG" {
		t.Errorf("got %s", got)
	}
}

// Transactions and scripts count as the commands that they contain.
func TestPauseOfWritesLooksInside(t *testing.T) {
	s := livetest.Start(t)
	a := s.Client()
	exec, read := s.Client(), s.Client()
	exec.Want("OK", "MULTI")
	exec.Want("QUEUED", "SET", "k", 1)
	read.Want("OK", "MULTI")
	read.Want("QUEUED", "GET", "k")
	a.Want("OK", "CLIENT", "PAUSE", 1000, "WRITE")
	exec.Send("EXEC")
	exec.Silent()
	read.Want("[nil]", "EXEC")
	read.Want("1", "EVAL_RO", "return 1", 0)
	read.Want("1", "EVAL", "#!lua flags=no-writes\nreturn 1", 0)
	read.Send("EVAL", "return 1", 0)
	read.Silent()
	a.Want("OK", "CLIENT", "UNPAUSE")
	if got := exec.Read() + read.Read(); got != "[OK]1" {
		t.Errorf("got %s", got)
	}
}

// A client that disconnects while it is delayed leaves nothing behind.
func TestPausedClientGoes(t *testing.T) {
	s := livetest.Start(t)
	a, b := s.Client(), s.Client()
	a.Want("OK", "CLIENT", "PAUSE", 1000, "WRITE")
	b.Send("SET", "k", 1)
	eventually(t, "b is held back", func() bool { return s.Pause.Held() == 1 })
	b.Close()
	eventually(t, "b is gone", func() bool { return s.Pause.Held() == 0 })
	a.Want("OK", "CLIENT", "UNPAUSE")
	a.Want("nil", "GET", "k")
}

func TestIdleClientsAreDropped(t *testing.T) {
	s := livetest.Start(t)
	idle, busy, blocked := s.Client(), s.Client(), s.Client()
	idle.Want("PONG", "PING")
	busy.Want("OK", "CONFIG", "SET", "timeout", 10)
	blocked.Send("BLPOP", "none", 0)
	s.Blocked(1)
	for range 3 {
		s.Advance(5000)
		busy.Want("PONG", "PING")
	}
	if !idle.Ended() {
		t.Error("an idle client is still there")
	}
	busy.Want("1", "LPUSH", "none", "x")
	if got := blocked.Read(); got != "[none x]" {
		t.Errorf("a blocked client got %s", got)
	}
	busy.Want("OK", "CONFIG", "SET", "timeout", 0)
	s.Advance(100000)
	busy.Want("PONG", "PING")
}

func TestMaxClients(t *testing.T) {
	s := livetest.Start(t)
	a := s.Client()
	a.Want("OK", "CONFIG", "SET", "maxclients", 3) // a, the test's own, and one more
	b := s.Client()
	b.Want("PONG", "PING")
	c := s.Client()
	if got := c.Read(); got != "-ERR max number of clients reached" || !c.Ended() {
		t.Errorf("the fourth is told %s", got)
	}
	if got := a.Info("everything", "rejected_connections"); got != "1" {
		t.Errorf("%s connections were rejected", got)
	}
	if got := a.Info("everything", "total_connections_received"); got != "3" {
		t.Errorf("%s connections were received", got)
	}
	b.Close()
	eventually(t, "b is gone", func() bool { return s.Clients.Len() == 2 })
	s.Client().Want("PONG", "PING")
}

func TestPassword(t *testing.T) {
	s := livetest.Start(t)
	old := s.Client()
	old.Want("OK", "CONFIG", "SET", "requirepass", "secret word")
	old.Want("PONG", "PING") // a client that is logged in stays logged in
	c := s.Client()
	c.Want("-NOAUTH Authentication required.", "PING")
	c.Want("-NOAUTH Authentication required.", "MULTI")
	if got := c.Do("HELLO", 3); !strings.HasPrefix(got, "-NOAUTH HELLO must be called") {
		t.Error(got)
	}
	c.Want("-WRONGPASS invalid username-password pair or user is disabled.", "AUTH", "secret")
	c.Want("-WRONGPASS invalid username-password pair or user is disabled.", "AUTH", "nobody", "secret word")
	c.Want("OK", "AUTH", "default", "secret word")
	c.Want("PONG", "PING")
	c.Want("RESET", "RESET")
	c.Want("-NOAUTH Authentication required.", "PING")
	if got := c.Do("HELLO", 3, "AUTH", "default", "secret word", "SETNAME", "me"); !strings.Contains(got, "proto 3") {
		t.Error(got)
	}
	c.Want("me", "CLIENT", "GETNAME")

	// Only little may be sent before AUTH.
	big := s.Client()
	big.Send("SET", "k", strings.Repeat("x", 20000))
	if got := big.Read(); got != "-ERR Protocol error: unauthenticated bulk length" || !big.Ended() {
		t.Errorf("a large argument: %s", got)
	}
	fresh := s.Client()
	fresh.Want("-NOAUTH Authentication required.", "PING")
	old.Want("OK", "CONFIG", "SET", "requirepass", "")
	fresh.Want("PONG", "PING") // no password any more
	if got := old.Info("everything", "acl_access_denied_auth"); got != "2" {
		t.Errorf("%s refused AUTHs are counted", got)
	}
}

func TestKillFilters(t *testing.T) {
	s := livetest.Start(t)
	a := s.Client()
	addrOf := func(c *livetest.Client, name string) string {
		_, rest, _ := strings.Cut(c.Do("CLIENT", "INFO"), " "+name+"=")
		value, _, _ := strings.Cut(rest, " ")
		return value
	}
	victim := func(kill func(c *livetest.Client) []any, want string, dies bool) {
		t.Helper()
		c := s.Client()
		c.Want("PONG", "PING")
		args := append([]any{"CLIENT", "KILL"}, kill(c)...)
		a.Want(want, args...)
		if dies && !c.Ended() {
			t.Errorf("%v: it lives", args)
		} else if !dies {
			c.Want("PONG", "PING")
			c.Close()
		}
		eventually(t, "the victim is gone", func() bool { return s.Clients.Len() == 2 })
	}
	victim(func(c *livetest.Client) []any { return []any{addrOf(c, "addr")} }, "OK", true)
	victim(func(c *livetest.Client) []any { return []any{"ADDR", addrOf(c, "addr")} }, "1", true)
	victim(func(c *livetest.Client) []any { return []any{"ID", c.Do("CLIENT", "ID")} }, "1", true)
	victim(func(c *livetest.Client) []any { return []any{"ID", c.Do("CLIENT", "ID"), "TYPE", "pubsub"} }, "0", false)
	victim(func(c *livetest.Client) []any {
		return []any{"ID", c.Do("CLIENT", "ID"), "USER", "default", "TYPE", "normal"}
	}, "1", true)
	victim(func(c *livetest.Client) []any { return []any{"ID", c.Do("CLIENT", "ID"), "MAXAGE", 10} }, "0", false)
	victim(func(c *livetest.Client) []any {
		s.Advance(10000)
		return []any{"ID", c.Do("CLIENT", "ID"), "MAXAGE", 10}
	}, "1", true)
	victim(func(c *livetest.Client) []any { return []any{"LADDR", addrOf(c, "laddr"), "ID", c.Do("CLIENT", "ID")} }, "1", true)

	// The client itself, after the reply.
	a.Want("0", "CLIENT", "KILL", "ID", a.Do("CLIENT", "ID"))
	a.Want("1", "CLIENT", "KILL", "ID", a.Do("CLIENT", "ID"), "SKIPME", "no")
	if !a.Ended() {
		t.Error("a client that killed itself lives")
	}

	// A waiting client is killed without being served.
	b, w := s.Client(), s.Client()
	id := w.Do("CLIENT", "ID")
	w.Send("BLPOP", "list", 0)
	s.Blocked(1)
	b.Want("1", "CLIENT", "KILL", "ID", id)
	s.Blocked(0)
	b.Want("1", "LPUSH", "list", "x")
	b.Want("1", "LLEN", "list")
}

func TestClientThatDoesNotRead(t *testing.T) {
	s := livetest.Start(t)
	a, b := s.Client(), s.Client()
	a.Want("OK", "SET", "big", strings.Repeat("x", 1<<20))
	a.Want("OK", "CONFIG", "SET", "client-output-buffer-limit", "normal 3mb 0 0")
	b.Want("PONG", "PING") // the limit has reached its loop
	var gets []byte
	for range 30 {
		gets = livetest.Append(gets, "GET", "big")
	}
	_ = b.Write(gets) // it may be dropped in the middle
	eventually(t, "b is dropped", func() bool { return s.Clients.Len() == 2 })
	if got := a.Info("everything", "client_output_buffer_limit_disconnections"); got != "1" {
		t.Errorf("INFO counts %s", got)
	}
}

func TestReset(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Do("HELLO", 3)
	c.Want("OK", "CLIENT", "SETNAME", "me")
	c.Want("OK", "CLIENT", "SETINFO", "lib-name", "lib")
	c.Want("OK", "CLIENT", "NO-TOUCH", "ON")
	c.Want("OK", "SELECT", 3)
	c.Want("OK", "WATCH", "k")
	c.Want("OK", "MULTI")
	c.Want("QUEUED", "PING")
	c.Want("RESET", "RESET")
	line := c.Do("CLIENT", "INFO")
	for _, part := range []string{" name= ", " flags=N ", " db=0 ", " multi=-1 ", " watch=0 ", " resp=2 ", " lib-name=lib "} {
		if !strings.Contains(line, part) {
			t.Errorf("after RESET there is no %q in %s", part, line)
		}
	}
}

// CLIENT LIST shows what other clients do.
func TestListShowsState(t *testing.T) {
	s := livetest.Start(t)
	a, b := s.Client(), s.Client()
	id := b.Do("CLIENT", "ID")
	want := func(parts ...string) {
		t.Helper()
		line := a.Do("CLIENT", "LIST", "ID", id)
		for _, part := range parts {
			if !strings.Contains(line, " "+part+" ") {
				t.Errorf("there is no %q in %s", part, line)
			}
		}
	}
	want("cmd=client|id", "flags=N", "resp=2", "user=default", "multi=-1", "watch=0")
	b.Do("HELLO", 3, "SETNAME", "worker")
	b.Want("OK", "SELECT", 2)
	want("name=worker", "db=2", "resp=3", "cmd=select")
	b.Want("OK", "WATCH", "x", "y")
	b.Want("OK", "MULTI")
	b.Want("QUEUED", "SET", "k", "v")
	want("flags=x", "multi=1", "watch=2", "cmd=set")
	b.Want("OK", "DISCARD")
	b.Want("OK", "CLIENT", "NO-EVICT", "on")
	b.Send("BLPOP", "list", 0)
	s.Blocked(1)
	s.Advance(7000)
	want("flags=be", "age=7", "idle=7", "cmd=blpop", "watch=0")
	b.Close()
	s.Blocked(0)
	eventually(t, "b is listed no more", func() bool { return a.Do("CLIENT", "LIST", "ID", id) == "" })
}

func TestUnblockCounts(t *testing.T) {
	s := livetest.Start(t)
	a, b := s.Client(), s.Client()
	id := b.Do("CLIENT", "ID")
	b.Send("BLPOP", "list", 0)
	s.Blocked(1)
	a.Want("1", "CLIENT", "UNBLOCK", id, "ERROR")
	if got := b.Read(); got != "-UNBLOCKED client unblocked via CLIENT UNBLOCK" {
		t.Error(got)
	}
	if got := a.Info("everything", "errorstat_UNBLOCKED"); got != "count=1" {
		t.Errorf("errorstats: %s", got)
	}
	if got := a.Info("everything", "cmdstat_blpop"); !strings.HasSuffix(got, "rejected_calls=0,failed_calls=1") {
		t.Errorf("commandstats: %s", got)
	}
	a.Want("0", "CLIENT", "UNBLOCK", id)
}

// A pipeline that turns replies off and on gets the right replies for the other commands.
func TestReplyInPipeline(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	for i := range 3 {
		c.Send("ECHO", fmt.Sprint("a", i))
		c.Send("CLIENT", "REPLY", "SKIP")
		c.Send("ECHO", "skipped")
		c.Send("ECHO", fmt.Sprint("b", i))
		c.Send("CLIENT", "REPLY", "OFF")
		c.Send("ECHO", "off")
		c.Send("NOSUCH")
		c.Send("CLIENT", "REPLY", "SKIP")
		c.Send("CLIENT", "REPLY", "ON")
		want := fmt.Sprintf("a%d b%d OK", i, i)
		if got := c.Read() + " " + c.Read() + " " + c.Read(); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	c.Silent()
}
