// Package crash, internal to the server's tests, ends the real server the hard way, kill -9 under load, starts it
// again on its directory, and compares what is there with what was acknowledged. A load is a few connections that own
// their keys, so that what each of them must find is known exactly.
package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// kind is what a connection asks for: each counts up something of its own.
type kind int

const (
	incr  kind = iota // INCR of a key
	push              // RPUSH of 0, 1, 2 …
	hset              // HSET of fields 0, 1, 2 …
	add               // DQ.ADD of the ids 0, 1, 2 …
	pop               // DQ.POP with a lease
	ack               // DQ.ACK of what was popped, in order
	take              // RL.ACQUIRE
	hold              // LK.ACQUIRE of the owners 0, 1, 2 … , who hold it together
	let               // LK.RELEASE by the owners 0, 1, 2 …
	multi             // MULTI, INCR, RPUSH, EXEC: two keys
	eval              // a script that writes two keys
	sadd              // SADD of 0, 1, 2 …
	zadd              // ZADD of 0, 1, 2 …, by themselves
	xadd              // XADD of the ids 1-1, 2-1 …
	all               // INCR of the key that all connections share
	kinds
)

var kindNames = [kinds]string{"INCR", "RPUSH", "HSET", "DQ.ADD", "DQ.POP", "DQ.ACK", "RL.ACQUIRE", "LK.ACQUIRE", "LK.RELEASE", "EXEC", "EVAL",
	"SADD", "ZADD", "XADD", "INCR of all"}

// granted is the limiter's count: more than any test takes, in a window longer than any.
const granted = 1_000_000_000

const script = "redis.call('INCR', KEYS[1]) redis.call('RPUSH', KEYS[2], ARGV[1]) return 1"

// sharedKey is what all connections increment.
const sharedKey = "shared"

// Counts are how many of each kind there are.
type Counts [kinds]int

// worker is a connection's load.
type worker struct {
	id   int
	mu   sync.Mutex
	base Counts // what was there when the round began
	sent Counts
	// acked are those whose reply came.
	acked Counts
	order []kind // of what was sent in this round
	seen  int    // the most that a reply told of the shared key
	fence int    // the last that a reply told, in whatever round
	fault error  // a reply that must not be
}

func (w *worker) key(name string) string { return name + ":" + strconv.Itoa(w.id) }

// entry is the id of a queue's entry. Entries that are due at the same time come in the order of their ids.
func entry(n int) string { return fmt.Sprintf("%09d", n) }

// append writes the commands of the next request of a kind, and returns how many replies it has.
func (w *worker) append(b []byte, k kind) ([]byte, int) {
	n := strconv.Itoa(w.sent[k])
	switch k {
	case incr:
		return peer.AppendCommand(b, "INCR", w.key("count")), 1
	case push:
		return peer.AppendCommand(b, "RPUSH", w.key("list"), n), 1
	case hset:
		return peer.AppendCommand(b, "HSET", w.key("hash"), n, n), 1
	case add:
		return peer.AppendCommand(b, "DQ.ADD", w.key("queue"), "ID", entry(w.sent[k]), "payload "+entry(w.sent[k])), 1
	case pop:
		return peer.AppendCommand(b, "DQ.POP", w.key("queue"), "LEASE", "3600000"), 1
	case ack:
		return peer.AppendCommand(b, "DQ.ACK", w.key("queue"), entry(w.sent[k])+"#1"), 1
	case take:
		return peer.AppendCommand(b, "RL.ACQUIRE", w.key("limit"), "1", "FIXED", strconv.Itoa(granted), "36000000"), 1
	case hold:
		return peer.AppendCommand(b, "LK.ACQUIRE", w.key("lock"), entry(w.sent[k]), "36000000", "SHARED"), 1
	case let:
		return peer.AppendCommand(b, "LK.RELEASE", w.key("lock"), entry(w.sent[k])), 1
	case multi:
		b = peer.AppendCommand(b, "MULTI")
		b = peer.AppendCommand(b, "INCR", w.key("one"))
		b = peer.AppendCommand(b, "RPUSH", w.key("two"), n)
		return peer.AppendCommand(b, "EXEC"), 4
	case eval:
		return peer.AppendCommand(b, "EVAL", script, "2", w.key("first"), w.key("second"), n), 1
	}
	switch k {
	case sadd:
		return peer.AppendCommand(b, "SADD", w.key("set"), n), 1
	case zadd:
		return peer.AppendCommand(b, "ZADD", w.key("zset"), n, n), 1
	case xadd:
		return peer.AppendCommand(b, "XADD", w.key("stream"), strconv.Itoa(w.sent[k]+1)+"-1", "n", n), 1
	}
	return peer.AppendCommand(b, "INCR", sharedKey), 1
}

// pick is a kind that has its effect if all before it had. The queue is never emptied: its totals would go with it. Nor is
// the lock: of one that is free nothing is left.
func (w *worker) pick(r *rand.Rand) kind {
	for {
		k := kind(r.IntN(int(kinds)))
		if k == let && w.sent[let]+1 >= w.sent[hold] || k == pop && w.sent[pop] >= w.sent[add] || k == ack && (w.sent[ack] >= w.sent[pop] || w.sent[ack]+1 >= w.sent[add]) {
			continue
		}
		return k
	}
}

// run sends requests, up to pipeline at a time, until the server is gone.
func (w *worker) run(addr string, seed uint64, pipeline int) {
	r := rand.New(rand.NewPCG(seed, uint64(w.id)))
	c, err := peer.Dial(addr)
	if err != nil {
		return
	}
	defer c.Close()
	for {
		var b []byte
		var batch []kind
		var replies []int
		w.mu.Lock()
		for range 1 + r.IntN(pipeline) {
			k := w.pick(r)
			var n int
			b, n = w.append(b, k)
			w.sent[k]++
			w.order = append(w.order, k)
			batch, replies = append(batch, k), append(replies, n)
		}
		w.mu.Unlock()
		if c.SendRaw(b) != nil {
			return
		}
		for i, k := range batch {
			for range replies[i] {
				v, err := c.Receive()
				if err != nil {
					return
				}
				if !w.take(k, v) {
					return
				}
			}
			w.mu.Lock()
			w.acked[k]++
			w.mu.Unlock()
		}
	}
}

// take looks at a reply, and says whether it may be.
func (w *worker) take(k kind, v peer.Value) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.IsError() || v.Null {
		w.fault = fmt.Errorf("%s is answered with %v", kindNames[k], v)
		return false
	}
	switch k {
	case all:
		n, _ := strconv.Atoi(v.Text)
		w.seen = max(w.seen, n)
	case hold:
		fence, _ := strconv.Atoi(v.Items[1].Text)
		if v.Items[0].Text != "1" || fence <= w.fence {
			w.fault = fmt.Errorf("LK.ACQUIRE is answered with %v after the fence %d", v, w.fence)
			return false
		}
		w.fence = fence
	case let:
		if v.Text != "1" {
			w.fault = errors.New("LK.RELEASE of what is held is refused")
			return false
		}
	}
	return true
}

// counts is a copy of what was acknowledged so far.
func (w *worker) counts() Counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acked
}

// recovered reads what there is of a connection's keys. What cannot be is an error.
func (w *worker) recovered(c *peer.Conn) (got Counts, err error) {
	do := func(args ...string) peer.Value {
		v, e := c.Do(args...)
		if err == nil && e != nil {
			err = e
		} else if err == nil && v.IsError() {
			err = fmt.Errorf("%v: %v", args, v)
		}
		return v
	}
	number := func(v peer.Value) int {
		n, _ := strconv.Atoi(v.Text) // a key that is not there is 0
		return n
	}
	list := func(name string) int {
		items := do("LRANGE", w.key(name), "0", "-1").Items
		for i, v := range items {
			if v.Text != strconv.Itoa(i) && err == nil {
				err = fmt.Errorf("%s has %q at place %d", w.key(name), v.Text, i)
			}
		}
		return len(items)
	}
	got[incr] = number(do("GET", w.key("count")))
	got[push] = list("list")
	got[hset] = number(do("HLEN", w.key("hash")))
	if n := got[hset]; n > 0 && do("HGET", w.key("hash"), strconv.Itoa(n-1)).Text != strconv.Itoa(n-1) && err == nil {
		err = fmt.Errorf("%s has %d fields, but not the field %d", w.key("hash"), n, n-1)
	}
	got[sadd], got[zadd] = number(do("SCARD", w.key("set"))), number(do("ZCARD", w.key("zset")))
	last := do("ZRANGE", w.key("zset"), "-1", "-1", "WITHSCORES").Items
	if n := strconv.Itoa(got[zadd] - 1); got[zadd] > 0 && err == nil && (len(last) != 2 || last[0].Text != n || last[1].Text != n) {
		err = fmt.Errorf("%s has %d members, of which the last is %v", w.key("zset"), got[zadd], last)
	}
	got[xadd] = number(do("XLEN", w.key("stream")))
	newest := do("XREVRANGE", w.key("stream"), "+", "-", "COUNT", "1").Items
	if got[xadd] > 0 && err == nil && (len(newest) != 1 || newest[0].Items[0].Text != strconv.Itoa(got[xadd])+"-1") {
		err = fmt.Errorf("%s has %d entries, of which the last is %v", w.key("stream"), got[xadd], newest)
	}
	one, first := number(do("GET", w.key("one"))), number(do("GET", w.key("first")))
	got[multi], got[eval] = list("two"), list("second")
	if (one != got[multi] || first != got[eval]) && err == nil {
		err = fmt.Errorf("of what an EXEC writes there are %d and %d, of a script's %d and %d", one, got[multi], first, got[eval])
	}
	if number(do("EXISTS", w.key("limit"))) == 1 {
		info := pairs(do("RL.INFO", w.key("limit")))
		got[take] = granted - number(info["available"])
	}
	if info := pairs(do("LK.INFO", w.key("lock"))); number(info["held"]) > 0 {
		got[let], _ = strconv.Atoi(info["holders"].Items[0].Items[0].Text)
		got[hold] = got[let] + number(info["held"])
	}
	if e := w.queue(do, &got); err == nil {
		err = e
	}
	return got, err
}

// queue reads the delay queue: what was popped is leased, at its first attempt, unless it was acked.
func (w *worker) queue(do func(args ...string) peer.Value, got *Counts) error {
	if do("EXISTS", w.key("queue")).Text != "1" {
		return nil
	}
	info := pairs(do("DQ.INFO", w.key("queue")))
	n := func(name string) int {
		n, _ := strconv.Atoi(info[name].Text)
		return n
	}
	got[add], got[pop], got[ack] = n("added"), n("delivered"), n("acked")
	if n("ready") != got[add]-got[pop] || n("leased") != got[pop]-got[ack] || n("delayed")+n("dying")+n("expired") > 0 {
		return fmt.Errorf("%s is %v", w.key("queue"), info)
	}
	items := do("DQ.PEEK", w.key("queue"), "COUNT", strconv.Itoa(got[add]+1)).Items
	if len(items) != got[add]-got[ack] {
		return fmt.Errorf("%s shows %d entries, not %d", w.key("queue"), len(items), got[add]-got[ack])
	}
	there := map[string]peer.Value{}
	for _, item := range items {
		there[item.Items[0].Text] = item
	}
	for i := got[ack]; i < got[add]; i++ {
		id, tries := entry(i), "0"
		payload := "payload " + id
		if i < got[pop] {
			id, tries = id+"#1", "1"
		}
		item, ok := there[id]
		if !ok || item.Items[1].Text != payload || item.Items[3].Text != tries {
			return fmt.Errorf("%s has %v for %s", w.key("queue"), item, id)
		}
	}
	return nil
}

func pairs(v peer.Value) map[string]peer.Value {
	m := map[string]peer.Value{}
	for i := 0; i+1 < len(v.Items); i += 2 {
		m[v.Items[i].Text] = v.Items[i+1]
	}
	return m
}

// check compares what is there with what was sent and with what has to be there at least. A log is cut at one place: of
// what a connection sent one part is there, up to some request, and nothing behind it.
func (w *worker) check(got, least Counts) error {
	if w.fault != nil {
		return w.fault
	}
	for k := range all {
		if got[k] < least[k] || got[k] > w.sent[k] {
			return fmt.Errorf("connection %d: of %s there are %d; %d were acknowledged, %d sent", w.id, kindNames[k], got[k], least[k], w.sent[k])
		}
	}
	n, last := w.base, 0
	for i, k := range w.order {
		if n[k]++; k != all && n[k] <= got[k] {
			last = i + 1
		}
	}
	n = w.base
	for _, k := range w.order[:last] {
		n[k]++
	}
	n[all], got[all] = 0, 0
	if n != got {
		return fmt.Errorf("connection %d: %v is there, but the log up to the last request has %v", w.id, got, n)
	}
	return nil
}

// begin starts a round from what is there.
func (w *worker) begin(got Counts) {
	w.base, w.sent, w.acked = got, got, got
	w.order, w.seen, w.fault = nil, 0, nil
}

// Load is all connections.
type Load struct {
	workers []*worker
	shared  int // what was there when the round began
	wg      sync.WaitGroup
	history []moment
}

// moment is what was acknowledged at a time.
type moment struct {
	at     time.Time
	counts []Counts
}

// NewLoad makes a load of so many connections.
func NewLoad(connections int) *Load {
	l := &Load{}
	for i := range connections {
		l.workers = append(l.workers, &worker{id: i})
	}
	return l
}

// Start sends requests to a server until it is gone. Every other connection sends many at a time.
func (l *Load) Start(addr string, seed uint64) {
	l.history = nil
	l.note()
	for i, w := range l.workers {
		l.wg.Add(1)
		go func() {
			defer l.wg.Done()
			w.run(addr, seed, 1+15*(i%2))
		}()
	}
}

// note notes what is acknowledged by now.
func (l *Load) note() {
	m := moment{at: time.Now()}
	for _, w := range l.workers {
		m.counts = append(m.counts, w.counts())
	}
	l.history = append(l.history, m)
}

// Wait waits until all connections are closed.
func (l *Load) Wait() { l.wg.Wait() }

// Acknowledged is how many requests of this round were.
func (l *Load) Acknowledged() (n int) {
	for _, w := range l.workers {
		for k := range kinds {
			n += w.acked[k] - w.base[k]
		}
	}
	return n
}

// Check compares what a server has with the load, of which it must have all that was acknowledged before a time, and
// begins the next round with it. It returns how many acknowledged requests are gone.
func (l *Load) Check(addr string, before time.Time) (lost int, err error) {
	c, err := peer.Dial(addr)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	v, err := c.Do("GET", sharedKey)
	if err != nil {
		return 0, err
	}
	shared, _ := strconv.Atoi(v.Text)
	whole := before.IsZero()
	least, most, seen := l.shared, l.shared, 0
	for i, w := range l.workers {
		must := w.acked
		if !whole {
			must = w.base
			for _, m := range l.history {
				if m.at.Before(before) {
					must = m.counts[i]
				}
			}
		}
		got, e := w.recovered(c)
		if e == nil {
			e = w.check(got, must)
		}
		err = errors.Join(err, e)
		for k := range all {
			lost += max(0, w.acked[k]-got[k])
		}
		least, most, seen = least+must[all]-w.base[all], most+w.sent[all]-w.base[all], max(seen, w.seen)
		w.begin(got)
	}
	if whole {
		least = max(least, seen)
	}
	if shared < least || shared > most {
		err = errors.Join(err, fmt.Errorf("the shared key is %d, at least %d and at most %d may be", shared, least, most))
	}
	l.shared = shared
	return lost, err
}
