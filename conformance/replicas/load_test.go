// Package replicas proves that redis-server and valkey-server follow limitkv: what they keep is what it keeps, whatever is
// done to it, and to the link.
package replicas

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/sequence"
)

func TestMain(m *testing.M) {
	code := m.Run()
	peer.Cleanup()
	os.Exit(code)
}

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

// follow tells a server to follow another one.
func follow(t *testing.T, s *peer.Server, addr string) {
	t.Helper()
	host, port, _ := net.SplitHostPort(addr)
	if v := must(t, s, "REPLICAOF", host, port); v.Text != "OK" {
		t.Fatal(v)
	}
}

func must(t *testing.T, s *peer.Server, args ...string) peer.Value {
	t.Helper()
	c, err := peer.Dial(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	v, err := c.Do(args...)
	if err != nil {
		t.Fatalf("%s: %v: %v\n%s", s.Name, args, err, s.Output())
	}
	return v
}

// field is a field of INFO, "" if there is none.
func field(t *testing.T, s *peer.Server, name string) string {
	t.Helper()
	return peer.Field(must(t, s, "INFO", "everything").Text, name)
}

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatalf("within %v it did not come that %s", patience, what)
		}
	}
}

// caughtUp waits until a replica has come to where the primary is.
func caughtUp(t *testing.T, from, to *peer.Server) {
	t.Helper()
	eventually(t, to.Name+" is as far as the primary\n"+from.Output()+"\n"+to.Output(), func() bool {
		return field(t, to, "master_link_status") == "up" && field(t, to, "slave_repl_offset") == field(t, from, "master_repl_offset")
	})
}

// same waits for that, too, and compares what they keep.
func same(t *testing.T, from, to *peer.Server) {
	t.Helper()
	var want, got string
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		caughtUp(t, from, to)
		want, got = must(t, from, "DEBUG", "DIGEST").Text, must(t, to, "DEBUG", "DIGEST").Text
		if want == got || time.Now().After(end) { // between the two a key may expire, or an idle limiter go
			break
		}
	}
	if want != got {
		for db := range 16 {
			differing(t, db, from.Dial(t), to.Dial(t))
		}
		t.Errorf("%s has %s, the primary %s: %s %v\n%s", to.Name, got, want, field(t, to, "unexpected_error_replies"), must(t, to, "INFO", "errorstats").Text, to.Output())
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
				must(t, p, "FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function(k) return redis.call('INCR', k[1]) end)")
				follow(t, first, p.Addr)
				stop := make(chan struct{})
				ran := load(t, p, seed, stop, kind)
				time.Sleep(500 * time.Millisecond)
				second := start(t)
				follow(t, second, p.Addr)
				eventually(t, "the second one is there", func() bool { return field(t, second, "master_link_status") == "up" })
				time.Sleep(500 * time.Millisecond)
				must(t, first, "CLIENT", "KILL", "TYPE", "master")
				must(t, p, "CLIENT", "KILL", "TYPE", "replica")
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
				if got := field(t, p, "replication_left_out_effects"); got == "0" || got == "" {
					t.Errorf("%q effects were left out", got)
				}
				if got := field(t, p, "sync_partial_ok"); got == "0" {
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
			must(t, p, "HSET", "before", "a", "1", "b", "2")
			must(t, p, "HPEXPIREAT", "before", "4102444800123", "FIELDS", "1", "a")
			must(t, p, "EVAL", "for i=1,700 do redis.call('HSET', KEYS[1], i, i) end redis.call('HPEXPIREAT', KEYS[1], '4102444800456', 'FIELDS', 1, 7)", "1", "large")
			r := kinds[kind](t)
			follow(t, r, p.Addr)
			eventually(t, "the replica is there", func() bool { return field(t, r, "master_link_status") == "up" })
			must(t, p, "HSET", "after", "a", "1", "b", "2")
			must(t, p, "HPEXPIREAT", "after", "4102444800789", "FIELDS", "1", "b")
			must(t, p, "HSET", "short", "a", "1", "b", "2")
			must(t, p, "HPEXPIRE", "short", "100", "FIELDS", "1", "b")
			eventually(t, "a field expires", func() bool { return must(t, p, "HLEN", "short").Text == "1" })
			caughtUp(t, p, r)
			for _, x := range [][2]string{{"before", "a"}, {"before", "b"}, {"large", "7"}, {"large", "8"}, {"after", "b"}, {"short", "b"}} {
				want, got := must(t, p, "HPEXPIRETIME", x[0], "FIELDS", "1", x[1]), must(t, r, "HPEXPIRETIME", x[0], "FIELDS", "1", x[1])
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
	follow(t, r, p.Addr)
	l := primary(t)
	follow(t, l, p.Addr)
	eventually(t, "the replicas are there", func() bool {
		return field(t, r, "master_link_status") == "up" && field(t, l, "master_link_status") == "up"
	})
	limiter := func(key string) {
		if v := must(t, p, "RL.ACQUIRE", key, "1", "GCRA", "1", "100000"); v.IsError() {
			t.Fatal(v)
		}
	}
	for _, key := range []string{"renamed", "copied", "restored", "moved", "kept"} {
		must(t, p, "SET", key, "plain")
	}
	limiter("a")
	must(t, p, "RENAME", "a", "renamed")
	limiter("b")
	must(t, p, "COPY", "b", "copied", "REPLACE")
	must(t, p, "RESTORE", "restored", "0", must(t, p, "DUMP", "b").Text, "REPLACE")
	must(t, p, "RESTORE", "new", "0", must(t, p, "DUMP", "b").Text)
	must(t, p, "MOVE", "b", "1")
	must(t, p, "COPY", "copied", "kept", "DB", "2")
	must(t, p, "EVAL", "redis.call('RENAME', KEYS[1], KEYS[2])", "2", "copied", "moved")
	caughtUp(t, p, r)
	same(t, p, l)
	if keys := must(t, r, "KEYS", "*"); len(keys.Items) != 1 || keys.Items[0].Text != "kept" {
		t.Errorf("the replica has %v", keys)
	}
	if text := r.Output(); strings.Contains(text, "CRITICAL") || field(t, r, "unexpected_error_replies") != "0" {
		t.Errorf("the replica did not like what it got:\n%s", text)
	}
	if left := field(t, p, "replication_left_out_effects"); left == "0" {
		t.Error("nothing was left out")
	}
}

// A replica that knows all types feeds one that knows Redis's alone: it has its primary's bytes, and leaves out the same.
func TestChain(t *testing.T) {
	a, b := primary(t), primary(t)
	c := kinds["redis"](t)
	follow(t, b, a.Addr)
	eventually(t, "the first is there", func() bool { return field(t, b, "master_link_status") == "up" })
	follow(t, c, b.Addr)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	stop := make(chan struct{})
	ran := load(t, a, seed, stop, "redis")
	time.Sleep(time.Second)
	must(t, b, "CLIENT", "KILL", "TYPE", "replica")
	must(t, a, "CLIENT", "KILL", "TYPE", "replica")
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
	if left := field(t, b, "replication_left_out_effects"); left == "0" {
		t.Error("nothing was left out")
	}
}
