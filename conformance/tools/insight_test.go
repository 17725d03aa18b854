// What graphical tools send when they connect and while people browse: RedisInsight first, then Another Redis Desktop
// Manager and Redis Commander, which ask for less of the same. Every reply is the real Redis's, or has its form where
// two servers cannot say the same; commands of modules that neither has are refused alike.
package tools

import (
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/recorded"
)

// How a reply is compared; "" is equality.
const (
	byForm = "%form" // texts differ in numbers only
	byKind = "%shape"
	anyInt = "%int"
	sorted = "%sorted"
	pairs  = "%pairs"
	fine   = "%any" // is no error
)

// conversation is what a tool sends on a connection: "%rule command".
type conversation struct{ name, lines string }

var conversations = []conversation{
	{"connecting", `
%any INFO
CLIENT SETINFO LIB-NAME ioredis
CLIENT SETINFO LIB-VER 5.7.0
CLIENT SETNAME redisinsight-browser-1a2b3c4d-0001
SELECT 0
CLIENT GETNAME
%any HELLO
%any COMMAND
%shape COMMAND COUNT
CLUSTER INFO
CLUSTER SLOTS
CLUSTER NODES
READONLY
SENTINEL MASTERS
MODULE
COMMAND INFO json.del json.set ft.search graph.query ts.info bf.add
%any COMMAND INFO get client|list
CONFIG GET databases
%form CLIENT LIST
%form CLIENT INFO
%int CLIENT ID
DBSIZE
%any INFO keyspace
%any INFO server
ROLE
PING
PING browser
ECHO hello
`},
	{"its rights", `
ACL WHOAMI
ACL GETUSER default
ACL LIST
%any ACL CAT
ACL DRYRUN default GET a
ACL DRYRUN default CONFIG GET dir
ACL DRYRUN nobody GET a
ACL DRYRUN default NOSUCH
`},
	{"the list of keys", `
SCAN 0 MATCH nothing* COUNT 500
SCAN 0 MATCH str:a COUNT 10000
SCAN 0 MATCH * COUNT 10000 TYPE stream
SCAN 0 MATCH * COUNT 10000 TYPE ReJSON-RL
SCAN 0 COUNT 10000 TYPE graphdata
%sorted KEYS zset:*
TTL str:a
PTTL str:a
%near TTL ttl
TYPE str:a
TYPE list:a
TYPE hash:a
TYPE set:a
TYPE zset:a
TYPE stream:a
TYPE hll
TYPE nosuch
%int MEMORY USAGE str:a SAMPLES 0
%int MEMORY USAGE stream:a SAMPLES 0
%int MEMORY USAGE zset:a
MEMORY USAGE nosuch SAMPLES 0
EXISTS str:a nosuch
OBJECT ENCODING str:number
OBJECT ENCODING list:a
OBJECT ENCODING hash:a
OBJECT ENCODING zset:a
OBJECT ENCODING stream:a
OBJECT ENCODING nosuch
%int OBJECT IDLETIME str:a
OBJECT REFCOUNT str:a
OBJECT FREQ str:a
`},
	{"a key", `
STRLEN str:utf8
GET "str:quo\"te"
GETRANGE str:big 0 9
HLEN hash:b
HSCAN hash:b 0 MATCH * COUNT 500
HSCAN hash:b 0 NOVALUES
HTTL hash:b FIELDS 2 f1 f2
HGET hash:b f1
LLEN list:a
LRANGE list:a 0 499
LINDEX list:a 2
SCARD set:b
SSCAN set:b 0 MATCH * COUNT 500
SISMEMBER set:b one
ZCARD zset:a
ZRANGE zset:a 0 499 WITHSCORES
ZREVRANGE zset:a 0 499 WITHSCORES
ZSCAN zset:a 0 MATCH * COUNT 500
ZSCORE zset:a b
ZSCORE zset:b z
XLEN stream:a
XINFO STREAM stream:a
%any XINFO STREAM stream:a FULL
XRANGE stream:a - + COUNT 500
XREVRANGE stream:a + - COUNT 500
XINFO GROUPS stream:a
XGROUP CREATE stream:a group 0
XREADGROUP GROUP group one COUNT 1 STREAMS stream:a >
%form XINFO GROUPS stream:a
%form XINFO CONSUMERS stream:a group
XPENDING stream:a group
%form XPENDING stream:a group - + 500
%form XPENDING stream:a group - + 500 one
XCLAIM stream:a group two 0 1-1 JUSTID
XACK stream:a group 1-1
XGROUP SETID stream:a group 0
XGROUP DELCONSUMER stream:a group one
XGROUP DESTROY stream:a group
GEOPOS geo Palermo
GEOHASH geo Palermo
JSON.GET str:a
JSON.TYPE str:a
FT._LIST
FT.INFO index
TS.INFO str:a
GRAPH.QUERY g q
DUMP str:number
`},
	{"changing keys", `
SET new value
EXPIRE new 100
%near TTL new
PERSIST new
RENAMENX new str:a
RENAME new newer
RENAME nosuch newer
HSET newhash f v
HDEL newhash f
LPUSHX nosuch x
RPUSH newlist a b
LSET newlist 0 c
LSET newlist 9 c
SADD newset a
SREM newset a b
ZADD newzset 1 a
ZADD newzset CH 2 a
ZREM newzset a
XADD newstream 1-1 f v
XDEL newstream 1-1
HEXPIRE hash:b 100 FIELDS 1 f1
%near HTTL hash:b FIELDS 2 f1 f2
HPERSIST hash:b FIELDS 1 f1
UNLINK newer newlist newset newzset newstream
DEL nosuch
MULTI
TTL str:a
TYPE str:a
INCR list:a
EXEC
GET list:a
`},
	{"the slow log", `
%pairs CONFIG GET slowlog*
SLOWLOG RESET
CONFIG SET slowlog-log-slower-than 0
PING
SLOWLOG LEN
%form SLOWLOG GET 1
%form SLOWLOG GET 128
CONFIG SET slowlog-log-slower-than 10000 slowlog-max-len 128
SLOWLOG RESET
SLOWLOG GET
`},
	{"advice", `
CONFIG GET maxmemory
CONFIG GET maxmemory-policy
CONFIG GET notify-keyspace-events
CONFIG GET save
CONFIG GET appendonly
CONFIG GET requirepass
%pairs CONFIG GET hash-max-listpack-entries zset-max-listpack-entries
FUNCTION LIST
FUNCTION STATS
LATENCY LATEST
LATENCY RESET
LATENCY HISTORY command
%any LATENCY HISTOGRAM
%any LATENCY DOCTOR
%any MEMORY DOCTOR
%any MEMORY STATS
MEMORY PURGE
%shape TIME
%int LASTSAVE
SCRIPT EXISTS ffffffffffffffffffffffffffffffffffffffff
PUBSUB CHANNELS
PUBSUB NUMSUB a b
PUBSUB NUMPAT
PUBSUB SHARDCHANNELS
PUBLISH nobody hello
WAIT 0 0
DEBUG SLEEP 0
%any COMMAND DOCS get
COMMAND GETKEYS SET a b
%sorted COMMAND LIST FILTERBY PATTERN xgroup|*
`},
	{"watching", `
MONITOR
`},
	{"listening", `
SUBSCRIBE a
PSUBSCRIBE b*
UNSUBSCRIBE a
PUNSUBSCRIBE b*
`},
}

// ask sends a line and reads its reply.
func ask(t *testing.T, s *peer.Server, c *peer.Conn, line string) peer.Value {
	t.Helper()
	args, err := recorded.Split(line)
	if err != nil {
		t.Fatal(err)
	}
	v, err := c.Do(args...)
	if err != nil {
		t.Fatalf("%s: %s: %v", s.Name, line, err)
	}
	return v
}

// rules are what lines begin with.
var rules = map[string]peer.Rule{
	byKind: {Shape: true}, anyInt: {AnyInt: true}, fine: {Any: true}, sorted: {Unordered: 1}, pairs: {Unordered: 2}, "%near": {Near: 5},
}

func TestInsight(t *testing.T) {
	p := start(t, "--enable-debug-command", "yes")
	p.load(t, people)
	compared := 0
	for _, protocol := range []string{"2", "3"} {
		for _, conversation := range conversations {
			t.Run(conversation.name+" by RESP"+protocol, func(t *testing.T) {
				redis, limitkv := p.redis.Dial(t), p.limitkv.Dial(t)
				ask(t, p.redis, redis, "HELLO "+protocol)
				ask(t, p.limitkv, limitkv, "HELLO "+protocol)
				for _, line := range strings.Split(strings.TrimSpace(conversation.lines), "\n") {
					rule := ""
					if line[0] == '%' {
						rule, line, _ = strings.Cut(line, " ")
					}
					want, got := ask(t, p.redis, redis, line), ask(t, p.limitkv, limitkv, line)
					compared++
					alike := rules[rule].Match(want, got)
					if rule == byForm {
						alike = formOf(want) == formOf(got)
					}
					if !alike {
						t.Errorf("%s\n want %.1500v\n  got %.1500v", line, want, got)
					}
				}
			})
		}
	}
	if compared < 300 {
		t.Errorf("%d replies were compared", compared)
	}
}

// formOf is a reply whose numbers and addresses do not count.
func formOf(v peer.Value) string {
	return form(strings.Join(strings.Fields(address.pattern.ReplaceAllString(v.String(), "address")), " "))
}
