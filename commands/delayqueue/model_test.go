// Random commands, waiting consumers, disconnects and steps of the clock over a
// socket, against a list: each entry goes to exactly one consumer, consumers are
// served in the order in which they asked, equal due times keep the order of
// adding.
package delayqueue_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// driver runs the server and the model.
type driver struct {
	t    *testing.T
	rnd  *rand.Rand
	s    *livetest.Server
	c    *livetest.Client
	w    *world
	done map[string]int
	idle []*livetest.Client
	// ranks is set if entries have groups and priorities.
	ranks bool
}

// name is an id, often of a leased entry, often with an attempt, sometimes a stale one.
func (d *driver) name() string {
	id := "j" + strconv.Itoa(d.rnd.IntN(8))
	for _, j := range d.w.jobs {
		if j.leased && d.rnd.IntN(2) == 0 {
			id = j.id
		}
	}
	if j := d.w.find(id); j != nil && d.rnd.IntN(2) == 0 {
		return id + "#" + strconv.Itoa(max(1, j.attempt-d.rnd.IntN(4)/3))
	}
	return id
}

func (d *driver) span() int64 { return 10 * d.rnd.Int64N(20) }

func (d *driver) count(what string, n int) string {
	if n > 0 {
		d.done[what]++
	}
	return strconv.Itoa(n)
}

// step does one thing to both, and returns the command, its reply and the expected reply.
func (d *driver) step() (command []any, got, want string) {
	w := d.w
	do := func(args ...any) string {
		command = args
		return d.c.Do(args...)
	}
	switch n := d.rnd.IntN(108); {
	case n < 25:
		command, want = d.add()
		got = do(command...)
	case n < 40:
		lease, count := d.lease(), 1+d.rnd.IntN(3)
		want = w.pop(count, lease)
		if want != "nil" {
			d.done["pop"]++
		}
		got = do(popArgs(count, lease)...)
	case n < 55:
		d.block()
	case n < 65:
		name := d.name()
		hit := 0
		if j := w.held(name); j != nil {
			w.settle(j)
			w.done(j)
			hit = 1
		}
		want, got = d.count("ack", hit), do("DQ.ACK", "q", name)
	case n < 73:
		name, delay := d.name(), d.span()
		hit, args := 0, []any{"DQ.NACK", "q", name}
		how, reason := d.rnd.IntN(3), ""
		if d.rnd.IntN(2) == 0 {
			reason = "why" + strconv.Itoa(d.rnd.IntN(100))
		}
		if j := w.held(name); j != nil {
			hit = 1
			w.settle(j)
			if j.behind != nil && how == 2 {
				how = 0 // as in add
			}
			if reason != "" {
				j.reason = reason
			}
			switch how {
			case 0:
				w.fail(j, w.now+delay)
			case 1:
				wait := w.backoff
				for i := j.attempt - j.before; i > 1 && wait < w.most; i-- {
					wait *= 2
				}
				w.fail(j, w.now+min(wait, w.most))
			default:
				w.bury(j)
			}
		}
		switch how {
		case 0:
			args = append(args, "DELAY", delay)
		case 2:
			args = append(args, "DEAD")
		}
		if reason != "" {
			args = append(args, "REASON", reason)
		}
		want, got = d.count("nack", hit), do(args...)
	case n < 78:
		name, until := d.name(), d.span()
		id, _, fenced := strings.Cut(name, "#")
		j, hit := w.find(id), 1
		switch {
		case w.held(name) != nil:
			j.until = w.now + until
			if _, held := w.grants[j.name()]; held && w.limited {
				w.grants[j.name()] = j.until
			}
			if until == 0 {
				w.settle(j)
				w.lapse(j, w.now) // it ends at once
			}
		case j != nil && !j.leased && !fenced:
			w.wait(j, w.now+until)
		default:
			hit = 0
		}
		want, got = d.count("touch", hit), do("DQ.TOUCH", "q", until, name)
	case n < 81:
		name, hit := d.name(), 0
		id, attempt, fenced := strings.Cut(name, "#")
		if j := w.find(id); j != nil && (!fenced || attempt == strconv.Itoa(j.attempt)) {
			if j.leased {
				w.settle(j)
			}
			w.drop(j)
			hit = 1
		}
		if _, known := w.known[id]; known && !fenced {
			delete(w.known, id)
			hit = 1
		}
		want, got = d.count("rem", hit), do("DQ.REM", "q", name)
	case n < 84:
		if len(w.line) > 0 {
			i := d.rnd.IntN(len(w.line))
			w.line[i].client.Close()
			w.line = slices.Delete(w.line, i, i+1)
			w.serve() // the first one now may ask for something wrong
			d.s.Blocked(int64(len(w.line)))
			d.done["disconnect"]++
		}
	case n < 86:
		w.paused = d.rnd.IntN(3) == 0
		w.maxlen = d.rnd.IntN(9)
		paused := map[bool]int{true: 1}[w.paused]
		w.conc = d.rnd.IntN(3)
		want, got = "OK", do("DQ.SET", "q", "PAUSED", paused, "MAXLEN", w.maxlen, "GROUPS", "CONC", w.conc)
		d.count("pause", paused)
	case n < 89:
		command, want = d.requeue()
		got = do(command...)
	case n < 90:
		// What a restart reads.
		want, got = "OK", do("DEBUG", "RELOAD")
		d.done["reload"]++
	case n >= 100:
		command, want = d.budget()
		got = do(command...)
	default:
		ms := 10 * d.rnd.Int64N(10)
		d.s.Advance(ms)
		w.advance(ms)
	}
	w.serve()
	return command, got, want
}

// budget does something to the limiter, independently of the queue.
func (d *driver) budget() (args []any, want string) {
	w := d.w
	id := "x" + strconv.Itoa(d.rnd.IntN(3))
	_, open := w.grants[id]
	switch d.rnd.IntN(5) {
	case 0:
		w.limited = d.rnd.IntN(3) > 0
		d.done["limit"]++
		return []any{"DQ.SET", "q", "LIMIT", map[bool]string{true: "l"}[w.limited]}, "OK"
	case 1:
		w.limit = 1 + d.rnd.IntN(3)
		return []any{"RL.SET", "l", "CONC", w.limit}, "OK"
	case 2:
		delete(w.grants, id)
		return []any{"RL.SETTLE", "l", id}, map[bool]string{true: "1", false: "nil"}[open]
	}
	lease := d.span() + 17
	if !open && len(w.grants) >= w.limit {
		d.done["refused"]++
		return []any{"RL.ACQUIRE", "l", "ID", id, "LEASE", lease}, "limited"
	}
	w.grants[id] = w.now + lease
	return []any{"RL.ACQUIRE", "l", "ID", id, "LEASE", lease}, "granted"
}

// requeue puts dead letters back, by their ids.
func (d *driver) requeue() (args []any, want string) {
	w, hits := d.w, 0
	args = []any{"DQ.REQUEUE", "{q}dead", "q", "ID"}
	if len(w.letters) > 0 && w.maxlen > 0 && len(w.jobs) >= w.maxlen {
		return append(args, "any"), "-QUEUEFULL the queue has as many entries as its MAXLEN allows"
	}
	for i := range 8 {
		id := "j" + strconv.Itoa(i)
		l := w.letters[id]
		_, known := w.known[id]
		args = append(args, id)
		if l == nil || known || w.find(id) != nil || w.maxlen > 0 && len(w.jobs) >= w.maxlen {
			continue
		}
		j := &job{id: id, payload: l.payload}
		j.options = l.options
		w.jobs = append(w.jobs, j)
		w.wait(j, w.now)
		w.regroup()
		delete(w.letters, id)
		hits++
	}
	return args, d.count("requeue", hits)
}

// add adds a job, or one that exists already.
func (d *driver) add() (args []any, want string) {
	w := d.w
	id, payload, delay := "j"+strconv.Itoa(d.rnd.IntN(8)), "p"+strconv.Itoa(d.rnd.IntN(100)), d.span()
	mode := []string{"", "NX", "XX"}[d.rnd.IntN(3)]
	var o options
	for i, of := range []*int64{&o.expire, &o.unique, &o.maxwait} {
		if d.rnd.IntN(4) == 0 {
			*of = d.span() + []int64{6, 4, 3}[i] // no consumer's wait ends at that moment
		}
	}
	args = append(append([]any{"DQ.ADD", "q", "DELAY", delay, "ID", id}, o.args()...), payload)
	if d.ranks {
		o.prio = d.rnd.IntN(3) * d.rnd.IntN(128)
		if g := d.rnd.IntN(5); g > 0 {
			o.group = "group" + strconv.Itoa(g)
		}
		args = slices.Insert(args[:len(args)-1], 6, options{group: o.group, prio: o.prio}.args()...)
		args = append(args, payload)
	}
	if mode != "" {
		args = slices.Insert(args, 2, any(mode))
	}
	j := w.find(id)
	if j != nil && j.leased && w.dies(j) && mode != "NX" && j.unique+o.unique == 0 {
		// The version behind a dying entry comes when that becomes a dead letter, a moment later: who is served first then is
		// undefined.
		args, mode = slices.Insert(slices.DeleteFunc(args, func(a any) bool { return a == "XX" }), 2, any("NX")), "NX"
	}
	_, known := w.known[id]
	switch {
	case j == nil && !known && w.maxlen > 0 && len(w.jobs) >= w.maxlen && mode != "XX":
		d.done["full"]++
		return args, "-QUEUEFULL the queue has as many entries as its MAXLEN allows"
	case known, j != nil && mode == "NX", j == nil && mode == "XX", j != nil && j.leased && j.unique+o.unique > 0:
		d.count("unique", int(map[bool]int{true: 1}[j != nil && mode != "NX"]))
		d.count("known", int(map[bool]int{true: 1}[known]))
		return args, "nil"
	case j == nil:
		j = &job{id: id}
		w.jobs = append(w.jobs, j)
	}
	o.first = w.now
	was := j.options
	if j.leased {
		if was = (options{}); j.behind != nil {
			was = j.behind.options
		}
	}
	if was.maxwait > 0 && j.order > 0 {
		o.first = was.first
		if o.maxwait == 0 {
			o.maxwait = was.maxwait
		}
	}
	due := w.now + delay
	if o.maxwait > 0 && due > o.first+o.maxwait {
		due = o.first + o.maxwait
		d.done["sooner"]++
	}
	d.done["add"]++
	if j.leased {
		d.done["behind"]++
		j.behind = &version{payload, due, o}
		return args, id
	}
	j.payload, j.before, j.options = payload, j.attempt, o
	w.wait(j, due)
	w.regroup()
	return args, id
}

func (d *driver) lease() int64 { return []int64{-1, 0, d.span() + 10}[d.rnd.IntN(3)] }

func popArgs(count int, lease int64) []any {
	args := []any{"DQ.POP", "q", "COUNT", count}
	if lease >= 0 {
		args = append(args, "LEASE", lease)
	}
	return args
}

// block puts one more consumer in line, if nothing is due.
func (d *driver) block() {
	w := d.w
	c := &consumer{count: 1 + d.rnd.IntN(2), lease: d.lease()}
	if len(w.line) > 5 || w.next() != nil && (w.free() || w.needsLease(c.lease)) {
		return
	}
	if w.next() != nil {
		d.done["held"]++
	}
	if n := len(d.idle); n > 0 {
		c.client, d.idle = d.idle[n-1], d.idle[:n-1]
	} else {
		c.client = d.s.Client()
	}
	args := append(popArgs(c.count, c.lease), "BLOCK", 0)
	ms := d.span() + 5 // never at the same time as another event
	if d.rnd.IntN(2) == 0 && !slices.ContainsFunc(w.line, func(o *consumer) bool { return o.deadline == w.now+ms }) {
		c.deadline = w.now + ms
		args[len(args)-1] = ms
	}
	c.client.Send(args...)
	w.line = append(w.line, c)
	d.s.Blocked(int64(len(w.line)))
	d.done["block"]++
}

// collect reads the replies to the waiters that were served, and compares them.
func (d *driver) collect() error {
	for _, c := range d.w.finished {
		if got := c.client.Read(); got != d.w.replies[c] {
			return fmt.Errorf("a consumer got %s, want %s", got, d.w.replies[c])
		} else if got == "nil" {
			d.done["timeout"]++
		} else {
			d.done["served"]++
		}
		d.idle = append(d.idle, c.client)
	}
	d.w.finished = nil
	clear(d.w.replies)
	d.s.Blocked(int64(len(d.w.line)))
	return nil
}

// proof checks that the effects make the same keys, and checks the dead letters.
func (d *driver) proof() {
	d.t.Helper()
	d.c.Want("OK", "LKV.JOURNAL", "CHECK")
	if got := d.c.Do("DQ.LEN", "{q}dead"); got != strconv.Itoa(len(d.w.letters)) {
		d.t.Fatalf("%s dead letters, want %v", got, d.w.letters)
	}
	for id, l := range d.w.letters {
		got := d.c.Do("DQ.PEEK", "{q}dead", "FROM", id, "COUNT", 1, "FULL")
		if !strings.HasPrefix(got, "[[id "+id+" payload "+l.payload+" ") || !strings.HasSuffix(got, " reason "+l.reason+"]]") ||
			!strings.Contains(got, " attempt "+strconv.Itoa(l.attempt)+" ") {
			d.t.Fatalf("the letter %s, want %+v: %s", id, *l, got)
		}
	}
}

// forwarded waits until dying entries have become dead letters.
func (d *driver) forwarded() {
	d.t.Helper()
	for end := time.Now().Add(10 * time.Second); !strings.Contains(d.c.Do("DQ.INFO", "q"), " dying 0 "); {
		if time.Now().After(end) {
			d.t.Fatal("what has died is no dead letter after ten seconds")
		}
	}
}

func TestModel(t *testing.T) {
	rnd, steps := livetest.Random(t, 4000)
	done := map[string]int{}
	var trace []string
	defer func() {
		if t.Failed() {
			t.Log(strings.Join(trace[max(0, len(trace)-25):], "\n"))
		}
	}()
	for taken := 0; taken < steps; {
		s := livetest.Start(t)
		d := &driver{t: t, rnd: rnd, s: s, c: s.Client(), done: done, ranks: rnd.IntN(3) > 0}
		d.c.Want("OK", "LKV.JOURNAL", "START")
		d.w = &world{now: s.Now(), letters: map[string]*letter{}, known: map[string]int64{}, turns: map[string]int{}, grants: map[string]int64{}, limit: 2, replies: map[*consumer]string{}, lease: d.span(), tries: rnd.IntN(4), backoff: d.span(), most: 160}
		d.w.most = max(d.w.most, d.w.backoff)
		d.c.Want("OK", "RL.SET", "l", "CONC", d.w.limit)
		d.c.Want("OK", "DQ.SET", "q", "LEASE", d.w.lease, "TRIES", d.w.tries, "DEAD", "{q}dead", "BACKOFF", d.w.backoff, "MAX", d.w.most)
		for range 500 {
			taken++
			command, got, want := d.step()
			if taken%100 == 0 {
				d.forwarded()
				d.proof()
			}
			trace = append(trace, fmt.Sprint(d.w.now-livetest.Epoch, command, got))
			if limited, ok := strings.CutPrefix(got, "["); ok && len(command) > 0 && command[0] == "RL.ACQUIRE" {
				got = map[byte]string{'0': "granted", '1': "limited"}[limited[0]]
			}
			if got != want {
				t.Fatalf("step %d: %v\n got %s\nwant %s", taken, command, got, want)
			}
			d.forwarded()
			if err := d.collect(); err != nil {
				t.Fatalf("step %d: after %v: %v", taken, command, err)
			}
			if got, want := field(t, d.c, "RL.INFO", "l", "available"), strconv.Itoa(d.w.limit-len(d.w.grants)); got != want {
				t.Fatalf("step %d: after %v: %s are left of the limiter, want %s: %v", taken, command, got, want, d.w.grants)
			}
			if got, want := d.c.Do("DQ.LEN", "q"), strconv.Itoa(len(d.w.jobs)); got != want {
				t.Fatalf("step %d: after %v: %s entries, want %s", taken, command, got, want)
			}
			if got, want := d.c.Do("DQ.LEN", "q", "READY"), strconv.Itoa(len(d.w.ready())); got != want {
				t.Fatalf("step %d: after %v: %s due, want %s", taken, command, got, want)
			}
		}
		d.proof()
		done["dead"] += len(d.w.letters)
		for _, c := range d.w.line {
			c.client.Close()
		}
	}
	t.Logf("%d steps: %v", steps, done)
	for _, what := range []string{"add", "pop", "block", "served", "timeout", "ack", "nack", "touch", "rem", "disconnect",
		"limit", "refused", "held", "full", "known", "behind", "unique", "sooner", "pause", "requeue", "reload", "dead"} {
		if done[what] < max(1, steps/4000) {
			t.Errorf("only %d times %s", done[what], what)
		}
	}
}
