package conformance

// What INFO counts: commands, those that were refused or failed, errors by their code, and keys that were looked up and there
// or not; with the events of misses. The real Redis says what is right, command by command.

import (
	"fmt"
	"slices"
	"sort"
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

// counting is a server whose counters are looked at.
type counting struct {
	t                        *testing.T
	s                        *peer.Server
	c, control, told, marker *peer.Conn
}

func newCounting(t *testing.T, s *peer.Server) *counting {
	c := &counting{t, s, s.Dial(t), s.Dial(t), s.Dial(t), s.Dial(t)}
	c.do(c.control, "CONFIG SET notify-keyspace-events Em")
	c.do(c.control, "DEBUG SET-ACTIVE-EXPIRE 0") // it is the command that finds a key past its time
	c.do(c.told, "PSUBSCRIBE *")
	return c
}

func (c *counting) do(conn *peer.Conn, line string) peer.Value {
	c.t.Helper()
	args, err := recorded.Split(line)
	if err != nil {
		c.t.Fatal(line, err)
	}
	v, err := conn.Do(args...)
	if err != nil {
		c.t.Fatal(c.s.Name, line, err)
	}
	return v
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

// events are those that came since they were last asked for.
func (c *counting) events() string {
	c.t.Helper()
	var all []string
	c.do(c.marker, "PUBLISH end x")
	for {
		v, err := c.told.Receive()
		if err != nil || len(v.Items) != 4 {
			c.t.Fatal(c.s.Name, v, err)
		}
		if v.Items[2].Text == "end" {
			return strings.Join(all, " ")
		}
		all = append(all, v.Items[2].Text+" "+v.Items[3].Text)
	}
}

// counts are the counters, without those of time, of what asks for them, and of the bookkeeping of this test.
func (c *counting) counts() string {
	c.t.Helper()
	var all []string
	for _, line := range strings.Split(c.do(c.control, "INFO stats commandstats errorstats").Text, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		switch {
		case name == "keyspace_hits" || name == "keyspace_misses" || name == "total_error_replies" || name == "total_commands_processed" ||
			name == "unexpected_error_replies" || strings.HasPrefix(name, "errorstat_"):
			all = append(all, name+"="+value)
		case name == "cmdstat_config|resetstat" || name == "cmdstat_info":
		case strings.HasPrefix(name, "cmdstat_"):
			var calls, rejected, failed int
			for _, field := range strings.Split(value, ",") {
				_, _ = fmt.Sscanf(field, "calls=%d", &calls)
				_, _ = fmt.Sscanf(field, "rejected_calls=%d", &rejected)
				_, _ = fmt.Sscanf(field, "failed_calls=%d", &failed)
			}
			all = append(all, fmt.Sprintf("%s=%d/%d/%d", strings.TrimPrefix(name, "cmdstat_"), calls, rejected, failed))
		}
	}
	sort.Strings(all)
	return strings.Join(all, " ")
}

// countedRuns are conversations, by name, and what is counted of each. A line is a command of the first client, of the second
// one behind "2 ", or one behind "1> " or "2> " of which the reply is not waited for; "1<" and "2<" wait for it, "sleep" for
// 20 ms, and lines of the operator behind "! " are counted, too.
const countedRuns = `
# ran
SET k v
GET k
GET none
PING
# unknown and wrong arity
NOSUCH a
GET
SET k
OBJECT
OBJECT nosuch k
CONFIG nosuch
CLIENT
XGROUP CREATE k
COMMAND DOCS nosuch
# failed
SET k v
LPUSH k a
INCR k
SET k v EX 0
SET k v NX XX
EXPIRE k abc
XADD k * a
SORT k LIMIT 1
# transaction
MULTI
SET k v
INCR k
GET k
EXEC
EXEC
DISCARD
# transaction that is refused
MULTI
SET k
NOSUCH
WATCH k
MULTI
SET k v
EXEC
# transaction with denied commands
MULTI
SUBSCRIBE c
EXEC
# transaction discarded
MULTI
SET k v
DISCARD
# transaction with a changed key
WATCH k
2 SET k v2
MULTI
GET k
EXEC
UNWATCH
# transaction with blocking commands
MULTI
BLPOP none 0
EVAL "return redis.call('SET', 'a', 'b')" 0
EVAL "return redis.call('LPUSH', 'a', 'b')" 0
EXEC
# scripts
EVAL "return 1" 0
EVAL "return redis.call('SET', 'a', 'b')" 0
EVAL "redis.call('SET', 'a', 'b') return redis.call('GET', 'a')" 0
EVAL "return redis.call('LPUSH', 'a', 'b')" 0
EVAL "return redis.pcall('LPUSH', 'a', 'b')" 0
EVAL "redis.pcall('LPUSH', 'a', 'b') return 1" 0
EVAL "redis.pcall('LPUSH', 'a', 'b') redis.pcall('INCR', 'a') return redis.pcall('LLEN', 'a')" 0
EVAL "return redis.call('NOSUCH')" 0
EVAL "return redis.pcall('NOSUCH')" 0
EVAL "redis.pcall('NOSUCH') return 1" 0
EVAL "return redis.call('GET')" 0
EVAL "return redis.pcall('GET')" 0
EVAL "return redis.pcall('SUBSCRIBE', 'a')" 0
EVAL "return redis.call('CONFIG', 'GET', 'a')" 0
EVAL "return redis.call('OBJECT', 'nosuch', 'a')" 0
EVAL "return redis.call('XGROUP')" 0
EVAL "error('mine')" 0
EVAL "error({err='MINE is mine'})" 0
EVAL "return redis.error_reply('MY error')" 0
EVAL "return {err='MY error'}" 0
EVAL "return {1, {err='MY error'}}" 0
EVAL "this is no Lua" 0
EVAL "return 1" x
EVAL "return 1" 3 a
EVALSHA ffffffffffffffffffffffffffffffffffffffff 0
EVALSHA x 0
EVAL "local x = nil; return x.y" 0
EVAL_RO "return redis.call('SET', 'a', 'b')" 0
EVAL_RO "return redis.pcall('SET', 'a', 'b')" 0
EVAL "#!lua flags=no-writes\nreturn redis.pcall('SET', 'a', 'b')" 0
EVAL "#!lua flags=nosuch\nreturn 1" 0
SCRIPT LOAD "return 1"
SCRIPT LOAD "no Lua"
SCRIPT NOSUCH
FCALL nosuch 0
FUNCTION LOAD "#!lua name=l\nredis.register_function('f', function(k) return redis.call('LPUSH', 'a', 'b') end)"
FCALL f 0
FCALL_RO f 0
FUNCTION DELETE l
FUNCTION DELETE l
# subscribed
SUBSCRIBE c
GET k
PING
UNSUBSCRIBE c
# blocked and timed out
1> BLPOP none 0.01
1<
1> XREAD BLOCK 10 STREAMS none $
1<
1> BZPOPMIN none 0.01
1<
1> BLMOVE none none2 LEFT LEFT 0.01
1<
1> WAIT 1 10
1<
# blocked and served
1> BLPOP l 0
sleep
2 RPUSH l x
1<
1> XREAD BLOCK 0 STREAMS s $
sleep
2 XADD s * a b
1<
1> BLMOVE l m LEFT LEFT 0
sleep
2 EVAL "return redis.call('RPUSH', 'l', 'y')" 0
1<
1> BZPOPMIN z 0
sleep
2 MULTI
2 ZADD z 1 a
2 EXEC
1<
# blocked and unblocked
CLIENT ID
1> BLPOP none 0
sleep
! UNBLOCK
1<
1> BLPOP none 0
sleep
! UNBLOCK ERROR
1<
# blocked with an error
XGROUP CREATE s g $ MKSTREAM
1> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
sleep
2 XGROUP DESTROY s g
1<
XGROUP CREATE s g $
1> XREADGROUP GROUP g c BLOCK 0 STREAMS s >
sleep
2 DEL s
1<
RPUSH wrong a
1> BLMOVE l wrong2 LEFT LEFT 0
sleep
2 SET wrong2 x
2 RPUSH l a
1<
# blocked and gone
1> BLPOP none 0
sleep
! KILL
sleep
# out of memory
! CONFIG SET maxmemory 1
SET k v
GET k
EVAL "return redis.call('SET', 'a', 'b')" 0
EVAL "return redis.pcall('SET', 'a', 'b')" 0
EVAL "redis.pcall('SET', 'a', 'b') return 1" 0
EVAL "#!lua\nreturn 1" 0
MULTI
SET k v
EXEC
MULTI
GET k
EXEC
! CONFIG SET maxmemory 0
# a user with few rights
! ACL SETUSER few on nopass ~a* &a* -@all +get +auth +eval +multi +exec +subscribe +object|encoding
AUTH few x
SET a b
GET b
GET a
OBJECT ENCODING a
OBJECT FREQ a
SUBSCRIBE b
EVAL "return redis.call('SET', 'a', 'b')" 0
EVAL "return redis.pcall('SET', 'a', 'b')" 0
EVAL "return redis.pcall('GET', 'b')" 0
MULTI
SET a b
GET a
EXEC
MULTI
GET a
! ACL SETUSER few -get
EXEC
NOSUCH
AUTH few x y
AUTH nosuch x
AUTH default
! ACL DELUSER few
# not authenticated
! CONFIG SET requirepass secret
3 GET k
3 PING
3 NOSUCH
3 HELLO 3
3 AUTH wrong
3 AUTH secret
3 GET k
! CONFIG SET requirepass ""
# greeting
HELLO 4
HELLO 3 AUTH a
HELLO 3 AUTH default wrong
HELLO 3 SETNAME "a b"
HELLO 2
CLIENT SETNAME "a b"
CLIENT KILL ID 0
CLIENT KILL nosuch
RESET
SELECT 99
SELECT x
# silent
1> CLIENT REPLY SKIP
1> NOSUCH
GET none
PING
# refused writes
! CONFIG SET min-replicas-to-write 1
SET k v
EVAL "return redis.pcall('SET', 'a', 'b')" 0
MULTI
SET k v
EXEC
! CONFIG SET min-replicas-to-write 0
# a replica
! REPLICAOF 127.0.0.1 1
SET k v
GET k
EVAL "return redis.pcall('SET', 'a', 'b')" 0
EVAL "return redis.call('SET', 'a', 'b')" 0
MULTI
SET k v
EXEC
! CONFIG SET replica-serve-stale-data no
GET k
PING
EVAL "return 1" 0
EVAL "#!lua flags=allow-stale\nreturn redis.call('GET', 'a')" 0
! REPLICAOF NO ONE
! CONFIG SET replica-serve-stale-data yes
# many kinds of errors
RENAME none a
LSET none 0 a
XGROUP DESTROY none g
XREADGROUP GROUP g c STREAMS none >
XACK none g x
ZADD z nan a
HINCRBY h f x
GEOADD g 999 999 a
RESTORE k 0 x
OBJECT FREQ none
MIGRATE 127.0.0.1 1 k 0 10
DEBUG NOSUCH
CONFIG SET nosuch 1
CONFIG SET maxmemory x
CLUSTER INFO
ACL SETUSER x nosuch
SWAPDB 0 99
COPY a b DB 99
MOVE a 99
REPLICAOF x y z
BITFIELD b GET u99 0
PFADD wrong a
SETRANGE k -1 a
LPOS none a RANK 0
SINTERCARD 0 a
BLPOP none x
WAIT x 1
`

// TestCommandCounters compares what is counted of conversations.
func TestCommandCounters(t *testing.T) {
	servers := []*counting{newCounting(t, redis(t)), newCounting(t, peer.LimitKV(t))}
	n := 0
	for _, text := range strings.Split(countedRuns, "\n# ")[1:] {
		name, lines, _ := strings.Cut(strings.TrimSpace(text), "\n")
		var got [2]string
		for i, s := range servers {
			got[i] = s.run(strings.Split(lines, "\n"))
			n += strings.Count(got[i], "\n")
		}
		if got[0] != got[1] {
			t.Errorf("%s:\nwant\n%s\ngot\n%s", name, got[0], got[1])
		}
	}
	if n < 300 {
		t.Errorf("only %d lines were compared", n)
	}
}

// run holds a conversation, and returns the errors that were replied and what was counted.
func (c *counting) run(lines []string) string {
	c.t.Helper()
	clients := map[string]*peer.Conn{"1": c.s.Dial(c.t), "2": c.s.Dial(c.t)}
	defer func() {
		for _, conn := range clients {
			conn.Close()
		}
	}()
	id := c.do(clients["1"], "CLIENT ID").Text
	c.do(c.control, "FLUSHALL")
	c.do(c.control, "CONFIG RESETSTAT")
	var out strings.Builder
	note := func(line string, v peer.Value) {
		text := "fine"
		if v.IsError() {
			text, _, _ = strings.Cut(v.Text, " ")
		}
		fmt.Fprintf(&out, "%s: %s\n", line, text)
	}
	for _, line := range lines {
		who, rest, _ := strings.Cut(line, " ")
		name := strings.TrimRight(who, "<>")
		if name == "3" && clients[name] == nil {
			clients[name] = c.s.Dial(c.t)
		}
		switch {
		case line == "sleep":
			time.Sleep(20 * time.Millisecond)
		case line == "! KILL":
			note(line, c.do(c.control, "CLIENT KILL ID "+id))
		case strings.HasPrefix(line, "! UNBLOCK"):
			note(line, c.do(c.control, "CLIENT UNBLOCK "+id+strings.TrimPrefix(line, "! UNBLOCK")))
		case who == "!":
			note(line, c.do(c.control, rest))
		case clients[name] == nil:
			note(line, c.do(clients["1"], line))
		case strings.HasSuffix(who, "<"):
			v, err := clients[name].Receive()
			if err != nil {
				c.t.Fatal(c.s.Name, line, err)
			}
			note(line, v)
		case strings.HasSuffix(who, ">"):
			args, err := recorded.Split(rest)
			if err == nil {
				err = clients[name].Send(args...)
			}
			if err != nil {
				c.t.Fatal(c.s.Name, line, err)
			}
		default:
			note(line, c.do(clients[name], rest))
		}
	}
	return out.String() + strings.ReplaceAll(c.counts(), " ", "\n")
}
