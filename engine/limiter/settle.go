// This file ends named grants. What a grant took and did not need comes back to the window that it was taken from. What
// it needed beyond is charged to that window, and to no other. If the window is over, nothing changes.

package limiter

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/limitkv/limitkv/engine/table"
)

// Close ends a grant with its actual cost, at most CountMax; below 0 means what was taken. It returns what came back,
// negative for what was charged: with several rules the most. CONC always gets back all that was held; without other
// rules that is what Close returns. ok is false if no such grant is open.
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
	number := o.buckets()
	for i := 0; i < o.n && diff < 0; i++ {
		r, state := o.rules[i], n.state[o.at[i]:o.at[i+1]]
		if row := r.row(); !row.needsLease && row.during(r, state, now, diff, n.spent(r, now, &g, number[i])) > 0 &&
			!row.bears(r, state, now, -diff) {
			return 0, true, ErrDebt
		}
	}
	others := false
	for i := 0; i < o.n; i++ {
		r, state := o.rules[i], n.state[o.at[i]:o.at[i+1]]
		if r.row().needsLease {
			r.row().give(r, state, now, g.cost)
			continue
		}
		others = true
		before, _ := r.room(state, now)
		if diff != 0 {
			state = n.settleRule(&o, i, now, diff, &g, number[i])
		}
		after, _ := r.room(state, now)
		if by := after - before; diff > 0 && by > back || diff < 0 && by < back {
			back = by
		}
	}
	if !others {
		back = g.cost
	}
	n.remove(record)
	return back, true, nil
}

// buckets returns, for each rule, how many buckets are before it, and last the number of all buckets.
func (o *opened) buckets() (number [RulesMax + 1]int) {
	for i := 0; i < o.n; i++ {
		number[i+1] = number[i]
		if o.rules[i].row().bucket {
			number[i+1]++
		}
	}
	return number
}

// bucketsOf is how many of a limiter's rules are buckets.
func bucketsOf(p []byte) int {
	var o opened
	o.open(p)
	return o.buckets()[o.n]
}

// spent is what a grant took of a rule. bucket is the rule's number among the buckets.
//
// The tokens of a bucket come back in the order in which they were taken: the grant's are the last of those that were
// in use after it. They come back earlier by what was given back since, but not earlier than if the grant had been
// alone. In truth, tokens of later grants that were given back do not bring it forward. They count nevertheless, so
// that a grant never gives back the tokens of another. A grant that was alone is exact: settled at once, it gives back
// whole tokens.
func (n *Named) spent(r Rule, now int64, g *grant, bucket int) spent {
	s := spent{taken: g.taken}
	if !r.row().bucket || bucket >= g.buckets {
		return s
	}
	var ok bool
	if s.rest, ok = r.span(g.cost); !ok {
		s.rest.micros = FillMicrosMax
	}
	if tail := g.tails[bucket] - n.given[bucket]; tail > s.rest.micros {
		s.rest = moment{micros: tail}
	}
	s.rest.micros += g.taken - now
	return s
}

// settleRule gives back diff to a rule in the grant's window, or charges it if it is negative. It returns the rule's
// state, which may have moved.
func (n *Named) settleRule(o *opened, i int, now, diff int64, g *grant, bucket int) []byte {
	r, state := o.rules[i], n.state[o.at[i]:o.at[i+1]]
	row, s := r.row(), n.spent(r, now, g, bucket)
	if row.during(r, state, now, diff, s) <= 0 {
		return state
	}
	was := r.bucketMoment(state)
	if moved := row.settle(r, state, now, diff, s); len(moved) != len(state) {
		n.state = o.splice(n.state, i, moved)
		state = moved
	}
	n.gave(r, bucket, was, state)
	return state
}

// gave records how much earlier than before a bucket is full.
func (n *Named) gave(r Rule, bucket int, was moment, state []byte) {
	if is := r.bucketMoment(state); is.less(was) {
		n.given[bucket] = min(n.given[bucket]+was.sub(is, uint64(r.Count)).up(), never)
	}
}

// bucketMoment is when a bucket is full, and always the same for other rules.
func (r Rule) bucketMoment(state []byte) moment {
	if !r.row().bucket {
		return moment{}
	}
	return r.loadMoment(state)
}

// givesAnywhere is settle for algorithms where only the sum counts: give takes if the diff is negative.
func givesAnywhere(give func(r Rule, state []byte, now, n int64)) func(Rule, []byte, int64, int64, spent) []byte {
	return func(r Rule, state []byte, now, diff int64, _ spent) []byte {
		give(r, state, now, diff)
		return state
	}
}

// Settle is Ended for the keyspace. It never empties the key.
func (n *Named) Settle(now int64, most int, _ func(part []byte)) (served int, empty bool) {
	return n.Ended(now, most), false
}

// Ended ends up to most grants whose end has come by now. Those with a lease give back to CONC and TOTAL; what others
// took stays taken.
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

// unhold gives a cost back to CONC, and if total is set to TOTAL.
func (n *Named) unhold(cost int64, total bool) {
	var o opened
	o.open(n.state)
	for i := 0; i < o.n; i++ {
		r := o.rules[i]
		if row := r.row(); row.needsLease || row.untimed && total {
			row.give(r, n.state[o.at[i]:o.at[i+1]], 0, cost)
		}
	}
}

// Release is the package's Release for a limiter with grants. CONC frees what grants hold, in the order in which the
// grants end. TOTAL gives back what was taken for good; what a grant holds comes back with the grant. Release also
// returns the names of the grants that hold less, or nothing any more.
func (n *Named) Release(now, c int64) (back int64, freed [][]byte, err error) {
	if c < 0 || c > CountMax {
		return 0, nil, ErrCost
	}
	state, given := bytes.Clone(n.state), slices.Clone(n.given)
	defer func() {
		if back == 0 && freed == nil { // what is not logged must not change
			n.state, n.given = state, given
		}
	}()
	var o opened
	o.open(n.state)
	if NeedsLease(n.state) {
		freed = n.letGo(c)
	}
	number := o.buckets()
	for i := 0; i < o.n; i++ {
		r, state := o.rules[i], n.state[o.at[i]:o.at[i+1]]
		before, _ := r.room(state, now)
		was := r.bucketMoment(state)
		switch row := r.row(); {
		case row.needsLease:
			storeHold(state, n.held)
		case row.untimed:
			row.give(r, state, now, min(c, max(loadHold(state)-n.held, 0)))
		default:
			row.give(r, state, now, c)
		}
		n.gave(r, number[i], was, state)
		after, _ := r.room(state, now)
		back = max(back, after-before)
	}
	return back, freed, nil
}

// letGo takes up to c from what grants hold, from those that end first. It returns the names of these grants, or an
// empty list if no grant is left.
func (n *Named) letGo(c int64) (freed [][]byte) {
	if c > n.held { // all of them: no need to walk
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

// StateFor is what the limiter's bytes will be under other rules. Rebase and SetState then apply it.
func (n *Named) StateFor(rules []Rule, now int64) []byte {
	state := Change(nil, n.state, rules, now)
	var o opened
	o.open(state)
	for i, r := range rules {
		switch state, row := state[o.at[i]:o.at[i+1]], r.row(); {
		case row.needsLease:
			storeHold(state, n.held)
		case row.untimed:
			storeHold(state, max(loadHold(state), n.held))
		}
	}
	return state
}

// Rebase adapts the grants to the rules that the limiter is about to have.
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

// clampRules makes the last rule the deciding rule of grants whose deciding rule no longer exists, as parse does.
func (n *Named) clampRules(rules int) {
	for it := n.table.Iter(); it.Next(); {
		v := it.Record().Value()
		if head := uint24(v); int(head>>placeBits&grantRule) >= rules {
			putUint24(v, head&^(grantRule<<placeBits)|uint32(rules-1)<<placeBits)
		}
	}
}

// rebucket stores in all grants when the new buckets have back what they took. A bucket keeps the tokens, not the time
// that they take.
func (n *Named) rebucket(rules []Rule, from []int, o *opened, now int64) {
	number := o.buckets() // of the old ones
	same := true
	news := 0
	for i, r := range rules {
		if !r.row().bucket {
			continue
		}
		j := from[i]
		same = same && j >= 0 && o.rules[j] == r && number[j] == news
		news++
	}
	if same && news == number[o.n] {
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
			if !r.row().bucket {
				continue
			}
			tail := int64(0)
			if j := from[i]; j >= 0 {
				if rest := n.spent(o.rules[j], now, &was, number[j]).rest.micros; rest > 0 {
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

// rescaled is how long tokens take under the rule to, if they take micros under the rule from.
func rescaled(micros int64, from, to Rule) int64 {
	whole, rest, ok := from.tokens(moment{micros: micros})
	if !ok || whole > uint64(CountMax) {
		return FillMicrosMax
	}
	span, ok := to.span(int64(whole))
	if !ok || span.micros+to.PeriodMicros > FillMicrosMax {
		return FillMicrosMax
	}
	// rest is a part of a token, in 1/period.
	hi, lo := bits.Mul64(rest, uint64(to.PeriodMicros))
	parts, _ := bits.Div64(hi, lo, uint64(from.PeriodMicros))
	return span.micros + int64(parts/uint64(to.Count))
}
