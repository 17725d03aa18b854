package memory_test

// maxmemory: what is counted, which commands are refused, which keys are evicted, and who learns of it.

import (
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// info is a field of INFO.
func info(t *testing.T, c *livetest.Client, field string) int64 {
	t.Helper()
	return c.InfoInt("default", field)
}

const (
	oom   = "-OOM command not allowed when used memory > 'maxmemory'."
	quick = 5 * time.Second
)

// Used memory grows by a key's MEMORY USAGE, however the key became so large, and shrinks again when the key is removed.
func TestUsedMemoryIsTheKeys(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	at := func(i int) string { return fmt.Sprintf("element:%06d", i) }
	for _, kind := range []struct {
		name string
		fill func(i int)
		n    int
	}{
		{"set", func(i int) { c.Do("SADD", "k", at(i)) }, 3000},
		{"intset", func(i int) { c.Do("SADD", "k", i) }, 400},
		{"hash", func(i int) { c.Do("HSET", "k", at(i), "value") }, 3000},
		{"fields with deadlines", func(i int) { c.Do("HSETEX", "k", "EX", 1000, "FIELDS", 1, at(i), "value") }, 2000},
		{"list", func(i int) { c.Do("RPUSH", "k", at(i)) }, 3000},
		{"list of long elements", func(i int) { c.Do("LPUSH", "k", strings.Repeat("x", 10_000)) }, 50},
		{"sorted set", func(i int) { c.Do("ZADD", "k", i, at(i)) }, 5000},
		{"small sorted set", func(i int) { c.Do("ZADD", "k", i, at(i)) }, 30},
		{"stream", func(i int) { c.Do("XADD", "k", "*", "f", at(i)) }, 3000},
		{"pending entries", func(i int) {
			if i == 0 {
				c.Do("XGROUP", "CREATE", "k", "g", "$", "MKSTREAM")
			}
			c.Do("XADD", "k", "*", "f", at(i))
			c.Do("XREADGROUP", "GROUP", "g", at(i%50), "STREAMS", "k", ">")
		}, 1500},
		{"string", func(i int) { c.Do("APPEND", "k", at(i)) }, 3000},
		{"bits", func(i int) { c.Do("SETBIT", "k", 1<<20, 1) }, 1},
		{"delay queue", func(i int) { c.Do("DQ.ADD", "k", "DELAY", 1000, at(i)) }, 2000},
		{"HyperLogLog", func(i int) { c.Do("PFADD", "k", at(i)) }, 3000},
		{"at once", func(i int) { c.Do("EVAL", "for i = 1, 3000 do redis.call('RPUSH', KEYS[1], i) end", 1, "k") }, 1},
	} {
		t.Run(kind.name, func(t *testing.T) {
			began := info(t, c, "used_memory_dataset")
			for i := range kind.n {
				kind.fill(i)
			}
			grown := info(t, c, "used_memory_dataset") - began
			is, err := strconv.ParseInt(c.Do("MEMORY", "USAGE", "k"), 10, 64)
			if err != nil || grown < is*75/100-200 || grown > is*125/100+500 {
				t.Errorf("used memory grew by %d, the key takes %d (%v)", grown, is, err)
			}
			c.Want("1", "DEL", "k")
			if left := info(t, c, "used_memory_dataset") - began; left != 0 && left > 200 {
				t.Errorf("%d bytes are left of it", left)
			}
			if err := s.Keyspace.Check(); err != nil {
				t.Error(err)
			}
		})
	}
	// The same holds when parts of a key expire.
	began := info(t, c, "used_memory_dataset")
	for i := range 2000 {
		c.Do("HSETEX", "k", "PX", 1000+i%2*100_000, "FIELDS", 1, at(i), "value")
	}
	grown := info(t, c, "used_memory_dataset") - began
	s.Advance(2000)
	if left := info(t, c, "used_memory_dataset") - began; left < grown/4 || left > grown*9/10 { // the table stays as it is
		t.Errorf("of %d bytes, %d are left when half of the fields have expired", grown, left)
	}
}

// maxmemory limits the server only: the garbage collector of the process, which may do other things, works as before.
func TestMaxMemoryLeavesTheRuntimeAlone(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	before := debug.SetMemoryLimit(-1)
	c.Want("OK", "CONFIG", "SET", "maxmemory", "50mb")
	if is := debug.SetMemoryLimit(-1); is != before {
		t.Errorf("the process's limit was %d, is %d", before, is)
	}
}

func TestNoEviction(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	c.Want("OK", "SET", "big", strings.Repeat("x", 100_000))
	c.Want("OK", "CONFIG", "SET", "maxmemory", info(t, c, "used_memory")+50_000)
	c.Want("OK", "SET", "k", "v")
	c.Want("OK", "SET", "more", strings.Repeat("x", 100_000)) // memory is checked before the command
	for _, refused := range []string{"SET k w", "LPUSH l x", "RL.ACQUIRE r 1 GCRA 1 1000", "DQ.ADD q x", "SETRANGE k 0 w"} {
		c.Want(oom, anys(strings.Fields(refused))...)
	}
	c.Want("v", "GET", "k")
	c.Want("nil", "DQ.POP", "q")
	time.Sleep(2 * time.Millisecond) // the time over the limit is reported in whole milliseconds
	if n := info(t, c, "current_eviction_exceeded_time"); n == 0 {
		t.Error("no time over the limit")
	}
	c.Want("1", "DEL", "more")
	c.Want("OK", "SET", "k", "w")
	if cur, total := info(t, c, "current_eviction_exceeded_time"), info(t, c, "total_eviction_exceeded_time"); cur != 0 || total == 0 {
		t.Errorf("%d ms over the limit now, %d in all", cur, total)
	}
	c.Want("OK", "CONFIG", "SET", "maxmemory", 1)
	c.Want(oom, "SET", "k", "v")
	c.Want("OK", "CONFIG", "SET", "maxmemory", 0)
	c.Want("OK", "SET", "k", "v")
}

func anys(words []string) (args []any) {
	for _, w := range words {
		args = append(args, w)
	}
	return args
}

// Filling far beyond the limit never exceeds it by much, and evicts keys that were not used. Clients that cache an evicted
// key get a message.
func TestEviction(t *testing.T) {
	s := livetest.Start(t)
	c, cacher := s.Client(), s.Client()
	c.Want("OK", "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	limit := info(t, c, "used_memory") + 1<<20
	c.Want("OK", "CONFIG", "SET", "maxmemory", limit)
	c.Want("OK", "CONFIG", "SET", "notify-keyspace-events", "Ee")
	listener := s.Client()
	listener.Do("SUBSCRIBE", "__keyevent@0__:evicted")
	cacher.Do("HELLO", 3)
	c.Want("OK", "SET", "cached", "v")
	cacher.Want("OK", "CLIENT", "TRACKING", "ON")
	cacher.Want("v", "GET", "cached")
	for i := range 6000 {
		if i%100 == 0 {
			s.Advance(100)
		}
		c.Want("OK", "SET", "hot", i)
		c.Want("OK", "SET", fmt.Sprintf("key:%06d", i), strings.Repeat("x", 500))
	}
	if used := info(t, c, "used_memory"); used > limit+64<<10 || used < limit-256<<10 {
		t.Errorf("%d bytes in use, the limit is %d", used, limit)
	}
	if got := c.Do("EXISTS", "hot", "cached", "key:005999"); got != "2" {
		t.Errorf("of the keys used last and the one used first there are %s", got)
	}
	n := info(t, c, "evicted_keys")
	if n < 2000 {
		t.Errorf("%d keys were evicted", n)
	}
	if got := listener.Read(); !strings.Contains(got, "__keyevent@0__:evicted") {
		t.Errorf("the event is %s", got)
	}
	if got := cacher.Read(); !strings.Contains(got, "cached") {
		t.Errorf("who cached it is told %s", got)
	}
	// Nothing can be evicted: writes are refused, and only then.
	c.Want("OK", "CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
	c.Want("OK", "SETEX", "last", 100, strings.Repeat("x", 100_000))
	for i := range 3000 {
		if reply := c.Do("SET", fmt.Sprintf("more:%d", i), strings.Repeat("x", 500)); reply == oom {
			break
		} else if reply != "OK" || i == 2999 {
			t.Fatal(reply)
		}
	}
	c.Want("0", "EXISTS", "last")
	// A much lower limit: keys are evicted while commands run.
	c.Want("OK", "CONFIG", "SET", "maxmemory-policy", "allkeys-random")
	c.Want("OK", "CONFIG", "SET", "maxmemory", limit-1<<20+64<<10)
	for end := time.Now().Add(quick); info(t, c, "used_memory") > limit-1<<20+64<<10; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("too much stays")
		}
	}
	if err := s.Keyspace.Check(); err != nil {
		t.Error(err)
	}
}

// No policy evicts keys that somebody relies on: held locks, queues, limiters with open grants. Without those they can be
// evicted.
func TestPromisesStay(t *testing.T) {
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"} {
		t.Run(policy, func(t *testing.T) {
			s := livetest.Start(t)
			c := s.Client()
			promises := []any{"lock", "readers", "queue", "settings", "conc", "gcra"}
			c.Do("LK.ACQUIRE", "lock", "a", 100_000)
			c.Do("LK.ACQUIRE", "readers", "a", 0, "SHARED")
			c.Do("LK.ACQUIRE", "readers", "b", 100_000, "SHARED")
			c.Want("a", "DQ.ADD", "queue", "ID", "a", "x")
			c.Do("DQ.POP", "queue", "LEASE", 100_000)
			c.Want("OK", "DQ.SET", "settings", "LEASE", 1000)
			c.Do("RL.ACQUIRE", "conc", "ID", "a", "LEASE", 100_000, "CONC", 1)
			c.Do("RL.ACQUIRE", "gcra", "ID", "a", "LEASE", 100_000, "GCRA", 10, 100_000)
			others := []any{"string", "hash", "limiter"}
			c.Want("OK", "SET", "string", "v")
			c.Want("1", "HSET", "hash", "f", "v")
			c.Do("RL.ACQUIRE", "limiter", 1, "GCRA", 10, 1_000_000)
			for _, key := range append(promises, others...) {
				c.Want("1", "EXPIRE", key, 1000)
			}
			c.Want("OK", "CONFIG", "SET", "maxmemory-policy", policy)
			c.Want("OK", "CONFIG", "SET", "maxmemory", 1)
			c.Want(oom, "SET", "k", "v")
			c.Want(fmt.Sprint(len(promises)), append([]any{"EXISTS"}, promises...)...)
			c.Want("0", append([]any{"EXISTS"}, others...)...)
			c.Want("0", "RL.SETTLE", "gcra", "a")
			c.Want("0", "EXISTS", "gcra")
		})
	}
}
