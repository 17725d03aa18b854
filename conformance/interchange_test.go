// Files go from the real servers to limitkv: what redis-server 8.0.6, an older one and Valkey save is here as it is there.
// The way back, from limitkv to redis-server, is in conformance/tools.
package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/recorded"
)

// saved is data of all types and in all forms, as far as servers of all versions have them.
const saved = `
SET text hello
SET empty ""
SET "" "no name"
SET int8 12
SET int16 -30000
SET int32 1234567890
SET int64 1234567890123456789
SET notint 007
SETRANGE long 70000 end
SET volatile v PX 100000000
SET at v
PEXPIREAT at 4102444800123
EVAL "redis.call('SET', 'compressed', string.rep('abc', 5000)) for i=1,300 do redis.call('SET', 'many:'..i, string.rep(tostring(i), i % 40)) end" 0
RPUSH list a 1 -5 70000 3000000000 text
EVAL "for i=1,2000 do redis.call('RPUSH', 'list:long', string.rep('x', i % 90), i) end redis.call('RPUSH', 'list:plain', 'a', string.rep('y', 20000), 'b')" 0
SADD set:int 1 2 300 70000 5000000000 -1
SADD set:packed a b 17 -4
EVAL "for i=1,700 do redis.call('SADD', 'set:ints', i) redis.call('SADD', 'set:large', 'member:'..i) end" 0
ZADD zset a 1 1 b 2.5 c -inf d inf e -0 f 1e300
EVAL "redis.call('DEL', 'zset') for i=1,300 do redis.call('ZADD', 'zset:large', i / 7, 'member:'..i) end" 0
ZADD zset 1 a 2.5 b -inf c inf d -3 e 1e300 f
HSET hash f v g 17 h ""
EVAL "for i=1,700 do redis.call('HSET', 'hash:large', 'field:'..i, i) end redis.call('HSET', 'hash:long', 'f', string.rep('z', 100))" 0
PFADD hll a b c d e f
SETBIT bits 1000 1
GEOADD geo 13.361389 38.115556 Palermo 15.087269 37.502669 Catania
XADD stream 1-1 a 1 b 2
XADD stream 1-2 a 3 b 4
XADD stream 5-0 other fields here text
XDEL stream 1-2
XGROUP CREATE stream group 0
XGROUP CREATE stream other 1-1
XREADGROUP GROUP group alice COUNT 1 STREAMS stream >
XREADGROUP GROUP group bob COUNT 1 STREAMS stream >
XGROUP CREATECONSUMER stream group idle
XADD stream:gone 3-3 f v
XDEL stream:gone 3-3
EVAL "for i=1,500 do redis.call('XADD', 'stream:long', i..'-1', 'n', i, string.rep('f', i % 9), string.rep('v', i)) end" 0
XTRIM stream:long MAXLEN 450
FUNCTION LOAD "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
SELECT 9
SET nine 9 PX 100000000
SADD elsewhere x
SELECT 0
`

// savedDeadlines are fields with deadlines, of servers that have them.
const savedDeadlines = `
HSET due a 1 b 2 c 3
HPEXPIREAT due 4102444800123 FIELDS 2 a b
EVAL "for i=1,700 do redis.call('HSET', 'due:large', 'field:'..i, i) if i % 3 == 0 then redis.call('HPEXPIREAT', 'due:large', 4102444800000 + i, 'FIELDS', 1, 'field:'..i) end end" 0
`

// fileSources are the servers whose files are read: the oracle, and those that the environment names.
func fileSources(t *testing.T) map[string]func(args ...string) *peer.Server {
	t.Helper()
	from := map[string]func(args ...string) *peer.Server{
		"redis": func(args ...string) *peer.Server { return peer.Redis(t, *required, args...) },
	}
	for name, variable := range map[string]string{"redis 7": "REDIS7_SERVER", "valkey": "VALKEY_SERVER"} {
		bin := os.Getenv(variable)
		if bin == "" {
			t.Logf("no file of %s: %s does not say where its server is", name, variable)
			continue
		}
		from[name] = func(args ...string) *peer.Server {
			t.Helper()
			s, err := peer.Start(name, bin, append([]string{"--save", "", "--enable-debug-command", "yes"}, args...)...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Stop)
			return s
		}
	}
	return from
}

// say sends commands, a line each; none may fail.
func say(t *testing.T, c *peer.Conn, lines string) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		args, err := recorded.Split(line)
		if err != nil {
			t.Fatal(err)
		}
		if v := c.Must(t, args...); v.IsError() && !strings.HasPrefix(line, "ZADD zset a") {
			t.Fatalf("%s: %v", line, v)
		}
	}
}

func TestFilesOfServers(t *testing.T) {
	redis(t) // or there is nothing to compare with
	for name, start := range fileSources(t) {
		for _, settings := range [][]string{
			nil,
			{"--maxmemory-policy", "allkeys-lfu", "--rdbcompression", "no"},
			{"--maxmemory-policy", "volatile-lru", "--rdbchecksum", "no", "--list-max-listpack-size", "3", "--hash-max-listpack-entries", "1", "--zset-max-listpack-entries", "1", "--set-max-intset-entries", "1", "--set-max-listpack-entries", "1"},
		} {
			t.Run(fmt.Sprint(name, settings), func(t *testing.T) {
				if name == "redis 7" && len(settings) > 4 {
					settings = settings[:len(settings)-2] // that one has no packed sets
				}
				dir := t.TempDir()
				from := start(append([]string{"--dir", dir}, settings...)...)
				a := from.Dial(t)
				say(t, a, saved)
				if name != "redis 7" {
					say(t, a, savedDeadlines)
				}
				if len(settings) > 0 {
					say(t, a, "OBJECT ENCODING text\nGET int8\nGET int8\nGET int8")
				}
				say(t, a, "SAVE")
				policy := "noeviction"
				if len(settings) > 0 {
					policy = settings[1]
				}
				limits := []string{"--dir", dir, "--maxmemory-policy", policy}
				if i := slices.Index(settings, "--list-max-listpack-size"); i >= 0 {
					limits = append(limits, settings[i:]...)
				}
				b := peer.LimitKV(t, limits...).Dial(t)
				say(t, b, "DEBUG RELOAD NOSAVE")
				compareLoaded(t, name, a, b)
				if want, got := a.Must(t, "FUNCTION", "LIST", "WITHCODE"), b.Must(t, "FUNCTION", "LIST", "WITHCODE"); !want.Equal(got) {
					t.Errorf("functions %v\n of %s %v", got, name, want)
				}
				if policy == "allkeys-lfu" {
					if want, got := a.Must(t, "OBJECT", "FREQ", "int8"), b.Must(t, "OBJECT", "FREQ", "int8"); !want.Equal(got) {
						t.Errorf("a counter of %v, of %s %v", got, name, want)
					}
				}
			})
		}
	}
}

// compareLoaded compares what both have in the databases 0 and 9, and returns how many keys that is.
func compareLoaded(t *testing.T, name string, a, b *peer.Conn) (n int) {
	t.Helper()
	for _, db := range []string{"0", "9"} {
		a.Must(t, "SELECT", db)
		b.Must(t, "SELECT", db)
		keys := a.Must(t, "KEYS", "*").Items
		n += len(keys)
		if got := b.Must(t, "DBSIZE").Text; got != strconv.Itoa(len(keys)) {
			t.Errorf("database %s: %s keys, of %s %d", db, got, name, len(keys))
		}
		for _, k := range keys {
			key := k.Text
			questions := [][]string{{"TYPE", key}, {"PEXPIRETIME", key}}
			if !strings.HasPrefix(key, "due") {
				questions = append(questions, []string{"DEBUG", "DIGEST-VALUE", key}, []string{"OBJECT", "ENCODING", key})
			} else {
				fields := slices.Sorted(func(yield func(string) bool) {
					for _, f := range a.Must(t, "HKEYS", key).Items {
						if !yield(f.Text) {
							return
						}
					}
				})
				args := append([]string{key, "FIELDS", strconv.Itoa(len(fields))}, fields...)
				questions = append(questions, append([]string{"HPEXPIRETIME"}, args...), append([]string{"HMGET", key}, fields...))
			}
			if strings.HasPrefix(key, "stream") {
				questions = append(questions, []string{"XINFO", "GROUPS", key}, []string{"XPENDING", key, "group", "-", "+", "10"})
			}
			for _, q := range questions {
				want, got := a.Must(t, q...), b.Must(t, q...)
				if forms := []string{"raw", "embstr", "int"}; q[0] == "OBJECT" &&
					(name == "redis 7" || slices.Contains(forms, want.Text) && slices.Contains(forms, got.Text)) {
					continue // others have other forms; what was changed in place is as short as it can be when it was read
				}
				if q[0] == "OBJECT" && name == "an old file" && want.Text == "quicklist" && got.Text == "listpack" {
					continue // Redis makes a quicklist of what Redis 2 had as one ziplist, however short
				}
				if q[0] == "DEBUG" && name == "redis 7" && strings.HasPrefix(key, "zset") {
					compareScores(t, key, a, b) // the digest has scores as text, with the digits that Redis had then
					continue
				}
				if q[0] == "XPENDING" {
					want, got = withoutIdle(want), withoutIdle(got)
				}
				if !want.Equal(got) {
					t.Errorf("%.100s\n  is %.300s\n of %s %.300s", strings.Join(q, " "), got, name, want)
				}
			}
		}
	}
	if name != "an old file" && n < 300 {
		t.Errorf("only %d keys", n)
	}
	return n
}

// compareScores compares sorted sets by their scores as numbers.
func compareScores(t *testing.T, key string, a, b *peer.Conn) {
	t.Helper()
	want, got := a.Must(t, "ZRANGE", key, "0", "-1", "WITHSCORES").Items, b.Must(t, "ZRANGE", key, "0", "-1", "WITHSCORES").Items
	if len(want) != len(got) || len(want) == 0 {
		t.Errorf("%s has %d members and scores, not %d", key, len(got), len(want))
		return
	}
	for i := range want {
		x, wrong := strconv.ParseFloat(want[i].Text, 64)
		y, _ := strconv.ParseFloat(got[i].Text, 64)
		if same := want[i].Text == got[i].Text; !same && (i%2 == 0 || wrong != nil || x != y) {
			t.Errorf("%s: %v, not %v", key, got[i], want[i])
		}
	}
}

// withoutIdle leaves out how long pending entries have been idle.
func withoutIdle(v peer.Value) peer.Value {
	for i := range v.Items {
		if len(v.Items[i].Items) == 4 {
			v.Items[i].Items[2] = peer.Value{}
		}
	}
	return v
}

// TestOldFiles: files that come with Redis's source, in forms that no server writes today, are read as redis-server does.
func TestOldFiles(t *testing.T) {
	src := os.Getenv("REDIS_SRC")
	if src == "" {
		t.Skip("REDIS_SRC does not say where Redis's source is")
	}
	files, err := filepath.Glob(filepath.Join(src, "tests", "assets", "*.rdb"))
	if err != nil || len(files) < 6 {
		t.Fatalf("the files are %v, %v", files, err)
	}
	for _, path := range files {
		name := filepath.Base(path)
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			c := peer.LimitKV(t, "--dir", dir).Dial(t) // before there is a file, since damage would end the start
			if err := os.WriteFile(filepath.Join(dir, "dump.rdb"), b, 0o600); err != nil {
				t.Fatal(err)
			}
			got := c.Must(t, "DEBUG", "RELOAD", "NOSAVE")
			if name == "corrupt_ziplist.rdb" {
				if !got.IsError() {
					t.Errorf("it is read: %v", got)
				}
				return
			}
			if got.IsError() {
				t.Fatal(got)
			}
			if n := compareLoaded(t, "an old file", peer.Redis(t, *required, "--dir", dir).Dial(t), c); n == 0 && name != "corrupt_empty_keys.rdb" && name != "scriptbackup.rdb" {
				t.Error("there are no keys")
			}
		})
	}
}
