package conformance

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// largeElements is how many elements the values have that commands go over.
const largeElements = 250_000

// largeCommands are commands at their worst: all of a value. What a command takes out of a value it takes out of t, a copy of the
// one that stands before the bar.
var largeCommands = `
HGETALL h
HKEYS h
HVALS h
HSCAN h 0 COUNT 250000
HRANDFIELD h 250000
HRANDFIELD h -250000
SMEMBERS s
SUNION s i
SINTER s s
SDIFF s i
SINTERCARD 2 s s
SUNIONSTORE d s i
SINTERSTORE d s s
SDIFFSTORE d s i
SRANDMEMBER s 250000
SRANDMEMBER s -250000
SSCAN s 0 COUNT 250000
SORT l ALPHA
SORT i STORE d
SORT_RO i
ZRANGE z 0 -1
ZREVRANGE z 0 -1
ZRANGEBYSCORE z -inf +inf
ZREVRANGEBYSCORE z +inf -inf
ZRANGEBYLEX z - +
ZREVRANGEBYLEX z + -
ZRANGESTORE d z 0 -1
ZUNION 2 z s
ZINTER 2 z z
ZDIFF 2 z i
ZUNIONSTORE d 2 z s
ZINTERSTORE d 2 z z
ZDIFFSTORE d 2 z i
ZINTERCARD 2 z z
ZRANDMEMBER z 250000
ZRANDMEMBER z -250000
ZSCAN z 0 COUNT 250000
GEORADIUS g 0 0 20000 km
GEORADIUS_RO g 0 0 20000 km
GEORADIUSBYMEMBER g m0 20000 km
GEORADIUSBYMEMBER_RO g m0 20000 km
GEOSEARCH g FROMLONLAT 0 0 BYRADIUS 20000 km
GEOSEARCHSTORE d g FROMLONLAT 0 0 BYRADIUS 20000 km
LRANGE l 0 -1
LPOS l nosuch
XRANGE x - +
XREVRANGE x + -
XREAD STREAMS x 0
XREADGROUP GROUP new c STREAMS x >
XREADGROUP GROUP all c STREAMS x 0
XPENDING x all - + 250000
XAUTOCLAIM x all d 0 0 COUNT 250000
BITCOUNT str
BITPOS str 1
BITOP NOT d str
COPY str d REPLACE
COPY h d REPLACE
COPY s d REPLACE
COPY z d REPLACE
COPY x d REPLACE
COPY q d REPLACE
COPY qg d REPLACE
DUMP str
DUMP h
DUMP s
DUMP z
DUMP l
DUMP x
DUMP q
DUMP qg
DQ.PEEK q COUNT 1000 MATCH nosuch
DQ.REQUEUE t d | q
SPOP t 200000 | s
ZPOPMIN t 200000 | z
ZPOPMAX t 200000 | z
ZMPOP 1 t MIN COUNT 200000 | z
BZMPOP 0 1 t MIN COUNT 200000 | z
ZREMRANGEBYRANK t 0 200000 | z
ZREMRANGEBYSCORE t -inf 200000 | z
ZREMRANGEBYLEX t - + | z
LPOP t 200000 | l
RPOP t 200000 | l
LMPOP 1 t LEFT COUNT 200000 | l
BLMPOP 0 1 t LEFT COUNT 200000 | l
`

// briefCommands take no longer on a large value than on a small one, unless they have many arguments, or wait for what
// is their own business: a script, another server. What replies a large string sends it from where it is.
const briefCommands = `append bitfield bitfield_ro blmove blpop brpop brpoplpush bzpopmax bzpopmin cl.throttle decr decrby del dq.ack dq.add dq.info
dq.len dq.move dq.mpop dq.nack dq.pop dq.rem dq.set dq.touch eval eval_ro evalsha evalsha_ro exists expire expireat expiretime fcall
fcall_ro gcra geoadd geodist geohash geopos get getbit getdel getex getrange getset hdel hexists hexpire hexpireat hexpiretime hget hgetdel hgetex hincrby hincrbyfloat
hlen hmget hmset hpersist hpexpire hpexpireat hpexpiretime hpttl hset hsetex hsetnx hstrlen httl incr incrby incrbyfloat increx lcs lindex
linsert lk.acquire lk.guard lk.info lk.release lk.touch llen lmove lpush lpushx lrem lset ltrim mget migrate move mset msetnx persist pexpire pexpireat
pexpiretime pfadd pfcount pfdebug pfmerge psetex pttl rename renamenx restore restore-asking rl.acquire rl.info rl.macquire rl.release rl.set
rl.settle rl.throttle rl.touch rpoplpush rpush rpushx sadd scard set setbit setex setnx setrange sismember smismember smove spublish srem
ssubscribe strlen substr sunsubscribe touch ttl type unlink watch xack xadd xclaim xdel xlen xsetid xtrim zadd zcard zcount zincrby zlexcount
zmscore zrank zrem zrevrank zscore`

// fillLarge makes the values.
func fillLarge(t *testing.T, c *peer.Conn) {
	send := func(n, step int, words func(i int) []string, head ...string) {
		for i := 0; i < n; {
			lines := 0
			var b []byte
			for ; lines < 100 && i < n; lines++ {
				args := slices.Clone(head)
				for end := min(i+step, n); i < end; i++ {
					args = append(args, words(i)...)
				}
				b = peer.AppendCommand(b, args...)
			}
			if err := c.SendRaw(b); err != nil {
				t.Fatal(err)
			}
			for range lines {
				if v, err := c.Receive(); err != nil || v.Kind == '-' {
					t.Fatalf("%q: %v %v", head, v, err)
				}
			}
		}
	}
	const batch = 1000
	name := func(i int) string { return "m" + strconv.Itoa(i) }
	send(largeElements, batch, func(i int) []string { return []string{name(i), "v"} }, "HSET", "h")
	send(largeElements, batch, func(i int) []string { return []string{name(i)} }, "SADD", "s")
	send(largeElements, batch, func(i int) []string { return []string{strconv.Itoa(i)} }, "SADD", "i")
	send(largeElements, batch, func(i int) []string { return []string{strconv.Itoa(i), name(i)} }, "ZADD", "z")
	send(4*largeElements, batch, func(i int) []string { return []string{name(i)} }, "RPUSH", "l") // which is gone over fast
	send(largeElements, batch, func(i int) []string { return []string{strconv.Itoa(i%360 - 180), strconv.Itoa(i%160 - 80), name(i)} }, "GEOADD", "g")
	send(largeElements, 1, func(i int) []string { return []string{strconv.Itoa(i+1) + "-1", "f", "v"} }, "XADD", "x")
	send(largeElements, 1, func(i int) []string { return []string{name(i)} }, "DQ.ADD", "q")
	c.Must(t, "DQ.SET", "qg", "GROUPS", "CONC", "1")
	send(largeElements/5, 1, func(i int) []string { return []string{name(i), "v"} }, "DQ.ADD", "qg", "GROUP")
	c.Must(t, "SETRANGE", "str", "128000000", "x")
	c.Must(t, "XGROUP", "CREATE", "x", "all", "0")
	c.Must(t, "XREADGROUP", "GROUP", "all", "c", "STREAMS", "x", ">")
}

// Whatever a command does with a value of many elements, its loop goes on to serve others: each becomes a long command. Those
// that take longest show that others are answered meanwhile.
func TestLargeValuesBesideOthers(t *testing.T) {
	server := peer.LimitKV(t, "--save", "")
	c := server.Dial(t)
	fillLarge(t, c)
	known := strings.Fields(briefCommands)
	for _, line := range strings.Split(strings.TrimSpace(largeCommands), "\n") {
		words, from, copied := strings.Cut(line, " | ")
		args := strings.Fields(words)
		known = append(known, strings.ToLower(args[0]))
		if copied {
			c.Must(t, "COPY", from, "t", "REPLACE")
		}
		if args[0] == "XREADGROUP" {
			if _, err := c.Do("XGROUP", "DESTROY", "x", "new"); err != nil {
				t.Fatal(err)
			}
			c.Must(t, "XGROUP", "CREATE", "x", "new", "0")
		}
		before := longCommands(t, c)
		if v, err := c.Do(args...); err != nil || v.Kind == '-' {
			t.Fatalf("%q: %v %v", args, v, err)
		}
		if longCommands(t, c) != before+1 {
			t.Errorf("%s: its loop does not go on", line)
		}
	}
	for _, line := range []string{"SORT l ALPHA", "SUNIONSTORE d s i", "ZUNIONSTORE d 2 z s", "COPY qg d REPLACE"} {
		answered(t, server, strings.Fields(line))
	}
	list := c.Must(t, "COMMAND")
	walked := 0
	for _, row := range list.Items {
		if keyed := row.Items[3].Text != "0" || len(row.Items[8].Items) > 0; keyed {
			walked++
			if name := row.Items[0].Text; !slices.Contains(known, name) {
				t.Errorf("%s is not known to be brief, nor tried on a large value", name)
			}
		}
	}
	if walked < 200 {
		t.Errorf("%d commands have keys", walked)
	}
}

// longCommands is how many commands there were that others of their loop did not wait for.
func longCommands(t *testing.T, c *peer.Conn) int {
	t.Helper()
	n, err := strconv.Atoi(peer.Field(c.Must(t, "INFO", "stats").Text, "total_long_commands"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// answered sends a command and, once the server has counted it as one that takes long, others that are replied before it. The
// command is sent again if it has ended before they were sent.
func answered(t *testing.T, server *peer.Server, args []string) {
	t.Helper()
	others := make([]*peer.Conn, 8) // new ones are on all loops
	for i := range others {
		others[i] = server.Dial(t)
	}
	for range 100 {
		c := server.Dial(t)
		before := longCommands(t, others[0])
		if err := c.Send(args...); err != nil {
			t.Fatal(err)
		}
		var replied atomic.Bool
		ended := make(chan error, 1)
		go func() {
			kind, err := c.Begins(time.Minute)
			if replied.Store(true); err == nil && kind == '-' {
				err = errors.New("an error")
			}
			ended <- err
		}()
		for longCommands(t, others[0]) == before && !replied.Load() {
		}
		for _, other := range others {
			other.Must(t, "PING")
		}
		beside := !replied.Load()
		if err := <-ended; err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		_ = c.Close() // nobody needs all elements
		if beside {
			return
		}
	}
	t.Errorf("%q: others are not answered before it", args)
}
