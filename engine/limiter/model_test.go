package limiter

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// modelSteps is how many random steps each model test takes. A usual run takes few, to be fast;
// LIMITKV_MODEL_STEPS=5000000 is the proof.
func modelSteps(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("LIMITKV_MODEL_STEPS")); err == nil && n > 0 {
		return n
	}
	return usual
}

// newSeed returns the random numbers of a test and prints how to get them again.
func newSeed(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("LIMITKV_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("LIMITKV_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

// upTo is a number from low to high; each order of magnitude has the same probability.
func upTo(rnd *rand.Rand, low, high int64) int64 {
	f := math.Exp(rnd.Float64() * math.Log(float64(high)/float64(low)))
	return min(high, max(low, int64(float64(low)*f)))
}

// randomRule is mostly small, so that calls collide, and otherwise anything that is allowed.
func randomRule(rnd *rand.Rand, a Algorithm) Rule {
	for {
		r := Rule{Algorithm: a, Count: 1 + rnd.Int64N(12), PeriodMicros: 1000 * (1 + rnd.Int64N(50))}
		if rnd.IntN(3) == 0 {
			r.Count, r.PeriodMicros = upTo(rnd, 1, CountMax), upTo(rnd, PeriodMicrosMin, PeriodMicrosMax)
		}
		if rnd.IntN(20) == 0 {
			r.Count = CountMax
		}
		if rnd.IntN(20) == 0 {
			r.PeriodMicros = []int64{PeriodMicrosMin, PeriodMicrosMax}[rnd.IntN(2)]
		}
		if a == GCRA {
			r.Burst = r.Count
			if rnd.IntN(2) == 0 {
				r.Burst = upTo(rnd, 1, min(CountMax, 10*r.Count))
			}
			if rnd.IntN(20) == 0 {
				r.Burst = CountMax
			}
		}
		if r.Validate() == nil {
			return r
		}
	}
}

// changedRule is another rule of the same algorithm.
func changedRule(rnd *rand.Rand, r Rule) Rule {
	for {
		to := randomRule(rnd, r.Algorithm)
		switch rnd.IntN(3) {
		case 0:
			to.PeriodMicros = r.PeriodMicros
		case 1:
			to.Count, to.Burst = r.Count, r.Burst
		}
		if to.Validate() == nil {
			return to
		}
	}
}

// tally is what a model test did, so that a test that did nothing fails.
type tally struct{ granted, refused, forced, gave, changed, waited, thorough int }

func (a tally) assertWork(t *testing.T, steps int) {
	t.Helper()
	t.Logf("%d steps: %+v", steps, a)
	for what, n := range map[string]int{"granted": a.granted, "refused": a.refused, "forced": a.forced,
		"gave": a.gave, "changed": a.changed, "waited": a.waited, "thorough": a.thorough} {
		if n < steps/500 {
			t.Errorf("only %d of %d steps %s: the test proves little", n, steps, what)
		}
	}
}

// episode runs one limiter against the models of its rules.
type episode struct {
	rnd    *rand.Rand
	rules  []Rule
	models []naive
	p      []byte
	now    int64
	tally  *tally
}

func (e *episode) available(now int64) int64 {
	least := int64(math.MaxInt64)
	for _, m := range e.models {
		least = min(least, m.available(now))
	}
	return least
}

func (e *episode) capacity() int64 {
	least := CountMax
	for _, r := range e.rules {
		least = min(least, r.Capacity())
	}
	return least
}

// cost is a cost of at most the capacity, which may fit or not.
func (e *episode) cost() int64 {
	capacity, room := e.capacity(), e.available(e.now)
	switch e.rnd.IntN(5) {
	case 0:
		return min(capacity, 1)
	case 1:
		return min(capacity, max(0, room))
	case 2:
		return min(capacity, max(0, room)+1)
	case 3:
		return upTo(e.rnd, 1, capacity)
	default:
		return e.rnd.Int64N(min(capacity, 4) + 1)
	}
}

func (e *episode) tick() {
	r := e.rules[e.rnd.IntN(len(e.rules))]
	switch e.rnd.IntN(8) {
	case 0:
		e.now++
	case 1:
		e.now += e.rnd.Int64N(r.PeriodMicros/r.Count + 2)
	case 2:
		e.now += e.rnd.Int64N(r.PeriodMicros)
	case 3:
		e.now += r.PeriodMicros / (1 + e.rnd.Int64N(12))
	case 4:
		if e.rnd.IntN(10) == 0 {
			e.now += r.PeriodMicros * (1 + e.rnd.Int64N(3))
		}
	} // otherwise the time does not move
}

func (e *episode) step(t *testing.T) error {
	e.tick()
	switch n := e.rnd.IntN(100); {
	case n < 4:
		return e.force()
	case n < 9:
		return e.release()
	case n < 12:
		return e.change()
	default:
		return e.take()
	}
}

// take is the step that matters: it checks the decision, the numbers, and the wait to the microsecond.
func (e *episode) take() error {
	cost := e.cost()
	before, room := bytes.Clone(e.p), e.available(e.now)
	peeked, peek, err := Take(e.p, e.now, cost, Peek)
	if err != nil {
		return err
	}
	if !bytes.Equal(before, peeked) {
		return fmt.Errorf("PEEK %d wrote", cost)
	}
	var d Decision
	if e.p, d, err = Take(e.p, e.now, cost, Try); err != nil {
		return err
	}
	if d.Limited != peek.Limited || d.RetryAfterMicros != peek.RetryAfterMicros {
		return fmt.Errorf("PEEK says %+v, taking it %+v", peek, d)
	}
	if want := room < cost; d.Limited != want {
		return fmt.Errorf("cost %d with %d available: limited %v", cost, room, d.Limited)
	}
	if d.Limited {
		e.tally.refused++
		if before[0] != e.p[0] || !bytes.Equal(before[headOf(before):], e.p[headOf(e.p):]) {
			return fmt.Errorf("a refused cost was written")
		}
		if err := e.wait(cost, d.RetryAfterMicros); err != nil {
			return err
		}
	} else {
		e.tally.granted++
		for _, m := range e.models {
			m.take(e.now, cost)
			if what := m.audit(e.now); what != "" && cost > 0 {
				return fmt.Errorf("cost %d: %s", cost, what)
			}
		}
		if d.RetryAfterMicros != -1 {
			return fmt.Errorf("granted, but retry after %d", d.RetryAfterMicros)
		}
	}
	if want := max(0, e.available(e.now)); !d.Limited && d.Remaining != want {
		return fmt.Errorf("remaining %d, want %d", d.Remaining, want)
	}
	if err := e.full(d); err != nil {
		return err
	}
	if d.Limited && e.rnd.IntN(3) == 0 {
		e.now += d.RetryAfterMicros
		e.tally.waited++
	}
	return nil
}

// wait checks that the cost is granted after the wait and not a microsecond
// earlier.
func (e *episode) wait(cost, retry int64) error {
	if retry <= 0 {
		return fmt.Errorf("limited, but retry after %d", retry)
	}
	if got := e.available(e.now + retry); got < cost {
		return fmt.Errorf("after waiting %d for %d the model has %d", retry, cost, got)
	}
	if got := e.available(e.now + retry - 1); got >= cost {
		return fmt.Errorf("after waiting %d-1 for %d the model has %d", retry, cost, got)
	}
	for _, at := range []int64{e.now + retry, e.now + 1000*CeilMillis(retry), e.now + 1_000_000*CeilSeconds(retry)} {
		if _, d, err := Take(bytes.Clone(e.p), at, cost, Try); err != nil || d.Limited {
			return fmt.Errorf("waited %d of %d for %d: %+v %v", at-e.now, retry, cost, d, err)
		}
	}
	return nil
}

// full checks when nothing is in use.
func (e *episode) full(d Decision) error {
	at := FullAt(e.p)
	if at <= e.now {
		if d.ResetAfterMicros != 0 {
			return fmt.Errorf("full since %d, but reset after %d", at-e.now, d.ResetAfterMicros)
		}
		return nil
	}
	if at-e.now != d.ResetAfterMicros {
		return fmt.Errorf("full at +%d, reset after %d", at-e.now, d.ResetAfterMicros)
	}
	if reset := resetAfter(e.p, at); reset != 0 {
		return fmt.Errorf("not full at +%d: reset after %d", at-e.now, reset)
	}
	if reset := resetAfter(e.p, at-1); reset != 1 {
		return fmt.Errorf("a moment before +%d: reset after %d", at-e.now, reset)
	}
	for i, m := range e.models {
		if m.available(at) != e.rules[i].Capacity() {
			return fmt.Errorf("full at +%d, but the model is not", at-e.now)
		}
	}
	// A full rule is like a new one: the same decisions follow.
	fresh := New(nil, e.rules, false)
	cost := upTo(e.rnd, 1, e.capacity())
	_, a, _ := Take(fresh, at, cost, Try)
	_, b, _ := Take(bytes.Clone(e.p), at, cost, Try)
	if a != b {
		return fmt.Errorf("a full limiter answers %+v, a new one %+v", b, a)
	}
	e.tally.thorough++
	return nil
}

// resetAfter is how long until all rules are full.
func resetAfter(p []byte, now int64) (longest int64) {
	for _, s := range Status(nil, p, now, nil) {
		longest = max(longest, s.ResetAfterMicros)
	}
	return longest
}

func (e *episode) force() error {
	cost := upTo(e.rnd, 1, min(CountMax, 2*e.capacity()))
	before := bytes.Clone(e.p)
	p, d, err := Take(e.p, e.now, cost, Force)
	if err == ErrDebt {
		if !bytes.Equal(p, before) {
			return fmt.Errorf("%v, but written", err)
		}
		return nil
	}
	if err != nil || d.Limited {
		return fmt.Errorf("forced %d: %+v %v", cost, d, err)
	}
	e.p = p
	for _, m := range e.models {
		m.take(e.now, cost)
	}
	e.tally.forced++
	if want := max(0, e.available(e.now)); d.Remaining != want {
		return fmt.Errorf("forced %d: remaining %d, want %d", cost, d.Remaining, want)
	}
	return e.full(d)
}

func (e *episode) release() error {
	n := e.rnd.Int64N(4)
	if e.rnd.IntN(2) == 0 {
		n = upTo(e.rnd, 1, CountMax)
	}
	var want int64
	before := make([]int64, len(e.models))
	for i, m := range e.models {
		before[i] = m.available(e.now)
		m.give(e.now, n)
		want = max(want, m.available(e.now)-before[i])
	}
	back, err := Release(e.p, e.now, n)
	if err != nil || back != want || back > n {
		return fmt.Errorf("released %d: %d came back, want %d (%v)", n, back, want, err)
	}
	e.tally.gave++
	return e.compare("release")
}

func (e *episode) change() error {
	i := e.rnd.IntN(len(e.rules))
	to := changedRule(e.rnd, e.rules[i])
	// All rules have different algorithms, so that it is clear which new rule takes over which old one.
	for j, r := range e.rules {
		if j != i && r.Algorithm == to.Algorithm {
			return nil
		}
	}
	if e.models[i].available(e.now) < e.rules[i].Capacity()-CountMax {
		return nil // debt may not fit the new rule
	}
	if to.Algorithm == GCRA {
		// What is in use must come back within what a state can hold.
		if _, ok := to.span(e.rules[i].Burst - e.models[i].available(e.now) + 1); !ok {
			return nil
		}
	}
	e.rules[i] = to
	changed := Change(nil, e.p, e.rules, e.now)
	if Kept(changed) != Kept(e.p) || !HasRules(changed, e.rules) {
		return fmt.Errorf("changed to %v, has %v", e.rules, Rules(nil, changed))
	}
	e.p = changed
	e.models[i].change(e.now, to)
	e.tally.changed++
	return e.compare("change")
}

func (e *episode) compare(after string) error {
	for i, s := range Status(nil, e.p, e.now, nil) {
		if want := e.models[i].available(e.now); s.Available != want {
			return fmt.Errorf("after %s: rule %d has %d, want %d", after, i, s.Available, want)
		}
	}
	return nil
}

func runEpisodes(t *testing.T, steps int, rules func(*rand.Rand) []Rule) {
	t.Parallel()
	rnd := newSeed(t)
	var sum tally
	done := 0
	for done < steps {
		e := &episode{rnd: rnd, rules: rules(rnd), now: 1_700_000_000_000_000 + rnd.Int64N(1_000_000), tally: &sum}
		for _, r := range e.rules {
			e.models = append(e.models, newNaive(r))
		}
		first := append([]Rule(nil), e.rules...)
		e.p = New(nil, e.rules, rnd.IntN(2) == 0)
		for i := 0; i < 60; i++ {
			done++
			if err := e.step(t); err != nil {
				t.Fatalf("step %d of %v, now %v at %d: %v", i, first, e.rules, e.now, err)
			}
			if err := Check(e.p); err != nil {
				t.Fatalf("step %d of %v, now %v: %v", i, first, e.rules, err)
			}
		}
	}
	sum.assertWork(t, done)
}

func TestModelGCRA(t *testing.T) {
	runEpisodes(t, modelSteps(15_000), func(rnd *rand.Rand) []Rule { return []Rule{randomRule(rnd, GCRA)} })
}

func TestModelLog(t *testing.T) {
	runEpisodes(t, modelSteps(40_000), func(rnd *rand.Rand) []Rule { return []Rule{randomRule(rnd, Log)} })
}

func TestModelWindow(t *testing.T) {
	runEpisodes(t, modelSteps(15_000), func(rnd *rand.Rand) []Rule { return []Rule{randomRule(rnd, Window)} })
}

func TestModelFixed(t *testing.T) {
	runEpisodes(t, modelSteps(40_000), func(rnd *rand.Rand) []Rule { return []Rule{randomRule(rnd, Fixed)} })
}

// Several rules of different kinds, all or nothing.
func TestModelSeveralRules(t *testing.T) {
	runEpisodes(t, modelSteps(10_000), func(rnd *rand.Rand) []Rule {
		var rules []Rule
		for _, a := range rnd.Perm(4)[:2+rnd.IntN(3)] {
			rules = append(rules, randomRule(rnd, Algorithm(a)))
		}
		return rules
	})
}
