package delayqueue

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// run takes one random step on both and compares what it gives.
type run struct {
	rnd   *rand.Rand
	q     *Queue
	m     *naive
	now   int64
	done  map[string]int
	names int
	ranks bool // there are groups and priorities
	plans bool // and schedules, whose times are longer
	imaging
	looking
}

// id is one of a few ids, half of the time that of a leased entry.
func (r *run) id() string {
	if l := r.m.in(Leased, untilOf); len(l) > 0 && r.rnd.IntN(2) == 0 {
		return l[r.rnd.IntN(len(l))].id
	}
	if r.plans && r.rnd.IntN(8) == 0 {
		return "plan" + strconv.Itoa(r.rnd.IntN(3))
	}
	if n := len(r.m.list); r.plans && n > 0 && r.rnd.IntN(8) == 0 {
		return r.m.list[r.rnd.IntN(n)].id
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

// extra is nothing, or some of the options.
func (r *run) extra() (x Extra) {
	for _, of := range []*int64{&x.ExpireMicros, &x.UniqueMicros, &x.MaxWaitMicros} {
		if r.rnd.IntN(3) == 0 {
			*of = 1 + 4*r.span()
		}
	}
	if r.ranks {
		x.Prio = uint8(r.rnd.IntN(3) * r.rnd.IntN(128))
		if g := r.rnd.IntN(5); g > 0 {
			x.Group = []byte("group" + strconv.Itoa(g))
		}
	}
	return x
}

func (r *run) did(what string, worked bool) {
	if worked {
		r.done[what]++
	}
}

func (r *run) step() error {
	tick := []int64{0, 0, 0, 1, 2, 7, 40, 200}[r.rnd.IntN(8)]
	if r.plans && r.rnd.IntN(3) == 0 {
		tick *= 20
	}
	r.now += tick
	id := r.id()
	attempt := r.attempt(id)
	differ := func(what string, got, want any) error {
		if got != want {
			return fmt.Errorf("%s %s#%d: %v, want %v", what, id, attempt, got, want)
		}
		return nil
	}
	switch n := r.rnd.IntN(100); {
	case n < 4 && r.plans:
		mode, every, x := Mode(r.rnd.IntN(3)), 1000*(1+r.rnd.Int64N(4)), r.extra()
		x.MaxWaitMicros, x.UniqueMicros = 0, 0
		id, payload := "plan"+strconv.Itoa(r.rnd.IntN(3)), "p"+strconv.Itoa(r.rnd.IntN(1000))
		plan := &Schedule{ID: []byte(id), Payload: []byte(payload), EveryMicros: every, Extra: x}
		if r.rnd.IntN(2) == 0 {
			want := r.m.replan(id, payload, every, x)
			r.did("replan", want)
			return differ("replan", r.q.Replan(plan), want)
		}
		want := r.m.schedule(r.now, id, payload, every, x, mode)
		r.did("schedule", want)
		got, err := r.q.Schedule(r.now, plan, mode)
		if err != nil {
			return err
		}
		return differ("schedule", got, want)
	case n < 30:
		mode, due := Mode(r.rnd.IntN(3)), r.now+r.span()-r.span()/2
		payload := "p" + strconv.Itoa(r.rnd.IntN(1000))
		x := r.extra()
		_, known := r.m.known[id]
		want := r.m.add(r.now, id, payload, due, x, mode)
		r.did("add", want)
		r.did("known", known && !want)
		if e := r.m.get(id); want {
			r.did("sooner", e.due < due)
			r.did("behind", r.m.behind[id] != nil)
		}
		given := &x
		if x.fields() == 0 {
			given = nil
		}
		return differ("add", r.q.Add(r.now, []byte(id), []byte(payload), due, given, mode), want)
	case n < 50:
		lease, count := 5*r.span(), 1+r.rnd.IntN(4)
		var got []Entry
		twin := New()
		if r.rnd.IntN(5) == 0 {
			twin = r.q.Clone()
		}
		r.q.Pop(r.now, lease, count, func(e Entry) { got = append(got, e) })
		want := r.m.pop(r.now, lease, count)
		r.did("pop", len(want) > 0)
		// The effects are the same by the ids.
		if twin.Len() == 0 {
			return sameEntries(got, want)
		}
		for _, e := range got {
			if !twin.Take(e.ID, r.now, lease) {
				return fmt.Errorf("the twin has no %s", e.ID)
			}
		}
		if a, b := fmt.Sprint(twin.Turns()), fmt.Sprint(r.q.Turns()); a != b {
			return fmt.Errorf("the twin has the turns %s, not %s", a, b)
		}
		return sameEntries(got, want)
	case n < 58:
		e := r.m.held(id, attempt, r.now)
		if e != nil {
			r.m.done(e, r.now)
			r.m.totals.Acked++
		}
		r.did("ack", e != nil)
		return differ("ack", r.q.Ack([]byte(id), attempt, r.now), e != nil)
	case n < 68:
		delay, dead := r.span(), r.rnd.IntN(3) == 0
		if r.rnd.IntN(2) == 0 {
			delay = ByBackoff
		}
		e, reason := r.m.held(id, attempt, r.now), ""
		if r.rnd.IntN(2) == 0 {
			reason = "reason" + strconv.Itoa(r.rnd.IntN(100))
		}
		if e != nil {
			r.m.nack(e, r.now, delay, dead, reason)
		}
		r.did("nack", e != nil)
		return differ("nack", r.q.Nack([]byte(id), attempt, r.now, delay, dead, []byte(reason)), e != nil)
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
		_, known := r.m.known[id]
		plan := false
		if attempt == 0 {
			_, plan = r.m.unschedule(id)
		}
		switch {
		case e != nil && (attempt == 0 || e.attempt == attempt):
			delete(r.m.behind, id)
			r.m.leave(e, r.now)
			r.m.totals.Removed++
		case known && attempt == 0:
			delete(r.m.known, id)
		default:
			e, known = nil, false
		}
		if plan {
			r.m.totals.Removed++
			r.did("unschedule", true)
			e = &naiveEntry{}
		}
		r.did("remove", e != nil)
		return differ("remove", r.q.Remove([]byte(id), attempt, r.now), e != nil || known)
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
			shown := e.shown(r.now)
			r.m.leave(e, r.now)
			r.m.regroup()
			want = append(want, shown)
		}
		r.m.totals.Dead += int64(len(want))
		r.q.TakeDying(r.now, count, func(e Entry) { got = append(got, e) })
		r.did("die", len(want) > 0)
		return sameEntries(got, want)
	case n < 91:
		s := Settings{GroupConc: r.rnd.Int64N(4), Paused: r.rnd.IntN(4) == 0, MaxLen: r.rnd.Int64N(20), LeaseMicros: r.span(), Tries: r.rnd.Int64N(4), BackoffMicros: r.span(), BackoffMaxMicros: 100}
		if r.rnd.IntN(2) == 0 {
			s.Dead = "dead"
		}
		r.m.settings = s
		r.q.Configure(s)
		r.did("configure", true)
	case n < 92:
		r.q = r.q.Clone()
		r.did("clone", true)
	case n < 93:
		q, err := saved(r.q)
		if err != nil {
			return err
		}
		r.q = q
		r.did("save", true)
	case n < 94 && !r.plans && r.rnd.IntN(2) == 0:
		by := 1 + r.rnd.Int64N(300)
		r.did("back", len(r.m.in(Leased, untilOf)) > 0)
		r.now -= by
		r.m.setBack(r.now, by)
		r.q.SetBack(r.now, -by)
	case n < 95 && len(r.m.list) > 0:
		// From one on, in whatever order it stands.
		from := r.m.list[r.rnd.IntN(len(r.m.list))].id
		state := State(r.rnd.IntN(5))
		want := r.m.peek(state, r.now, 1<<30)
		at := slices.IndexFunc(want, func(e Entry) bool { return string(e.ID) == from })
		want = want[max(at, 0):]
		var got []Entry
		found := r.q.Walk(state, r.now, []byte(from), func(e Entry) bool { got = append(got, e); return true })
		if at < 0 {
			return differ("from", found, false)
		}
		r.did("from", at > 0)
		return sameEntries(got, want)
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
	r.m.regroup()
	if err := r.q.Check(); err != nil {
		return err
	}
	for state := Any; state <= Dying; state++ {
		want := len(r.m.peek(state, r.now, 1<<30))
		if got := r.q.Count(state, r.now); got != want {
			return fmt.Errorf("%d in state %d, want %d", got, state, want)
		}
	}
	for _, s := range r.q.Schedules() {
		p := r.m.plans[string(s.ID)]
		if p == nil || p.next != s.NextMicros || p.after != s.AfterMicros || !r.q.Has([]byte(p.occurrence())) {
			return fmt.Errorf("schedule %+v, want %+v", s, p)
		}
		r.did("occurs", p.next <= r.now)
	}
	if len(r.q.Schedules()) != len(r.m.plans) {
		return fmt.Errorf("schedules %+v, want %+v", r.q.Schedules(), r.m.plans)
	}
	turns, last := r.q.Turns()
	for i, g := range turns {
		if r.did("turns", i > 1); i > 0 && r.m.turns[g.Name] < r.m.turns[turns[i-1].Name] {
			return fmt.Errorf("turns %+v, last %d, want %v", turns, last, r.m.turns)
		}
	}
	if want := len(r.m.turns); len(turns) > 0 && r.q.Groups() > want {
		return fmt.Errorf("%d groups, want %v", r.q.Groups(), r.m.turns)
	}
	head, ok := r.q.NextHead()
	if first := r.m.in(Ready, dueOf); ok != (len(first) > 0) || ok && head != first[0].due {
		return fmt.Errorf("head at %d %v", head, ok)
	}
	if got, want := r.q.NextDue(), r.m.nextDue(); got != want {
		return fmt.Errorf("something happens next at %d, want %d", got, want)
	}
	if got, want := r.q.Remembered(), len(r.m.known); got != want || r.q.Len() != len(r.m.list) {
		return fmt.Errorf("%d entries and %d ids, want %d and %d", r.q.Len(), got, len(r.m.list), want)
	}
	if got, want := r.q.Behind(), len(r.m.behind); got != want {
		return fmt.Errorf("%d entries are behind others, want %d", got, want)
	}
	if got, want := r.q.Full(), r.m.settings.MaxLen > 0 && len(r.m.list) >= int(r.m.settings.MaxLen); got != want {
		return fmt.Errorf("full is %v with %d entries", got, r.q.Len())
	}
	if r.q.Totals() != r.m.totals {
		return fmt.Errorf("totals %+v, want %+v", r.q.Totals(), r.m.totals)
	}
	return nil
}

// saved takes a queue apart and makes another of it.
func saved(q *Queue) (*Queue, error) {
	out, err := Restore(q.Head())
	if err != nil {
		return nil, err
	}
	for _, state := range SavedStates {
		q.Each(state, func(s Saved) {
			if err == nil {
				err = out.RestoreEntry(s)
			}
		})
	}
	if err == nil {
		err = out.RestoreOrder()
	}
	for _, s := range q.Schedules() {
		if err == nil {
			err = out.RestoreSchedule(s)
		}
	}
	if err == nil {
		err = out.RestoreTurns(q.Turns())
	}
	return out, err
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
		r := &run{rnd: rnd, q: New(), m: &naive{known: map[string]known{}, turns: map[string]int{}, plans: map[string]*naivePlan{}, behind: map[string]*naiveEntry{}}, now: 1_700_000_000_000_000, done: done, names: 3 + rnd.IntN(30), ranks: rnd.IntN(3) > 0, plans: rnd.IntN(2) > 0}
		for range 400 {
			taken++
			err := r.imagine()
			if err == nil {
				err = r.look()
			}
			if err == nil {
				err = r.step()
			}
			if err == nil {
				err = r.compare()
			}
			if err != nil {
				t.Fatalf("step %d: %v", taken, err)
			}
		}
	}
	t.Logf("%d steps: %v", steps, done)
	for _, what := range []string{"add", "pop", "ack", "nack", "touch", "remove", "settle", "die", "configure", "clone", "peek", "known", "behind", "sooner", "save", "from", "turns", "image", "early", "search", "found early", "schedule", "replan", "unschedule", "occurs", "back"} {
		if done[what] < steps/10000 {
			t.Errorf("only %d times %s", done[what], what)
		}
	}
}
