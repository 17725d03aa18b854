// This file has the naive models with which the algorithms are compared: they keep every request in a list, count the
// list again for each question, and use rationals of any size. They are written from the meaning of the rules, not from
// the code.
package limiter

import "math/big"

// event is a cost that was taken (or, where negative, given back) at a time.
type event struct{ at, cost int64 }

// naive answers how much is available. That decides everything: a cost passes if and only if that much is available.
type naive interface {
	available(now int64) int64
	take(now, cost int64)
	give(now, n int64)
	change(now int64, to Rule)
	// audit is called after a regular grant and returns the bound that the grant broke.
	audit(now int64) string
}

func newNaive(r Rule) naive {
	switch r.Algorithm {
	case GCRA:
		return &naiveGCRA{rule: r, level: new(big.Rat), rounded: new(big.Rat)}
	case Log:
		return &naiveLog{rule: r}
	case Window:
		return &naiveWindow{rule: r}
	default:
		return &naiveFixed{rule: r}
	}
}

func ratOf(n, d int64) *big.Rat { return big.NewRat(n, d) }

func ceilRat(r *big.Rat) int64 {
	return ceilBig(r).Int64()
}

func ceilBig(r *big.Rat) *big.Int {
	q, m := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	if m.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// naiveGCRA is a leaky bucket: the exact tokens in use, and beside them the list of grants, with which it checks the
// promise: no stretch of time has more than burst + count*length/period.
//
// A change of rules rounds a part of a token up. That must never change a decision. So the model decides with the exact
// level, and continues from the rounded one only at the next change, as the algorithm must.
type naiveGCRA struct {
	rule    Rule
	level   *big.Rat // tokens in use at last
	rounded *big.Rat // the same, rounded up at the last change
	last    int64
	list    []event
	gave    *big.Int // time that was given back, see named_model_test.go
}

func (g *naiveGCRA) leaked(level *big.Rat, now int64) *big.Rat {
	leak := new(big.Rat).Mul(ratOf(now-g.last, 1), ratOf(g.rule.Count, g.rule.PeriodMicros))
	return atLeast0(leak.Sub(level, leak))
}

func atLeast0(r *big.Rat) *big.Rat {
	if r.Sign() < 0 {
		r.SetInt64(0)
	}
	return r
}

func (g *naiveGCRA) available(now int64) int64 {
	return g.rule.Burst - ceilRat(g.leaked(g.level, now))
}

func (g *naiveGCRA) add(now, cost int64) {
	by := ratOf(cost, 1)
	g.level = atLeast0(new(big.Rat).Add(g.leaked(g.level, now), by))
	g.rounded = atLeast0(new(big.Rat).Add(g.leaked(g.rounded, now), by))
	g.last = now
}

func (g *naiveGCRA) take(now, cost int64) {
	g.add(now, cost)
	g.list = append(g.list, event{now, cost})
}

func (g *naiveGCRA) give(now, n int64) {
	g.add(now, -n)
	g.list = g.list[:0] // the list alone is no longer enough
}

func (g *naiveGCRA) change(now int64, to Rule) {
	g.add(now, 0)
	g.rule = to
	g.list = g.list[:0]
	g.level = g.rounded
	// Up to 1/period of a token, and to a whole microsecond where a token is.
	up := new(big.Rat).Mul(g.level, ratOf(to.PeriodMicros, 1))
	up.SetFrac(ceilBig(up), big.NewInt(to.PeriodMicros))
	if to.PeriodMicros%to.Count == 0 {
		perToken := to.PeriodMicros / to.Count
		up.SetFrac(ceilBig(up.Mul(up, ratOf(perToken, 1))), big.NewInt(perToken))
	}
	g.rounded = up
}

func (g *naiveGCRA) audit(now int64) string {
	sum := new(big.Int)
	// Looking back from now at every stretch that starts with a grant:
	// sum*period <= burst*period + length*count.
	for i := len(g.list) - 1; i >= 0; i-- {
		sum.Add(sum, big.NewInt(g.list[i].cost))
		left := new(big.Int).Mul(sum, big.NewInt(g.rule.PeriodMicros))
		right := new(big.Int).Mul(big.NewInt(g.rule.Burst), big.NewInt(g.rule.PeriodMicros))
		right.Add(right, new(big.Int).Mul(big.NewInt(now-g.list[i].at), big.NewInt(g.rule.Count)))
		if left.Cmp(right) > 0 {
			return "more than the bucket allows in a stretch of time"
		}
	}
	return ""
}

// naiveLog is a list of what was taken when.
type naiveLog struct {
	rule Rule
	list []event
}

func (l *naiveLog) available(now int64) int64 {
	free := l.rule.Count
	for _, e := range l.list {
		if e.at+l.rule.PeriodMicros > now {
			free -= e.cost
		}
	}
	return free
}

func (l *naiveLog) take(now, cost int64) { l.list = append(l.list, event{now, cost}) }

func (l *naiveLog) give(now, n int64) {
	for i := range l.list {
		if l.list[i].at+l.rule.PeriodMicros > now {
			by := min(n, l.list[i].cost)
			l.list[i].cost -= by
			n -= by
		}
	}
}

func (l *naiveLog) change(now int64, to Rule) {
	live := l.list[:0]
	for _, e := range l.list {
		if e.at+l.rule.PeriodMicros > now {
			live = append(live, e)
		}
	}
	l.list, l.rule = live, to
}

func (l *naiveLog) audit(now int64) string {
	if l.available(now) < 0 {
		return "more than count within one period"
	}
	return ""
}

// naiveFixed is a list of what was taken in the window that the first entry of the list started.
type naiveFixed struct {
	rule Rule
	list []event
}

func (f *naiveFixed) used(now int64) (used int64) {
	if len(f.list) == 0 || now-f.list[0].at >= f.rule.PeriodMicros {
		return 0
	}
	for _, e := range f.list {
		used += e.cost
	}
	return used
}

func (f *naiveFixed) available(now int64) int64 { return f.rule.Count - f.used(now) }

func (f *naiveFixed) take(now, cost int64) {
	if f.used(now) == 0 {
		f.list = f.list[:0]
		if cost == 0 {
			return
		}
	}
	f.list = append(f.list, event{now, cost})
}

func (f *naiveFixed) give(now, n int64) {
	if used := f.used(now); used > 0 {
		f.list = append(f.list, event{now, -min(n, used)})
	}
}

func (f *naiveFixed) change(now int64, to Rule) {
	if f.used(now) == 0 {
		f.list = f.list[:0]
	}
	f.rule = to
}

func (f *naiveFixed) audit(now int64) string {
	if f.available(now) < 0 {
		return "more than count in one window"
	}
	return ""
}

// naiveWindow has its counts as rationals, from the definition, and beside them the list, with which it checks the
// stated error.
type naiveWindow struct {
	rule              Rule
	start             int64
	current, previous int64
	list              []event
}

func (w *naiveWindow) turn(now int64) {
	for now-w.start >= w.rule.PeriodMicros && (w.current > 0 || w.previous > 0) {
		w.start += w.rule.PeriodMicros
		w.previous, w.current = w.current, 0
	}
	if w.current == 0 && w.previous == 0 {
		w.start = now
	}
}

func (w *naiveWindow) weight(now int64) int64 {
	left := w.rule.PeriodMicros - (now - w.start)
	return ceilRat(new(big.Rat).Mul(ratOf(w.previous, 1), ratOf(left, w.rule.PeriodMicros)))
}

func (w naiveWindow) available(now int64) int64 { // a copy: asking changes nothing
	w.turn(now)
	return w.rule.Count - w.current - w.weight(now)
}

func (w *naiveWindow) take(now, cost int64) {
	w.turn(now)
	w.current += cost
	w.list = append(w.list, event{now, cost})
}

func (w *naiveWindow) give(now, n int64) {
	w.turn(now)
	// In the definition, tokens of the previous window are given back one by one. Here bisection finds the most that
	// weighs n less.
	weight := w.weight(now)
	low, high := int64(0), w.previous
	for low < high {
		middle := low + (high-low+1)/2
		w.previous = middle
		if w.weight(now) <= weight-min(n, weight) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	w.previous = low
	if n >= weight {
		w.previous = 0
	}
	n -= min(n, weight)
	w.current -= min(n, w.current)
	w.list = w.list[:0]
}

func (w *naiveWindow) change(now int64, to Rule) {
	w.turn(now)
	place := new(big.Rat).Mul(ratOf(now-w.start, 1), ratOf(to.PeriodMicros, w.rule.PeriodMicros))
	elapsed := ceilRat(place)
	if !place.IsInt() && to.PeriodMicros >= w.rule.PeriodMicros {
		elapsed--
	}
	w.start, w.rule = now-elapsed, to
	w.list = w.list[:0]
}

func (w naiveWindow) audit(now int64) string {
	w.turn(now)
	if w.current > w.rule.Count {
		return "more than count in one window"
	}
	sum := new(big.Int)
	for _, e := range w.list {
		if e.at+w.rule.PeriodMicros > now {
			sum.Add(sum, big.NewInt(e.cost))
		}
	}
	// sum <= count + previous*elapsed/period
	over := new(big.Rat).SetInt(sum)
	over.Sub(over, ratOf(w.rule.Count, 1))
	over.Sub(over, new(big.Rat).Mul(ratOf(w.previous, 1), ratOf(now-w.start, w.rule.PeriodMicros)))
	if over.Sign() > 0 {
		return "more than the stated error in one period"
	}
	return ""
}
