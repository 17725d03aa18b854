// Random requests that wait for one to three limiters, and everything that ends a wait or gives something back, over sockets.
// The model is one list of tickets: at any time, a ticket is granted if it is the first one for each of its limiters and all
// of them have room.
package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/limitkv/limitkv/commands/livetest"
)

// Times are in ms. Everything ends at a multiple of 10, except deadlines of waiters, which are in between.
const (
	tokenMs = 1000 // until the bucket has one more
	overCap = "-ERR cost is above the limiter's capacity"
)

type ticketGrant struct {
	id        string
	cost, end int64
}

// ticketLimit is a limiter: CONC, or a bucket.
type ticketLimit struct {
	conc     bool
	shadow   bool
	capacity int64
	open     []ticketGrant // of CONC
	full     int64         // when the bucket is full again
}

type part struct {
	key  string
	cost int64
}

// ticket is a request, which waits as long as it is in the line.
type ticket struct {
	id       string
	parts    []part // each key once
	lease    int64
	deadline int64 // 0: none
	client   *ticketClient
	reply    string // the beginning of what it gets
	why      string
}

type ticketClient struct {
	*livetest.Client
	id string
}

// ticketWorld is the expected state of the server.
type ticketWorld struct {
	now    int64
	limits map[string]*ticketLimit
	line   []*ticket
	ended  []*ticket // those that must get a reply
}

func (l *ticketLimit) available(now int64) int64 {
	if !l.conc {
		return l.capacity - (max(l.full-now, 0)+tokenMs-1)/tokenMs
	}
	n := l.capacity
	for _, g := range l.open {
		n -= g.cost
	}
	return n
}

// take decides on a request as if nobody waited: it returns an error, or whether it is granted.
func (w *ticketWorld) take(q *ticket, force bool) (text string, granted bool) {
	if text = w.wrong(q, force); text != "" {
		return text, false
	}
	for _, p := range q.parts {
		if w.limits[p.key].available(w.now) < p.cost && !force {
			return "", false
		}
	}
	for _, p := range q.parts {
		if l := w.limits[p.key]; l.conc {
			l.open = append(l.open, ticketGrant{q.id, p.cost, w.now + q.lease})
		} else {
			l.full = max(l.full, w.now) + p.cost*tokenMs
		}
	}
	return "", true
}

// wrong is why a request can never succeed, whoever waits.
func (w *ticketWorld) wrong(q *ticket, force bool) (text string) {
	for _, p := range q.parts {
		if l := w.limits[p.key]; l == nil {
			return noLimiter
		} else if p.cost > l.capacity && !force {
			return overCap
		}
	}
	return ""
}

// waited reports whether somebody waits for one of a request's limiters.
func (w *ticketWorld) waited(q *ticket) bool {
	return w.behind(w.line, q)
}

// behind reports whether one of these tickets and a request share a limiter. Nobody waits for a shadow.
func (w *ticketWorld) behind(before []*ticket, q *ticket) bool {
	return slices.ContainsFunc(before, func(o *ticket) bool {
		return slices.ContainsFunc(q.parts, func(p part) bool {
			l := w.limits[p.key]
			return o.names(p.key) && (l == nil || !l.shadow)
		})
	})
}

func (q *ticket) names(key string) bool {
	return slices.ContainsFunc(q.parts, func(p part) bool { return p.key == key })
}

// serve grants tickets what they can have, in order.
func (w *ticketWorld) serve() {
	var before []*ticket
	for _, q := range w.line {
		if w.behind(before, q) {
			before = append(before, q)
			continue
		}
		switch text, granted := w.take(q, false); {
		case text != "":
			w.end(q, text, "error in line")
		case granted:
			w.end(q, "[0 ", fmt.Sprint("granted in line ", min(len(q.parts), 2)))
		default:
			before = append(before, q)
		}
	}
	w.line = before
}

// end records how a wait ends. The caller removes it from the line.
func (w *ticketWorld) end(q *ticket, reply, why string) {
	q.reply, q.why = reply, why
	w.ended = append(w.ended, q)
}

// leaves removes a ticket from the line.
func (w *ticketWorld) leaves(q *ticket) {
	w.line = slices.DeleteFunc(w.line, func(o *ticket) bool { return o == q })
}

// advance moves the time; events happen in their order.
func (w *ticketWorld) advance(ms int64) {
	for range ms / 5 {
		w.now += 5
		for _, l := range w.limits {
			l.open = slices.DeleteFunc(l.open, func(g ticketGrant) bool { return g.end <= w.now })
		}
		for _, q := range slices.Clone(w.line) {
			if q.deadline == w.now {
				w.leaves(q)
				w.end(q, "[1 ", "timed out")
			}
		}
		w.serve()
	}
}

// release is RL.RELEASE.
func (l *ticketLimit) release(now, n int64) (back int64) {
	if l == nil {
		return 0
	}
	was := l.available(now)
	if !l.conc {
		l.full = max(l.full-n*tokenMs, now)
		return l.available(now) - was
	}
	slices.SortFunc(l.open, func(a, b ticketGrant) int { return int(a.end - b.end) })
	for n > 0 && len(l.open) > 0 {
		g := &l.open[0]
		c := min(n, g.cost)
		n -= c
		if g.cost -= c; g.cost == 0 {
			l.open = l.open[1:]
		}
	}
	return l.available(now) - was
}

// clear reports whether it is certain which grants of a limiter end first.
func (l *ticketLimit) clear() bool {
	ends := map[int64]bool{}
	for _, g := range l.open {
		ends[g.end] = true
	}
	return len(ends) == len(l.open)
}

// ticketDriver sends random commands to the server, and to the world.
type ticketDriver struct {
	*ticketWorld
	t     *testing.T
	rnd   *rand.Rand
	s     *livetest.Server
	c     *livetest.Client
	keys  []string
	idle  []*ticketClient
	n     int
	done  map[string]int
	trace []string
}

func newTicketDriver(t *testing.T, rnd *rand.Rand, done map[string]int) *ticketDriver {
	s := livetest.Start(t)
	d := &ticketDriver{t: t, rnd: rnd, s: s, c: s.Client(), done: done}
	d.ticketWorld = &ticketWorld{now: s.Now(), limits: map[string]*ticketLimit{}}
	d.c.Want("OK", "LKV.JOURNAL", "START")
	for i, key := range []string{"a", "b", "{a}c", "d"} {
		d.keys = append(d.keys, key)
		d.limits[key] = &ticketLimit{conc: i < 3, capacity: 1 + int64(i)}
		d.want("OK", d.rule(key, d.limits[key])...)
	}
	return d
}

func (d *ticketDriver) rule(key string, l *ticketLimit) []any {
	args := []any{"RL.SET", key}
	if l.shadow {
		args = append(args, "SHADOW")
	}
	if l.conc {
		return append(args, "CONC", l.capacity)
	}
	return append(args, "GCRA", l.capacity, l.capacity*tokenMs)
}

// want sends a command, whose reply must begin like this.
func (d *ticketDriver) want(reply string, args ...any) {
	d.t.Helper()
	got := d.c.Do(args...)
	d.trace = append(d.trace, fmt.Sprint(d.now-livetest.Epoch, args, got))
	if !strings.HasPrefix(got, reply) {
		d.t.Fatalf("%v: got %s, want %s", args, got, reply)
	}
}

// request draws a random request.
func (d *ticketDriver) request() (q *ticket, args []any) {
	d.n++
	q = &ticket{id: fmt.Sprint("g", d.n), lease: 10 * (1 + d.rnd.Int64N(300))}
	cost := func() int64 { return 1 + d.rnd.Int64N(4)/3 }
	if d.rnd.IntN(2) == 0 {
		q.parts = []part{{d.keys[d.rnd.IntN(4)], cost()}}
		return q, []any{"RL.ACQUIRE", q.parts[0].key, q.parts[0].cost, "ID", q.id, "LEASE", q.lease}
	}
	n := 1 + d.rnd.IntN(3)
	args = []any{"RL.MACQUIRE", n}
	for range n {
		p := part{d.keys[d.rnd.IntN(4)], cost()}
		args = append(args, p.key, p.cost)
		if i := slices.IndexFunc(q.parts, func(o part) bool { return o.key == p.key }); i >= 0 {
			q.parts[i].cost += p.cost
		} else {
			q.parts = append(q.parts, p)
		}
	}
	return q, append(args, "ID", q.id, "LEASE", q.lease)
}

// ask makes a request that does not wait. It returns the command and the beginning of its reply.
func (d *ticketDriver) ask() (args []any, reply string) {
	q, args := d.request()
	force := d.rnd.IntN(12) == 0 && !slices.ContainsFunc(q.parts, func(p part) bool { l := d.limits[p.key]; return l != nil && l.shadow })
	if force {
		args = append(args, "FORCE")
	}
	before := d.room(q)
	if d.waited(q) && !force {
		if text := d.wrong(q, false); text != "" {
			return args, text
		}
		if before {
			d.done["kept for a ticket"]++
		}
		return args, "[1 "
	}
	switch text, granted := d.take(q, force); {
	case text != "":
		return args, text
	case granted:
		d.done["granted"]++
		return args, "[0 "
	}
	d.done["refused"]++
	return args, "[1 "
}

// room tells whether all limiters have what a request asks for.
func (d *ticketDriver) room(q *ticket) bool {
	return !slices.ContainsFunc(q.parts, func(p part) bool {
		l := d.limits[p.key]
		return l == nil || l.available(d.now) < p.cost
	})
}

// block makes a request that waits.
func (d *ticketDriver) block() {
	q, args := d.request()
	args = append(args, "BLOCK", 0)
	if d.rnd.IntN(2) == 0 {
		ms := 5 + 10*d.rnd.Int64N(400)
		q.deadline, args[len(args)-1] = d.now+ms, ms
	}
	if len(d.idle) == 0 {
		c := d.s.Client()
		d.idle = append(d.idle, &ticketClient{c, c.Do("CLIENT", "ID")})
	}
	q.client, d.idle = d.idle[0], d.idle[1:]
	d.trace = append(d.trace, fmt.Sprint(d.now-livetest.Epoch, args))
	q.client.Send(args...)
	if text := d.wrong(q, false); text != "" {
		d.end(q, text, "error")
		return
	}
	waited := d.waited(q)
	d.line = append(d.line, q)
	before := len(d.line)
	d.serve()
	if len(d.line) == before {
		d.done["waits"]++
		if waited && len(q.parts) > 1 {
			d.done["waits behind others"]++
		}
	}
}

// back makes a command that gives something back or changes a limiter. It returns the command and its reply, none if nothing
// can be done.
func (d *ticketDriver) back() (args []any, reply string) {
	key := d.keys[d.rnd.IntN(4)]
	l := d.limits[key]
	switch n := d.rnd.IntN(20); {
	case n < 10:
		if l == nil || len(l.open) == 0 {
			return nil, ""
		}
		g := l.open[d.rnd.IntN(len(l.open))]
		l.open = slices.DeleteFunc(l.open, func(o ticketGrant) bool { return o == g })
		d.done["settle"]++
		return []any{"RL.SETTLE", key, g.id}, fmt.Sprint(g.cost)
	case n < 14:
		if l != nil && !l.clear() {
			return nil, ""
		}
		c := 1 + d.rnd.Int64N(3)
		d.done["release"]++
		return []any{"RL.RELEASE", key, c}, fmt.Sprint(l.release(d.now, c))
	case n < 15:
		if l == nil || len(l.open) == 0 {
			return nil, ""
		}
		g, ms := &l.open[d.rnd.IntN(len(l.open))], 10*(1+d.rnd.Int64N(200))
		g.end = d.now + ms
		return []any{"RL.TOUCH", key, g.id, ms}, "1"
	case n < 16:
		delete(d.limits, key)
		d.done["delete"]++
		return []any{"DEL", key}, map[bool]string{true: "1", false: "0"}[l != nil]
	}
	if l == nil {
		l = &ticketLimit{conc: key != "d", capacity: 4}
		d.limits[key] = l
	}
	if l.conc {
		l.capacity = 1 + d.rnd.Int64N(4)
		// It has enough capacity: among callers that pass without a line, nobody knows which one exceeds the limit.
		if l.shadow = d.rnd.IntN(6) == 0; l.shadow {
			l.capacity = 1000
			d.done["shadow"]++
		}
	}
	d.done["change"]++
	return d.rule(key, l), "OK"
}

// transaction gives several things back, and asks, before any waiter is served.
func (d *ticketDriver) transaction() {
	d.want("OK", "MULTI")
	var replies []string
	for range 2 + d.rnd.IntN(4) {
		var args []any
		var reply string
		if d.rnd.IntN(4) == 0 {
			args, reply = d.ask()
		} else {
			args, reply = d.back()
		}
		if args != nil {
			d.want("QUEUED", args...)
			replies = append(replies, reply)
		}
	}
	if len(d.line) > 0 && d.rnd.IntN(3) == 0 { // a waiter leaves after the transaction
		q := d.line[d.rnd.IntN(len(d.line))]
		d.leaves(q)
		if d.rnd.IntN(4) == 0 {
			d.want("QUEUED", "CLIENT", "KILL", "ID", q.client.id)
		} else {
			d.end(q, "[1 ", "unblocked within")
			d.want("QUEUED", "CLIENT", "UNBLOCK", q.client.id)
		}
		replies = append(replies, "1")
	}
	got := d.c.Do("EXEC")
	d.trace = append(d.trace, "EXEC "+got)
	at := 0
	for _, reply := range replies { // they come in order
		i := strings.Index(got[at:], reply)
		if i < 0 {
			d.t.Fatalf("EXEC: got %s, want %q", got, replies)
		}
		at += i
	}
	d.serve()
	d.done["transaction"]++
}

// leave makes one waiter leave the line.
func (d *ticketDriver) leave() {
	if len(d.line) == 0 {
		return
	}
	q := d.line[d.rnd.IntN(len(d.line))]
	d.leaves(q)
	switch d.rnd.IntN(3) {
	case 0:
		d.trace = append(d.trace, fmt.Sprint(d.now-livetest.Epoch, " ", q.id, " disconnects"))
		q.client.Close()
		d.done["disconnect"]++
	case 1:
		d.end(q, "[1 ", "unblocked")
		d.want("1", "CLIENT", "UNBLOCK", q.client.id)
	default:
		d.end(q, "-UNBLOCKED ", "unblocked")
		d.want("1", "CLIENT", "UNBLOCK", q.client.id, "ERROR")
	}
	d.serve()
}

func (d *ticketDriver) pass(ms int64) {
	d.trace = append(d.trace, fmt.Sprint(d.now-livetest.Epoch, " and ", ms, " ms"))
	d.advance(ms)
	d.s.Advance(ms)
}

func (d *ticketDriver) step() {
	switch n := d.rnd.IntN(20); {
	case n < 5:
		args, reply := d.ask()
		d.want(reply, args...)
	case n < 10 && len(d.line) < 10:
		d.block()
	case n < 15:
		if args, reply := d.back(); args != nil {
			d.want(reply, args...)
			d.serve()
		}
	case n < 17:
		d.transaction()
	case n < 18:
		d.leave()
	default:
		d.pass(10 * d.rnd.Int64N(80))
	}
}

// check reads the replies that are due, and compares the states.
func (d *ticketDriver) check() {
	d.t.Helper()
	for _, q := range d.ended {
		got := q.client.Read()
		d.trace = append(d.trace, fmt.Sprint("      ", q.id, " ", got))
		if !strings.HasPrefix(got, q.reply) {
			d.t.Fatalf("%s %v got %s, want %s", q.id, q.parts, got, q.reply)
		}
		d.done[q.why]++
		d.idle = append(d.idle, q.client)
	}
	d.ended = nil
	d.s.Blocked(int64(len(d.line)))
	for _, key := range d.keys {
		l, n := d.limits[key], 0
		for _, q := range d.line {
			if q.names(key) {
				n++
			}
		}
		got, want := d.c.Do("RL.INFO", key), noLimiter
		if l != nil {
			want = fmt.Sprintf("available %d ", l.available(d.now))
			if !strings.Contains(got, fmt.Sprintf("waiters %d ", n)) {
				d.t.Fatalf("%s: got %s, want %d waiters", key, got, n)
			}
		}
		if !strings.Contains(got, want) {
			d.t.Fatalf("%s: got %s, want %s", key, got, want)
		}
	}
	d.c.Want("OK", "LKV.JOURNAL", "CHECK")
}

// finish gives everything back until nobody waits any more.
func (d *ticketDriver) finish() {
	for rounds := len(d.line) + 1; len(d.line) > 0; rounds-- {
		if rounds == 0 {
			d.t.Fatalf("%d wait for ever", len(d.line))
		}
		for _, key := range d.keys {
			if l := d.limits[key]; l != nil {
				for len(l.open) > 0 {
					d.want("", "RL.SETTLE", key, l.open[0].id)
					l.open = l.open[1:]
					d.serve()
					d.check()
				}
			}
		}
		d.pass(4 * tokenMs)
		d.check()
	}
}

func TestTickets(t *testing.T) {
	rnd, steps := livetest.Random(t, 4000)
	done := map[string]int{}
	var d *ticketDriver
	defer func() {
		if t.Failed() {
			t.Log(strings.Join(d.trace[max(0, len(d.trace)-40):], "\n"))
			for _, q := range d.line {
				t.Log("waits: ", q.id, q.parts, q.deadline)
			}
		}
	}()
	for taken := 0; taken < steps; {
		d = newTicketDriver(t, rnd, done)
		for range 500 {
			taken++
			d.step()
			d.check()
		}
		d.finish()
		if err := d.s.Keyspace.Check(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d steps: %v", steps, done)
	for _, what := range []string{"granted", "refused", "kept for a ticket", "waits", "waits behind others", "granted in line 1",
		"granted in line 2", "error in line", "timed out", "unblocked", "unblocked within", "disconnect", "settle", "release", "delete", "change", "shadow", "transaction"} {
		if done[what] < steps/400 {
			t.Errorf("only %d times %s", done[what], what)
		}
	}
}
