// Package follow has limitkv follow others, as whoever moves to it does: a server under load is copied, the stream of what
// happens there is applied, and all is equal in the end. What is needed besides limitkv are the servers of Redis and Valkey;
// REDIS_SERVER, REDIS7_SERVER and VALKEY_SERVER say where they are.
package follow

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/sequence"
)

var (
	required = flag.Bool("required", os.Getenv("CI") != "", "a missing Redis fails the tests")
	seed     = flag.Uint64("seed", 0, "seed of the random commands; 0 chooses one and prints it")
)

func TestMain(m *testing.M) { peer.Main(m) }

// source starts a server to follow.
type source struct {
	name  string
	start func(t *testing.T, args ...string) *peer.Server
}

// sources are the servers that are there.
func sources() []source {
	list := []source{
		{"redis", func(t *testing.T, args ...string) *peer.Server { return peer.Redis(t, *required, args...) }},
		{"limitkv", func(t *testing.T, args ...string) *peer.Server { return peer.LimitKV(t, args...) }},
	}
	for _, other := range [][2]string{{"redis 7", "REDIS7_SERVER"}, {"valkey", "VALKEY_SERVER"}} {
		name, bin := other[0], os.Getenv(other[1])
		if bin == "" {
			continue
		}
		list = append(list, source{name, func(t *testing.T, args ...string) *peer.Server {
			return peer.Like(t, name, bin, args...)
		}})
	}
	return list
}

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	n := *seed
	if n == 0 {
		n = rand.Uint64()
	}
	t.Logf("seed %d", n)
	return rand.New(rand.NewPCG(n, 1))
}

// patience is how long is waited for what takes some seconds at most.
const patience = 60 * time.Second

// equal compares all that two servers have, but not in which form: that depends on what a value was before, too. Each sweeps its
// idle limiters in its own time, so it may take some seconds until they have the same.
func equal(t *testing.T, a, b *peer.Conn) {
	t.Helper()
	for end := time.Now().Add(patience / 2); ; time.Sleep(200 * time.Millisecond) {
		differ := differences(t, a, b)
		if len(differ) > 0 && time.Now().Before(end) {
			continue
		}
		for _, text := range differ {
			t.Error(text)
		}
		return
	}
}

func differences(t *testing.T, a, b *peer.Conn) (found []string) {
	t.Helper()
	if a.Must(t, "DEBUG", "DIGEST").Text == b.Must(t, "DEBUG", "DIGEST").Text {
		return nil
	}
	for db := range 16 {
		a.Must(t, "SELECT", fmt.Sprint(db))
		b.Must(t, "SELECT", fmt.Sprint(db))
		want, got := a.Must(t, "KEYS", "*"), b.Must(t, "KEYS", "*")
		for _, keys := range [][]peer.Value{want.Items, got.Items} {
			for _, key := range keys {
				if x, y := value(t, a, key.Text), value(t, b, key.Text); x != y {
					found = append(found, fmt.Sprintf("database %d, %q: %s, want %s", db, key.Text, y, x))
				}
			}
		}
	}
	return found
}

// value is all there is to know of a key. Digests of other versions are of other texts for numbers.
func value(t *testing.T, c *peer.Conn, key string) string {
	t.Helper()
	all := []peer.Value{c.Must(t, "TYPE", key), c.Must(t, "PEXPIRETIME", key)}
	switch all[0].Text {
	case "zset":
		members := c.Must(t, "ZRANGE", key, "0", "-1", "WITHSCORES").Items
		for i := range members {
			if score, err := strconv.ParseFloat(members[i].Text, 64); i%2 == 1 && err == nil { // of which versions have several texts
				members[i].Text = strconv.FormatFloat(score+0, 'g', -1, 64)
			}
		}
		all = append(all, members...)
	case "hash":
		fields := c.Must(t, "HKEYS", key).Items
		slices.SortFunc(fields, func(a, b peer.Value) int { return strings.Compare(a.Text, b.Text) })
		for _, f := range fields {
			all = append(all, f, c.Must(t, "HGET", key, f.Text))
			if at := c.Must(t, "HPEXPIRETIME", key, "FIELDS", "1", f.Text); len(at.Items) == 1 && at.Items[0].String() != ":-1" { // not all have it
				all = append(all, at.Items...)
			}
		}
	case "string":
		all = append(all, c.Must(t, "GET", key))
	default:
		all = append(all, c.Must(t, "DEBUG", "DIGEST-VALUE", key))
	}
	return fmt.Sprint(all)
}

// load sends random commands of all families until it is stopped, and returns how many.
func load(t *testing.T, s *peer.Server, r *rand.Rand) (stop func() int) {
	t.Helper()
	c := s.Dial(t)
	for _, args := range libraries {
		if v := c.Must(t, args...); v.IsError() {
			t.Fatalf("%v: %v", args, v)
		}
	}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	sent, native := 0, s.Name == "limitkv"
	wg.Add(1)
	go func() {
		defer wg.Done()
		for n := 0; ; n++ {
			var steps []sequence.Step
			if native && n%3 == 0 {
				steps = natives(r)
			} else if n%2 == 0 {
				steps = sequence.Families[r.IntN(len(sequence.Families))].Round(r.Uint64(), 100)
			} else {
				steps = others(r)
			}
			for _, step := range steps {
				select {
				case <-ended:
					_, _ = c.Do("DISCARD")
					return
				default:
				}
				if uneven(step.Args) {
					continue
				}
				if _, err := c.Do(step.Args...); err != nil {
					t.Errorf("%v: %v", step.Args, err)
					return
				}
				sent++
			}
		}
	}()
	return func() int {
		close(ended)
		wg.Wait()
		return sent
	}
}

// uneven tells whether a command is not the same for all servers.
func uneven(args []string) bool {
	if strings.HasPrefix(args[0], "EVAL") && len(args) > 3 { // a script that runs its arguments
		if n, err := strconv.Atoi(args[2]); err == nil && 0 <= n && n < len(args)-3 {
			return uneven(args[3+n:])
		}
	}
	switch name := args[0]; {
	case name == "HSETEX" && len(args) > 1 && !strings.ContainsAny(args[1], "0123456789"): // Valkey takes options for a key
		return true
	case name == "HSETEX" || name == "HGETEX": // Valkey takes an option twice
		for i, arg := range args {
			if arg == "FIELDS" {
				return false
			} else if i > 1 && slices.Contains(args[2:i], arg) {
				return true
			}
		}
		return false
	case strings.HasSuffix(name, "EXPIRE") || strings.HasSuffix(name, "EXPIREAT"): // Valkey takes a condition twice
		return len(args) > 4 && args[3] == args[4]
	}
	// Where it fails but has made the string longer, Redis does not tell its replicas.
	return args[0] == "BITFIELD" && slices.Contains(args, "FAIL")
}

var libraries = [][]string{
	{"FUNCTION", "LOAD", "REPLACE", "#!lua name=lib\nredis.register_function('add', function(keys, args) redis.call('SADD', keys[1], args[1]) return redis.call('INCR', keys[2]) end)"},
	{"FUNCTION", "LOAD", "REPLACE", "#!lua name=gone\nredis.register_function('none', function() return 1 end)"},
}

// others are commands that the random ones leave out: what is random, what falls due soon, streams and their groups, other
// databases, functions.
func others(r *rand.Rand) (steps []sequence.Step) {
	say := func(format string, args ...any) {
		steps = append(steps, sequence.Step{Args: strings.Fields(fmt.Sprintf(format, args...))})
	}
	key := func() int { return r.IntN(20) }
	for range 60 {
		switch r.IntN(24) {
		case 0:
			say("SPOP o:set:%d %d", key(), 1+r.IntN(3))
		case 1:
			say("SADD o:set:%d %d %d %d", key(), r.IntN(100), r.IntN(100), r.IntN(100))
		case 2:
			say("SET o:soon:%d %d PX %d", key(), r.Int(), 1+r.IntN(200))
		case 3:
			say("XADD o:stream:%d MAXLEN ~ 50 * n %d", key(), r.Int())
		case 4:
			say("XGROUP CREATE o:stream:%d g $ MKSTREAM", key())
		case 5:
			say("XREADGROUP GROUP g c%d COUNT 2 STREAMS o:stream:%d >", r.IntN(3), key())
		case 6:
			say("XAUTOCLAIM o:stream:%d g c%d 0 0", key(), r.IntN(3))
		case 7:
			say("SELECT %d", r.IntN(3))
		case 8:
			say("FCALL add 2 o:set:%d o:n:%d %d", key(), key(), r.IntN(100))
		case 9:
			say("INCRBYFLOAT o:float:%d 0.1", key())
		case 10:
			say("RPUSH o:list:%d a b c", key())
		case 11:
			say("LMPOP 2 o:list:%d o:list:%d LEFT COUNT 2", key(), key())
		case 12:
			say("BLMOVE o:list:%d o:list:%d LEFT RIGHT 0.001", key(), key())
		case 13:
			say("HSET o:hash:%d f%d %d", key(), r.IntN(5), r.Int())
		case 14:
			say("GETEX o:soon:%d PX %d", key(), 50+r.IntN(100))
		case 15:
			say("ZADD o:zset:%d %d m%d", key(), r.IntN(10), r.IntN(20))
		case 16:
			say("ZPOPMIN o:zset:%d 2", key())
		case 17:
			say("PFADD o:hll:%d %d", key(), r.Int())
		case 18:
			say("COPY o:list:%d o:list:%d REPLACE", key(), key())
		case 19:
			say("SWAPDB 1 2")
		case 20:
			say("MULTI")
			say("INCR o:n:%d", key())
			say("SELECT %d", r.IntN(3))
			say("RPUSH o:list:%d x", key())
			say("EXEC")
		case 21:
			steps = append(steps, sequence.Step{Args: []string{"EVAL",
				"for i = 1, 5 do redis.call('RPUSH', KEYS[1], redis.call('TIME')[2]) end redis.call('PEXPIRE', KEYS[1], ARGV[1]) return redis.call('SPOP', KEYS[2])",
				"2", fmt.Sprint("o:t:", key()), fmt.Sprint("o:set:", key()), fmt.Sprint(1 + r.IntN(300))}})
		case 22:
			say("XACK o:stream:%d g 0-1", key())
		case 23:
			if r.IntN(20) == 0 {
				say("FLUSHDB")
			}
			say("RENAME o:list:%d o:list:%d", key(), key())
		}
	}
	return steps
}

// natives are commands of the types that limitkv alone has.
func natives(r *rand.Rand) (steps []sequence.Step) {
	say := func(format string, args ...any) {
		steps = append(steps, sequence.Step{Args: strings.Fields(fmt.Sprintf(format, args...))})
	}
	key := func() int { return r.IntN(8) }
	for range 40 {
		switch r.IntN(12) {
		case 0, 1:
			say("RL.ACQUIRE n:limit:%d %d %s 5 300", key(), 1+r.IntN(4), []string{"FIXED", "LOG", "GCRA"}[r.IntN(3)])
		case 2:
			say("CL.THROTTLE n:cell:%d 15 30 60", key())
		case 3, 4:
			say("DQ.ADD n:queue:%d DELAY %d x%d", key(), r.IntN(100), r.Int())
		case 5, 6:
			say("DQ.POP n:queue:%d LEASE %d", key(), 20+r.IntN(200))
		case 7:
			say("LK.ACQUIRE n:lock:%d o%d %d", key(), r.IntN(4), 20+r.IntN(200))
		case 8:
			say("LK.RELEASE n:lock:%d o%d", key(), r.IntN(4))
		case 9:
			say("MULTI")
			say("DQ.ADD n:queue:%d y", key())
			say("LK.ACQUIRE n:lock:%d o%d %d", key(), r.IntN(4), 50)
			say("EXEC")
		case 10:
			say("RL.SET n:named:%d FIXED 5 300", key())
		case 11:
			say("DEL n:queue:%d", key())
		}
	}
	return steps
}

// soonest is by when all is gone that falls due soon.
const soonest = 500 * time.Millisecond

// TestEqual copies servers under load, whose connections to their replicas are cut now and then.
func TestEqual(t *testing.T) {
	for _, from := range sources() {
		for _, how := range []struct {
			name     string
			diskless string
			load     string
		}{
			{"by file", "no", "disabled"},
			{"without disk", "yes", "disabled"},
			{"into an empty one", "yes", "on-empty-db"},
			{"beside the old one", "yes", "swapdb"},
		} {
			t.Run(from.name+"/"+how.name, func(t *testing.T) {
				t.Parallel()
				r := seeded(t)
				primary := from.start(t, "--repl-diskless-sync", how.diskless, "--repl-diskless-sync-delay", "0")
				replica := peer.LimitKV(t, "--repl-diskless-load", how.load)
				p, q := primary.Dial(t), replica.Dial(t)
				chained := peer.LimitKV(t)
				ch := chained.Dial(t)
				first := load(t, primary, rand.New(rand.NewPCG(r.Uint64(), 2)))
				second := load(t, primary, rand.New(rand.NewPCG(r.Uint64(), 3)))
				time.Sleep(300 * time.Millisecond)
				if how.load != "on-empty-db" {
					q.Must(t, "SET", "old", "1")
					q.Must(t, "FUNCTION", "LOAD", "#!lua name=old\nredis.register_function('old', function() return 1 end)")
				}
				peer.Join(t, q, primary)
				peer.Join(t, ch, replica)
				for range 3 {
					before := p.Info(t, "sync_partial_ok")
					time.Sleep(300 * time.Millisecond)
					peer.Linked(t, q)
					p.Must(t, "CLIENT", "KILL", "TYPE", "replica")
					peer.Eventually(t, "the end of the link", func() bool { return p.Info(t, "connected_slaves") == "0" || p.Info(t, "sync_partial_ok") != before })
				}
				n := first() + second()
				p.Must(t, "FUNCTION", "DELETE", "gone")
				time.Sleep(soonest)
				peer.CaughtUp(t, p, q)
				equal(t, p, q)
				peer.CaughtUp(t, q, ch)
				equal(t, q, ch)
				if n < 1000 {
					t.Errorf("the load was %d commands", n)
				}
				full, partial := p.Info(t, "sync_full"), p.Info(t, "sync_partial_ok")
				t.Logf("%d commands, %s full synchronisations, %s partial ones", n, full, partial)
				if full != "1" || partial != "3" {
					t.Errorf("%s full synchronisations and %s partial ones, want 1 and 3\n%s", full, partial, replica.Output())
				}
				if got := q.Must(t, "FUNCTION", "LIST").String(); !strings.Contains(got, "lib") || strings.Contains(got, "old") || strings.Contains(got, "gone") {
					t.Errorf("FUNCTION LIST: %s", got)
				}
				// From here on clients go on at the copy.
				q.Must(t, "REPLICAOF", "NO", "ONE")
				if v := q.Must(t, "SET", "mine", "1"); v.Text != "OK" {
					t.Errorf("SET: %v", v)
				}
				if got := q.Info(t, "role"); got != "master" {
					t.Errorf("role:%s", got)
				}
				if out := replica.Output(); strings.Contains(out, "CRITICAL") {
					t.Errorf("the log has a failure:\n%s", out)
				}
			})
		}
	}
}
