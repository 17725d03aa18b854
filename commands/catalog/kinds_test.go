package catalog_test

// Every kind of value, in each of its forms, with every command that accepts values of any kind, and with every other command
// that takes a key: each replies, and nothing breaks.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
)

// forms are values of all kinds: the kind, a name for the form, and what makes it under the key K.
var forms = []struct{ kind, form, lines string }{
	{"string", "integer", "SET K 12345"},
	{"string", "short", "SET K abc"},
	{"string", "empty", "SET K {}{}|SETRANGE K 3 x|SET K ''"},
	{"string", "edited", "SET K a|APPEND K b"},
	{"string", "long", "SETRANGE K 5000 x"},
	{"string", "with a deadline", "SET K v PX 100000"},
	{"list", "listpack", "RPUSH K a b c"},
	{"list", "quicklist", "RPUSH K a b|SETRANGE tmp 20000 x|LINSERT K AFTER a c|LPUSH K BIG BIG BIG"},
	{"set", "intset", "SADD K 1 2 3"},
	{"set", "listpack", "SADD K a b c"},
	{"set", "hashtable", "SADD K a BIG"},
	{"zset", "listpack", "ZADD K 1 a 2 b"},
	{"zset", "skiplist", "ZADD K 1 a 2 BIG"},
	{"hash", "listpack", "HSET K f v g w"},
	{"hash", "hashtable", "HSET K f v g BIG"},
	{"hash", "with deadlines", "HSET K f v g w|HPEXPIRE K 100000 FIELDS 1 f"},
	{"stream", "entries", "XADD K 1-1 f v|XADD K 1-2 f v"},
	{"stream", "groups", "XADD K 1-1 f v|XGROUP CREATE K g 0|XREADGROUP GROUP g c STREAMS K >"},
	{"stream", "empty", "XGROUP CREATE K g 0 MKSTREAM"},
	{"ratelimit", "idle", "RL.ACQUIRE K 1 GCRA 10 1000"},
	{"ratelimit", "kept", "RL.SET K GCRA 10 1000 FIXED 100 60000"},
	{"ratelimit", "large", "RL.ACQUIRE K 900 LOG 1000 60000"},
	{"delayqueue", "entries", "DQ.ADD K x|DQ.ADD K DELAY 1000 y|DQ.POP K LEASE 5000"},
	{"delayqueue", "options", "DQ.SET K MAXLEN 9 DEAD d|DQ.ADD K ID a EXPIRE 100000 UNIQUE 5000 x|DQ.ADD K DELAY 1000 MAXWAIT 5000 y|DQ.POP K LEASE 5000|DQ.NACK K a REASON why"},
	{"delayqueue", "ranked", "DQ.SET K GROUPS CONC 1|DQ.ADD K GROUP g ID a x|DQ.ADD K GROUP g PRIO 9 y|DQ.POP K LEASE 5000|DQ.ADD K z"},
	{"delayqueue", "schedules", "DQ.ADD K EVERY 5000 ID a x|DQ.ADD K CRON @daily TZ Asia/Tokyo ID b x|DQ.ADD K EVERY 1 x"},
	{"delayqueue", "remembered", "DQ.ADD K UNIQUE 5000 x|DQ.POP K"},
	{"delayqueue", "empty", "DQ.SET K LEASE 1000 TRIES 3"},
	{"lock", "mutex", "LK.ACQUIRE K me 100000"},
	{"lock", "readers", "LK.ACQUIRE K me 100000 SHARED|LK.ACQUIRE K you 100000 SHARED"},
	{"lock", "permits", "LK.ACQUIRE K me 100000 OF 5 TAKE 2 DELAY 1000|LK.ACQUIRE K you 100000 OF 5"},
	{"lock", "many", "LK.ACQUIRE K a 100000 SHARED|LK.ACQUIRE K b 100000 SHARED|LK.ACQUIRE K c 100000 SHARED|LK.ACQUIRE K d 100000 SHARED|LK.ACQUIRE K e 100000 SHARED|LK.ACQUIRE K f 100000 SHARED|LK.ACQUIRE K g 100000 SHARED|LK.ACQUIRE K h 100000 SHARED|LK.ACQUIRE K i 100000 SHARED|LK.ACQUIRE K j 100000 SHARED"},
}

// anyKind are the commands that look at values of any kind. The key K is of the kind, there is a string under S.
var anyKind = []string{
	"INFO", "INFO all", "INFO everything", "INFO keysizes", "INFO keyspace", "INFO memory", "INFO limitkv",
	"TYPE K", "EXISTS K S", "TOUCH K", "TTL K", "PEXPIRETIME K", "DBSIZE", "KEYS *", "RANDOMKEY",
	"SCAN 0 COUNT 1000", "OBJECT ENCODING K", "OBJECT REFCOUNT K", "OBJECT IDLETIME K", "OBJECT FREQ K",
	"MEMORY USAGE K", "MEMORY USAGE K SAMPLES 0", "MEMORY STATS", "MEMORY DOCTOR",
	"DEBUG OBJECT K", "DEBUG DIGEST", "DEBUG DIGEST-VALUE K", "DEBUG STRINGMATCH-LEN 10 a*", "DEBUG SDSLEN K",
	"DEBUG ZIPLIST K", "DEBUG HTSTATS 0", "DEBUG HTSTATS-KEY K",
	"DUMP K", "SORT K", "SORT_RO K BY nosort", "STRLEN K", "WATCH K", "UNWATCH",
	"COPY K K2", "COPY K K DB 1", "MOVE K2 1", "COPY K K2 REPLACE", "RENAME K2 K", "RENAMENX K K2", "RENAME K2 K",
	"EXPIRE K 1000", "PEXPIRE K 1000000 GT", "PERSIST K", "SWAPDB 0 1", "SWAPDB 0 1",
	"LKV.SNAPSHOT SAVE s", "LKV.SNAPSHOT RESTORE s", "LKV.SNAPSHOT DROP s", "DEBUG RELOAD", "DEBUG CHANGE-REPL-ID",
	"CONFIG SET maxmemory-policy allkeys-lfu", "OBJECT FREQ K", "OBJECT IDLETIME K", "CONFIG SET maxmemory-policy noeviction",
	"CLUSTER COUNTKEYSINSLOT 0", "UNLINK K2", "EXISTS K",
}

func TestEveryKind(t *testing.T) {
	s := livetest.Start(t)
	c := s.Client()
	big := strings.Repeat("x", 9000)
	var rows []*command.Command
	for _, cmd := range s.Table.All() {
		if len(cmd.Keys) > 0 && cmd.Keys[0].Index > 0 && len(cmd.Sub) == 0 && cmd.FullName() != "debug" && cmd.Group != command.GroupPubSub {
			rows = append(rows, cmd)
		}
	}
	run := func(line string) string {
		var args []any
		for _, w := range strings.Fields(line) {
			switch w {
			case "BIG":
				w = big
			case "''":
				w = ""
			}
			args = append(args, w)
		}
		got := c.Do(args...)
		if strings.Contains(got, "internal error") {
			t.Errorf("%s: %q", line, got)
		}
		return got
	}
	seen := map[string]bool{}
	calls := 0
	for _, f := range forms {
		make := func() {
			c.Do("FLUSHALL")
			c.Do("SET", "S", "v")
			for line := range strings.SplitSeq(f.lines, "|") {
				if got := run(line); strings.HasPrefix(got, "-") {
					t.Fatalf("%s, %s: %s: %s", f.kind, f.form, line, got)
				}
			}
			c.Want(f.kind, "TYPE", "K")
		}
		make()
		seen[f.kind] = true
		if got := run("SCAN 0 COUNT 1000 TYPE " + f.kind); !strings.Contains(got, "K") {
			t.Errorf("SCAN TYPE %s: %s", f.kind, got)
		}
		if got := run("OBJECT ENCODING K"); got == "unknown" || got == "nil" {
			t.Errorf("%s, %s: encoding %s", f.kind, f.form, got)
		}
		if got := run("COPY K K3"); got != "1" {
			t.Errorf("%s, %s: COPY %s", f.kind, f.form, got)
		}
		var of [2]string
		fmt.Sscan(strings.Trim(c.Do("DEBUG", "DIGEST-VALUE", "K", "K3"), "[]"), &of[0], &of[1])
		if of[0] != of[1] || len(of[0]) != 40 {
			t.Errorf("%s, %s: the copy has digest %s, not %s", f.kind, f.form, of[1], of[0])
		}
		for _, line := range anyKind {
			run(line)
			calls++
		}
		c.Want("1", "EXISTS", "K")
		if err := s.Keyspace.Check(); err != nil {
			t.Fatalf("%s, %s: %v", f.kind, f.form, err)
		}
		// Every command that takes a key, with as many arguments as it needs and more.
		for _, cmd := range rows {
			for more := range 4 {
				line := cmd.FullName()
				line = strings.ReplaceAll(line, "|", " ")
				for i := len(strings.Fields(line)); i < max(cmd.Arity, -cmd.Arity)+more; i++ {
					if i == cmd.Keys[0].Index {
						line += " K"
					} else {
						line += " 1"
					}
				}
				if c.Do("EXISTS", "K") == "0" {
					make()
				}
				if cmd.Flags&command.Blocking != 0 {
					line = "EVAL return{redis.pcall(unpack(ARGV))} 1 K " + line // does not wait there
				}
				run(line)
				calls++
			}
		}
		if err := s.Keyspace.Check(); err != nil {
			t.Fatalf("%s, %s: %v", f.kind, f.form, err)
		}
	}
	for n := range (engine.Tally{}).Kinds {
		if k := engine.Kind(n); k != engine.KindNone && !seen[k.String()] {
			t.Errorf("there is a kind %s that is not tried", k)
		}
	}
	if calls < 5000 {
		t.Errorf("only %d calls", calls)
	}
}
