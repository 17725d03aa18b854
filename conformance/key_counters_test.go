package conformance

// What INFO counts of keys that are looked up, there or not, with the events of misses. The real Redis says what is right,
// command by command.

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/recorded"
)

// keyed are commands with keys, each in the forms in which it looks them up. K is the key in question, in turn one that is
// missing and one of each type; str, list, set, zset, hash, stream and geo are there always, none never.
const keyed = `
APPEND K x
BITCOUNT K
BITFIELD K GET u8 0
BITFIELD K SET u8 0 1
BITFIELD_RO K GET u8 0
BITOP NOT dest K
BITOP AND dest str K none
BITPOS K 1
BLMOVE K dest LEFT LEFT 0.001
BLMOVE list K LEFT LEFT 0.001
BLMPOP 0.001 2 none K LEFT
BLPOP K 0.001
BLPOP none K 0.001
BRPOP K 0.001
BRPOPLPUSH K dest 0.001
BZMPOP 0.001 2 none K MIN
BZPOPMAX K 0.001
BZPOPMIN none K 0.001
COPY K dest
COPY str K
COPY str K REPLACE
DECR K
DECRBY K 2
DEL K none str
DUMP K
EVAL "return redis.call('GET', KEYS[1])" 1 K
EVAL "return redis.pcall('LLEN', KEYS[1])" 1 K
EVAL_RO "return redis.pcall('HGET', KEYS[1], 'f')" 1 K
EXISTS K none str K
EXPIRE K 100
EXPIRE K 100 XX
EXPIRE K -1
EXPIREAT K 99999999999
EXPIRETIME K
GEOADD K 1 1 m
GEODIST K a b
GEOHASH K a
GEOPOS K a
GEORADIUS K 1 1 1 km
GEORADIUS K 1 1 1 km STORE dest
GEORADIUS_RO K 1 1 1 km
GEORADIUSBYMEMBER K a 1 km
GEORADIUSBYMEMBER K a 1 km STORE dest
GEORADIUSBYMEMBER_RO K a 1 km
GEOSEARCH K FROMLONLAT 1 1 BYRADIUS 1 km
GEOSEARCHSTORE dest K FROMLONLAT 1 1 BYRADIUS 1 km
GET K
GETBIT K 1
GETDEL K
GETEX K
GETEX K EX 100
GETEX K PERSIST
GETRANGE K 0 1
GETSET K v
HDEL K f
HEXISTS K f
HEXPIRE K 100 FIELDS 1 f
HEXPIREAT K 99999999999 FIELDS 1 f
HEXPIRETIME K FIELDS 1 f
HGET K f
HGETALL K
HGETDEL K FIELDS 1 f
HGETEX K FIELDS 1 f
HGETEX K EX 100 FIELDS 1 f
HINCRBY K i 1
HINCRBYFLOAT K i 1
HKEYS K
HLEN K
HMGET K f nofield
HMSET K f v
HPERSIST K FIELDS 1 f
HPEXPIRE K 100000 FIELDS 1 f
HPEXPIREAT K 99999999999999 FIELDS 1 f
HPEXPIRETIME K FIELDS 1 f
HPTTL K FIELDS 1 f
HRANDFIELD K
HRANDFIELD K 10
HSCAN K 0
HSET K f v
HSETEX K FIELDS 1 f v
HSETEX K FNX FIELDS 1 f v
HSETNX K f v
HSTRLEN K f
HTTL K FIELDS 1 f
HVALS K
INCR K
INCRBY K 2
INCRBYFLOAT K 2
LCS K str
LCS str K LEN
LINDEX K 0
LINSERT K BEFORE a x
LLEN K
LMOVE K dest LEFT LEFT
LMOVE list K LEFT LEFT
LMOVE K K LEFT RIGHT
LMPOP 2 none K LEFT
LPOP K
LPOP K 2
LPOP K 0
LPOS K a
LPUSH K x
LPUSHX K x
LRANGE K 0 -1
LREM K 0 a
LSET K 0 x
LTRIM K 0 0
MEMORY USAGE K
MGET K none str
MOVE K 1
MSET K v dest v
MSETNX K v dest v
OBJECT ENCODING K
OBJECT FREQ K
OBJECT IDLETIME K
OBJECT REFCOUNT K
PERSIST K
PEXPIRE K 100000
PEXPIREAT K 99999999999999
PEXPIRETIME K
PFADD K a
PFADD K
PFCOUNT K
PFCOUNT hll K
PFMERGE dest K
PFMERGE K hll
PSETEX K 100000 v
PTTL K
RENAME K dest
RENAME str K
RENAMENX K dest
RENAMENX str K
RPOP K
RPOPLPUSH K dest
RPUSH K x
RPUSHX K x
SADD K x
SCARD K
SDIFF K set
SDIFF set K none
SDIFFSTORE dest K set
SDIFFSTORE K set none
SET K v
SET K v GET
SET K v NX
SET K v XX
SET K v NX GET
SET K v XX GET
SET K v KEEPTTL
SETBIT K 1 1
SETEX K 100 v
SETNX K v
SETRANGE K 1 x
SETRANGE K 1 ""
SINTER K set
SINTER set K none
SINTER none K
SINTERCARD 2 set K
SINTERSTORE dest K set
SINTERSTORE dest none K
SISMEMBER K a
SMEMBERS K
SMISMEMBER K a b
SMOVE K dest a
SMOVE set K a
SMOVE K dest nomember
SORT K ALPHA
SORT K ALPHA STORE dest
SORT list BY w_* GET K ALPHA
SORT list BY K ALPHA
SORT_RO K ALPHA
SPOP K
SPOP K 2
SPOP K 0
SRANDMEMBER K
SRANDMEMBER K 5
SREM K a
SSCAN K 0
STRLEN K
SUBSTR K 0 1
SUNION K set none
SUNIONSTORE dest K set
TOUCH K none str
TTL K
TYPE K
UNLINK K none str
WATCH K
XACK K g 1-1
XADD K * a b
XADD K NOMKSTREAM * a b
XAUTOCLAIM K g c 0 0
XCLAIM K g c 0 1-1
XDEL K 1-1
XGROUP CREATE K g2 0
XGROUP CREATE K g2 0 MKSTREAM
XGROUP CREATECONSUMER K g c2
XGROUP DELCONSUMER K g c2
XGROUP DESTROY K g
XGROUP SETID K g 0
XINFO CONSUMERS K g
XINFO GROUPS K
XINFO STREAM K
XLEN K
XPENDING K g
XPENDING K g - + 10
XRANGE K - +
XREAD STREAMS K 0
XREAD STREAMS K 9-9
XREAD STREAMS K $
XREAD STREAMS K +
XREAD STREAMS none K 0 0
XREAD STREAMS K stream 0 0
XREAD BLOCK 1 STREAMS K 9-9
XREAD BLOCK 1 STREAMS K $
XREADGROUP GROUP g c STREAMS K >
XREADGROUP GROUP g c STREAMS K 0
XREADGROUP GROUP g c STREAMS K stream > >
XREADGROUP GROUP nogroup c STREAMS K >
XREADGROUP GROUP g c BLOCK 1 STREAMS K >
XREVRANGE K + -
XSETID K 9-9
XTRIM K MAXLEN 0
ZADD K 1 a
ZADD K XX 1 a
ZADD K INCR 1 a
ZCARD K
ZCOUNT K -inf +inf
ZDIFF 2 K zset
ZDIFF 2 zset K
ZDIFFSTORE dest 2 K zset
ZINCRBY K 1 a
ZINTER 2 K zset
ZINTERCARD 2 K zset
ZINTERSTORE dest 2 K zset
ZINTERSTORE dest 2 none K
ZLEXCOUNT K - +
ZMPOP 2 none K MIN
ZMSCORE K a b
ZPOPMAX K
ZPOPMIN K 2
ZPOPMIN K 0
ZRANDMEMBER K
ZRANDMEMBER K 5
ZRANGE K 0 -1
ZRANGEBYLEX K - +
ZRANGEBYSCORE K -inf +inf
ZRANGESTORE dest K 0 -1
ZRANK K a
ZREM K a
ZREMRANGEBYLEX K - +
ZREMRANGEBYRANK K 0 -1
ZREMRANGEBYSCORE K -inf +inf
ZREVRANGE K 0 -1
ZREVRANGEBYLEX K + -
ZREVRANGEBYSCORE K +inf -inf
ZREVRANK K a
ZSCAN K 0
ZSCORE K a
ZUNION 2 K zset
ZUNIONSTORE dest 2 K zset
`

// notKeyed are commands with keys that are left out: they need what a line has not.
var notKeyed = []string{"evalsha", "evalsha_ro", "fcall", "fcall_ro", "migrate", "restore", "restore-asking", "pfdebug", "spublish",
	"ssubscribe", "sunsubscribe"}

// present are the keys that are there before each line.
const present = `SET str 10
RPUSH list a b c
SADD set a b c
ZADD zset 1 a 2 b
HSET hash f 1 i 2
XADD stream 1-1 a b
XGROUP CREATE stream g 0
PFADD hll a b
GEOADD geo 1 1 a 1 1 b
SET past x PX 1`

// TestKeyCounters compares hits, misses, the calls of each command and its failures, and the events of misses.
func TestKeyCounters(t *testing.T) {
	oracle, tested := newCounting(t, redis(t)), newCounting(t, peer.LimitKV(t))
	seen, compared := map[string]bool{}, 0
	for _, line := range strings.Split(strings.TrimSpace(keyed), "\n") {
		for _, key := range []string{"missing", "past", "str", "list", "set", "zset", "hash", "stream", "hll", "geo"} {
			args, err := recorded.Split(line)
			if err != nil {
				t.Fatal(line, err)
			}
			for i := range args {
				if args[i] == "K" {
					args[i] = key
				}
			}
			name := strings.ToLower(args[0])
			if slices.Contains([]string{"object", "memory", "xgroup", "xinfo"}, name) {
				name += "|" + strings.ToLower(args[1])
			}
			seen[name] = true
			want, got := oracle.key(args), tested.key(args)
			compared++
			if want != got {
				t.Errorf("%s\n  want %s\n  got  %s", strings.Join(args, " "), want, got)
			}
		}
	}
	for name, entry := range table(t, tested.s) {
		own := slices.ContainsFunc(ownPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
		if len(entry.Items[fieldKeySpecs].Items) > 0 && !seen[name] && !own && !slices.Contains(notKeyed, name) {
			t.Errorf("%s has keys and is not compared", name)
		}
	}
	t.Logf("%d commands compared", compared)
}

// key runs a command on the keys that are present, and returns what it counts and tells.
func (c *counting) key(args []string) string {
	c.t.Helper()
	c.do(c.control, "FLUSHALL")
	if err := c.control.SendRaw([]byte(strings.ReplaceAll(present, "\n", "\r\n") + "\r\n")); err != nil {
		c.t.Fatal(err)
	}
	for range strings.Count(present, "\n") + 1 {
		if v, err := c.control.Receive(); err != nil || v.IsError() {
			c.t.Fatal(c.s.Name, v, err)
		}
	}
	if slices.Contains(args, "past") {
		time.Sleep(3 * time.Millisecond)
	}
	c.events()
	c.do(c.control, "CONFIG RESETSTAT")
	v, err := c.c.Do(args...)
	if err != nil {
		c.t.Fatal(c.s.Name, args, err)
	}
	counts, events := c.counts(), c.events()
	c.do(c.c, "UNWATCH")
	reply := "replied"
	if v.IsError() {
		reply = v.Text
	}
	return reply + "; " + counts + "; " + events
}
