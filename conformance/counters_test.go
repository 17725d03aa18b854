package conformance

// What INFO counts: commands, those that were refused or failed, and errors by their code. The real Redis says what is right,
// conversation by conversation.

import (
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/recorded"
)

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
