// This file ends named grants: what a grant took and did not need comes back to
// the window that it was taken from, what it needed beyond is charged there, and to
// no other. If that window is over nothing changes.
package limiter

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/limitkv/limitkv/engine/table"
)

// Close ends a grant with what it really cost, at most CountMax; below 0 stands
// for what was taken. It returns what came back, negative for what was charged: of
// several rules the most. CONC always gets back all that was held; where there is
// no other rule that is what is returned. ok is false if no such grant is open.
func (n *Named) Close(id []byte, now, actual int64) (back int64, ok bool, err error) {
	record := n.table.Get(id)
	if record.None() {
		return 0, false, nil
	}
	g := loadGrant(record.Value())
	diff := int64(0)
	if actual >= 0 && !g.shadow {
		diff = g.cost - actual
	}
	var o opened
	o.open(n.state)
	if diff < 0 {
		bucket := 0
		for i := 0; i < o.n; i++ {
			r := o.rules[i]
			if r.Algorithm != Conc && n.during(r, n.state[o.at[i]:o.at[i+1]], now, diff, &g, bucket) > 0 &&
				!r.bears(n.state[o.at[i]:o.at[i+1]], now, -diff) {
				return 0, true, ErrDebt
			}
			if r.Algorithm == GCRA {
				bucket++
			}
		}
	}
	bucket, others := 0, false
	for i := 0; i < o.n; i++ {
		r, state := o.rules[i], n.state[o.at[i]:o.at[i+1]]
		if r.Algorithm == Conc {
			r.holdGive(state, g.cost)
			continue
		}
		others = true
		before, _ := r.room(state, now)
		if diff != 0 {
			state = n.settleRule(&o, i, now, diff, &g, bucket)
		}
		after, _ := r.room(state, now)
		if by := after - before; diff > 0 && by > back || diff < 0 && by < back {
			back = by
		}
		if r.Algorithm == GCRA {
			bucket++
		}
	}
	if !others {
		back = g.cost
	}
	n.remove(record)
	return back, true, nil
}

// during is for how long yet the window lasts that a grant was taken from, 0 or
// less if it is over. bucket is the rule's number among those of GCRA. What is
// charged to a bucket (diff is below 0) comes back after what the grant took.
func (n *Named) during(r Rule, state []byte, now, diff int64, g *grant, bucket int) int64 {
	switch r.Algorithm {
	case GCRA:
		rest := n.bucketRest(r, now, g, bucket)
		if diff < 0 {
			span, _ := r.span(-diff)
			return rest.micros + span.up()
		}
		return rest.up()
	case Log:
		return g.taken + r.PeriodMicros - now
	case Window:
		switch w := r.windowLoad(state, now); {
		case g.taken >= w.start, w.current == 0 && w.previous == 0:
			return g.taken + 2*r.PeriodMicros - now
		case g.taken >= w.start-r.PeriodMicros:
			return w.start + r.PeriodMicros - now
		}
		return 0
	case Fixed:
		start, used := r.fixedLoad(state, now)
		switch {
		case used == 0:
			return g.taken + r.PeriodMicros - now // nobody has begun another
		case g.taken >= start:
			return start + r.PeriodMicros - now
		}
		return 0
	case Cal:
		if s := r.calLoad(state, now); g.taken >= s.start {
			return s.end - now
		}
		return 0
	}
	return never
}

// bucketRest is how long it takes yet until a bucket has back what a grant took.
// The tokens of a bucket come back in the order in which they were taken: the
// grant's are the last ones of what was in use after it, and come back sooner by
// what was given back since – but not sooner than if it had been alone. What was
// given back of others that were taken later does not bring it forward in truth;
// it is counted all the same, so that a grant never gives back what is another's.
// Alone it is exact, so that a grant that is settled at once gives back whole tokens.
func (n *Named) bucketRest(r Rule, now int64, g *grant, bucket int) moment {
	if bucket >= g.buckets {
		return moment{}
	}
	rest, ok := r.span(g.cost)
	if !ok {
		rest.micros = FillMicrosMax
	}
	if tail := g.tails[bucket] - n.given[bucket]; tail > rest.micros {
		rest = moment{micros: tail}
	}
	rest.micros += g.taken - now
	return rest
}

// settleRule gives diff back to a rule, or charges it if it is negative, in the
// grant's window. It returns the rule's state, which a LOG may have moved.
func (n *Named) settleRule(o *opened, i int, now, diff int64, g *grant, bucket int) []byte {
	r, state := o.rules[i], n.state[o.at[i]:o.at[i+1]]
	rest := n.during(r, state, now, diff, g, bucket)
	if rest <= 0 {
		return state
	}
	switch r.Algorithm {
	case GCRA:
		if diff < 0 {
			r.gcraCharge(state, now, -diff, rest)
			break
		}
		n.give(bucket, r.gcraSettle(state, now, diff, n.bucketRest(r, now, g, bucket)))
	case Log:
		if moved := r.logSettle(state, now, g.taken, diff); len(moved) != len(state) {
			n.state = o.splice(n.state, i, moved)
			state = moved
		}
	case Window:
		r.windowSettle(state, now, g.taken, diff)
	case Fixed:
		r.fixedSettle(state, now, g.taken, diff)
	case Cal:
		if diff > 0 {
			r.calGive(state, now, diff)
		} else {
			r.calTake(state, now, -diff)
		}
	default:
		if diff > 0 {
			r.holdGive(state, diff)
		} else {
			r.holdTake(state, -diff)
		}
	}
	return state
}

// give notes that a bucket was given back so much time.
func (n *Named) give(bucket int, micros int64) { n.given[bucket] = min(n.given[bucket]+micros, never) }

// gcraSettle gives n tokens back, but no more than come back within rest. It
// returns how much time that is, rounded up.
func (r Rule) gcraSettle(state []byte, now, n int64, rest moment) int64 {
	used := r.gcraInUse(state, now)
	span, ok := r.span(n)
	if !ok || rest.less(span) {
		span = rest
	}
	if used.less(span) {
		span = used
	}
	left := used.sub(span, uint64(r.Count))
	left.micros += now
	r.storeMoment(state, left)
	return span.up()
}

// gcraCharge takes n tokens beyond what was taken before, but no more than come
// back within rest: what would be back by now is.
func (r Rule) gcraCharge(state []byte, now, n, rest int64) {
	span, _ := r.span(n)
	if span.micros >= rest {
		span = moment{micros: rest}
	}
	used := r.gcraInUse(state, now).add(span, uint64(r.Count))
	used.micros += now
	r.storeMoment(state, used)
}

func (r Rule) fixedSettle(state []byte, now, taken, diff int64) {
	start, used := r.fixedLoad(state, now)
	if used == 0 {
		start = taken
	}
	if used -= min(diff, used); used == 0 {
		start = now
	}
	fixedStore(state, start, used)
}

func (r Rule) windowSettle(state []byte, now, taken, diff int64) {
	w := r.windowLoad(state, now)
	if w.current == 0 && w.previous == 0 { // nobody has begun another
		if w.start = taken; now-taken >= r.PeriodMicros {
			w.start += r.PeriodMicros
		}
	}
	count := &w.current
	if taken < w.start {
		count = &w.previous
	}
	*count -= min(diff, *count)
	if w.current == 0 && w.previous == 0 {
		w.start = now
	}
	w.store(state)
}

// logSettle changes the cost that was taken at a time. A grant that is not in the
// log is one that was given back, unless the log has been thinned: then it is part
// of one that is later by little. The state is returned, in other memory if its
// size changed.
func (r Rule) logSettle(state []byte, now, taken, diff int64) []byte {
	l, now := r.logLoad(state, now)
	thinned := int64(0)
	if len(l.area) > logAreaMax/8 {
		thinned = 4 * (r.PeriodMicros/logThin + 1)
	}
	if l.used == 0 {
		if diff >= 0 {
			return state
		}
		l.oldest, l.newest, l.newestCost, l.used = taken, taken, -diff, -diff
		l.head, l.tail = 0, 0
		l.store(state)
		return state
	}
	// All before, the one, and all after are written anew.
	out := make([]byte, 0, l.tail-l.head+2*logEntryMax)
	oldest, lastAt, lastCost := int64(0), int64(0), int64(0)
	add := func(at, cost int64) {
		switch {
		case cost == 0:
			return
		case lastCost == 0:
			oldest = at
		default:
			out = appendLogEntry(out, lastCost, at-lastAt)
		}
		lastAt, lastCost = at, cost
	}
	settled := false
	each := func(at, cost int64) {
		if !settled && at >= taken {
			if settled = true; at-taken <= thinned || at == taken {
				by := min(diff, cost)
				cost -= by
				l.used -= by
			} else if diff < 0 { // it had taken nothing, or that was given back
				add(taken, -diff)
				l.used -= diff
			}
		}
		add(at, cost)
	}
	at := l.oldest
	for from := l.head; from < l.tail; {
		cost, gap, next := l.entry(from)
		each(at, cost)
		at, from = at+gap, next
	}
	each(l.newest, l.newestCost)
	if !settled && diff < 0 {
		add(taken, -diff)
		l.used -= diff
	}
	if lastCost == 0 {
		l.head, l.tail, l.newestCost, l.newest, l.used = 0, 0, 0, now, 0
		l.store(state)
		return state
	}
	l.oldest, l.newest, l.newestCost = oldest, lastAt, lastCost
	if len(out) > logAreaMax {
		l.area, l.head, l.tail = out, 0, len(out)
		for resolution := r.PeriodMicros/logThin + 1; l.tail > logAreaMax; resolution *= 2 {
			l.thin(resolution)
		}
		out = l.area[:l.tail]
	}
	size := len(state) - logFixed
	if len(out) > size || len(out) < size/8 && size >= logSpareMin {
		size = len(out)
	}
	moved := state
	if size != len(state)-logFixed {
		moved = make([]byte, logFixed+size)
	}
	l.area = moved[logFixed:]
	l.head, l.tail = 0, copy(l.area, out)
	l.store(moved)
	return moved
}

// Settle serves the keyspace, as Ended. It never empties the key.
func (n *Named) Settle(now int64, most int, _ func(part []byte)) (served int, empty bool) {
	return n.Ended(now, most), false
}

// Ended ends up to most grants that end by now, of which
// those with a lease free CONC and give TOTAL back; what others took stays taken.
func (n *Named) Ended(now int64, most int) (ended int) {
	for ended < most && len(n.heap) > 0 && endOf(n.heap[0]) <= now/1000 {
		record := n.heap[0]
		g := loadGrant(record.Value())
		n.unhold(g.cost, g.leased)
		n.remove(record)
		ended++
	}
	return ended
}

// unhold gives a cost back to CONC, and to TOTAL if that is asked for.
func (n *Named) unhold(cost int64, total bool) {
	var o opened
	o.open(n.state)
	for i := 0; i < o.n; i++ {
		if r := o.rules[i]; r.Algorithm == Conc || r.Algorithm == Total && total {
			r.holdGive(n.state[o.at[i]:o.at[i+1]], cost)
		}
	}
}

// Release is the package's Release for a limiter with grants. What CONC holds is
// let go in the order in which the grants end, each with what it holds. TOTAL
// gives back what was taken for good: what a grant holds comes back with that. The
// names of the grants that hold less, or nothing any more, are returned too.
func (n *Named) Release(now, c int64) (back int64, freed [][]byte, err error) {
	if c < 0 || c > CountMax {
		return 0, nil, ErrCost
	}
	state, given := bytes.Clone(n.state), slices.Clone(n.given)
	defer func() {
		if back == 0 && freed == nil { // what is not told must not change
			n.state, n.given = state, given
		}
	}()
	var o opened
	o.open(n.state)
	for i := 0; i < o.n; i++ {
		if o.rules[i].Algorithm == Conc {
			freed = n.letGo(c)
			break
		}
	}
	bucket := 0
	for i := 0; i < o.n; i++ {
		r, state := o.rules[i], n.state[o.at[i]:o.at[i+1]]
		before, _ := r.room(state, now)
		switch r.Algorithm {
		case Conc:
			storeHold(state, n.held)
		case Total:
			r.holdGive(state, min(c, max(loadHold(state)-n.held, 0)))
		case GCRA:
			was := r.loadMoment(state)
			r.give(state, now, c)
			if is := r.loadMoment(state); is.less(was) {
				n.give(bucket, was.sub(is, uint64(r.Count)).up())
			}
			bucket++
		default:
			r.give(state, now, c)
		}
		after, _ := r.room(state, now)
		back = max(back, after-before)
	}
	return back, freed, nil
}

// letGo takes up to c from what grants hold, first of those that end first. It
// returns the names of those grants, none where no grant is left.
func (n *Named) letGo(c int64) (freed [][]byte) {
	if c > n.held { // all of them, at once however many there are
		n.table, n.heap, n.held, n.leased, n.latest = table.Table{}, nil, 0, 0, 0
		return [][]byte{}
	}
	for c > 0 && len(n.heap) > 0 {
		record := n.heap[0]
		freed = append(freed, record.Key())
		g := loadGrant(record.Value())
		if g.cost <= c {
			c -= g.cost
			n.remove(record)
			continue
		}
		g.cost -= c
		c = 0
		n.set(record.Key(), record, &g)
	}
	return freed
}

// Change gives the limiter other rules, as the package's Change, and lets go of
// nothing that is held.
func (n *Named) Change(rules []Rule, now int64) {
	state := n.StateFor(rules, now)
	n.Rebase(rules, now)
	n.state = state
}

// StateFor is what the limiter's bytes will be with other rules. Rebase and
// SetState make them so.
func (n *Named) StateFor(rules []Rule, now int64) []byte {
	state := Change(nil, n.state, rules, now)
	var o opened
	o.open(state)
	for i, r := range rules {
		switch state := state[o.at[i]:o.at[i+1]]; r.Algorithm {
		case Conc:
			storeHold(state, n.held)
		case Total:
			storeHold(state, max(loadHold(state), n.held))
		}
	}
	return state
}

// Rebase has the grants go by the rules that the limiter is about to have.
func (n *Named) Rebase(rules []Rule, now int64) {
	var o opened
	o.open(n.state)
	var from [RulesMax]int
	heirs(from[:len(rules)], rules, o.rules[:o.n])
	n.rebucket(rules, from[:len(rules)], &o, now)
	if len(rules) < o.n {
		n.clampRules(len(rules))
	}
}

// clampRules has grants that were decided by a rule that is not there any more be decided by the last one, as in what is saved.
func (n *Named) clampRules(rules int) {
	for it := n.table.Iter(); it.Next(); {
		v := it.Record().Value()
		if head := uint24(v); int(head>>placeBits&grantRule) >= rules {
			putUint24(v, head&^(grantRule<<placeBits)|uint32(rules-1)<<placeBits)
		}
	}
}

// rebucket notes for all grants when other buckets have back what they took: a
// bucket keeps the tokens, not the time they stand for.
func (n *Named) rebucket(rules []Rule, from []int, o *opened, now int64) {
	var number [RulesMax]int // of the old buckets
	olds := 0
	for i := 0; i < o.n; i++ {
		if o.rules[i].Algorithm == GCRA {
			number[i] = olds
			olds++
		}
	}
	same := true
	news := 0
	for i, r := range rules {
		if r.Algorithm != GCRA {
			continue
		}
		j := from[i]
		same = same && j >= 0 && o.rules[j] == r && number[j] == news
		news++
	}
	if same && news == olds {
		return
	}
	var all []table.Record
	for it := n.table.Iter(); it.Next(); {
		all = append(all, it.Record())
	}
	for _, record := range all {
		g := loadGrant(record.Value())
		was := g
		g.buckets = 0
		for i, r := range rules {
			if r.Algorithm != GCRA {
				continue
			}
			tail := int64(0)
			if j := from[i]; j >= 0 && o.rules[j].Algorithm == GCRA {
				if rest := n.bucketRest(o.rules[j], now, &was, number[j]).micros; rest > 0 {
					tail = now - g.taken + rescaled(rest, o.rules[j], r)
				}
			}
			g.tails[g.buckets] = max(tail, 0)
			g.buckets++
		}
		n.set(record.Key(), record, &g)
	}
	n.given = make([]int64, news)
}

// rescaled is how long the tokens take under a rule that took so long under
// another.
func rescaled(micros int64, from, to Rule) int64 {
	whole, rest, ok := from.tokens(moment{micros: micros})
	if !ok || whole > uint64(CountMax) {
		return FillMicrosMax
	}
	span, ok := to.span(int64(whole))
	if !ok || span.micros+to.PeriodMicros > FillMicrosMax {
		return FillMicrosMax
	}
	// rest is a part of a token, in 1/period: less than one.
	hi, lo := bits.Mul64(rest, uint64(to.PeriodMicros))
	parts, _ := bits.Div64(hi, lo, uint64(from.PeriodMicros))
	return span.micros + int64(parts/uint64(to.Count))
}
