package storm

// What the server accepts it has to live with: of any payload that RESTORE takes, whatever random commands and steps of the
// clock make, DUMP, SAVE, a rewrite of the log and a full synchronisation write what is accepted again.

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

const (
	closedRounds = 4     // how often all is written and read anew
	closedSteps  = 2_500 // commands between
	closedBatch  = 5     // commands of one transaction, so that none waits
	keysOfType   = 4
	// Of each type so many changed payloads are tried at a time.
	payloadsTried = 12
)

// groups are the groups of commands that are sent, and what the names of their keys begin with.
var groups = map[string]string{"string": "s", "bitmap": "s", "hyperloglog": "p", "list": "l", "set": "e", "sorted-set": "z", "geo": "z", "hash": "h",
	"stream": "x", "delayqueue": "q", "ratelimit": "r", "lock": "k"}

// seeds make a key of each kind that has much in it; # stands for its number.
var seeds = []string{
	"SET s# hello", "SET s# 12345", "SETRANGE s# 300 x", "PFADD p# a b c d", "RPUSH l# a b 3 -70000", "SADD e# 1 2 -3 70000", "SADD e# a b 1",
	"ZADD z# 1 a 2.5 b -inf c", "GEOADD z# 13.4 52.5 a", "HSET h# a 1 b 2", "HPEXPIRE h# 100000 FIELDS 1 a",
	"XADD x# 5-5 a b c d", "XGROUP CREATE x# g 0 MKSTREAM", "XREADGROUP GROUP g c COUNT 1 STREAMS x# >", "XADD x# 7-1 a b",
	"DQ.SET q# LEASE 1000 TRIES 3 DEAD qdead BACKOFF 100 GROUPS CONC 2 GCRA 100 1000 LOG 50 60000", "DQ.ADD q# ID a DELAY 100 UNIQUE 5000 p", "DQ.ADD q# ID b GROUP g PRIO 7 EXPIRE 100 p",
	"DQ.ADD q# ID c GROUP f MAXWAIT 1000 DELAY 100 p", "DQ.ADD q# ID every EVERY 5000 p", "DQ.ADD q# ID cron CRON @hourly TZ Europe/Berlin p", "DQ.POP q# LEASE 5000",
	"RL.SET r0 GCRA 3 1000 BURST 7 LOG 20 5000", "RL.SET r1 CONC 5 TOTAL 100", "RL.SET r2 SHADOW WINDOW 5 1000 FIXED 9 1000 CAL 100 MONTH TZ Asia/Tokyo", "RL.SET r3 LOG 50 1000 GCRA 7 13",
	"RL.ACQUIRE r# 2 ID a LEASE 100000", "RL.ACQUIRE r# 1 FORCE", "RL.ACQUIRE r#",
	"LK.ACQUIRE k0 a 100000 DELAY 500", "LK.ACQUIRE k1 a 5000 SHARED DELAY 50", "LK.ACQUIRE k1 b 5000 SHARED", "LK.ACQUIRE k2 a 5000 OF 5 TAKE 2", "LK.ACQUIRE k2 b 7000 OF 5",
	"LK.ACQUIRE k3 b 7000",
}

// closed is one run.
type closed struct {
	t     *testing.T
	r     *rand.Rand
	c     *peer.Conn
	docs  []documented
	kinds map[string]int // how many changed payloads were taken, by the first letter of their keys
	last  []string       // what was sent
	about string         // the key that is looked at
	now   int64          // the clock, in milliseconds
}

func (x *closed) say(args ...string) {
	x.last = append(x.last, fmt.Sprintf("%.400q", args))
	if len(x.last) > 4000 {
		x.last = slices.Clone(x.last[2000:])
	}
}

func (x *closed) do(args ...string) peer.Value {
	x.t.Helper()
	x.say(args...)
	v, err := x.c.Do(args...)
	if err != nil {
		x.fail("%.200q: %v", args, err)
	}
	return v
}

func (x *closed) fail(format string, args ...any) {
	x.t.Helper()
	x.t.Log("the last commands:")
	for _, line := range x.last {
		if strings.Contains(line, strconv.Quote(x.about)) || strings.Contains(line, "LKV.") {
			x.t.Log(line)
		}
	}
	x.t.Fatalf(format, args...)
}

func (x *closed) ok(args ...string) {
	x.t.Helper()
	if v := x.do(args...); v.Text != "OK" {
		x.fail("%.200q: %v", args, v)
	}
}

// value is a value for a command of keys of a kind.
func (x *closed) value(prefix string) func(r *rand.Rand, kind string) string {
	return func(r *rand.Rand, kind string) string {
		switch kind {
		case "key":
			if r.IntN(30) == 0 {
				return "other"
			}
			return prefix + strconv.Itoa(r.IntN(keysOfType))
		case "integer":
			switch r.IntN(10) {
			case 0:
				return strconv.FormatInt(int64(extreme(r)), 10)
			case 1, 2, 3:
				n := int64(1)
				for range r.IntN(14) {
					n *= 10
				}
				return strconv.FormatInt(n, 10)
			}
			return strconv.Itoa(r.IntN(8))
		case "unix-time":
			return strconv.FormatInt(x.now+r.Int64N(200_000)-100_000, 10)
		case "string":
			return []string{"a", "b", "c", "g", "every", "cron", "a#1", "b#1", "1", "5-5", "*", "$", ">", "0", "7-1", "@daily", "Europe/Berlin", "HOUR", "DAY", "f"}[r.IntN(20)]
		}
		return documented{}.value(r, kind)
	}
}

// batch sends some random commands as one transaction, in which none waits.
func (x *closed) batch() (sent int) {
	var out []byte
	commands := [][]string{{"MULTI"}}
	for len(commands) <= closedBatch {
		d := x.docs[x.r.IntN(len(x.docs))]
		args := d.appendArguments(x.r, append([]string(nil), d.name...), d.args)
		if slices.Contains(args, "EXPIRE") && (slices.Contains(args, "EVERY") || slices.Contains(args, "CRON")) {
			continue // each occurrence of the next centuries would expire by itself
		}
		commands = append(commands, args)
	}
	commands = append(commands, []string{"EXEC"})
	for _, args := range commands {
		x.say(args...)
		out = peer.AppendCommand(out, args...)
	}
	if err := x.c.SendRaw(out); err != nil {
		x.fail("%v", err)
	}
	for range commands {
		if _, err := x.c.Receive(); err != nil {
			x.fail("%v", err)
		}
	}
	return closedBatch
}

// step moves the clock, mostly by little and forward.
func (x *closed) step() {
	if x.r.IntN(20) == 0 {
		x.now = []int64{0, 1, 1_700_000_000_000, 1_700_000_000_000 + x.r.Int64N(1e12), 253_402_300_000_000}[x.r.IntN(5)]
		x.ok("LKV.CLOCK", "FREEZE", strconv.FormatInt(x.now, 10))
		return
	}
	x.advance()
}

// advance moves the clock forward, mostly by little.
func (x *closed) advance() {
	ms := x.r.Int64N(1000)
	if x.r.IntN(10) == 0 {
		for range x.r.IntN(9) {
			ms *= 10
		}
	}
	if x.now+ms < 253_402_300_799_000 {
		x.now += ms
		x.ok("LKV.CLOCK", "ADVANCE", strconv.FormatInt(ms, 10))
	}
}

// writers has the commands that write be sent: some that read reply what is as long as one asks.
func (x *closed) writers() {
	writes := map[string]bool{}
	for _, v := range x.do("COMMAND", "LIST", "FILTERBY", "ACLCAT", "write").Items {
		writes[v.Text] = true
	}
	for _, d := range readDocs(x.do("COMMAND", "DOCS")) {
		if prefix, ok := groups[d.group]; ok && writes[strings.Join(d.name, "|")] {
			d.values = x.value(prefix)
			x.docs = append(x.docs, d)
		}
	}
}

// fill makes the keys.
func (x *closed) fill() {
	for _, line := range seeds {
		for i := range keysOfType {
			x.do(strings.Fields(strings.ReplaceAll(line, "#", strconv.Itoa(i)))...)
			if !strings.Contains(line, "#") {
				break
			}
		}
	}
}

// patch restores changed payloads of what there is.
func (x *closed) patch() {
	done := map[string]bool{}
	for _, prefix := range groups {
		if done[prefix] {
			continue
		}
		done[prefix] = true
		for range payloadsTried {
			key := prefix + strconv.Itoa(x.r.IntN(keysOfType))
			v := x.do("DUMP", key)
			if len(v.Text) == 0 {
				continue
			}
			p := string(changed(x.r, []byte(v.Text)))
			if x.do("RESTORE", key, "0", p, "REPLACE").Text == "OK" {
				x.kinds[prefix]++
				x.same(key)
			}
		}
	}
}

// same sees to it that what is dumped of a key is accepted again.
func (x *closed) same(key string) {
	x.t.Helper()
	x.about = key
	v := x.do("DUMP", key)
	if len(v.Text) == 0 {
		return
	}
	ttl := x.do("PEXPIRETIME", key).Text
	if ttl == "-1" {
		ttl = "0"
	}
	if got := x.do("RESTORE", again, ttl, v.Text, "REPLACE", "ABSTTL"); got.Text != "OK" {
		x.fail("what DUMP gives of %s is refused: %v\n%q", key, got, v.Text)
	}
	if !redisTypes[x.do("TYPE", key).Text] {
		return
	}
	if d := x.do("DEBUG", "DIGEST-VALUE", key, again); len(d.Items) != 2 || d.Items[0].Text != d.Items[1].Text {
		x.fail("what DUMP gives of %s is restored as something else: %v\n%q\n%q", key, d, v.Text, x.do("DUMP", again).Text)
	}
}

// again is the key that payloads are restored to.
const again = "again"

// redisTypes are those whose values are compared with what is read anew. Of the native types it is only seen to that what
// is written is accepted.
var redisTypes = map[string]bool{"string": true, "list": true, "set": true, "zset": true, "hash": true, "stream": true}

// digests are those of the first database's keys of Redis's types.
func (x *closed) digests(c *peer.Conn) map[string]string {
	x.t.Helper()
	keys, err := c.Do("KEYS", "*")
	if err != nil {
		x.fail("KEYS: %v", err)
	}
	found := map[string]string{}
	for _, k := range keys.Items {
		kind, err := c.Do("TYPE", k.Text)
		if err != nil {
			x.fail("TYPE: %v", err)
		}
		if !redisTypes[kind.Text] {
			continue
		}
		v, err := c.Do("DEBUG", "DIGEST-VALUE", k.Text)
		if err != nil || len(v.Items) != 1 {
			x.fail("DEBUG DIGEST-VALUE: %v %v", v, err)
		}
		found[k.Text] = v.Items[0].Text
	}
	return found
}

// equal sees to it that a server has what there was before.
func (x *closed) equal(what string, c *peer.Conn, want map[string]string) {
	x.t.Helper()
	got := x.digests(c)
	for key, digest := range want {
		if got[key] != digest {
			x.about = key
			v, _ := c.Do("DUMP", key)
			x.fail("%s: %s has the digest %q and not %q, and the payload\n%q", what, key, got[key], digest, v.Text)
		}
	}
	if len(got) != len(want) {
		x.fail("%s: %d keys of Redis's types and not %d", what, len(got), len(want))
	}
}

func TestClosed(t *testing.T) {
	peer.Long(t)
	seed := *seedOf
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	dir := t.TempDir()
	args := []string{"--test", "--maxmemory", "1gb", "--proto-max-bulk-len", "1mb", "--appendonly", "yes", "--appendfsync", "no", "--repl-diskless-sync-delay", "0"}
	s := peer.LimitKV(t, append(args, "--dir", dir)...)
	replica := peer.LimitKV(t, args...)
	x := &closed{t: t, r: rand.New(rand.NewPCG(seed, 0)), c: s.Dial(t), kinds: map[string]int{}, now: 1_700_000_000_000}
	x.writers()
	x.ok("LKV.CLOCK", "FREEZE", strconv.FormatInt(x.now, 10))
	follower, digested := replica.Dial(t), 0
	for round, end := 0, time.Now().Add(*lasts); round < closedRounds || time.Now().Before(end); round++ {
		for sent := 0; sent < closedSteps; {
			if sent%500 == 0 {
				x.fill()
				x.patch()
			}
			sent += x.batch()
			if x.r.IntN(4) == 0 {
				x.step()
			}
		}
		for _, k := range x.do("KEYS", "*").Items {
			x.same(k.Text)
		}
		want := x.digests(x.c)
		digested += len(want)
		x.ok("SAVE")
		x.ok("DEBUG", "RELOAD")
		x.equal("the snapshot", x.c, want)
		x.rewrite()
		x.ok("DEBUG", "LOADAOF")
		x.equal("the log", x.c, want)
		x.follow(follower, s.Addr, want)
		if !s.Alive() || !replica.Alive() {
			x.fail("a server ended:\n%s\n%s", s.Output(), replica.Output())
		}
	}
	t.Logf("changed payloads that were taken: %v; %d values were read anew", x.kinds, digested)
	if digested < closedRounds*len(groups) {
		t.Errorf("only %d values were read anew", digested)
	}
	for _, prefix := range groups {
		if x.kinds[prefix] == 0 {
			t.Errorf("no changed payload of %s was taken", prefix)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "dump.rdb")); err != nil {
		t.Error(err)
	}
}

// within waits until something is so.
func (x *closed) within(what string, is func() bool) {
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			x.fail("%s: not within 30 s", what)
		}
	}
}

func (x *closed) rewrite() {
	x.do("BGREWRITEAOF")
	x.within("the rewrite of the log", func() bool {
		v, err := x.c.Do("INFO", "persistence")
		return err == nil && strings.Contains(v.Text, "aof_rewrite_in_progress:0") && strings.Contains(v.Text, "aof_rewrite_scheduled:0")
	})
	if v := x.do("INFO", "persistence").Text; !strings.Contains(v, "aof_last_bgrewrite_status:ok") {
		x.fail("the rewrite failed:\n%s", v)
	}
}

// follow has a server synchronise, which then is none any more.
func (x *closed) follow(to *peer.Conn, addr string, values map[string]string) {
	// What is due by the follower's clock would not be seen there.
	if v, err := to.Do("LKV.CLOCK", "FREEZE", strconv.FormatInt(x.now, 10)); err != nil || v.Text != "OK" {
		x.fail("LKV.CLOCK: %v %v", v, err)
	}
	host, port, _ := strings.Cut(addr, ":")
	if v, err := to.Do("REPLICAOF", host, port); err != nil || v.Text != "OK" {
		x.fail("REPLICAOF: %v %v", v, err)
	}
	x.within("the synchronisation", func() bool {
		v, err := to.Do("INFO", "replication")
		return err == nil && strings.Contains(v.Text, "master_link_status:up")
	})
	want := x.do("DBSIZE")
	if v, err := to.Do("DBSIZE"); err != nil || v.Text != want.Text {
		x.fail("the replica has %v keys of %v, %v", v, want, err)
	}
	x.equal("the replica", to, values)
	if v, err := to.Do("REPLICAOF", "NO", "ONE"); err != nil || v.Text != "OK" {
		x.fail("REPLICAOF NO ONE: %v %v", v, err)
	}
}
