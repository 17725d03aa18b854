// Random commands, waiting clients, disconnects, leases that end and steps of the clock over a socket, against a lock and a
// line that are plain lists. The first in line gets the lock first, in whatever mode. The effects in the journal make the
// same locks again.
package lock_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands/livetest"
)

// want is a request for the lock. Times are in ms.
type want struct {
	owner       string
	lease, take int64
	mode        string // "", SHARED or OF
	permits     int64
	delay       int64
	client      *livetest.Client // the connection that the lease is bound to
}

type hold struct {
	want
	fence, until int64
}

// waiting is a waiter in line.
type waiting struct {
	want
	client   *livetest.Client
	deadline int64 // 0: none
}

// world is the naive lock and its line.
type world struct {
	now, fence, closed int64
	holds              []*hold
	line               []*waiting
	replies            map[*waiting]string
	finished           []*waiting
}

func (w *world) find(owner string) *hold {
	for _, h := range w.holds {
		if h.owner == owner {
			return h
		}
	}
	return nil
}

func (w *world) drop(h *hold) {
	w.holds = slices.DeleteFunc(w.holds, func(o *hold) bool { return o == h })
}

// lose ends a hold that its owner did not release.
func (w *world) lose(h *hold) {
	w.drop(h)
	if h.delay > 0 {
		w.closed = max(w.closed, w.now+h.delay)
	}
}

// grant grants the lock if the caller may have it now, and returns "" if not. A text with a minus is an error.
func (w *world) grant(q *want, first bool) string {
	until := w.now + q.lease
	left := q.lease
	if q.lease == 0 {
		until, left = 1<<60, -1
	}
	if h := w.find(q.owner); h != nil {
		switch {
		case h.mode == "" && q.mode == "SHARED":
		case h.mode == "OF" && q.mode == "OF" && h.permits != q.permits:
			return "-ERR the lock has another number of permits while some of them are out"
		case h.mode != q.mode || h.take != q.take:
			return "-ERR this owner holds the lock in another way, release it first"
		}
		h.want, h.until = *q, until
		return fmt.Sprintf("[1 %d %d 0]", h.fence, left)
	}
	if len(w.holds) > 0 {
		taken := q.take
		for _, h := range w.holds {
			taken += h.take
		}
		switch h := w.holds[0]; {
		case h.mode != q.mode || q.mode == "":
			return ""
		case h.permits != q.permits:
			return "-ERR the lock has another number of permits while some of them are out"
		case q.mode == "OF" && taken > q.permits:
			return ""
		}
	}
	if w.closed > w.now || !first && len(w.line) > 0 {
		return ""
	}
	w.fence = max(w.fence+1, w.now*1000)
	w.holds = append(w.holds, &hold{*q, w.fence, until})
	return fmt.Sprintf("[1 %d %d 0]", w.fence, left)
}

// serve grants the line what is possible.
func (w *world) serve() {
	for len(w.line) > 0 {
		q := w.line[0]
		text := w.grant(&q.want, true)
		if text == "" {
			return
		}
		w.line = w.line[1:]
		w.reply(q, text)
		if text[0] == '-' {
			continue
		}
		for _, same := range slices.Clone(w.line) { // its owner may stand in line a second time
			if same.owner == q.owner {
				w.line = slices.DeleteFunc(w.line, func(o *waiting) bool { return o == same })
				w.reply(same, w.grant(&same.want, true))
			}
		}
	}
}

func (w *world) reply(q *waiting, text string) {
	w.replies[q] = text
	w.finished = append(w.finished, q)
}

// advance moves the clock from one event to the next.
func (w *world) advance(ms int64) {
	for end := w.now + ms; ; {
		next := end
		for _, h := range w.holds {
			next = min(next, h.until)
		}
		if w.closed > w.now {
			next = min(next, w.closed)
		}
		for _, q := range w.line {
			if q.deadline > w.now {
				next = min(next, q.deadline)
			}
		}
		w.now = max(next, w.now)
		for _, h := range slices.Clone(w.holds) {
			if h.until <= w.now {
				w.lose(h)
			}
		}
		w.serve()
		for _, q := range slices.Clone(w.line) {
			if q.deadline != 0 && q.deadline <= w.now {
				w.line = slices.DeleteFunc(w.line, func(o *waiting) bool { return o == q })
				w.reply(q, "refused")
			}
		}
		w.serve() // another waiter may be first now
		if w.now >= end {
			return
		}
	}
}

// driver runs the server and the model.
type driver struct {
	t    *testing.T
	rnd  *rand.Rand
	s    *livetest.Server
	c    *livetest.Client
	w    *world
	done map[string]int
	idle []*livetest.Client
}

func (d *driver) span() int64 { return 10 * (1 + d.rnd.Int64N(20)) }

// ask is a random request, mostly in the mode in which the lock is held.
func (d *driver) ask() want {
	q := want{owner: "o" + strconv.Itoa(d.rnd.IntN(14)), lease: d.span(), take: 1}
	if d.rnd.IntN(6) == 0 {
		q.lease = 0
	}
	if d.rnd.IntN(8) == 0 {
		q.delay = d.span() / 2
	}
	q.mode = []string{"", "SHARED", "OF"}[d.rnd.IntN(3)]
	if len(d.w.holds) > 0 && d.rnd.IntN(3) > 0 {
		q.mode = d.w.holds[0].mode
	}
	if q.mode == "OF" {
		q.permits, q.take = 12, 1+d.rnd.Int64N(2)
		if d.rnd.IntN(20) == 0 {
			q.permits = 13
		}
	}
	return q
}

func (q *want) args() []any {
	args := []any{"LK.ACQUIRE", "k", q.owner, q.lease}
	switch q.mode {
	case "SHARED":
		args = append(args, "SHARED")
	case "OF":
		args = append(args, "OF", q.permits, "TAKE", q.take)
	}
	if q.delay != 0 {
		args = append(args, "DELAY", q.delay)
	}
	return args
}

// taker is a connection that takes the lock. One that waits needs another than one that does not.
func (d *driver) taker() *livetest.Client {
	if n := len(d.idle); n > 0 {
		c := d.idle[n-1]
		d.idle = d.idle[:n-1]
		return c
	}
	return d.s.Client()
}

// step does one thing to both, and returns the command, its reply and the expected reply.
func (d *driver) step() (command []any, got, want string) {
	w := d.w
	do := func(args ...any) string {
		command = args
		return d.c.Do(args...)
	}
	hit := func(what string, ok bool) string {
		if !ok {
			return "0"
		}
		d.done[what]++
		return "1"
	}
	switch n := d.rnd.IntN(100); {
	case n < 30:
		q := d.ask()
		c := d.taker()
		q.client = c
		command = q.args()
		got = c.Do(command...)
		if want = w.grant(&q, false); want == "" {
			want = "refused"
		} else if want[0] == '[' {
			d.done["granted"]++
		} else {
			d.done["error"]++
		}
		d.idle = append(d.idle, c)
	case n < 50 && len(w.line) < 8:
		d.block()
	case n < 65:
		owner := "o" + strconv.Itoa(d.rnd.IntN(14))
		if len(w.holds) > 0 && d.rnd.IntN(3) > 0 {
			owner = w.holds[d.rnd.IntN(len(w.holds))].owner
		}
		h := w.find(owner)
		args := []any{"LK.RELEASE", "k", owner}
		if h != nil && d.rnd.IntN(2) == 0 {
			fence := h.fence - d.rnd.Int64N(3)/2
			args = append(args, fence)
			if fence != h.fence {
				h = nil
			}
		}
		got = do(args...)
		if want = hit("release", h != nil); h != nil {
			w.drop(h)
		}
	case n < 72:
		owner, ms := "o"+strconv.Itoa(d.rnd.IntN(14)), d.span()
		h := w.find(owner)
		got = do("LK.TOUCH", owner, ms, "k")
		if want = hit("touch", h != nil); h != nil {
			h.until, h.lease = w.now+ms, ms
		}
	case n < 77:
		fence := w.fence - d.rnd.Int64N(3)
		want = "-FENCED the lock was lost"
		for _, h := range w.holds {
			if h.fence == fence {
				want = "OK"
				d.done["guard"]++
			}
		}
		got = do("LK.GUARD", "k", fence)
	case n < 81:
		if len(w.line) > 0 {
			i := d.rnd.IntN(len(w.line))
			command = []any{w.line[i].owner, "leaves the line"}
			w.line[i].client.Close()
			d.lost(w.line[i].client)
			w.line = slices.Delete(w.line, i, i+1)
			d.done["left line"]++
		}
	case n < 85:
		command = d.disconnect()
	default:
		ms := 10 * d.rnd.Int64N(10)
		command = []any{"advance", ms}
		d.s.Advance(ms)
		w.advance(ms)
	}
	w.serve()
	return command, got, want
}

// lost ends the leases that are bound to a connection.
func (d *driver) lost(c *livetest.Client) {
	for _, h := range slices.Clone(d.w.holds) {
		if h.lease == 0 && h.client == c {
			d.w.lose(h)
			d.done["bound lost"]++
		}
	}
}

// disconnect ends a connection that a lease is bound to, if there is one.
func (d *driver) disconnect() (command []any) {
	for _, h := range d.w.holds {
		i := slices.Index(d.idle, h.client)
		if h.lease != 0 || i < 0 {
			continue
		}
		command = []any{h.owner, "disconnects"}
		h.client.Close()
		d.idle = slices.Delete(d.idle, i, i+1)
		d.lost(h.client)
		for end := time.Now().Add(5 * time.Second); strings.Contains(d.c.Do("LK.INFO", "k"), "["+h.owner+" "+fmt.Sprint(h.fence)); {
			if time.Now().After(end) {
				d.t.Fatal("a lease did not end with its connection")
			}
		}
		break
	}
	return command
}

// block puts one more waiter in line, if it does not get the lock at once.
func (d *driver) block() {
	w := d.w
	q := &waiting{want: d.ask()}
	before := *w
	before.holds = slices.Clone(w.holds)
	if h := w.find(q.owner); h != nil {
		return // a renewal, or an error
	}
	if text := w.grant(&q.want, false); text != "" {
		*w = before
		return
	}
	q.client = d.taker()
	q.want.client = q.client
	args := append(q.args(), "BLOCK", 0)
	if d.rnd.IntN(2) == 0 {
		ms := d.span() + 5 // never at the same time as another event
		q.deadline = w.now + ms
		args[len(args)-1] = ms
	}
	q.client.Send(args...)
	w.line = append(w.line, q)
	d.s.Blocked(int64(len(w.line)))
	d.done["block"]++
}

// same compares replies. All refusals are equal.
func same(got, want string) bool {
	return got == want || want == "refused" && strings.HasPrefix(got, "[0 ")
}

// collect reads the replies to the waiters that were served, and compares them.
func (d *driver) collect() error {
	for _, q := range d.w.finished {
		got, ok := q.client.Poll(5 * time.Second)
		switch {
		case !ok:
			return fmt.Errorf("%s in line got nothing, want %s; %s", q.owner, d.w.replies[q], d.c.Do("LK.INFO", "k"))
		case !same(got, d.w.replies[q]):
			return fmt.Errorf("%s in line got %s, want %s", q.owner, got, d.w.replies[q])
		case d.w.replies[q] == "refused":
			d.done["timeout"]++
		default:
			d.done["served"]++
		}
		d.idle = append(d.idle, q.client)
	}
	d.w.finished = nil
	clear(d.w.replies)
	d.s.Blocked(int64(len(d.w.line)))
	return nil
}

// held is the lock's holders, as in LK.INFO.
func (w *world) held() string {
	list := slices.Clone(w.holds)
	slices.SortFunc(list, func(a, b *hold) int { return cmp.Compare(a.fence, b.fence) })
	var all []string
	for _, h := range list {
		left := h.until - w.now
		if h.lease == 0 {
			left = -1
		}
		all = append(all, fmt.Sprintf("[%s %d %d %d]", h.owner, h.fence, left, h.take))
	}
	return "holders [" + strings.Join(all, " ") + "] waiters " + strconv.Itoa(len(w.line))
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
		d := &driver{t: t, rnd: rnd, s: s, c: s.Client(), done: done}
		d.w = &world{now: s.Now(), replies: map[*waiting]string{}}
		d.c.Want("OK", "LKV.JOURNAL", "START")
		for range 500 {
			taken++
			command, got, want := d.step()
			trace = append(trace, fmt.Sprint(d.w.now-livetest.Epoch, command, got))
			for _, q := range d.w.line {
				trace = append(trace, fmt.Sprintf("      %s %s %d until %d", q.owner, q.mode, q.take, q.deadline-livetest.Epoch))
			}
			if !same(got, want) {
				t.Fatalf("step %d: %v\n got %s\nwant %s", taken, command, got, want)
			}
			if err := d.collect(); err != nil {
				t.Fatalf("step %d: after %v: %v", taken, command, err)
			}
			if got, want := d.c.Do("LK.INFO", "k"), d.w.held(); !strings.Contains(got, want) {
				t.Fatalf("step %d: after %v:\n got %s\nwant %s", taken, command, got, want)
			}
			if left := len(d.w.holds) > 0 || d.w.closed > d.w.now; (d.c.Do("EXISTS", "k") == "1") != left {
				t.Fatalf("step %d: after %v: that there is a key is not %v", taken, command, left)
			}
			d.c.Want("OK", "LKV.JOURNAL", "CHECK")
		}
		for _, q := range d.w.line {
			q.client.Close()
		}
	}
	t.Logf("%d steps: %v", steps, done)
	for _, what := range []string{"granted", "error", "block", "served", "timeout", "release", "touch", "guard", "left line", "bound lost"} {
		if done[what] < steps/400 {
			t.Errorf("only %d times %s", done[what], what)
		}
	}
}
