// Named grants against naive models: a list of all that was taken, which is counted again for each question.
package limiter

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"sort"
	"strconv"
	"testing"
)

// settler is a naive model that settles. diff is how much of what was taken at a time was not needed; it is negative if
// more was needed. mark is what the model noted when it was taken.
type settler interface {
	naive
	mark(now, cost int64) any
	settle(now, taken, cost, diff int64, mark any)
}

func (f *naiveFixed) mark(int64, int64) any { return nil }

func (f *naiveFixed) settle(now, taken, _, diff int64, _ any) {
	used := f.used(now)
	switch {
	case used == 0 && diff < 0 && now-taken < f.rule.PeriodMicros:
		f.list = []event{{taken, -diff}}
	case used > 0 && taken >= f.list[0].at:
		f.list = append(f.list, event{now, -min(diff, used)})
	}
}

func (l *naiveLog) mark(int64, int64) any { return nil }

func (l *naiveLog) settle(now, taken, _, diff int64, _ any) {
	if now-taken >= l.rule.PeriodMicros {
		return
	}
	if diff < 0 {
		l.list = append(l.list, event{taken, -diff})
		sort.SliceStable(l.list, func(i, j int) bool { return l.list[i].at < l.list[j].at })
		return
	}
	for i := range l.list {
		if l.list[i].at == taken {
			by := min(diff, l.list[i].cost)
			l.list[i].cost -= by
			diff -= by
		}
	}
}

func (w *naiveWindow) mark(int64, int64) any { return nil }

func (w *naiveWindow) settle(now, taken, _, diff int64, _ any) {
	period := w.rule.PeriodMicros
	w.turn(now)
	if w.current == 0 && w.previous == 0 {
		if diff > 0 || now-taken >= 2*period {
			return
		}
		if w.start = taken; now-taken >= period {
			w.start += period
		}
	}
	switch {
	case taken >= w.start:
		w.current -= min(diff, w.current)
	case taken >= w.start-period:
		w.previous -= min(diff, w.previous)
	}
	w.list = w.list[:0]
}

// A bucket gets its tokens back in the order in which they were taken. The mark of a grant is when the bucket has back
// the grant's tokens, and how much had been given back before the grant.
type bucketMark struct{ back, given *big.Int }

func (g *naiveGCRA) perToken() *big.Rat { return ratOf(g.rule.PeriodMicros, g.rule.Count) }

func floorRat(r *big.Rat) *big.Int { return new(big.Int).Div(r.Num(), r.Denom()) }

func (g *naiveGCRA) mark(now, _ int64) any {
	use := new(big.Rat).Mul(g.leaked(g.level, now), g.perToken())
	return bucketMark{new(big.Int).Add(big.NewInt(now), floorRat(use)), new(big.Int).Set(g.returned())}
}

// returned is how much time has been given back to the bucket in all.
func (g *naiveGCRA) returned() *big.Int {
	if g.gave == nil {
		g.gave = new(big.Int)
	}
	return g.gave
}

// remove takes so much time off what is in use.
func (g *naiveGCRA) remove(now int64, micros *big.Rat) {
	level := g.leaked(g.level, now)
	use := new(big.Rat).Mul(level, g.perToken())
	if use.Cmp(micros) < 0 {
		micros = use
	}
	g.returned().Add(g.returned(), ceilBig(micros))
	g.level = atLeast0(level.Sub(level, new(big.Rat).Quo(micros, g.perToken())))
	g.rounded, g.last, g.list = new(big.Rat).Set(g.level), now, g.list[:0]
}

func (g *naiveGCRA) settle(now, taken, cost, diff int64, mark any) {
	m := mark.(bucketMark)
	// When it is back: earlier by what was given back since, but not earlier than if nothing else had been taken.
	back := new(big.Int).Add(m.back, m.given)
	back.Sub(back, g.returned())
	alone := new(big.Rat).Mul(ratOf(cost, 1), g.perToken())
	alone.Add(alone, ratOf(taken, 1))
	rest := new(big.Rat).SetInt(back)
	if rest.Cmp(alone) < 0 {
		rest = alone
	}
	span := new(big.Rat).Mul(ratOf(max(diff, -diff), 1), g.perToken())
	if diff < 0 { // what is charged counts in whole microseconds
		rest = new(big.Rat).SetInt(new(big.Int).Add(floorRat(rest), ceilBig(span)))
	}
	rest.Sub(rest, ratOf(now, 1))
	if rest.Sign() <= 0 {
		return
	}
	if span.Cmp(rest) > 0 {
		span = rest
	}
	if diff > 0 {
		g.remove(now, span)
		return
	}
	level := g.leaked(g.level, now)
	g.level = level.Add(level, span.Quo(span, g.perToken()))
	g.rounded, g.last, g.list = new(big.Rat).Set(g.level), now, g.list[:0]
}

// naiveCal is a list of what was taken when.
type naiveCal struct {
	rule Rule
	list []event
}

func (c *naiveCal) used(now int64) (used int64) {
	start, _ := c.rule.Calendar().period(now)
	for _, e := range c.list {
		if e.at >= start {
			used += e.cost
		}
	}
	return used
}

func (c *naiveCal) available(now int64) int64 { return c.rule.Count - c.used(now) }
func (c *naiveCal) take(now, cost int64)      { c.list = append(c.list, event{now, cost}) }
func (c *naiveCal) give(now, n int64) {
	c.list = append(c.list, event{now, -min(n, c.used(now))})
}
func (c *naiveCal) change(int64, Rule)  {}
func (c *naiveCal) audit(int64) string  { return "" }
func (c *naiveCal) mark(_, _ int64) any { return nil }
func (c *naiveCal) settle(now, taken, _, diff int64, _ any) {
	if start, _ := c.rule.Calendar().period(now); taken >= start {
		c.list = append(c.list, event{taken, -min(diff, c.used(now))})
	}
}

// naiveHold is CONC and TOTAL: what was taken for good; what grants hold is added by
// the episode.
type naiveHold struct {
	rule Rule
	gone int64
	held func() int64
}

func (h *naiveHold) available(int64) int64 { return h.rule.Count - h.gone - h.held() }
func (h *naiveHold) take(_, cost int64) {
	if h.rule.Algorithm == Total {
		h.gone += cost
	}
}
func (h *naiveHold) give(_, n int64)     { h.gone -= min(n, h.gone) }
func (h *naiveHold) change(int64, Rule)  {}
func (h *naiveHold) audit(int64) string  { return "" }
func (h *naiveHold) mark(_, _ int64) any { return nil }
func (h *naiveHold) settle(_, _, cost, diff int64, _ any) {
	if h.rule.Algorithm == Total {
		h.gone += cost - diff
	}
}

// held is a grant as the models know it.
type held struct {
	id       string
	at, cost int64
	end      int64 // in ms; 0 = never
	leased   bool
	first    Decision
	marks    []any
}

type namedEpisode struct {
	episode
	n      *Named
	grants []*held
	serial int
	did    *namedTally
}

type namedTally struct{ opened, retried, settled, charged, touched, ended, released, copied, refused int }

func newNamedModel(e *namedEpisode, r Rule) settler {
	switch r.Algorithm {
	case Cal:
		return &naiveCal{rule: r}
	case Conc, Total:
		return &naiveHold{rule: r, held: e.held}
	}
	return newNaive(r).(settler)
}

func (e *namedEpisode) held() (sum int64) {
	for _, g := range e.grants {
		sum += g.cost
	}
	return sum
}

func (e *namedEpisode) has(a Algorithm) bool {
	return slices.ContainsFunc(e.rules, func(r Rule) bool { return r.Algorithm == a })
}

// lapse ends, in the models, the grants whose end has come by now.
func (e *namedEpisode) lapse() {
	ended := 0
	left := e.grants[:0:0]
	for _, g := range e.grants {
		if g.end == 0 || g.end > e.now/1000 {
			left = append(left, g)
			continue
		}
		ended++
		if h := e.total(); h != nil && !g.leased {
			h.gone += g.cost // it had no lease, so it stays taken
		}
	}
	e.grants = left
	if got := e.n.Ended(e.now, 1<<30); got != ended {
		panic(fmt.Sprintf("%d grants ended, want %d", got, ended))
	}
	e.did.ended += ended
}

func (e *namedEpisode) total() *naiveHold {
	for _, m := range e.models {
		if h, ok := m.(*naiveHold); ok && h.rule.Algorithm == Total {
			return h
		}
	}
	return nil
}

func (e *namedEpisode) step(t *testing.T) error {
	e.tick()
	e.lapse()
	switch k := e.rnd.IntN(100); {
	case k < 45:
		return e.open()
	case k < 55:
		return e.retry()
	case k < 80:
		return e.close()
	case k < 86:
		return e.touch()
	case k < 92:
		return e.give()
	case k < 95:
		return e.copy()
	}
	return e.plain()
}

// open takes a cost under a new name.
func (e *namedEpisode) open() error {
	cost, room := e.cost(), e.available(e.now)
	g := &held{id: "g" + strconv.Itoa(e.serial), at: e.now, cost: cost}
	e.serial++
	lease := int64(0)
	if e.has(Conc) || e.rnd.IntN(2) == 0 {
		lease = 1000 * upTo(e.rnd, 1, 200)
	}
	p, d, err := e.n.Decide(e.n.State(), e.now, Call{Cost: cost, Mode: Try, Lease: lease > 0})
	if err != nil {
		return err
	}
	e.n.SetState(p)
	if d.Limited != (room < cost) {
		return fmt.Errorf("cost %d with %d available: limited %v", cost, room, d.Limited)
	}
	if d.Limited {
		e.did.refused++
		return nil
	}
	for i, m := range e.models {
		if _, hold := m.(*naiveHold); !hold {
			m.take(e.now, cost)
		}
		g.marks = append(g.marks, m.(settler).mark(e.now, cost))
		_ = i
	}
	e.n.Open([]byte(g.id), e.now, lease, &d)
	if g.leased = lease > 0; g.leased {
		g.end = (e.now + lease + 999) / 1000
	} else {
		saved := e.n.AppendGrant(nil, []byte(g.id))
		g.end = readGrant(saved[0], saved[savedHead:]).endMillis // see TestWindowsOfGrants
	}
	g.first = d
	e.grants = append(e.grants, g)
	e.did.opened++
	return e.compare("a named grant")
}

func (e *namedEpisode) any() *held {
	if len(e.grants) == 0 {
		return nil
	}
	return e.grants[e.rnd.IntN(len(e.grants))]
}

func (e *namedEpisode) retry() error {
	g := e.any()
	if g == nil {
		return nil
	}
	lease := int64(0)
	if e.rnd.IntN(2) == 0 {
		lease = 1000 * upTo(e.rnd, 1, 200)
		g.leased, g.end = true, (e.now+lease+999)/1000
	}
	d, ok := e.n.Find([]byte(g.id), e.now, lease)
	want := g.first
	want.ResetAfterMicros = 1000 * CeilMillis(want.ResetAfterMicros)
	if want.ResetAfterMicros < 0 {
		want.ResetAfterMicros = -1
	}
	want.Taken = d.Taken // a release may have freed part of it
	if !ok || d != want {
		return fmt.Errorf("%s again: %+v, first %+v", g.id, d, want)
	}
	e.did.retried++
	return e.compare("a retry")
}

func (e *namedEpisode) touch() error {
	g := e.any()
	if g == nil || e.n.Touch([]byte("nobody"), e.now, 1000) {
		return nil
	}
	lease := 1000 * upTo(e.rnd, 1, 200)
	g.leased, g.end = true, (e.now+lease+999)/1000
	if !e.n.Touch([]byte(g.id), e.now, lease) {
		return fmt.Errorf("%s is not open", g.id)
	}
	e.did.touched++
	return nil
}

func (e *namedEpisode) drop(g *held) {
	e.grants = slices.DeleteFunc(e.grants, func(x *held) bool { return x == g })
}

// close settles a grant.
func (e *namedEpisode) close() error {
	g := e.any()
	if g == nil {
		return nil
	}
	actual := e.rnd.Int64N(g.cost + 1)
	switch e.rnd.IntN(5) {
	case 0:
		actual = -1
	case 1:
		actual = g.cost + 1 + e.rnd.Int64N(20)
	}
	diff := g.cost - actual
	if actual < 0 {
		diff = 0
	}
	before := make([]int64, len(e.models))
	for i, m := range e.models {
		before[i] = m.available(e.now)
	}
	back, ok, err := e.n.Close([]byte(g.id), e.now, actual)
	if !ok || err != nil {
		return fmt.Errorf("%s: %v %v", g.id, ok, err)
	}
	e.drop(g)
	want, others := int64(0), false
	for i, m := range e.models {
		m.(settler).settle(e.now, g.at, g.cost, diff, g.marks[i])
		if e.rules[i].Algorithm == Conc {
			continue
		}
		others = true
		if by := m.available(e.now) - before[i]; diff > 0 && by > want || diff < 0 && by < want {
			want = by
		}
	}
	if !others {
		want = g.cost
	}
	if e.did.settled++; diff < 0 {
		e.did.charged++
	}
	if back != want {
		return fmt.Errorf("%s of %d at -%d settled by %d: %d came back, want %d", g.id, g.cost, e.now-g.at, diff, back, want)
	}
	return e.compare("settling")
}

func (e *namedEpisode) give() error {
	n := 1 + e.rnd.Int64N(4)
	gone := n        // of what was taken for good
	if e.has(Conc) { // grants that end first free first
		order := slices.Clone(e.grants)
		sort.Slice(order, func(i, j int) bool {
			if order[i].end != order[j].end {
				return order[i].end < order[j].end
			}
			return order[i].id < order[j].id
		})
		left := n
		for _, g := range order {
			by := min(left, g.cost)
			if g.cost -= by; g.cost == 0 && left > 0 {
				e.drop(g)
			}
			left -= by
		}
		gone = left
	}
	for i, m := range e.models {
		if g, ok := m.(*naiveGCRA); ok {
			g.remove(e.now, new(big.Rat).Mul(ratOf(n, 1), g.perToken()))
		} else if e.rules[i].Algorithm == Total {
			m.give(e.now, gone)
		} else if e.rules[i].Algorithm != Conc {
			m.give(e.now, n)
		}
	}
	if _, _, err := e.n.Release(e.now, n); err != nil {
		return err
	}
	e.did.released++
	return e.compare("a release")
}

// copy replaces the limiter by a copy that was saved and restored.
func (e *namedEpisode) copy() error {
	c := NewNamed(bytes.Clone(e.n.State()))
	if err := c.SetGiven(e.n.AppendGiven(nil)); err != nil {
		return err
	}
	e.n.Each(func(id, saved []byte) {
		if err := c.Restore(id, saved); err != nil {
			panic(err)
		}
	})
	if e.n = c; e.rnd.IntN(2) == 0 {
		e.n = c.Clone()
	}
	e.did.copied++
	return nil
}

// plain is a call without a name.
func (e *namedEpisode) plain() error {
	if e.has(Conc) {
		return nil
	}
	cost, room := e.cost(), e.available(e.now)
	p, d, err := e.n.Decide(e.n.State(), e.now, Call{Cost: cost, Mode: Try})
	if err != nil || d.Limited != (room < cost) {
		return fmt.Errorf("cost %d with %d available: %+v %v", cost, room, d, err)
	}
	e.n.SetState(p)
	if !d.Limited {
		for _, m := range e.models {
			m.take(e.now, cost)
		}
	}
	return e.compare("a call")
}

func (e *namedEpisode) compare(after string) error {
	for i, s := range Status(nil, e.n.State(), e.now, e.n) {
		if want := e.models[i].available(e.now); s.Available != want {
			return fmt.Errorf("after %s: rule %d (%v) has %d, want %d", after, i, s.Rule, s.Available, want)
		}
	}
	return nil
}

func TestModelNamed(t *testing.T) {
	t.Parallel()
	rnd := newSeed(t)
	var did namedTally
	var sum tally
	steps := 0
	for steps < modelSteps(60_000) {
		e := &namedEpisode{did: &did}
		e.rnd, e.tally, e.now = rnd, &sum, 1_700_000_000_000_000+rnd.Int64N(1_000_000)
		for _, a := range rnd.Perm(int(Total) + 1)[:1+rnd.IntN(3)] {
			e.rules = append(e.rules, randomNamedRule(rnd, Algorithm(a)))
		}
		for _, r := range e.rules {
			e.models = append(e.models, newNamedModel(e, r))
		}
		e.n = NewNamed(New(nil, e.rules, true))
		for i := range 60 {
			steps++
			if err := e.step(t); err != nil {
				t.Fatalf("step %d of %v: %v", i, e.rules, err)
			}
			if err := e.n.Check(); err != nil {
				t.Fatalf("step %d of %v: %v", i, e.rules, err)
			}
		}
	}
	t.Logf("%d steps: %+v", steps, did)
	for what, n := range map[string]int{"opened": did.opened, "retried": did.retried, "settled": did.settled, "charged": did.charged,
		"touched": did.touched, "ended": did.ended, "released": did.released, "copied": did.copied, "refused": did.refused} {
		if n < steps/200 {
			t.Errorf("only %d of %d steps %s: the test proves little", n, steps, what)
		}
	}
}

// randomNamedRule is small, so that things collide.
func randomNamedRule(rnd *rand.Rand, a Algorithm) Rule {
	r := Rule{Algorithm: a, Count: 1 + rnd.Int64N(30)}
	switch a {
	case Cal:
		r.Burst = Calendar{Unit: Unit(rnd.IntN(int(units))), From: 1}.pack()
	case Conc, Total:
	default:
		r.PeriodMicros = 1000 * (1 + rnd.Int64N(200))
		if a == GCRA {
			r.Burst = 1 + rnd.Int64N(2*r.Count)
		}
	}
	return r
}

func (e *namedEpisode) tick() {
	switch e.rnd.IntN(6) {
	case 0:
		e.now++
	case 1:
		e.now += e.rnd.Int64N(5_000)
	case 2:
		e.now += e.rnd.Int64N(100_000)
	case 3:
		if e.has(Cal) && e.rnd.IntN(5) == 0 {
			e.now += e.rnd.Int64N(20 * 86400 * second)
		}
	}
}
