// Package replicas proves that redis-server and valkey-server follow limitkv: what they keep is what it keeps, whatever is
// done to it, and to the link.
package replicas

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/sequence"
)

func TestMain(m *testing.M) { peer.Main(m) }

// inCI: what a test needs has to be there.
var inCI = os.Getenv("CI") != ""

// patience is how long replicas may take to come to the same.
const patience = 30 * time.Second

// kinds are the servers that may follow, and how to start one.
var kinds = map[string]func(t *testing.T, args ...string) *peer.Server{
	"redis": func(t *testing.T, args ...string) *peer.Server {
		return peer.Redis(t, inCI, append([]string{"--repl-diskless-load", "swapdb"}, args...)...)
	},
	"valkey":  func(t *testing.T, args ...string) *peer.Server { return named(t, "VALKEY_SERVER", args...) },
	"redis 7": func(t *testing.T, args ...string) *peer.Server { return named(t, "REDIS7_SERVER", args...) },
}

// named starts the server that a variable of the environment names.
func named(t *testing.T, variable string, args ...string) *peer.Server {
	t.Helper()
	bin := os.Getenv(variable)
	if bin == "" {
		t.Skipf("%s names no server", variable)
	}
	return peer.Like(t, strings.ToLower(variable), bin, args...)
}

// primary starts a limitkv with some settings.
func primary(t *testing.T, args ...string) *peer.Server {
	t.Helper()
	return peer.LimitKV(t, append([]string{"--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}, args...)...)
}

// same waits for that, too, and compares what they keep.
func same(t *testing.T, from, to *peer.Server) {
	t.Helper()
	var want, got string
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		peer.CaughtUp(t, from, to)
		want, got = from.Must(t, "DEBUG", "DIGEST").Text, to.Must(t, "DEBUG", "DIGEST").Text
		if want == got || time.Now().After(end) { // between the two a key may expire, or an idle limiter go
			break
		}
	}
	if want != got {
		for db := range 16 {
			differing(t, db, from.Dial(t), to.Dial(t))
		}
		t.Errorf("%s has %s, the primary %s: %s %v\n%s", to.Name, got, want, to.Info(t, "unexpected_error_replies"), to.Must(t, "INFO", "errorstats").Text, to.Output())
	}
}

// differing shows which keys of a database two servers have different values under.
func differing(t *testing.T, db int, from, to *peer.Conn) {
	t.Helper()
	ask := func(c *peer.Conn, args ...string) peer.Value {
		v, err := c.Do(args...)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	keys := map[string]bool{}
	for _, c := range []*peer.Conn{from, to} {
		ask(c, "SELECT", fmt.Sprint(db))
		for _, k := range ask(c, "KEYS", "*").Items {
			keys[k.Text] = true
		}
	}
	for k := range keys {
		if want, got := ask(from, "DEBUG", "DIGEST-VALUE", k).String(), ask(to, "DEBUG", "DIGEST-VALUE", k).String(); want != got {
			t.Errorf("database %d, %q: want %v, got %v", db, k, ask(from, "DUMP", k), ask(to, "DUMP", k))
		}
	}
}

// load runs random commands of all families, and what limitkv has besides, on several connections until stopped. It
// returns how many commands ran. What Redis 8 has and the kind of
// replica does not have, or not alike, is left out.
func load(t *testing.T, s *peer.Server, seed uint64, stop <-chan struct{}, kind string) (ran func() int) {
	t.Helper()
	var wg sync.WaitGroup
	counts := make([]int, 4)
	for i := range counts {
		c, err := peer.Dial(s.Addr)
		if err != nil {
			t.Fatal(err)
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer c.Close()
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for round := uint64(0); ; round++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := c.Do("RESET"); err != nil {
					t.Errorf("the load: %v", err)
					return
				}
				_, _ = c.Do("SELECT", fmt.Sprint(i%3))
				f := sequence.Families[r.IntN(len(sequence.Families))]
				if kind == "redis 7" && !slices.Contains(ofRedis7, f.Name) {
					continue
				}
				steps := f.Round(seed+round*17+uint64(i), 150)
				var out []byte
				n := 0
				for _, x := range append(steps, natives(r)...) {
					text := strings.ToUpper(strings.Join(x.Args, " "))
					if kind != "redis" && slices.ContainsFunc(ofRedis8, func(name string) bool { return strings.Contains(text, name) }) ||
						kind == "redis 7" && strings.Contains(text, "LSET") || // Redis 8 takes indices that are far out of range
						strings.Contains(strings.ReplaceAll(text, "-0.", ""), "-0") { // a small sorted set has no sign of zero
						continue
					}
					out = peer.AppendCommand(out, x.Args...)
					n++
				}
				if err := c.SendRaw(out); err != nil {
					t.Errorf("the load: %v", err)
					return
				}
				for range n {
					if _, err := c.Receive(); err != nil {
						t.Errorf("the load: %v", err)
						return
					}
				}
				counts[i] += n
			}
		}()
	}
	return func() int {
		wg.Wait()
		sum := 0
		for _, n := range counts {
			sum += n
		}
		return sum
	}
}

// ofRedis8 are the names of commands about the deadlines of fields, which are not part of Valkey's digests.
var ofRedis8 = []string{"HEXPIRE", "HPEXPIRE", "HSETEX", "HGETEX", "HPERSIST", "HGETDEL"}

// ofRedis7 are the families whose commands and digests are those of Redis 7.0, too.
var ofRedis7 = []string{"list", "set"}

// natives are commands of types that limitkv alone has, in a database of their own.
func natives(r *rand.Rand) (steps []sequence.Step) {
	add := func(args ...string) { steps = append(steps, sequence.Step{Args: args}) }
	k := fmt.Sprint(r.IntN(20))
	add("SELECT", "15")
	add("RL.ACQUIRE", "limiter:"+k, "1", "GCRA", "100", "60000")
	add("DQ.ADD", "queue:"+k, "DELAY", "100", strings.Repeat("p", r.IntN(300)))
	add("LK.ACQUIRE", "lock:"+k, "me", "1000")
	add("MULTI")
	add("SET", "plain:"+k, "1")
	add("RL.ACQUIRE", "limiter:"+k, "1", "GCRA", "100", "60000")
	add("EXEC")
	add("EVAL", "redis.call('INCR', KEYS[1]) redis.call('RL.ACQUIRE', KEYS[2], 1, 'GCRA', 100, 60000) redis.call('PUBLISH', 'c', 'm')", "2", "plain:"+k, "limiter:"+k)
	add("PEXPIRE", "plain:"+k, "200")
	add("RENAME", "limiter:"+k, "limiter:"+fmt.Sprint(r.IntN(20)))
	return steps
}

// A replica of each kind that comes while the load is on, another that was away for a while, and one that came before:
// all have what the primary has in the end.
func TestLoad(t *testing.T) {
	for kind, start := range kinds {
		for _, how := range []string{"diskless", "file"} {
			t.Run(kind+" "+how, func(t *testing.T) {
				first := start(t)
				seed := rand.Uint64()
				t.Logf("seed %d", seed)
				p := primary(t, "--repl-diskless-sync", map[string]string{"diskless": "yes", "file": "no"}[how], "--repl-backlog-size", "100mb")
				p.Must(t, "FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function(k) return redis.call('INCR', k[1]) end)")
				peer.Follow(t, first, p.Addr)
				stop := make(chan struct{})
				ran := load(t, p, seed, stop, kind)
				time.Sleep(500 * time.Millisecond)
				second := start(t)
				peer.Follow(t, second, p.Addr)
				peer.Eventually(t, "the second one is there", func() bool { return second.Info(t, "master_link_status") == "up" })
				time.Sleep(500 * time.Millisecond)
				first.Must(t, "CLIENT", "KILL", "TYPE", "master")
				p.Must(t, "CLIENT", "KILL", "TYPE", "replica")
				time.Sleep(500 * time.Millisecond)
				close(stop)
				n := ran()
				c := p.Dial(t)
				_, _ = c.Do("SELECT", "15")
				if v, err := c.Do("FLUSHDB"); err != nil || v.IsError() {
					t.Fatal(v, err)
				}
				if n < 1000 {
					t.Errorf("the load was %d commands", n)
				}
				same(t, p, first)
				same(t, p, second)
				if got := p.Info(t, "replication_left_out_effects"); got == "0" || got == "" {
					t.Errorf("%q effects were left out", got)
				}
				if got := p.Info(t, "sync_partial_ok"); got == "0" {
					t.Error("no replica went on where it left off")
				}
				for _, s := range []*peer.Server{first, second} {
					if text := s.Output(); strings.Contains(text, "CRITICAL") {
						t.Errorf("the replica did not like what it got:\n%s", text)
					}
				}
				t.Logf("%d commands", n)
			})
		}
	}
}

// The deadlines of fields come along, by the snapshot and by the stream.
func TestFieldDeadlines(t *testing.T) {
	for _, kind := range []string{"redis", "valkey"} {
		t.Run(kind, func(t *testing.T) {
			p := primary(t)
			p.Must(t, "HSET", "before", "a", "1", "b", "2")
			p.Must(t, "HPEXPIREAT", "before", "4102444800123", "FIELDS", "1", "a")
			p.Must(t, "EVAL", "for i=1,700 do redis.call('HSET', KEYS[1], i, i) end redis.call('HPEXPIREAT', KEYS[1], '4102444800456', 'FIELDS', 1, 7)", "1", "large")
			r := kinds[kind](t)
			peer.Follow(t, r, p.Addr)
			peer.Eventually(t, "the replica is there", func() bool { return r.Info(t, "master_link_status") == "up" })
			p.Must(t, "HSET", "after", "a", "1", "b", "2")
			p.Must(t, "HPEXPIREAT", "after", "4102444800789", "FIELDS", "1", "b")
			p.Must(t, "HSET", "short", "a", "1", "b", "2")
			p.Must(t, "HPEXPIRE", "short", "100", "FIELDS", "1", "b")
			peer.Eventually(t, "a field expires", func() bool { return p.Must(t, "HLEN", "short").Text == "1" })
			peer.CaughtUp(t, p, r)
			for _, x := range [][2]string{{"before", "a"}, {"before", "b"}, {"large", "7"}, {"large", "8"}, {"after", "b"}, {"short", "b"}} {
				want, got := p.Must(t, "HPEXPIRETIME", x[0], "FIELDS", "1", x[1]), r.Must(t, "HPEXPIRETIME", x[0], "FIELDS", "1", x[1])
				if want.String() != got.String() {
					t.Errorf("%v: want %v, got %v", x, want, got)
				}
			}
		})
	}
}

// What becomes of keys of Redis's types when values of other types take their place is the same at a replica that does not
// know those, and it is not told of anything that it does not understand.
func TestNativeInPlaceOfPlain(t *testing.T) {
	p := primary(t)
	r := kinds["redis"](t)
	peer.Follow(t, r, p.Addr)
	l := primary(t)
	peer.Follow(t, l, p.Addr)
	peer.Eventually(t, "the replicas are there", func() bool {
		return r.Info(t, "master_link_status") == "up" && l.Info(t, "master_link_status") == "up"
	})
	limiter := func(key string) {
		if v := p.Must(t, "RL.ACQUIRE", key, "1", "GCRA", "1", "100000"); v.IsError() {
			t.Fatal(v)
		}
	}
	for _, key := range []string{"renamed", "copied", "restored", "moved", "kept"} {
		p.Must(t, "SET", key, "plain")
	}
	limiter("a")
	p.Must(t, "RENAME", "a", "renamed")
	limiter("b")
	p.Must(t, "COPY", "b", "copied", "REPLACE")
	p.Must(t, "RESTORE", "restored", "0", p.Must(t, "DUMP", "b").Text, "REPLACE")
	p.Must(t, "RESTORE", "new", "0", p.Must(t, "DUMP", "b").Text)
	p.Must(t, "MOVE", "b", "1")
	p.Must(t, "COPY", "copied", "kept", "DB", "2")
	p.Must(t, "EVAL", "redis.call('RENAME', KEYS[1], KEYS[2])", "2", "copied", "moved")
	peer.CaughtUp(t, p, r)
	same(t, p, l)
	if keys := r.Must(t, "KEYS", "*"); len(keys.Items) != 1 || keys.Items[0].Text != "kept" {
		t.Errorf("the replica has %v", keys)
	}
	if text := r.Output(); strings.Contains(text, "CRITICAL") || r.Info(t, "unexpected_error_replies") != "0" {
		t.Errorf("the replica did not like what it got:\n%s", text)
	}
	if left := p.Info(t, "replication_left_out_effects"); left == "0" {
		t.Error("nothing was left out")
	}
}

// A replica that knows all types feeds one that knows Redis's alone: it has its primary's bytes, and leaves out the same.
func TestChain(t *testing.T) {
	a, b := primary(t), primary(t)
	c := kinds["redis"](t)
	peer.Follow(t, b, a.Addr)
	peer.Eventually(t, "the first is there", func() bool { return b.Info(t, "master_link_status") == "up" })
	peer.Follow(t, c, b.Addr)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	stop := make(chan struct{})
	ran := load(t, a, seed, stop, "redis")
	time.Sleep(time.Second)
	b.Must(t, "CLIENT", "KILL", "TYPE", "replica")
	a.Must(t, "CLIENT", "KILL", "TYPE", "replica")
	time.Sleep(500 * time.Millisecond)
	close(stop)
	if n := ran(); n < 1000 {
		t.Errorf("the load was %d commands", n)
	}
	same(t, a, b)
	conn := a.Dial(t)
	_, _ = conn.Do("SELECT", "15")
	if v, err := conn.Do("FLUSHDB"); err != nil || v.IsError() {
		t.Fatal(v, err)
	}
	same(t, a, b)
	same(t, b, c)
	if text := c.Output(); strings.Contains(text, "CRITICAL") {
		t.Errorf("the last one did not like what it got:\n%s", text)
	}
	if left := b.Info(t, "replication_left_out_effects"); left == "0" {
		t.Error("nothing was left out")
	}
}
