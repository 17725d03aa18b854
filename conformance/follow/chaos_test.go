package follow

// Chaos: some servers of limitkv, one of Redis and one of Valkey follow each other in chains that change, over links that
// are cut, slow, late and stand still. Meanwhile replicas are killed, in the middle of loading too, servers stand still, a
// primary comes back with an older file, another one takes its place while it goes on, and settings change. After each
// round the links are well, and all who follow are to have what the primary has. What clients were told is there, or was
// lost as docs/replication.md says: the end of it, when another server became the primary without waiting for it.

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
	"github.com/limitkv/limitkv/conformance/sequence"
)

var (
	chaosFor  = flag.Duration("chaos", 20*time.Second, "how long chaos lasts")
	chaosKeys = flag.Int("keys", 0, "how many keys of all types chaos works on, besides those that it is always about")
)

// member is a server and the links by which it follows others.
type member struct {
	*node
	name   string
	native bool // it knows limitkv's own types
	logs   bool // with appendfsync always: nothing that was told is lost by a restart
	links  map[*member]*link
	up     *member // whom it is told to follow, nil for the primary
	// whole: it has had all that its primary has since it was started.
	whole         bool
	full, partial count
}

// count is a counter of INFO, which begins anew with the process.
type count struct{ before, now int }

func (c *count) saw(text string) { _, _ = fmt.Sscan(text, &c.now) }
func (c *count) restarted()      { c.before, c.now = c.before+c.now, 0 }

type chaos struct {
	t       *testing.T
	r       *rand.Rand
	calm    atomic.Bool
	cuts    atomic.Int64
	all     []*member
	lead    atomic.Pointer[member]
	ledgers []*ledger

	lost, killed, loading, changed, twins, older, failovers, rounds int
}

func (c *chaos) log(format string, args ...any) { c.t.Logf(format, args...) }

func (c *chaos) add(name, bin, config string, native bool) *member {
	m := &member{name: name, native: native, links: map[*member]*link{}}
	m.node = newNode(c.t, bin, name+".conf", "save \"\"\nenable-debug-command yes\nrepl-ping-replica-period 1\nrepl-diskless-sync-delay 0\n"+config)
	m.start()
	c.all = append(c.all, m)
	return m
}

// follow has a server follow another one.
func (c *chaos) follow(m, up *member) {
	l := m.links[up]
	if l == nil {
		l = newLink(c.t, up.addr, rand.New(rand.NewPCG(c.r.Uint64(), 7)), &c.calm, &c.cuts)
		m.links[up] = l
	}
	m.up, m.whole = up, false
	peer.Eventually(c.t, m.name+" takes REPLICAOF", func() bool { return !c.say(m, "REPLICAOF", "127.0.0.1", l.port()).IsError() }) // it may load
}

// say sends a command and returns the reply, an error where there is none within some time.
func (c *chaos) say(m *member, args ...string) peer.Value {
	conn, err := peer.Dial(m.addr)
	if err != nil {
		return peer.Value{Kind: '-', Text: err.Error()}
	}
	defer conn.Close()
	_ = conn.Send(args...)
	v, err := conn.ReceiveWithin(peer.ReplyTimeout)
	if err != nil {
		return peer.Value{Kind: '-', Text: err.Error()}
	}
	return v
}

// look notes what a server tells of itself.
func (c *chaos) look(m *member) string {
	text := c.say(m, "INFO", "everything").Text
	m.full.saw(peer.Field(text, "sync_full"))
	m.partial.saw(peer.Field(text, "sync_partial_ok"))
	if m.up != nil && peer.Field(text, "master_link_status") == "up" {
		m.whole = true
	}
	return text
}

// below tells whether a server follows another one, perhaps through others.
func below(m, top *member) bool {
	for ; m != nil; m = m.up {
		if m == top {
			return true
		}
	}
	return false
}

// pick draws one of the members for which a condition holds, nil if there is none.
func (c *chaos) pick(so func(m *member) bool) *member {
	var list []*member
	for _, m := range c.all {
		if so(m) {
			list = append(list, m)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[c.r.IntN(len(list))]
}

func (c *chaos) follows(m *member) bool { return m.up != nil }

// restart kills a server and starts it again, from what it has on its disk.
func (c *chaos) restart(m *member) {
	if text := c.look(m); peer.Field(text, "loading") == "1" || peer.Field(text, "master_sync_in_progress") == "1" {
		c.loading++
	}
	m.kill()
	c.killed++
	m.full.restarted()
	m.partial.restarted()
	m.start()
	peer.Eventually(c.t, "the start of "+m.name, func() bool { return peer.Field(c.say(m, "INFO", "persistence").Text, "loading") == "0" })
	if m.up != nil {
		c.follow(m, m.up)
	}
}

const olderFile = "an older file"

// held runs something while no client writes to its ledger, and compares the ledgers with what the primary has then.
func (c *chaos) held(what string, safe bool, fn func()) {
	for _, l := range c.ledgers {
		l.mu.Lock()
		defer l.mu.Unlock()
	}
	fn()
	lead := c.lead.Load()
	for _, l := range c.ledgers {
		conn := lead.dial()
		conn.Must(c.t, "SELECT", ledgerDB)
		lost := l.check(what, what == olderFile, conn.Must(c.t, "LRANGE", l.key, "0", "-1"))
		conn.Close()
		if lost > 0 && safe {
			c.t.Errorf("%s: %s lost %d numbers, and nothing had happened by which it may", what, l.key, lost)
		}
		c.lost += lost
	}
}

// promote makes another server the primary, whatever it has.
func (c *chaos) promote(to *member, how string, stay time.Duration) {
	was := c.lead.Load()
	c.log("%s takes the place of %s: %s", to.name, was.name, how)
	c.held(how, false, func() {
		if how == "killed" {
			was.kill()
			was.full.restarted()
			was.partial.restarted()
		}
		c.say(to, "REPLICAOF", "NO", "ONE")
		peer.Eventually(c.t, "its role", func() bool { return to.field("role") == "master" && to.field("loading") == "0" })
		to.up = nil
		c.lead.Store(to)
	})
	c.changed++
	if how == "apart" { // clients go on at both
		c.twins++
		conn := was.dial()
		for end := time.Now().Add(stay); time.Now().Before(end); {
			for _, step := range append(others(c.r), natives(c.r)...) {
				_, _ = conn.Do(step.Args...)
			}
		}
		conn.Close()
	}
	if how == "killed" {
		was.start()
		peer.Eventually(c.t, "the start of "+was.name, func() bool { return was.field("loading") == "0" })
	}
	for _, m := range c.all {
		if m != to && (m == was || m.up == was && c.r.IntN(2) == 0) {
			c.follow(m, to)
		}
	}
	for _, m := range c.all { // who was above it, and follows those that follow it now
		if m != to && !below(m, to) {
			c.follow(m, to)
		}
	}
}

// failover has the primary change places with a replica of its own, by FAILOVER, and loses nothing.
func (c *chaos) failover(to *member) {
	was := c.lead.Load()
	_, port, _ := strings.Cut(to.addr, ":")
	if v := c.say(was, "FAILOVER", "TO", "127.0.0.1", port, "TIMEOUT", "2000"); v.Text != "OK" {
		return // it is not there just now
	}
	peer.Eventually(c.t, "the end of a failover", func() bool { return was.field("master_failover_state") == "no-failover" })
	peer.Eventually(c.t, "one primary", func() bool { return (was.field("role") == "slave") != (to.field("role") == "slave") })
	if was.field("role") != "slave" {
		return
	}
	c.log("%s takes the place of %s by FAILOVER", to.name, was.name)
	c.held("FAILOVER", true, func() {
		to.up = nil
		c.lead.Store(to)
	})
	c.failovers++
	c.follow(was, to)
}

// act does one thing.
func (c *chaos) act() {
	lead := c.lead.Load()
	switch n := c.r.IntN(40); {
	case n < 8:
		if m := c.pick(c.follows); m != nil && m.links[m.up] != nil {
			m.links[m.up].cut()
		}
	case n < 12:
		if m := c.pick(c.follows); m != nil && m.links[m.up] != nil {
			m.links[m.up].stall(time.Duration(c.r.IntN(2500)) * time.Millisecond)
		}
	case n < 18:
		c.restart(c.pick(c.follows))
	case n < 20:
		m := c.pick(func(*member) bool { return true })
		m.signal(peer.SIGSTOP)
		time.Sleep(time.Duration(c.r.IntN(1000)) * time.Millisecond)
		m.signal(peer.SIGCONT)
	case n < 26:
		m := c.pick(c.follows)
		if up := c.pick(func(up *member) bool { return up.native && !below(up, m) }); up != nil {
			c.follow(m, up)
		}
	case n < 31:
		m := c.pick(func(*member) bool { return true })
		set := [][]string{
			{"repl-backlog-size", fmt.Sprint(16 << 10 << c.r.IntN(9))}, {"repl-diskless-sync", "yes"}, {"repl-diskless-sync", "no"},
			{"repl-diskless-load", "disabled"}, {"repl-diskless-load", "swapdb"}, {"repl-diskless-load", "on-empty-db"},
			{"client-output-buffer-limit", "replica 1mb 0 0"}, {"client-output-buffer-limit", "replica 0 0 0"},
		}[c.r.IntN(8)]
		c.say(m, append([]string{"CONFIG", "SET"}, set...)...)
	case n < 33:
		c.say(c.pick(func(*member) bool { return true }), "CLIENT", "KILL", "TYPE", []string{"replica", "master"}[c.r.IntN(2)])
	case n < 35:
		if to := c.pick(func(m *member) bool { return m.native && m.up == lead }); to != nil {
			c.failover(to)
		}
	case n < 38:
		// One that is of the same history: others may not know yet that the primary has come back with an older file.
		id := peer.Field(c.look(lead), "master_replid")
		to := c.pick(func(m *member) bool {
			text := c.look(m)
			return m.native && m.up != nil && m.whole && peer.Field(text, "master_link_status") == "up" && peer.Field(text, "master_replid") == id
		})
		if to != nil {
			c.promote(to, []string{"killed", "apart", "at once"}[c.r.IntN(3)], time.Duration(c.r.IntN(300))*time.Millisecond)
		}
	case n < 39:
		c.say(lead, "SAVE")
	default:
		// A log that is just being begun, as after a full synchronisation, has nothing to come back with.
		text := c.look(lead)
		logs := lead.logs && peer.Field(text, "aof_rewrite_in_progress") == "0" && peer.Field(text, "aof_rewrite_scheduled") == "0"
		c.held(olderFile, logs, func() {
			c.restart(lead)
			c.older++
		})
		c.log("%s comes back with an older file", lead.name)
	}
}

// write sends random commands to the primary until stopped.
func (c *chaos) write(r *rand.Rand, stop chan struct{}, sent *atomic.Int64) {
	for {
		lead := c.lead.Load()
		conn, err := peer.Dial(lead.addr)
		for err == nil && lead == c.lead.Load() {
			steps := natives(r)
			switch r.IntN(3) {
			case 0:
				steps = others(r)
			case 1:
				steps = sequence.Families[r.IntN(len(sequence.Families))].Round(r.Uint64(), 60)
			}
			_, _ = conn.Do("RESET")
			for _, step := range steps {
				if uneven(step.Args) || unevenLater(step.Args) {
					continue
				}
				if _, err = conn.Do(step.Args...); err != nil {
					break
				}
				sent.Add(1)
			}
			select {
			case <-stop:
				conn.Close()
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
		if conn != nil {
			conn.Close()
		}
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// unevenLater tells whether a command leaves what Valkey's replicas keep or tell otherwise.
func unevenLater(args []string) bool {
	text := strings.Join(args, " ")
	for _, name := range []string{"HEXPIRE", "HPEXPIRE", "HSETEX", "HGETEX", "HPERSIST", "HGETDEL"} {
		if strings.Contains(text, name) {
			return true
		}
	}
	return strings.Contains(strings.ReplaceAll(text, "-0.", ""), "-0") // a small sorted set has no sign of zero
}

// same waits until a server has what the one has that it follows, by all ways, and compares.
func (c *chaos) same(m *member) {
	up, down := m.up.dial(), m.dial()
	defer up.Close()
	defer down.Close()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		of, at := up.Must(c.t, "INFO", "replication").Text, down.Must(c.t, "INFO", "replication").Text
		if peer.Field(at, "master_link_status") == "up" && peer.Field(of, "master_repl_offset") == peer.Field(at, "slave_repl_offset") {
			break
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s does not come to where %s is, within %v:\n%s\n%s\nthe log of %[2]s:\n%[6]s\nthe log of %[1]s:\n%[7]s", m.name, m.up.name, patience, of, at,
				m.up.out, m.out)
		}
	}
	equal(c.t, up, down)
	if c.t.Failed() {
		c.t.Logf("that is %s, which follows %s", m.name, m.up.name)
	}
}

// settle has the links be well, and compares everybody.
func (c *chaos) settle() {
	c.calm.Store(true)
	defer c.calm.Store(false)
	time.Sleep(soonest)
	c.held("at the end of a round", true, func() {
		each := func(native bool) {
			for _, m := range c.all {
				if m.up != nil && m.native == native {
					c.same(m)
				}
			}
		}
		each(true)
		for db := range 3 {
			conn := c.lead.Load().dial()
			conn.Must(c.t, "SELECT", fmt.Sprint(db))
			for _, k := range conn.Must(c.t, "KEYS", "n:*").Items {
				conn.Must(c.t, "DEL", k.Text)
			}
			conn.Close()
		}
		each(false)
	})
	for _, m := range c.all {
		text := c.look(m)
		if out := m.out.String(); strings.Contains(out, "CRITICAL") || strings.Contains(out, "panic") {
			c.t.Errorf("%s: %s", m.name, out)
		}
		if (peer.Field(text, "role") == "master") != (m.up == nil) {
			c.t.Errorf("%s has the role %s", m.name, peer.Field(text, "role"))
		}
	}
	c.rounds++
}

// fill writes to the many keys of all types, one in a thousand a large one, at the primary.
func (c *chaos) fill() {
	conn := c.lead.Load().dial()
	defer conn.Close()
	for range *chaosKeys {
		k, n := c.r.IntN(max(1, *chaosKeys/10)), 1+c.r.IntN(20)
		if c.r.IntN(1000) == 0 {
			n = 3000
		}
		kinds := []string{"SET", "APPEND", "HSET", "RPUSH", "SADD", "ZADD", "XADD", "PFADD", "DQ.ADD", "RL.ACQUIRE", "LK.ACQUIRE", "DEL"}
		kind := kinds[c.r.IntN(len(kinds))]
		args := []string{kind, fmt.Sprintf("many:%s:%d", kind, k)}
		if strings.Contains(kind, ".") {
			args[1] = "n:" + args[1] // as all that others do not know
		}
		switch kind {
		case "SET":
			args = append(args, strings.Repeat("v", n), "EX", fmt.Sprint(3600+n))
		case "APPEND":
			args = append(args, strings.Repeat("w", n))
		case "XADD":
			args = append(args, "*", "n", fmt.Sprint(n))
		case "DQ.ADD":
			args = append(args, "DELAY", "3600000", strings.Repeat("x", n))
		case "RL.ACQUIRE":
			args = append(args, "1", []string{"FIXED", "LOG", "GCRA"}[c.r.IntN(3)], "50", "2592000000") // idle after half a day at the earliest
		case "LK.ACQUIRE":
			args = append(args, fmt.Sprint("o", n), "3600000")
		case "DEL":
			kind = kinds[c.r.IntN(8)]
			args[1] = fmt.Sprintf("many:%s:%d", kind, k)
		default:
			for range n {
				member := fmt.Sprint(c.r.IntN(100_000))
				if kind == "HSET" || kind == "ZADD" {
					args = append(args, member)
				}
				args = append(args, member)
			}
		}
		if v := conn.Must(c.t, args...); v.IsError() {
			c.t.Fatalf("%.100q: %v", args, v)
		}
	}
}

// load has two clients write until it is stopped.
func (c *chaos) load(sent *atomic.Int64) (stop func()) {
	ended := make(chan struct{})
	var writers sync.WaitGroup
	for i := range 2 {
		r := rand.New(rand.NewPCG(c.r.Uint64(), uint64(i)))
		writers.Go(func() { c.write(r, ended, sent) })
	}
	stop = sync.OnceFunc(func() { close(ended); writers.Wait() })
	c.t.Cleanup(stop)
	return stop
}

func TestChaos(t *testing.T) {
	peer.Long(t)
	c := &chaos{t: t, r: seeded(t)}
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		logs := i >= 2
		config := "repl-timeout 3\nrepl-backlog-size " + fmt.Sprint(16<<10<<c.r.IntN(9)) + "\n"
		if logs {
			config += "appendonly yes\nappendfsync " + []string{"everysec", "always"}[i-2] + "\n"
		}
		c.add(fmt.Sprint("limitkv-", i), bin, config, true).logs = i == 3
	}
	for _, other := range []string{"REDIS_SERVER", "VALKEY_SERVER"} {
		if bin := os.Getenv(other); bin != "" {
			c.add(strings.ToLower(other), bin, "repl-timeout 3\n", false)
		} else if other == "REDIS_SERVER" && *required {
			t.Fatal(peer.ErrNoOracle)
		}
	}
	lead := c.all[c.r.IntN(4)]
	c.lead.Store(lead)
	conn := lead.dial()
	for _, args := range libraries {
		conn.Must(t, args...)
	}
	conn.Close()
	for _, m := range c.all {
		if m != lead {
			c.follow(m, lead)
		}
	}
	for i := range 2 {
		c.ledgers = append(c.ledgers, openLedger(t, fmt.Sprint("ledger:", i), &c.lead))
		defer c.ledgers[i].close()
	}
	var sent atomic.Int64
	for end := time.Now().Add(*chaosFor); time.Now().Before(end) && !t.Failed(); {
		c.say(c.lead.Load(), "EVAL", "for i = 1, ARGV[1] do redis.call('SETNX', 'filler:' .. i, string.rep('v', 50)) end", "0", fmt.Sprint(c.r.IntN(20_000)))
		c.fill()
		stop := c.load(&sent)
		for next := time.Now().Add(min(10*time.Second, *chaosFor/2)); time.Now().Before(next); time.Sleep(time.Duration(c.r.IntN(300)) * time.Millisecond) {
			c.act()
			c.look(c.all[c.r.IntN(len(c.all))])
		}
		stop()
		c.settle()
	}
	full, partial, told, fences := 0, 0, 0, 0
	for _, m := range c.all {
		full += m.full.before + m.full.now
		partial += m.partial.before + m.partial.now
	}
	for _, l := range c.ledgers {
		l.mu.Lock()
		told += l.n
		fences += l.fences
		l.mu.Unlock()
	}
	t.Logf("%d rounds, %d commands; %d full synchronisations, %d partial ones; %d cuts, %d kills, %d of them while loading; "+
		"%d changes of the primary, %d with two for a while, %d by FAILOVER, %d older files; %d numbers and %d fences, %d numbers lost",
		c.rounds, sent.Load(), full, partial, c.cuts.Load(), c.killed, c.loading, c.changed, c.twins, c.failovers, c.older, told, fences, c.lost)
	if c.rounds == 0 || full < 6 || partial == 0 || c.cuts.Load() < 3 || sent.Load() < 1000 || told < 100 || fences == 0 {
		t.Error("that is too little to show anything")
	}
}
