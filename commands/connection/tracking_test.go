package connection_test

// Client-side caching: which client gets which message, in which order, and that nobody keeps a value that has changed.

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

func TestTracking(t *testing.T) {
	s := livetest.Start(t)
	a, b := s.Client(), s.Client()
	a.Do("HELLO", 3)
	a.Want("OK", "CLIENT", "TRACKING", "ON")
	told := func(want string) {
		t.Helper()
		if got := a.Read(); got != want {
			t.Errorf("told %s, not %s", got, want)
		}
	}
	b.Want("OK", "MSET", "{k}1", 1, "{k}2", 2)
	a.Want("[1 2]", "MGET", "{k}1", "{k}2")
	b.Want("OK", "SET", "{k}1", 3)
	told("[invalidate [{k}1]]")
	b.Want("OK", "SET", "{k}1", 4) // once is enough
	a.Silent()
	a.Want("5", "INCR", "{k}1") // a write does not count as a read
	a.Silent()
	a.Want("3", "INCR", "{k}2") // the client's own change, after the reply
	told("[invalidate [{k}2]]")

	a.Want("3", "EVAL", "return redis.call('get', KEYS[1])", 1, "{k}2")
	b.Want("1", "DEL", "{k}2")
	told("[invalidate [{k}2]]")
	b.Want("OK", "SET", "ttl", 1, "PX", 50)
	a.Want("1", "GET", "ttl")
	s.Advance(100)
	told("[invalidate [ttl]]")
	a.Want("nil", "GET", "missing")
	b.Want("OK", "SET", "missing", 1)
	told("[invalidate [missing]]")
	a.Want("1", "GET", "missing")
	b.Want("OK", "FLUSHDB")
	told("[invalidate nil]")
	b.Want("OK", "SET", "missing", 1)
	a.Silent()

	// In a transaction, after its reply.
	a.Want("1", "GET", "missing")
	a.Want("OK", "MULTI")
	a.Want("QUEUED", "GET", "missing")
	a.Want("QUEUED", "SET", "missing", 2)
	a.Want("[1 OK]", "EXEC")
	told("[invalidate [missing]]")

	a.Want("2", "GET", "missing")
	a.Want("OK", "CLIENT", "TRACKING", "OFF")
	b.Want("OK", "SET", "missing", 3)
	a.Silent()
}

// TestOwnMessages: messages about a client's own command come right after its reply, before the reply of the next one. Those
// of a flush for which clients wait in Redis come before its reply. All is as Redis 8.0 sends it.
func TestOwnMessages(t *testing.T) {
	const key, all, sample, push = "[invalidate [a]]", "[invalidate nil]", "Some real reply following the push reply", "[server-cpu-usage 42]"
	for _, c := range []struct {
		commands string
		want     []string
	}{
		{"set a 2;ping", []string{"OK", key, "PONG"}},
		{"multi;set a 2;ping;exec;ping", []string{"OK", "QUEUED", "QUEUED", "[OK PONG]", key, "PONG"}},
		{"flushall;ping", []string{all, "OK", "PONG"}},
		{"flushdb sync;ping", []string{all, "OK", "PONG"}},
		{"flushall async;ping", []string{"OK", all, "PONG"}},
		{"multi;set a 2;flushall;set c 1;exec;ping", []string{"OK", "QUEUED", "QUEUED", "QUEUED", "[OK OK OK]", key, all, "PONG"}},
		{"eval redis.call('flushall') 0;ping", []string{"nil", all, "PONG"}},
		{"client reply skip;flushall;ping", []string{all, "PONG"}},
		{"client reply off;set a 2;ping;client reply on", []string{key, "OK"}},
		{"debug reload;ping", []string{"OK", all, "PONG"}},
		{"debug protocol push;ping", []string{sample, push, "PONG"}},
		{"multi;debug protocol push;ping;exec", []string{"OK", "QUEUED", "QUEUED", "[" + sample + " PONG]", push}},
		{"client reply skip;debug protocol push;ping", []string{push, "PONG"}},
	} {
		s := livetest.Start(t)
		a := s.Client()
		a.Do("HELLO", 3)
		a.Want("OK", "SET", "a", 1)
		a.Want("OK", "CLIENT", "TRACKING", "ON")
		a.Want("1", "GET", "a")
		var pipeline []byte
		for line := range strings.SplitSeq(c.commands, ";") {
			var args []any
			for word := range strings.FieldsSeq(line) {
				args = append(args, word)
			}
			pipeline = livetest.Append(pipeline, args...)
		}
		a.Write(pipeline)
		for i, want := range c.want {
			if got := a.Read(); got != want {
				t.Errorf("%s: reply %d is %s, not %s", c.commands, i+1, got, want)
			}
		}
		a.Silent()
	}
}

func TestTrackingChoices(t *testing.T) {
	s := livetest.Start(t)
	a, b := s.Client(), s.Client()
	a.Do("HELLO", 3)
	mode := func(args ...any) {
		t.Helper()
		a.Want("OK", "CLIENT", "TRACKING", "OFF")
		a.Want("OK", append([]any{"CLIENT", "TRACKING", "ON"}, args...)...)
	}
	info := func(want string) {
		t.Helper()
		a.Want(want, "CLIENT", "TRACKINGINFO")
	}
	touch := func(want string, keys ...any) {
		t.Helper()
		for _, key := range keys {
			b.Want("OK", "SET", key, "x")
		}
		if want == "" {
			a.Silent()
		} else if got := a.Read(); got != want {
			t.Errorf("told %s, not %s", got, want)
		}
	}
	mode("NOLOOP")
	info("[flags [on noloop] redirect 0 prefixes []]")
	a.Want("nil", "GET", "k")
	a.Want("OK", "SET", "k", 1)
	touch("")

	mode("OPTIN")
	a.Want("1", "GET", "k")
	touch("", "k")
	a.Want("OK", "CLIENT", "CACHING", "YES")
	info("[flags [on optin caching-yes] redirect 0 prefixes []]")
	a.Want("x", "GET", "k")
	a.Want("nil", "GET", "other") // CACHING was for one command
	touch("[invalidate [k]]", "k", "other")
	a.Silent()
	a.Want("-ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.", "CLIENT", "CACHING", "NO")

	mode("OPTOUT")
	a.Want("OK", "CLIENT", "CACHING", "NO")
	a.Want("x", "GET", "k")
	touch("", "k")
	a.Want("x", "GET", "k")
	touch("[invalidate [k]]", "k")

	mode("BCAST", "PREFIX", "user:", "PREFIX", "item:")
	info("[flags [on bcast] redirect 0 prefixes [user: item:]]")
	touch("[invalidate [user:1]]", "other", "user:1")
	b.Want("OK", "MSET", "item:{1}a", 1, "item:{1}b", 2, "item:{1}a", 3, "elsewhere", 4)
	touch("[invalidate [item:{1}a item:{1}b]]")
	a.Want("OK", "CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "more:")
	info("[flags [on bcast] redirect 0 prefixes [item: more: user:]]")
	touch("[invalidate [more:1]]", "more:1")
	for args, want := range map[string]string{
		"BCAST PREFIX us":          "-ERR Prefix 'us' overlaps with an existing prefix 'user:'. Prefixes for a single client must not overlap.",
		"BCAST PREFIX a PREFIX ab": "-ERR Prefix 'a' overlaps with another provided prefix 'ab'. Prefixes for a single client must not overlap.",
		"PREFIX a":                 "-ERR PREFIX option requires BCAST mode to be enabled",
		"OPTIN":                    "-ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it with a different mode.",
		"BCAST OPTIN":              "-ERR OPTIN and OPTOUT are not compatible with BCAST",
		"REDIRECT 999999":          "-ERR The client ID you want redirect to does not exist",
		"REDIRECT 1 REDIRECT 2":    "-ERR A client can only redirect to a single other client",
		"REDIRECT x":               "-ERR value is not an integer or out of range",
		"BCAST NOSUCH":             "-ERR syntax error",
		"PREFIX":                   "-ERR syntax error",
	} {
		words := []any{"CLIENT", "TRACKING", "ON"}
		for _, w := range strings.Fields(args) {
			words = append(words, w)
		}
		a.Want(want, words...)
	}
	a.Want("OK", "CLIENT", "TRACKING", "OFF")
	a.Want("-ERR You can't specify both OPTIN mode and OPTOUT mode", "CLIENT", "TRACKING", "ON", "OPTIN", "OPTOUT")
	info("[flags [off] redirect -1 prefixes []]")
}

func TestTrackingRedirect(t *testing.T) {
	s := livetest.Start(t)
	a, b, sub := s.Client(), s.Client(), s.Client()
	id := sub.Do("CLIENT", "ID")
	sub.Want("[subscribe __redis__:invalidate 1]", "SUBSCRIBE", "__redis__:invalidate")
	a.Do("HELLO", 3)
	a.Want("OK", "CLIENT", "TRACKING", "ON", "REDIRECT", id)
	a.Want(id, "CLIENT", "GETREDIR")
	a.Want("nil", "GET", "k")
	b.Want("OK", "SET", "k", 1)
	if got := sub.Read(); got != "[message __redis__:invalidate [k]]" {
		t.Error(got)
	}
	a.Want("1", "GET", "k")
	b.Want("OK", "FLUSHALL")
	if got := sub.Read(); got != "[message __redis__:invalidate nil]" {
		t.Error(got)
	}
	sub.Close()
	eventually(t, "the one it redirects to is gone", func() bool { return s.Clients.Len() == 3 })
	a.Want("nil", "GET", "k")
	b.Want("OK", "SET", "k", 1)
	if got := a.Read(); got != "[tracking-redir-broken "+id+"]" {
		t.Error(got)
	}
	a.Want("[flags [on broken_redirect] redirect "+id+" prefixes []]", "CLIENT", "TRACKINGINFO")
}

func TestTrackingTableIsLimited(t *testing.T) {
	s := livetest.Start(t)
	a := s.Client()
	a.Do("HELLO", 3)
	a.Want("OK", "CONFIG", "SET", "tracking-table-max-keys", 3)
	a.Want("OK", "CLIENT", "TRACKING", "ON")
	for i := range 10 {
		a.Send("GET", i)
	}
	dropped := 0
	for range 17 { // ten replies, seven that are dropped
		if strings.HasPrefix(a.Read(), "[invalidate ") {
			dropped++
		}
	}
	if got := a.Info("everything", "tracking_total_keys") + a.Info("everything", "tracking_total_items"); dropped != 7 || got != "33" {
		t.Errorf("%d keys were dropped, %s are left", dropped, got)
	}
	a.Want("RESET", "RESET")
	if got := a.Info("everything", "tracking_total_keys") + a.Info("everything", "tracking_clients"); got != "00" {
		t.Errorf("after RESET there are %s", got)
	}
}

// Clients that cache what they read until a message comes never keep an old value, whatever writes at the same time.
func TestTrackingKeepsCachesTrue(t *testing.T) {
	s := livetest.Start(t)
	const keys, enough = 20, 100
	reader := s.Client()
	reader.Do("HELLO", 3)
	reader.Want("OK", "CLIENT", "TRACKING", "ON")
	var writers sync.WaitGroup
	var stop atomic.Bool
	for i := range 3 {
		w := s.Client()
		r := rand.New(rand.NewPCG(uint64(i), 7))
		writers.Go(func() {
			for n := 0; !stop.Load(); n++ {
				w.Do("SET", fmt.Sprint("k", r.IntN(keys)), n)
				if n%50 == 0 {
					w.Do("EVAL", "redis.call('set', KEYS[1], ARGV[1]) redis.call('del', KEYS[2])", 2, "k{1}", "k2", n)
				}
			}
		})
	}
	cache, reads, tolds := map[string]string{}, 0, 0
	note := func(reply string) (told bool) {
		key, told := strings.CutPrefix(reply, "[invalidate [")
		if told {
			tolds++
			delete(cache, strings.TrimSuffix(key, "]]"))
		}
		return told
	}
	read := func(key string) string {
		reader.Send("GET", key)
		for {
			if reply := reader.Read(); !note(reply) {
				return reply
			}
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for tolds < enough && reads < 1_000_000 { // as many as it takes, however busy the machine is
		key := fmt.Sprint("k", r.IntN(keys))
		cache[key] = read(key)
		reads++
	}
	stop.Store(true)
	writers.Wait()
	// Messages under way come before the reply of a command that is sent now.
	for range 3 {
		read("nothing")
	}
	admin := s.Client()
	for key, value := range cache {
		if got := admin.Do("GET", key); got != value {
			t.Errorf("%s is %s, and kept as %s", key, got, value)
		}
	}
	t.Logf("%d reads, %d times told", reads, tolds)
	if tolds < enough || len(cache) == 0 {
		t.Error("that is too few")
	}
}

// A connection that redirects to itself gets messages in RESP2 too, while it listens to the channel. The message of a flush
// is the null of the connection that tracks.
func TestTrackingRedirectedToItself(t *testing.T) {
	s := livetest.Start(t)
	a, b := s.Client(), s.Client()
	a.Want("OK", "CLIENT", "TRACKING", "ON", "REDIRECT", a.Do("CLIENT", "ID"))
	a.Want("nil", "GET", "k")
	b.Want("OK", "SET", "k", 1)
	a.Silent() // it does not listen
	a.Want("1", "GET", "k")
	a.Want("[subscribe __redis__:invalidate 1]", "SUBSCRIBE", "__redis__:invalidate")
	told := func(c *livetest.Client, want string) {
		t.Helper()
		if got := c.Read(); got != want {
			t.Errorf("told %s, not %s", got, want)
		}
	}
	b.Want("OK", "SET", "k", 2)
	told(a, "[message __redis__:invalidate [k]]")
	b.Want("OK", "FLUSHALL")
	told(a, "[message __redis__:invalidate nil]")
	a.Want("[unsubscribe __redis__:invalidate 0]", "UNSUBSCRIBE")
	b.Want("OK", "FLUSHALL")
	a.Silent()

	c := s.Client()
	c.Do("HELLO", 3)
	c.Want("OK", "CLIENT", "TRACKING", "ON", "REDIRECT", a.Do("CLIENT", "ID"))
	a.Want("OK", "CLIENT", "TRACKING", "OFF")
	a.Want("[subscribe __redis__:invalidate 1]", "SUBSCRIBE", "__redis__:invalidate")
	b.Want("OK", "FLUSHALL")
	if got := a.Read(); got != "[message __redis__:invalidate nil]" {
		t.Errorf("RESP3 that redirects to RESP2: told %s", got)
	}
}

// TestTableIsCounted: the growth in INFO memory after keys were read is near to the heap's growth, and disappears when
// tracking is turned off.
func TestTableIsCounted(t *testing.T) {
	s := livetest.Start(t)
	admin := s.Client()
	used := func() int64 { return admin.InfoInt("memory", "used_memory") }
	const keys = 100_000
	for _, clients := range []int{1, 5} {
		readers := make([]*livetest.Client, clients)
		for i := range readers {
			readers[i] = s.Client()
			readers[i].Do("HELLO", 3)
			readers[i].Want("OK", "CLIENT", "TRACKING", "ON")
		}
		var names []any
		for i := range keys {
			names = append(names, fmt.Sprintf("{t}a-key-of-a-usual-length-%d", i))
		}
		before, had := livetest.HeapBytes(), used()
		for _, c := range readers {
			for part := range slices.Chunk(names, 1000) {
				c.Do(append([]any{"MGET"}, part...)...)
			}
		}
		counts, grown := used()-had, livetest.HeapBytes()-before
		runtime.KeepAlive(names)
		if ratio := float64(counts) / float64(grown); ratio < 0.7 || ratio > 1.4 {
			t.Errorf("%d readers: the heap grew by %d bytes, %d are counted (%.2f)", clients, grown, counts, ratio)
		}
		for _, c := range readers {
			c.Want("OK", "CLIENT", "TRACKING", "OFF")
		}
		if left := used() - had; left > counts/20 {
			t.Errorf("%d readers: %d bytes stay counted", clients, left)
		}
	}
}
