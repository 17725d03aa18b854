// Snapshots, over the wire.

package lkv_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

func TestSnapshot(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	for _, step := range []struct{ line, want string }{
		{"LKV.SNAPSHOT LIST", "[]"},
		{"SET k v EX 100", "OK"},
		{"HSET h f 1 g 2", "2"},
		{"HEXPIRE h 50 FIELDS 1 f", "[1]"},
		{"SELECT 3", "OK"},
		{"RPUSH l a b", "2"},
		{"RL.ACQUIRE r GCRA 2 60000", "[0 2 1 -1 30000]"},
		{"DQ.ADD q DELAY 5000 ID one payload", "one"},
		{"FUNCTION LOAD #!lua\tname=lib\nredis.register_function('one',function()return\t1\tend)", "lib"},
		{"LKV.SNAPSHOT SAVE fixture", "OK"},
		{"LKV.SNAPSHOT LIST", "[[name fixture saved 1700000000000 keys 5]]"},
		// Later writes are not in it.
		{"RL.ACQUIRE r", "[0 2 0 -1 60000]"},
		{"LPOP l", "a"},
		{"DQ.REM q one", "1"},
		{"FUNCTION DELETE lib", "OK"},
		{"SELECT 0", "OK"},
		{"SET k w", "OK"},
		{"HDEL h f g", "2"},
		{"SET new 1", "OK"},
		{"LKV.SNAPSHOT RESTORE fixture", "OK"},
		{"DBSIZE", "2"},
		{"GET k", "v"},
		{"TTL k", "100"},
		{"HTTL h FIELDS 2 f g", "[50 -1]"},
		{"FCALL one 0", "1"},
		{"SELECT 3", "OK"},
		{"LRANGE l 0 -1", "[a b]"},
		{"RL.ACQUIRE r", "[0 2 0 -1 60000]"},
		{"DQ.PEEK q", "[[one payload 1700000005000 0]]"},
		// Whole databases too, and as often as one likes.
		{"SWAPDB 0 3", "OK"},
		{"FLUSHALL", "OK"},
		{"LKV.SNAPSHOT RESTORE fixture", "OK"},
		{"RL.ACQUIRE r", "[0 2 0 -1 60000]"},
		// Deadlines are times: those that have passed meanwhile take effect at once.
		{"LKV.CLOCK ADVANCE 60000", "OK"},
		{"LKV.SNAPSHOT RESTORE fixture", "OK"},
		{"DQ.POP q", "[[one payload 1700000005000 1]]"},
		{"SELECT 0", "OK"},
		{"HGETALL h", "[g 2]"},
		{"PTTL k", "40000"},
		{"LKV.CLOCK FREEZE 1700000000000", "OK"},
		{"LKV.SNAPSHOT RESTORE fixture", "OK"},
		{"HGETALL h", "[f 1 g 2]"},
		// A name is used again.
		{"DEL h", "1"},
		{"LKV.SNAPSHOT SAVE empty", "OK"},
		{"LKV.SNAPSHOT SAVE fixture", "OK"},
		{"LKV.SNAPSHOT LIST", "[[name empty saved 1700000000000 keys 4] [name fixture saved 1700000000000 keys 4]]"},
		{"LKV.SNAPSHOT DROP empty", "OK"},
		// Bad calls change nothing.
		{"LKV.SNAPSHOT RESTORE empty", "-ERR there is no snapshot of this name"},
		{"LKV.SNAPSHOT DROP empty", "-ERR there is no snapshot of this name"},
		{"LKV.SNAPSHOT SAVE", "-ERR wrong number of arguments for 'lkv.snapshot|save' command"},
		{"LKV.SNAPSHOT SAVE a b", "-ERR wrong number of arguments for 'lkv.snapshot|save' command"},
		{"LKV.SNAPSHOT KEEP a", "-ERR unknown subcommand 'KEEP'. Try LKV.SNAPSHOT HELP."},
		{"LKV.SNAPSHOT SAVE " + strings.Repeat("n", 129), "-ERR the name of a snapshot has 1 to 128 bytes"},
		{"LKV.SNAPSHOT LIST", "[[name fixture saved 1700000000000 keys 4]]"},
		{"MULTI", "OK"},
		{"LKV.SNAPSHOT RESTORE fixture", "-ERR Command not allowed inside a transaction"},
		{"DISCARD", "OK"},
	} {
		line := strings.ReplaceAll(step.line, "\\n", "\n")
		if strings.HasPrefix(line, "FUNCTION LOAD") {
			c.Want(step.want, "FUNCTION", "LOAD", strings.ReplaceAll(strings.TrimPrefix(line, "FUNCTION LOAD "), "\t", " "))
			continue
		}
		if got := c.Line(line); got != step.want {
			t.Errorf("%s: %s, want %s", step.line, got, step.want)
		}
	}
	if err := s.Keyspace.Check(); err != nil {
		t.Error(err)
	}
}

func TestSnapshotLimit(t *testing.T) {
	c := livetest.Start(t).Client()
	for i := range 100 {
		c.Want("OK", "LKV.SNAPSHOT", "SAVE", i)
	}
	c.Want("-ERR there are too many snapshots already", "LKV.SNAPSHOT", "SAVE", "more")
	c.Want("OK", "LKV.SNAPSHOT", "SAVE", 7)
	c.Want("OK", "LKV.SNAPSHOT", "DROP", 8)
	c.Want("OK", "LKV.SNAPSHOT", "SAVE", "more")
}

// WATCH counts keys as changed that exist before or after. Waiters are served what exists after. Clients that track learn
// that everything may have changed.
func TestSnapshotTellsOthers(t *testing.T) {
	s := livetest.Start(t)
	admin, w := s.Client(), s.Client()
	admin.Want("2", "RPUSH", "full", "a", "b")
	admin.Want("OK", "SET", "k", "v")
	admin.Want("q1", "DQ.ADD", "queue", "ID", "q1", "p")
	admin.Want("OK", "DQ.SET", "queue", "TRIES", 1, "DEAD", "dead")
	admin.Want("OK", "LKV.SNAPSHOT", "SAVE", "s")
	admin.Want("OK", "FLUSHALL")

	for _, watched := range []struct {
		key   string
		dirty bool
	}{{"k", true}, {"none", false}} {
		w.Want("OK", "WATCH", watched.key)
		admin.Want("OK", "LKV.SNAPSHOT", "RESTORE", "s")
		w.Want("OK", "MULTI")
		w.Want("QUEUED", "PING")
		want := "[PONG]"
		if watched.dirty {
			want = "nil"
		}
		w.Want(want, "EXEC")
		admin.Want("OK", "FLUSHALL")
	}

	pop, mpop, move, queue := s.Client(), s.Client(), s.Client(), s.Client()
	pop.Send("BLPOP", "full", 0)
	s.Blocked(1)
	move.Send("BLMOVE", "full", "to", "LEFT", "RIGHT", 0)
	s.Blocked(2)
	mpop.Send("BLPOP", "none", "full", 0)
	s.Blocked(3)
	queue.Send("DQ.POP", "queue", "BLOCK", 0, "LEASE", 1000)
	s.Blocked(4)
	admin.Want("OK", "LKV.SNAPSHOT", "RESTORE", "s")
	if got := pop.Read(); got != "[full a]" {
		t.Errorf("BLPOP: %s", got)
	}
	if got := move.Read(); got != "b" {
		t.Errorf("BLMOVE: %s", got)
	}
	if got := queue.Read(); got != "[[q1#1 p 1700000000000 1]]" {
		t.Errorf("DQ.POP: %s", got)
	}
	mpop.Silent()
	admin.Want("[b]", "LRANGE", "to", 0, -1)
	admin.Want("OK", "LKV.SNAPSHOT", "RESTORE", "s")
	if got := mpop.Read(); got != "[full a]" {
		t.Errorf("BLPOP of two keys: %s", got)
	}
	admin.Want("[b]", "LRANGE", "full", 0, -1)
	admin.Want("0", "EXISTS", "to")

	// A lease that runs out after it was restored.
	admin.Want("OK", "LKV.SNAPSHOT", "RESTORE", "s")
	admin.Want("[[q1#1 p 1700000000000 1]]", "DQ.POP", "queue", "LEASE", 1000)
	admin.Want("OK", "LKV.SNAPSHOT", "SAVE", "leased")
	admin.Want("1", "DQ.ACK", "queue", "q1")
	admin.Want("OK", "LKV.SNAPSHOT", "RESTORE", "leased")
	s.Advance(1001)
	for end := time.Now().Add(5 * time.Second); admin.Do("DQ.LEN", "dead") != "1"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the lease ran out and the entry is not among the dead letters")
		}
	}
	tracks := s.Client()
	tracks.Do("HELLO", 3)
	tracks.Want("OK", "CLIENT", "TRACKING", "ON")
	tracks.Want("v", "GET", "k")
	admin.Want("OK", "LKV.SNAPSHOT", "RESTORE", "s")
	if got := tracks.Read(); got != "[invalidate nil]" {
		t.Errorf("told %s", got)
	}
	if err := s.Keyspace.Check(); err != nil {
		t.Error(err)
	}
}

// A snapshot waits for a script that holds keys, and meanwhile blocks nobody.
func TestSnapshotWaitsForScripts(t *testing.T) {
	s := livetest.Start(t)
	admin, c, other := s.Client(), s.Client(), s.Client()
	c.Send("EVAL", "while true do end", 1, "k")
	for len(s.Long.All()) == 0 {
		time.Sleep(time.Millisecond)
	}
	admin.Send("LKV.SNAPSHOT", "SAVE", "s")
	admin.Silent()
	other.Want("PONG", "PING")
	for other.Do("SCRIPT", "KILL") != "OK" { // it runs a moment before it can be killed
		time.Sleep(time.Millisecond)
	}
	if got := admin.Read(); got != "OK" {
		t.Errorf("SAVE: %s", got)
	}
	c.Read()
}

// state is everything visible of some databases.
func state(c *livetest.Client) string {
	var b strings.Builder
	for db := range 3 {
		c.Do("SELECT", db)
		keys := strings.Fields(strings.Trim(c.Do("KEYS", "*"), "[]"))
		slices.Sort(keys)
		for _, key := range keys {
			fmt.Fprintln(&b, db, key, c.Do("PEXPIRETIME", key))
			kind := c.Do("TYPE", key)
			switch kind {
			case "ratelimit":
				fmt.Fprintln(&b, c.Do("RL.INFO", key))
			case "delayqueue":
				fmt.Fprintln(&b, c.Do("DQ.INFO", key), c.Do("DQ.PEEK", key, "COUNT", 1000))
			case "hash":
				fmt.Fprintln(&b, c.Do("HPEXPIRETIME", key, "FIELDS", 2, "a1", "a2"))
				fallthrough
			default:
				fmt.Fprintf(&b, "%s %s %q\n", kind, c.Do("OBJECT", "ENCODING", key), c.Do("DUMP", key))
			}
		}
	}
	return b.String()
}

// templates are commands with K for the number of a key, V for a value or member
// and T for some milliseconds.
var templates = []string{
	"SET sK V", "SET sK V PX T", "APPEND sK V", "INCRBY nK 7", "SETRANGE sK 2000 V", "GETDEL sK", "PEXPIRE sK T", "PERSIST sK",
	"HSET hK V V", "HSET hK a1 V a2 V", "HPEXPIRE hK T FIELDS 2 a1 a2", "HDEL hK V", "PEXPIRE hK T",
	"RPUSH lK V V V", "LPOP lK", "LINSERT lK BEFORE V V", "LTRIM lK 1 -2", "LSET lK 0 V",
	"SADD tK V V", "SADD iK 7 9", "SREM tK V", "SMOVE tK tV V",
	"ZADD zK 3 V 5 V", "ZINCRBY zK 2 V", "ZPOPMIN zK",
	"XADD xK * f V", "XTRIM xK MAXLEN 5", "XGROUP CREATE xK g 0", "XREADGROUP GROUP g me COUNT 1 STREAMS xK >", "XACK xK g 1-1",
	"RL.ACQUIRE rK GCRA 20 60000", "RL.ACQUIRE rK 2 LOG 20 60000", "RL.SET rK FIXED 3 1000", "RL.RELEASE rK",
	"DQ.ADD qK DELAY T ID V V", "DQ.POP qK LEASE T", "DQ.NACK qK V", "DQ.REM qK V", "DQ.SET qK TRIES 2 DEAD qV",
	"LK.ACQUIRE oK V T DELAY T", "LK.ACQUIRE oK V T SHARED", "LK.ACQUIRE oK V T OF 3", "LK.ACQUIRE oK V 0 SHARED", "LK.RELEASE oK V", "LK.TOUCH V T oK", "COPY oK oV",
	"PFADD pK V V", "SETBIT bK 70 1", "RENAME sK sV", "RENAME hK hV", "COPY zK zV REPLACE", "COPY hK hV DB 1 REPLACE", "MOVE lK 2", "DEL xK",
	"SELECT 0", "SELECT 1", "SELECT 2",
}

func randomCommand(rng *rand.Rand) (words []any) {
	line := strings.Fields(templates[rng.IntN(len(templates))])
	for i, w := range line {
		if i > 0 { // not the letters of a command
			w = strings.ReplaceAll(w, "K", fmt.Sprint(rng.IntN(4)))
		}
		if w == "V" || len(w) == 2 && w[1] == 'V' {
			w = strings.ReplaceAll(w, "V", fmt.Sprint(rng.IntN(30)))
		}
		if w == "T" {
			w = fmt.Sprint(1 + rng.IntN(3000))
		}
		words = append(words, w)
	}
	return words
}

// Whatever happens after a snapshot, and however often it is restored, everything is as it was.
func TestSnapshotBringsAllBack(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	s := livetest.Start(t)
	c := s.Client()
	for _, config := range []string{"hash-max-listpack-entries", "zset-max-listpack-entries", "set-max-listpack-entries", "set-max-intset-entries"} {
		c.Want("OK", "CONFIG", "SET", config, 8)
	}
	fail := 0
	step := func() {
		switch rng.IntN(100) {
		case 0:
			c.Do("FLUSHDB")
		case 1:
			c.Do("SWAPDB", rng.IntN(3), rng.IntN(3))
		case 2, 3:
			s.Advance(rng.Int64N(2000))
		default:
			if strings.HasPrefix(c.Do(randomCommand(rng)...), "-") {
				fail++
			}
		}
	}
	const steps, rounds = 250, 12
	type kept struct {
		state string
		now   int64
	}
	snaps := map[string]kept{}
	restored := 0
	for range rounds {
		for range steps {
			step()
		}
		name := fmt.Sprint("s", rng.IntN(4))
		was := kept{state(c), s.Now()}
		if rng.IntN(2) == 0 { // a snapshot of what has just been saved
			c.Want("OK", "LKV.SNAPSHOT", "SAVE", "other")
		}
		c.Want("OK", "LKV.SNAPSHOT", "SAVE", name)
		snaps[name] = was
		for range steps {
			step()
		}
		for name, was := range snaps {
			if rng.IntN(2) == 0 {
				continue
			}
			c.Want("OK", "LKV.CLOCK", "FREEZE", was.now)
			c.Want("OK", "LKV.SNAPSHOT", "RESTORE", name)
			if rng.IntN(3) == 0 { // one that was cold all the time
				c.Want("OK", "LKV.SNAPSHOT", "SAVE", "cold")
				c.Want("OK", "FLUSHALL")
				c.Want("OK", "LKV.SNAPSHOT", "RESTORE", "cold")
			}
			restored++
			if got := state(c); got != was.state {
				t.Fatalf("restored is\n%s\nnot\n%s", got, was.state)
			}
			if err := s.Keyspace.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if restored < rounds/2 || fail > steps*rounds {
		t.Errorf("%d times restored, %d commands failed", restored, fail)
	}
}

// A snapshot is saved at one moment and restored at one moment: transactions over two shards are in it wholly or not at all.
func TestSnapshotIsAtomic(t *testing.T) {
	s := livetest.Start(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var seen atomic.Int64
	for range 3 {
		c := s.Client()
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				c.Send("MULTI")
				for _, key := range []string{"one", "two", "three"} {
					c.Send("INCR", key)
				}
				c.Send("EXEC")
				for range 4 {
					c.Read()
				}
				var a, b, d int
				if fmt.Sscanf(c.Read(), "[%d %d %d]", &a, &b, &d); a == 0 || a != b || b != d {
					t.Errorf("counted to %d, %d and %d", a, b, d)
					return
				}
				if n%10 == 0 { // all shards, and a script off the loop
					if got := c.Do("EVAL", "local i=0 while i<1 do i=i+1 end return redis.call('get','one')==redis.call('get','three')", 0); got != "1" {
						t.Errorf("a script finds %s", got)
						return
					}
				}
				seen.Add(1)
			}
		}()
	}
	admin := s.Client()
	for i := range 60 {
		admin.Want("OK", "LKV.SNAPSHOT", "SAVE", i%3)
		admin.Do("GET", "one")
		admin.Want("OK", "LKV.SNAPSHOT", "RESTORE", max(0, i%3-1))
	}
	close(stop)
	wg.Wait()
	if seen.Load() == 0 {
		t.Error("nothing was done beside")
	}
	if err := s.Keyspace.Check(); err != nil {
		t.Error(err)
	}
}

// Restored keys are in the journal: files and replicas have them too.
func TestRestoreIsJournaled(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "LKV.JOURNAL", "START")
	c.Want("lib", "FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('one',function() return 1 end)")
	for _, step := range []struct{ line, want string }{
		{"SET k v EX 100", "OK"},
		{"HSET h f 1 g 2", "2"},
		{"HEXPIRE h 50 FIELDS 1 f", "[1]"},
		{"XADD x 1-1 a b", "1-1"},
		{"XGROUP CREATE x g 0", "OK"},
		{"XREADGROUP GROUP g one STREAMS x >", "[[x [[1-1 [a b]]]]]"},
		{"SELECT 3", "OK"},
		{"RL.ACQUIRE r GCRA 2 60000", "[0 2 1 -1 30000]"},
		{"DQ.ADD q DELAY 5000 ID one payload", "one"},
		{"LKV.SNAPSHOT SAVE fixture", "OK"},
		{"LKV.JOURNAL CHECK", "OK"},
		{"RL.ACQUIRE r", "[0 2 0 -1 60000]"},
		{"DQ.REM q one", "1"},
		{"SET new 1", "OK"},
		{"SELECT 0", "OK"},
		{"DEL x k", "2"},
		{"SWAPDB 0 3", "OK"},
		{"FUNCTION DELETE lib", "OK"},
		{"LKV.JOURNAL CHECK", "OK"},
		{"LKV.SNAPSHOT RESTORE fixture", "OK"},
		{"LKV.JOURNAL CHECK", "OK"},
		{"EXISTS k x h", "3"},
	} {
		if got := c.Line(step.line); got != step.want && step.want != "" {
			t.Fatalf("%s: %s, want %s", step.line, got, step.want)
		}
	}
	// Waiters are served restored entries, after the restore.
	w := s.Client()
	c.Want("1", "RPUSH", "list", "a")
	c.Want("OK", "LKV.SNAPSHOT", "SAVE", "fixture")
	c.Want("1", "DEL", "list")
	w.Send("BLPOP", "list", 0)
	s.Blocked(1)
	c.Do("LKV.JOURNAL", "TAKE")
	c.Want("OK", "LKV.SNAPSHOT", "RESTORE", "fixture")
	if got := w.Read(); got != "[list a]" {
		t.Errorf("the waiter got %s", got)
	}
	c.Want("OK", "LKV.JOURNAL", "CHECK")
	effects, at := c.Do("LKV.JOURNAL", "TAKE"), 0
	for _, want := range []string{"[MULTI]", "[FLUSHALL]", "[RESTORE list ", "[EXEC]", "[LPOP list]", "[FUNCTION FLUSH]", "[FUNCTION LOAD #!lua"} {
		i := strings.Index(effects[at:], want)
		if i < 0 {
			t.Fatalf("%s is missing, or not in its place: %q", want, effects)
		}
		at += i
	}
}
