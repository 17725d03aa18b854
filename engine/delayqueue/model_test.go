package delayqueue

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// naive is a queue as a plain list, written from the meaning of the commands.
type naive struct {
	list     []*naiveEntry
	order    int
	settings Settings
	totals   Totals
}

type naiveEntry struct {
	id, payload   string
	due, until    int64
	order         int
	attempt, base int64
	state         State // Ready stands for waiting here
}

func (m *naive) get(id string) *naiveEntry {
	for _, e := range m.list {
		if e.id == id {
			return e
		}
	}
	return nil
}

func (m *naive) drop(e *naiveEntry) {
	m.list = slices.DeleteFunc(m.list, func(o *naiveEntry) bool { return o == e })
}

// in lists the entries of a state in order of a time.
func (m *naive) in(state State, at func(*naiveEntry) int64) (found []*naiveEntry) {
	for _, e := range m.list {
		if e.state == state {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b *naiveEntry) int {
		return cmp.Or(cmp.Compare(at(a), at(b)), cmp.Compare(a.order, b.order))
	})
	return found
}

func dueOf(e *naiveEntry) int64   { return e.due }
func untilOf(e *naiveEntry) int64 { return e.until }

func (m *naive) wait(e *naiveEntry, due int64) {
	m.order++
	e.state, e.due, e.order = Ready, due, m.order
}

func (m *naive) add(id, payload string, due int64, mode Mode) bool {
	e := m.get(id)
	if e == nil && mode == OnlyOld || e != nil && mode == OnlyNew {
		return false
	}
	if e == nil {
		e = &naiveEntry{id: id}
		m.list = append(m.list, e)
		m.totals.Added++
	}
	e.payload, e.base = payload, e.attempt
	m.wait(e, due)
	return true
}

func (m *naive) pop(now, lease int64, count int) (out []Entry) {
	for _, e := range m.in(Ready, dueOf) {
		if len(out) == count || e.due > now {
			break
		}
		e.attempt++
		if lease > 0 {
			e.state, e.until = Leased, now+lease
		} else {
			m.drop(e)
		}
		out = append(out, e.shown(now))
		m.totals.Delivered++
	}
	return out
}

func (e *naiveEntry) shown(now int64) Entry {
	s := Entry{ID: []byte(e.id), Payload: []byte(e.payload), DueMicros: e.due, Attempt: e.attempt, State: e.state}
	if e.state == Leased {
		s.UntilMicros = e.until
	}
	if e.state == Ready && e.due > now {
		s.State = Delayed
	}
	return s
}

func (m *naive) held(id string, attempt, now int64) *naiveEntry {
	e := m.get(id)
	if e == nil || e.state != Leased || e.until <= now || attempt != 0 && e.attempt != attempt {
		return nil
	}
	return e
}

func (m *naive) fails(e *naiveEntry) bool {
	return m.settings.Tries > 0 && m.settings.Dead != "" && e.attempt-e.base >= m.settings.Tries
}

func (m *naive) nack(e *naiveEntry, now, delay int64, dead bool) {
	m.totals.Nacked++
	if dead || m.fails(e) {
		e.state, e.until = Dying, now
		return
	}
	if delay == ByBackoff {
		delay = m.settings.BackoffMicros
		for i := e.attempt - e.base; i > 1 && delay < m.settings.BackoffMaxMicros; i-- {
			delay *= 2
		}
		delay = min(delay, m.settings.BackoffMaxMicros)
	}
	m.wait(e, now+delay)
}

func (m *naive) settle(now int64, count int) int {
	n := 0
	for _, e := range m.in(Leased, untilOf) {
		if n == count || e.until > now {
			break
		}
		n++
		m.totals.Expired++
		if m.fails(e) {
			e.state = Dying
		} else {
			m.wait(e, e.until)
		}
	}
	return n
}

func (m *naive) nextLeaseEnd() int64 {
	if l := m.in(Leased, untilOf); len(l) > 0 {
		return (l[0].until + 999) / 1000
	}
	return 0
}

func (m *naive) peek(state State, now int64, count int) (out []Entry) {
	show := func(list []*naiveEntry, want func(*naiveEntry) bool) {
		for _, e := range list {
			if len(out) < count && want(e) {
				out = append(out, e.shown(now))
			}
		}
	}
	all := func(*naiveEntry) bool { return true }
	switch state {
	case Ready:
		show(m.in(Ready, dueOf), func(e *naiveEntry) bool { return e.due <= now })
	case Delayed:
		show(m.in(Ready, dueOf), func(e *naiveEntry) bool { return e.due > now })
	case Leased:
		show(m.in(Leased, untilOf), all)
	case Dying:
		show(m.in(Dying, untilOf), all)
	default:
		show(m.in(Ready, dueOf), all)
		show(m.in(Leased, untilOf), all)
		show(m.in(Dying, untilOf), all)
	}
	return out
}

func sameEntries(got, want []Entry) error {
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) {
			return fmt.Errorf("%d entries, want %d", len(got), len(want))
		}
		g, w := got[i], want[i]
		if string(g.ID) != string(w.ID) || string(g.Payload) != string(w.Payload) || g.DueMicros != w.DueMicros ||
			g.Attempt != w.Attempt || g.State != w.State || g.UntilMicros != w.UntilMicros {
			return fmt.Errorf("entry %d is %+v, want %+v", i, g, w)
		}
	}
	return nil
}

// run takes one random step on both and compares what it gives.
type run struct {
	rnd   *rand.Rand
	q     *Queue
	m     *naive
	now   int64
	done  map[string]int
	names int
}

// id is one of the few, as often as not of an entry that is leased.
func (r *run) id() string {
	if l := r.m.in(Leased, untilOf); len(l) > 0 && r.rnd.IntN(2) == 0 {
		return l[r.rnd.IntN(len(l))].id
	}
	return "job" + strconv.Itoa(r.rnd.IntN(r.names))
}

// attempt is none, the right one, or a stale one.
func (r *run) attempt(id string) int64 {
	e := r.m.get(id)
	if e == nil || r.rnd.IntN(2) == 0 {
		return int64(r.rnd.IntN(2))
	}
	return max(0, e.attempt-int64(r.rnd.IntN(2)))
}

func (r *run) span() int64 { return r.rnd.Int64N(90) * r.rnd.Int64N(3) }

func (r *run) did(what string, worked bool) {
	if worked {
		r.done[what]++
	}
}

func (r *run) step() error {
	r.now += []int64{0, 0, 0, 1, 2, 7, 40, 200}[r.rnd.IntN(8)]
	id := r.id()
	attempt := r.attempt(id)
	differ := func(what string, got, want any) error {
		if got != want {
			return fmt.Errorf("%s %s#%d: %v, want %v", what, id, attempt, got, want)
		}
		return nil
	}
	switch n := r.rnd.IntN(100); {
	case n < 30:
		mode, due := Mode(r.rnd.IntN(3)), r.now+r.span()-r.span()/2
		payload := "p" + strconv.Itoa(r.rnd.IntN(1000))
		want := r.m.add(id, payload, due, mode)
		r.did("add", want)
		return differ("add", r.q.Add([]byte(id), []byte(payload), due, mode), want)
	case n < 50:
		lease, count := 5*r.span(), 1+r.rnd.IntN(4)
		var got []Entry
		r.q.Pop(r.now, lease, count, func(e Entry) { got = append(got, e) })
		want := r.m.pop(r.now, lease, count)
		r.did("pop", len(want) > 0)
		return sameEntries(got, want)
	case n < 58:
		e := r.m.held(id, attempt, r.now)
		if e != nil {
			r.m.drop(e)
			r.m.totals.Acked++
		}
		r.did("ack", e != nil)
		return differ("ack", r.q.Ack([]byte(id), attempt, r.now), e != nil)
	case n < 68:
		delay, dead := r.span(), r.rnd.IntN(3) == 0
		if r.rnd.IntN(2) == 0 {
			delay = ByBackoff
		}
		e := r.m.held(id, attempt, r.now)
		if e != nil {
			r.m.nack(e, r.now, delay, dead)
		}
		r.did("nack", e != nil)
		return differ("nack", r.q.Nack([]byte(id), attempt, r.now, delay, dead), e != nil)
	case n < 74:
		until := r.now + r.span()
		e := r.m.get(id)
		switch {
		case e == nil || e.state == Dying, attempt != 0 && (e.state != Leased || e.attempt != attempt),
			e.state == Leased && e.until <= r.now:
			e = nil
		case e.state == Leased:
			e.until = until
		default:
			r.m.wait(e, until)
		}
		r.did("touch", e != nil)
		return differ("touch", r.q.Touch([]byte(id), attempt, r.now, until), e != nil)
	case n < 78:
		e := r.m.get(id)
		if e != nil && (attempt == 0 || e.attempt == attempt) {
			r.m.drop(e)
			r.m.totals.Removed++
		} else {
			e = nil
		}
		r.did("remove", e != nil)
		return differ("remove", r.q.Remove([]byte(id), attempt), e != nil)
	case n < 86:
		count := 1 + r.rnd.IntN(3)
		want := r.m.settle(r.now, count)
		got, _ := r.q.Settle(r.now, count, nil)
		r.did("settle", want > 0)
		return differ("settle", got, want)
	case n < 89:
		count := 1 + r.rnd.IntN(3)
		dying := r.m.in(Dying, untilOf)
		dying = dying[:min(count, len(dying))]
		var got, want []Entry
		for _, e := range dying {
			r.m.drop(e)
			want = append(want, e.shown(r.now))
		}
		r.m.totals.Dead += int64(len(want))
		r.q.TakeDying(count, func(e Entry) { got = append(got, e) })
		r.did("die", len(want) > 0)
		return sameEntries(got, want)
	case n < 91:
		s := Settings{LeaseMicros: r.span(), Tries: r.rnd.Int64N(4), BackoffMicros: r.span(), BackoffMaxMicros: 100}
		if r.rnd.IntN(2) == 0 {
			s.Dead = "dead"
		}
		r.m.settings = s
		r.q.Configure(s)
		r.did("configure", true)
	case n < 92:
		r.q = r.q.Clone()
		r.did("clone", true)
	default:
		state, count := State(r.rnd.IntN(5)), 1+r.rnd.IntN(6)
		var got []Entry
		r.q.Peek(state, r.now, count, func(e Entry) { got = append(got, e) })
		want := r.m.peek(state, r.now, count)
		r.did("peek", len(want) > 0)
		return sameEntries(got, want)
	}
	return nil
}

func (r *run) compare() error {
	if err := r.q.Check(); err != nil {
		return err
	}
	for state := Any; state <= Dying; state++ {
		want := len(r.m.peek(state, r.now, 1<<30))
		if got := r.q.Count(state, r.now); got != want {
			return fmt.Errorf("%d in state %d, want %d", got, state, want)
		}
	}
	head, ok := r.q.NextHead()
	if first := r.m.in(Ready, dueOf); ok != (len(first) > 0) || ok && head != first[0].due {
		return fmt.Errorf("head at %d %v", head, ok)
	}
	if got, want := r.q.NextDue(), r.m.nextLeaseEnd(); got != want {
		return fmt.Errorf("next lease ends at %d, want %d", got, want)
	}
	if r.q.Totals() != r.m.totals {
		return fmt.Errorf("totals %+v, want %+v", r.q.Totals(), r.m.totals)
	}
	return nil
}

// Random interleavings of all operations and steps of the clock, against a list.
func TestModel(t *testing.T) {
	steps := 40_000
	if n, err := strconv.Atoi(os.Getenv("LIMITKV_MODEL_STEPS")); err == nil && n > 0 {
		steps = n
	}
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("LIMITKV_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("LIMITKV_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	done := map[string]int{}
	for taken := 0; taken < steps; {
		r := &run{rnd: rnd, q: New(), m: &naive{}, now: 1_700_000_000_000_000, done: done, names: 3 + rnd.IntN(30)}
		for range 400 {
			taken++
			err := r.step()
			if err == nil {
				err = r.compare()
			}
			if err != nil {
				t.Fatalf("step %d: %v", taken, err)
			}
		}
	}
	t.Logf("%d steps: %v", steps, done)
	for _, what := range []string{"add", "pop", "ack", "nack", "touch", "remove", "settle", "die", "configure", "clone", "peek"} {
		if done[what] < steps/500 {
			t.Errorf("only %d times %s", done[what], what)
		}
	}
}
