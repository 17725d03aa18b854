// Random commands, waiting consumers, disconnects and steps of the clock over a
// socket, against a list: each entry goes to exactly one consumer, consumers are
// served in the order in which they asked, equal due times keep the order of
// adding.
package delayqueue_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// job is an entry of the naive queue. Times are in ms.
type job struct {
	id, payload     string
	due, until      int64
	order           int
	attempt, before int
	leased          bool
}

// consumer is one that waits.
type consumer struct {
	client   *livetest.Client
	count    int
	lease    int64 // -1: the default
	deadline int64 // 0: none
}

// world is the naive queue, its line and its dead letters.
type world struct {
	now      int64
	jobs     []*job
	line     []*consumer
	letters  []string
	order    int
	lease    int64
	tries    int
	backoff  int64
	most     int64
	replies  map[*consumer]string // of those that were served
	finished []*consumer          // in order
}

func (w *world) find(id string) *job {
	for _, j := range w.jobs {
		if j.id == id {
			return j
		}
	}
	return nil
}

func (w *world) drop(j *job) { w.jobs = slices.DeleteFunc(w.jobs, func(o *job) bool { return o == j }) }

func (w *world) wait(j *job, due int64) {
	w.order++
	j.leased, j.due, j.order = false, due, w.order
}

// due lists what is due, in order.
func (w *world) due() (list []*job) {
	for _, j := range w.jobs {
		if !j.leased && j.due <= w.now {
			list = append(list, j)
		}
	}
	slices.SortFunc(list, func(a, b *job) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.order, b.order))
	})
	return list
}

// pop delivers to one consumer and says what its reply is.
func (w *world) pop(count int, lease int64) string {
	if lease < 0 {
		lease = w.lease
	}
	var out []string
	for _, j := range w.due() {
		if len(out) == count {
			break
		}
		j.attempt++
		name := j.id
		if lease > 0 {
			j.leased, j.until = true, w.now+lease
			name += "#" + strconv.Itoa(j.attempt)
		} else {
			w.drop(j)
		}
		out = append(out, fmt.Sprintf("[%s %s %d %d]", name, j.payload, j.due, j.attempt))
	}
	if out == nil {
		return "nil"
	}
	return "[" + strings.Join(out, " ") + "]"
}

// serve gives to the line what is due.
func (w *world) serve() {
	for len(w.line) > 0 && len(w.due()) > 0 {
		c := w.line[0]
		w.line = w.line[1:]
		w.reply(c, w.pop(c.count, c.lease))
	}
}

func (w *world) reply(c *consumer, text string) {
	w.replies[c] = text
	w.finished = append(w.finished, c)
}

func (w *world) fail(j *job, due int64) {
	if w.tries > 0 && j.attempt-j.before >= w.tries {
		w.bury(j)
		return
	}
	w.wait(j, due)
}

func (w *world) bury(j *job) {
	w.drop(j)
	w.letters = append(w.letters, j.id)
}

// advance moves the clock from one thing that happens to the next.
func (w *world) advance(ms int64) {
	for end := w.now + ms; ; {
		next := end
		for _, j := range w.jobs {
			if j.leased && j.until > w.now {
				next = min(next, j.until)
			} else if !j.leased && j.due > w.now {
				next = min(next, j.due)
			}
		}
		for _, c := range w.line {
			if c.deadline > w.now {
				next = min(next, c.deadline)
			}
		}
		w.now = next
		var ended []*job
		for _, j := range w.jobs {
			if j.leased && j.until <= w.now {
				ended = append(ended, j)
			}
		}
		slices.SortFunc(ended, func(a, b *job) int { return cmp.Compare(a.order, b.order) })
		for _, j := range ended {
			w.fail(j, j.until)
		}
		w.serve()
		for _, c := range slices.Clone(w.line) {
			if c.deadline != 0 && c.deadline <= w.now {
				w.line = slices.DeleteFunc(w.line, func(o *consumer) bool { return o == c })
				w.reply(c, "nil")
			}
		}
		if w.now >= end {
			return
		}
	}
}

// held is a job that is leased under a name, with or without the attempt.
func (w *world) held(name string) *job {
	id, attempt, fenced := strings.Cut(name, "#")
	j := w.find(id)
	if j == nil || !j.leased || fenced && attempt != strconv.Itoa(j.attempt) {
		return nil
	}
	return j
}

// driver runs both.
type driver struct {
	t    *testing.T
	rnd  *rand.Rand
	s    *livetest.Server
	c    *livetest.Client
	w    *world
	done map[string]int
	idle []*livetest.Client
}

// name is an id, often one that is leased, often with an attempt, at times a
// stale one.
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

// step does one thing to both and returns the command, its reply and what that
// should be.
func (d *driver) step() (command []any, got, want string) {
	w := d.w
	do := func(args ...any) string {
		command = args
		return d.c.Do(args...)
	}
	switch n := d.rnd.IntN(100); {
	case n < 25:
		id, payload, delay := "j"+strconv.Itoa(d.rnd.IntN(8)), "p"+strconv.Itoa(d.rnd.IntN(100)), d.span()
		j := w.find(id)
		mode := []string{"", "NX", "XX"}[d.rnd.IntN(3)]
		want = id
		switch {
		case j != nil && mode == "NX" || j == nil && mode == "XX":
			want = "nil"
		case j == nil:
			j = &job{id: id}
			w.jobs = append(w.jobs, j)
			fallthrough
		default:
			j.payload, j.before = payload, j.attempt
			w.wait(j, w.now+delay)
			d.done["add"]++
		}
		args := []any{"DQ.ADD", "q", "DELAY", delay, "ID", id, payload}
		if mode != "" {
			args = []any{"DQ.ADD", "q", mode, "DELAY", delay, "ID", id, payload}
		}
		got = do(args...)
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
			w.drop(j)
			hit = 1
		}
		want, got = d.count("ack", hit), do("DQ.ACK", "q", name)
	case n < 73:
		name, delay := d.name(), d.span()
		hit, args := 0, []any{"DQ.NACK", "q", name}
		how := d.rnd.IntN(3)
		if j := w.held(name); j != nil {
			hit = 1
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
		want, got = d.count("nack", hit), do(args...)
	case n < 78:
		name, until := d.name(), d.span()
		id, _, fenced := strings.Cut(name, "#")
		j, hit := w.find(id), 1
		switch {
		case w.held(name) != nil:
			j.until = w.now + until
			if until == 0 {
				w.fail(j, w.now) // it ends at once
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
			w.drop(j)
			hit = 1
		}
		want, got = d.count("rem", hit), do("DQ.REM", "q", name)
	case n < 84:
		if len(w.line) > 0 {
			i := d.rnd.IntN(len(w.line))
			w.line[i].client.Close()
			w.line = slices.Delete(w.line, i, i+1)
			d.s.Blocked(int64(len(w.line)))
			d.done["disconnect"]++
		}
	default:
		ms := 10 * d.rnd.Int64N(10)
		d.s.Advance(ms)
		w.advance(ms)
	}
	w.serve()
	return command, got, want
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
	if len(w.line) > 5 || len(w.due()) > 0 {
		return
	}
	c := &consumer{count: 1 + d.rnd.IntN(2), lease: d.lease()}
	if n := len(d.idle); n > 0 {
		c.client, d.idle = d.idle[n-1], d.idle[:n-1]
	} else {
		c.client = d.s.Client()
	}
	args := append(popArgs(c.count, c.lease), "BLOCK", 0)
	if d.rnd.IntN(2) == 0 {
		ms := d.span() + 5 // never at the moment of anything else
		c.deadline = w.now + ms
		args[len(args)-1] = ms
	}
	c.client.Send(args...)
	w.line = append(w.line, c)
	d.s.Blocked(int64(len(w.line)))
	d.done["block"]++
}

// collect reads what those in line were served, and compares.
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

func TestModel(t *testing.T) {
	steps := 4000
	if n, err := strconv.Atoi(os.Getenv("LIMITKV_MODEL_STEPS")); err == nil && n > 0 {
		steps = n
	}
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("LIMITKV_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("LIMITKV_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 4))
	done := map[string]int{}
	var trace []string
	defer func() {
		if t.Failed() {
			t.Log(strings.Join(trace[max(0, len(trace)-25):], "\n"))
		}
	}()
	for taken := 0; taken < steps; {
		s := livetest.Start(t)
		d := &driver{t: t, rnd: rnd, s: s, c: s.Client(), done: done}
		d.w = &world{now: s.Now(), replies: map[*consumer]string{}, lease: d.span(), tries: rnd.IntN(4), backoff: d.span(), most: 160}
		d.w.most = max(d.w.most, d.w.backoff)
		d.c.Want("OK", "DQ.SET", "q", "LEASE", d.w.lease, "TRIES", d.w.tries, "DEAD", "{q}dead", "BACKOFF", d.w.backoff, "MAX", d.w.most)
		for range 500 {
			taken++
			command, got, want := d.step()
			trace = append(trace, fmt.Sprint(d.w.now-livetest.Epoch, command, got))
			if got != want {
				t.Fatalf("step %d: %v\n got %s\nwant %s", taken, command, got, want)
			}
			if err := d.collect(); err != nil {
				t.Fatalf("step %d: after %v: %v", taken, command, err)
			}
			if got, want := d.c.Do("DQ.LEN", "q"), strconv.Itoa(len(d.w.jobs)); got != want {
				t.Fatalf("step %d: after %v: %s entries, want %s", taken, command, got, want)
			}
			if got, want := d.c.Do("DQ.LEN", "q", "READY"), strconv.Itoa(len(d.w.due())); got != want {
				t.Fatalf("step %d: after %v: %s due, want %s", taken, command, got, want)
			}
		}
		letters := map[string]bool{}
		for _, id := range d.w.letters {
			letters[id] = true
		}
		if got := d.c.Do("DQ.LEN", "{q}dead"); got != strconv.Itoa(len(letters)) {
			t.Fatalf("%s dead letters, want %v", got, letters)
		}
		done["dead"] += len(letters)
		for _, c := range d.w.line {
			c.client.Close()
		}
	}
	t.Logf("%d steps: %v", steps, done)
	for _, what := range []string{"add", "pop", "block", "served", "timeout", "ack", "nack", "touch", "rem", "disconnect"} {
		if done[what] < steps/400 {
			t.Errorf("only %d times %s", done[what], what)
		}
	}
}
