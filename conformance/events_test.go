// Keyspace events: which each command tells, for which key, in which order. All classes are on, those of misses and of
// new keys too, and what a subscriber receives must be what it receives from Redis.
package conformance

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/recorded"
)

// eventful are commands that change keys in every way, and some that change nothing.
const eventful = `
SET k v
GET nokey
SET k v2 EX 100
GETEX k PERSIST
GETEX k EX 100
EXPIRE k 50
EXPIRE k -1
APPEND k x
SETRANGE k 0 y
INCR i
INCRBYFLOAT i 1.5
GETSET k z
GETDEL k
MSET a 1 b 2
MSETNX a 1 c 2
MSETNX d 1 e 2
RENAME a a2
RENAMENX b b2
COPY b2 b3
MOVE b3 1
DEL b2 d
UNLINK e
LPUSH l a b c
RPUSHX l d
LINSERT l BEFORE a x
LSET l 0 y
LREM l 0 x
LTRIM l 0 1
LMOVE l l2 LEFT RIGHT
RPOPLPUSH l l2
LMPOP 1 l2 LEFT COUNT 5
LPOP l
SADD s a b c
SREM s a
SMOVE s s2 b
SPOP s2
SINTERSTORE s3 s
SUNIONSTORE s3 s
SDIFFSTORE s3 s s
ZADD z 1 a 2 b
ZADD z INCR 1 a
ZINCRBY z 1 a
ZREM z a
ZPOPMIN z
ZADD z 1 a 2 b 3 c 4 d 5 e
ZREMRANGEBYRANK z 0 0
ZREMRANGEBYSCORE z 2 2
ZREMRANGEBYLEX z - [c
ZRANGESTORE z2 z 0 -1
ZUNIONSTORE z3 2 z z2
ZINTERSTORE z3 2 z nokey
ZDIFFSTORE z3 2 z nokey
ZMPOP 1 z MAX
ZPOPMAX z3
HSET h f 1 g 2
HSETNX h i 1
HINCRBY h f 1
HINCRBYFLOAT h f 1.5
HEXPIRE h 100 FIELDS 1 f
HPERSIST h FIELDS 1 f
HEXPIRE h 0 FIELDS 1 f
HGETDEL h FIELDS 1 g
HSETEX h EX 100 FIELDS 1 z 1
HGETEX h PERSIST FIELDS 1 z
HDEL h i z
SETBIT bm 1 1
BITOP NOT bm2 bm
BITFIELD bm SET u8 0 1
PFADD hl a b
PFMERGE hl2 hl
GEOADD g 1 1 x
GEOSEARCHSTORE g2 g FROMMEMBER x BYRADIUS 1 km
SORT s STORE so
XADD x 1-1 a b
XADD x MAXLEN 1 2-1 a b
XGROUP CREATE x gg 0
XGROUP CREATECONSUMER x gg cc
XREADGROUP GROUP gg c2 STREAMS x >
XCLAIM x gg c3 0 2-1
XAUTOCLAIM x gg c4 0 0
XGROUP SETID x gg 0
XGROUP DELCONSUMER x gg cc
XGROUP DESTROY x gg
XSETID x 9-9
XDEL x 2-1
XTRIM x MAXLEN 0
SWAPDB 0 1
SWAPDB 0 1
SETEX se 100 v
EVAL "redis.call('set','e1','1') redis.call('del','e1')" 0
MULTI
SET m1 1
DEL m1
EXEC
FLUSHDB
SPUBLISH a b
SET r1 1
SET r2 2
RENAME r1 r2
COPY r2 r3
COPY r2 r3 REPLACE
MSET r3 1 r4 1
ZADD rz 1 a
ZUNIONSTORE rz 1 rz
GEORADIUS g 1 1 1 m STORE g3
ZADD rzz CH 0 a
ZADD rzz2 XX 1 a
ZINCRBY rzz3 nan a
HINCRBY hh f abc
HINCRBYFLOAT hh2 f abc
LPUSHX lx a
XADD xs NOMKSTREAM * a b
XADD xs 0-0 a b
XGROUP CREATE xs g $ MKSTREAM
SETBIT sb 0 0
BITFIELD bf GET u8 0
BITFIELD bf2 SET u8 0 1
PFADD pf
GETEX nokk
SETRANGE sr 0 ""
APPEND ap ""
HSETEX hx FXX FIELDS 1 a b
HSETEX hz PXAT 1000 FIELDS 1 a b
HSETEX hy PXAT 1000 FIELDS 2 a b c d
HSETNX hn a b
HEXPIRE hq 1 FIELDS 1 a
LMOVE none l9 LEFT RIGHT
SMOVE none s9 a
SORT none STORE s8
INCRBYFLOAT inf abc
INCR neww
DECR neww2
LINSERT none BEFORE a b
EVAL "redis.call('set',KEYS[1],'1')" 1 evk
SWAPDB 0 1
FLUSHALL
`

func TestEvents(t *testing.T) {
	oracle, tested := redis(t), peer.LimitKV(t)
	for _, classes := range []string{"KEAmn", "KEA", "En$lshzxetgd"} {
		want, got := events(t, oracle, classes), events(t, tested, classes)
		for i := range max(len(want), len(got)) {
			if i >= len(want) || i >= len(got) || want[i] != got[i] {
				t.Errorf("%s: the events differ from the %dth on\n  want %q\n  got  %q", classes, i+1, want[i:min(i+5, len(want))], got[min(i, len(got)):min(i+5, len(got))])
				break
			}
		}
		if len(want) < 100 {
			t.Errorf("%s: only %d events", classes, len(want))
		}
	}
}

// events are those that the commands tell when some classes are on, each with the command behind which it came.
func events(t *testing.T, s *peer.Server, classes string) (all []string) {
	t.Helper()
	c, listener, marker := s.Dial(t), s.Dial(t), s.Dial(t)
	do := func(c *peer.Conn, args ...string) peer.Value {
		v, err := c.Do(args...)
		if err != nil {
			t.Fatal(s.Name, args, err)
		}
		return v
	}
	do(c, "FLUSHALL")
	do(c, "CONFIG", "SET", "notify-keyspace-events", classes)
	do(listener, "PSUBSCRIBE", "*")
	for i, line := range strings.Split(strings.TrimSpace(eventful), "\n") {
		args, err := recorded.Split(line)
		if err != nil {
			t.Fatal(line, err)
		}
		do(c, args...)
		end := fmt.Sprint("end ", i)
		do(marker, "PUBLISH", end, "")
		for {
			v, err := listener.Receive()
			if err != nil || len(v.Items) != 4 {
				t.Fatal(s.Name, line, v, err)
			}
			if v.Items[2].Text == end {
				break
			}
			if !strings.HasPrefix(v.Items[2].Text, "end") {
				all = append(all, line+": "+v.Items[2].Text+" "+v.Items[3].Text)
			}
		}
	}
	do(c, "CONFIG", "SET", "notify-keyspace-events", "")
	return all
}
