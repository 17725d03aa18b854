package memory_test

// maxmemory-clients: which connections are ended, whatever their memory is used for, and that counted memory disappears with
// them.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// incomplete is a command of which size bytes have arrived, and more is missing.
func incomplete(size int) []byte {
	return fmt.Appendf(nil, "*2\r\n$%d\r\n%s", size+1, strings.Repeat("v", size))
}

// settles waits until a condition is true.
func settles(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(quick); !so(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is not so that " + what)
		}
	}
}

// Whatever makes a client large, only that client is ended, and nothing stays counted.
func TestLargestClientsAreEnded(t *testing.T) {
	const limit = 300_000
	many := func(each func(b []byte, i int) []byte) func(c *livetest.Client) {
		return func(c *livetest.Client) {
			var b []byte
			for i := range 5000 {
				b = each(b, i)
			}
			c.Write(b) // may fail: the server ends it
		}
	}
	long := func(words ...string) func(c *livetest.Client) {
		return func(c *livetest.Client) { // it may be ended before it reads
			args := make([]any, 0, len(words))
			for _, w := range words {
				args = append(args, strings.ReplaceAll(w, "LONG", strings.Repeat("x", 2*limit)))
			}
			c.Write(livetest.Append(nil, args...))
		}
	}
	for name, grow := range map[string]func(c *livetest.Client){
		"a long key that is waited for": long("BLPOP", "LONG", "0"),
		"a long key of a stream":        long("XREAD", "BLOCK", "0", "STREAMS", "LONG", "$"),
		"a long key of a queue":         long("DQ.POP", "LONG", "BLOCK", "0"),
		"a long watched key":            long("WATCH", "LONG"),
		"a long channel":                long("SUBSCRIBE", "LONG"),
		"a long pattern":                long("PSUBSCRIBE", "LONG"),
		"a long shard channel":          long("SSUBSCRIBE", "LONG"),
		"a long name":                   long("CLIENT", "SETNAME", "LONG"),
		"a long prefix":                 long("CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "LONG"),
		"an incomplete command":         func(c *livetest.Client) { c.Write(incomplete(2 * limit)) },
		"a transaction": func(c *livetest.Client) {
			c.Want("OK", "MULTI")
			for range 4 {
				c.Write(livetest.Append(nil, "SET", "k", strings.Repeat("v", limit/3)))
			}
		},
		"replies that are not read": func(c *livetest.Client) {
			c.Write([]byte(strings.Repeat("GET large\r\n", 3000)))
		},
		"small commands": func(c *livetest.Client) {
			c.Want("OK", "MULTI")
			c.Write([]byte(strings.Repeat("PING\r\n", 5000)))
		},
		"watched keys":  many(func(b []byte, i int) []byte { return livetest.Append(b, "WATCH", i) }),
		"channels":      many(func(b []byte, i int) []byte { return livetest.Append(b, "SUBSCRIBE", i) }),
		"patterns":      many(func(b []byte, i int) []byte { return livetest.Append(b, "PSUBSCRIBE", i) }),
		"more channels": many(func(b []byte, i int) []byte { return livetest.Append(b, "SSUBSCRIBE", i) }),
		"prefixes": many(func(b []byte, i int) []byte {
			return livetest.Append(b, "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", fmt.Sprintf("%06d", i))
		}),
	} {
		t.Run(name, func(t *testing.T) {
			s := livetest.Start(t)
			admin, small, large := s.Client(), s.Client(), s.Client()
			small.Want("PONG", "PING")
			large.Want("OK", "SET", "large", strings.Repeat("v", 10_000))
			before := info(t, admin, "mem_clients_normal")
			admin.Want("OK", "CONFIG", "SET", "maxmemory-clients", limit)
			grow(large)
			settles(t, "one client is ended", func() bool { return info(t, admin, "evicted_clients") == 1 })
			if !large.Ended() {
				t.Error("the large client is still there")
			}
			small.Want("PONG", "PING")
			settles(t, "what it took is counted no more", func() bool { return info(t, admin, "mem_clients_normal") < before })
			small.Close()
			small = s.Client()
			small.Want("PONG", "PING")
			large = s.Client()
			large.Want("PONG", "PING")
			settles(t, "all is as it was", func() bool { return info(t, admin, "mem_clients_normal") == before })
		})
	}
}

// The largest clients are ended first, and no more than necessary. Clients with NO-EVICT stay and do not count.
func TestClientsAreEndedInOrder(t *testing.T) {
	s := livetest.Start(t)
	admin := s.Client()
	admin.Want("OK", "CLIENT", "NO-EVICT", "ON")
	sizes := []int{100_000, 400_000, 200_000, 600_000}
	clients := make([]*livetest.Client, len(sizes))
	for i, size := range sizes {
		clients[i] = s.Client()
		clients[i].Want("OK", "CLIENT", "SETNAME", fmt.Sprint("client", i))
		clients[i].Write(incomplete(size))
	}
	spared := s.Client()
	spared.Want("OK", "CLIENT", "NO-EVICT", "ON")
	spared.Want("OK", "CLIENT", "SETNAME", "spared")
	spared.Write(incomplete(5_000_000))
	settles(t, "all have come", func() bool { return info(t, admin, "mem_clients_normal") > 6_300_000 })
	left := func() (names []string) {
		for line := range strings.SplitSeq(admin.Do("CLIENT", "LIST"), "\n") {
			if _, rest, ok := strings.Cut(line, " name="); ok && rest[0] != ' ' {
				names = append(names, rest[:strings.IndexByte(rest, ' ')])
			}
		}
		return names
	}
	for _, step := range []struct {
		set   []any
		names string
	}{
		{[]any{"maxmemory-clients", "2mb"}, "client0 client1 client2 client3 spared"},
		{[]any{"maxmemory-clients", 1_000_000}, "client0 client1 client2 spared"},
		{[]any{"maxmemory-clients", "5%"}, "client0 client1 client2 spared"}, // of nothing
		{[]any{"maxmemory", 10_000_000}, "client0 client2 spared"},
		{[]any{"maxmemory-clients", 1}, "client0 spared"}, // counts as 128 kB
		{[]any{"maxmemory-clients", 0}, "client0 spared"},
	} {
		admin.Want("OK", append([]any{"CONFIG", "SET"}, step.set...)...)
		if got := strings.Join(left(), " "); got != step.names {
			t.Fatalf("%v: %s are left, not %s", step.set, got, step.names)
		}
	}
	if n := info(t, admin, "evicted_clients"); n != 3 {
		t.Errorf("evicted_clients is %d", n)
	}
}

// CLIENT NO-EVICT OFF ends a client that is too large.
func TestNoEvictOff(t *testing.T) {
	s := livetest.Start(t)
	admin, large := s.Client(), s.Client()
	admin.Want("OK", "CONFIG", "SET", "maxmemory-clients", 300_000)
	large.Want("OK", "CLIENT", "NO-EVICT", "ON")
	for i := range 5000 {
		large.Want("OK", "WATCH", i)
	}
	large.Send("CLIENT", "NO-EVICT", "OFF")
	if !large.Ended() {
		t.Error("the client is still there")
	}
	if n := info(t, admin, "evicted_clients"); n != 1 {
		t.Errorf("evicted_clients is %d", n)
	}
}

// Counted memory disappears with the wait, the watch, the subscription and the name, not only with the client.
func TestWhatClientsHoldIsCounted(t *testing.T) {
	s := livetest.Start(t)
	admin, c, waiting := s.Client(), s.Client(), s.Client()
	c.Want("PONG", "PING")
	waiting.Want("PONG", "PING")
	const size = 1 << 20
	long := strings.Repeat("x", size)
	taken := func() int64 { return int64(info(t, admin, "mem_clients_normal")) }
	taken() // its own replies are included from now on
	base := taken()
	grown := func(what string, want int64) {
		t.Helper()
		var n int64
		settles(t, what, func() bool { n = taken() - base; return n >= want && n < want+size/4 })
	}
	waiting.Write(livetest.Append(nil, "BLPOP", long, 0))
	s.Blocked(1)
	grown("the key that is waited for", size)
	c.Want("1", "RPUSH", long, "v")
	s.Blocked(0)
	grown("nobody waits", 0)
	c.Want("OK", "WATCH", long)
	c.Want("OK", "WATCH", long) // a second time adds nothing
	grown("a watched key", size)
	c.Want("OK", "UNWATCH")
	grown("no watched key", 0)
	c.Want("OK", "CLIENT", "SETNAME", long)
	grown("a name", size)
	c.Want("OK", "CLIENT", "SETNAME", "")
	grown("no name", 0)
	c.Want("OK", "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", long)
	grown("a prefix", size)
	c.Want("OK", "CLIENT", "TRACKING", "OFF")
	grown("no prefix", 0)
	c.Do("SUBSCRIBE", long)
	grown("a channel", size)
	c.Do("UNSUBSCRIBE", long)
	grown("no channel", 0)
}

// TestManyWaitForLongKeys: the key counts for each of 60 clients that wait for a key of 1 MB, and all but one are ended if
// there is room for one.
func TestManyWaitForLongKeys(t *testing.T) {
	const clients, size = 60, 1 << 20
	s := livetest.Start(t)
	admin := s.Client()
	admin.Want("OK", "CLIENT", "NO-EVICT", "ON")
	for i := range clients {
		s.Client().Write(livetest.Append(nil, "BLPOP", fmt.Sprint(i, strings.Repeat("x", size)), 0))
	}
	s.Blocked(clients)
	settles(t, "60 MB are counted", func() bool {
		n := info(t, admin, "mem_clients_normal")
		return n >= clients*size && n < clients*size*11/10
	})
	admin.Want("OK", "CONFIG", "SET", "maxmemory-clients", size*3/2)
	settles(t, "59 are ended", func() bool { return info(t, admin, "evicted_clients") == clients-1 })
	s.Blocked(1)
}
