// This file is a call on a limiter: the decision, and giving back.
//
// Several rules on one limiter are taken all or nothing. What the reply says is
// then: Limit is the capacity of the deciding rule, which is the one that has to
// be waited for longest or, if the call passed, the one with the least left.
// Remaining is the least that any rule has left, RetryAfterMicros the longest
// wait, ResetAfterMicros when all rules are full again.

package limiter

import "errors"

// Mode says what a call does with the cost.
type Mode uint8

const (
	// Try takes the cost if it fits, or nothing.
	Try Mode = iota
	// Peek answers as Try does and takes nothing.
	Peek
	// Force takes the cost in any case, into debt where it does not fit, and is
	// never limited.
	Force
	// AtMost takes what there is, from 1 up to the cost.
	AtMost
)

// Decision is what came of a call.
type Decision struct {
	// Limited is true where the cost did not fit.
	Limited bool
	// Rule is the index of the deciding rule.
	Rule int
	// Limit is the capacity of the deciding rule.
	Limit int64
	// Remaining is what could be taken at once after this call. Never negative:
	// debt shows as a longer wait.
	Remaining int64
	// RetryAfterMicros is how long to wait until the cost fits if nobody else
	// takes; -1 if it was granted or nothing tells when it will be.
	RetryAfterMicros int64
	// ResetAfterMicros is how long until the limiter is full, -1 if nothing tells.
	ResetAfterMicros int64
	// Taken is what was granted: the cost, or less with AtMost. A shadow grants all
	// that was asked for.
	Taken int64
	// Shadowed tells that the call passed only because the limiter is a shadow.
	Shadowed bool
}

// What a call can be refused for. Nothing has changed when one is returned.
var (
	// ErrCost is a cost below 0 or above CountMax.
	ErrCost = errors.New("limiter: cost out of range")
	// ErrCapacity is a cost above what a rule can ever grant. FORCE may take it.
	ErrCapacity = errors.New("limiter: cost above the capacity")
	// ErrDebt is a forced cost that would pile up more than UsedMax, or more than
	// comes back within FillMicrosMax.
	ErrDebt = errors.New("limiter: too much debt")
	// ErrLease is a cost that CONC would never get back, for want of a name and a
	// lease.
	ErrLease = errors.New("limiter: CONC without a lease")
)

// Take decides on a cost at now, writes the outcome into p and returns p: the
// same bytes, or others in other memory where a LOG had to grow or shrank, or a
// compact limiter became a wide one. now
// is in Unix microseconds. After a clock was put back nothing passes that would
// not have passed before.
func Take(p []byte, now, cost int64, mode Mode) ([]byte, Decision, error) {
	if head := headOf(p); p[0]&(rulesMask|shadowFlag) == 1 && p[head]&algorithmMask == byte(GCRA) && mode != AtMost {
		if cost < 0 || cost > CountMax {
			return p, Decision{}, ErrCost
		}
		return takeGCRA(p, head, now, cost, mode)
	}
	c := Call{Cost: cost, Mode: mode}
	return decide(p, now, &c)
}

// Call is what is asked of a limiter.
type Call struct {
	Cost int64
	Mode Mode
	// Keep is how much has to be left afterwards.
	Keep int64
	// Lease tells that the grant is named and has a lease, without which CONC
	// gives nothing.
	Lease bool
	// named are the limiter's grants, which tell when what they hold comes back.
	named *Named
}

// Decide is Take with all that may be asked.
func Decide(p []byte, now int64, c Call) ([]byte, Decision, error) { return decide(p, now, &c) }

func decide(p []byte, now int64, c *Call) ([]byte, Decision, error) {
	cost := c.Cost
	if cost < 0 || cost > CountMax || c.Keep < 0 || c.Keep > CountMax {
		return p, Decision{}, ErrCost
	}
	var o opened
	o.open(p)
	if c.Mode == AtMost {
		cost = min(cost, max(o.least(p, now)-c.Keep, min(cost, 1)))
	}
	var d Decision
	d.RetryAfterMicros, d.Taken = -1, cost
	for i := 0; i < o.n; i++ {
		r, state := o.rules[i], p[o.at[i]:o.at[i+1]]
		row := r.row()
		if row.needsLease && !c.Lease && c.Mode != Peek && c.Cost > 0 {
			return p, Decision{}, ErrLease
		}
		if c.Mode == Force {
			if !row.bears(r, state, now, cost) {
				return p, Decision{}, ErrDebt
			}
			continue
		}
		need := cost + c.Keep
		if need > r.Capacity() {
			if p[0]&shadowFlag == 0 {
				return p, Decision{}, ErrCapacity
			}
			d.Shadowed = true
			continue
		}
		if wait := row.wait(r, state, now, need); wait > 0 {
			if wait >= never {
				wait = c.named.wait(r, state, now, need)
			}
			d.Limited = true
			if wait > d.RetryAfterMicros {
				d.RetryAfterMicros, d.Rule = wait, i
			}
		}
	}
	switch {
	case p[0]&shadowFlag != 0:
		p = o.shadow(p, now, cost, c, &d)
	case d.Limited:
		if d.Taken = 0; d.RetryAfterMicros >= never {
			d.RetryAfterMicros = -1
		}
	case c.Mode != Peek:
		p = o.take(p, now, cost)
	}
	least := 0
	for i := 0; i < o.n; i++ {
		available, reset := o.rules[i].room(p[o.at[i]:o.at[i+1]], now)
		available = max(available, 0)
		if i == 0 || available < d.Remaining {
			d.Remaining, least = available, i
		}
		d.ResetAfterMicros = max(d.ResetAfterMicros, reset)
	}
	if !d.Limited {
		d.Rule = least
	}
	if d.ResetAfterMicros >= never {
		d.ResetAfterMicros = o.reset(p, now, c.named)
	}
	d.Limit = o.rules[d.Rule].Capacity()
	return counted(p, c.Mode, d.Limited, cost), d, nil
}

// shadow is what becomes of a call on a shadow: it takes what fits, and passes.
func (o *opened) shadow(p []byte, now, cost int64, c *Call, d *Decision) []byte {
	d.Shadowed = d.Shadowed || d.Limited
	d.Limited, d.RetryAfterMicros, d.Taken = false, -1, c.Cost
	switch {
	case c.Mode == Peek:
	case d.Shadowed:
		countShadow(p)
	default:
		p = o.take(p, now, cost)
	}
	return p
}

// reset is how long until all rules are full, as far as grants tell: -1 if that is
// never.
func (o *opened) reset(p []byte, now int64, named *Named) (longest int64) {
	for i := 0; i < o.n; i++ {
		_, reset := named.room(o.rules[i], p[o.at[i]:o.at[i+1]], now)
		if reset < 0 {
			return -1
		}
		longest = max(longest, reset)
	}
	return longest
}

// least is the least that a rule has available.
func (o *opened) least(p []byte, now int64) int64 {
	least := never
	for i := 0; i < o.n; i++ {
		available, _ := o.rules[i].room(p[o.at[i]:o.at[i+1]], now)
		least = min(least, available)
	}
	return least
}

// Long tells whether a grant at now is told by what was taken, and not by what the limiter becomes: it has a log, in which
// something is. Of one grant in wholeEvery the whole limiter is told all the same: how many calls were refused is told with
// that only.
func Long(p []byte, now int64) bool {
	return len(p) >= longBytes && p[0]&shadowFlag == 0 && granted(p)%wholeEvery != 0 && FullAt(p) > now
}

func granted(p []byte) int64 {
	n, _ := Totals(p)
	return n
}

const (
	longBytes  = 128 // where the whole is three times as long as the grant
	wholeEvery = 64
)

// Again takes a cost that was granted before, so many times, as Decide did with the same bytes. It reports false if that
// cannot have been.
func Again(p []byte, now, cost, times int64) ([]byte, bool) {
	for range times {
		var o opened
		o.open(p)
		for i := 0; i < o.n; i++ {
			if r := o.rules[i]; !r.row().bears(r, p[o.at[i]:o.at[i+1]], now, cost) {
				return p, false
			}
		}
		p = o.take(p, now, cost)
		p = counted(p, Try, false, cost)
	}
	return p, true
}

// countShadow counts a call that a shadow would have refused.
func countShadow(p []byte) {
	at := p[len(p)-shadowSize:]
	if n := uint48(at); n < totalMax {
		putUint48(at, n+1)
	}
}

// take adds the cost to every rule. To take nothing changes nothing, since it is not told either.
func (o *opened) take(p []byte, now, cost int64) []byte {
	if cost == 0 {
		return p
	}
	for i := 0; i < o.n; i++ {
		r, state := o.rules[i], p[o.at[i]:o.at[i+1]]
		if taken := r.row().take(r, state, now, cost); len(taken) != len(state) {
			p = o.splice(p, i, taken)
		}
	}
	return p
}

// takeGCRA is Take for the usual limiter, one GCRA rule: the same, without
// looking at the state three times.
func takeGCRA(p []byte, head int, now, cost int64, mode Mode) ([]byte, Decision, error) {
	r, at := decodeRule(p, head)
	state := p[at:]
	d := Decision{Limit: r.Burst, RetryAfterMicros: -1}
	if mode == Force {
		if !r.gcraBears(state, now, cost) {
			return p, Decision{}, ErrDebt
		}
	} else if cost > r.Burst {
		return p, Decision{}, ErrCapacity
	}
	n := uint64(r.Count)
	used := r.gcraInUse(state, now)
	span, _ := r.span(cost)
	sum := used.add(span, n)
	if fill := r.fill(); mode != Force && fill.less(sum) {
		d.Limited = true
		d.RetryAfterMicros = sum.sub(fill, n).up()
	} else if mode != Peek && cost > 0 {
		used = sum
		r.storeMoment(state, moment{sum.micros + now, sum.frac})
	}
	if !d.Limited {
		d.Taken = cost
	}
	d.ResetAfterMicros = used.up()
	whole, rest, ok := r.tokens(used)
	if rest > 0 {
		whole++
	}
	if ok && whole < uint64(r.Burst) {
		d.Remaining = r.Burst - int64(whole)
	}
	return counted(p, mode, d.Limited, cost), d, nil
}

// counted adds the call to the totals. To take nothing is no grant.
func counted(p []byte, mode Mode, limited bool, cost int64) []byte {
	if mode == Peek || !limited && cost == 0 {
		return p
	}
	return count(p, limited)
}

// count adds one to a total.
func count(p []byte, limited bool) []byte {
	if compact(p) {
		return countCompact(p, limited)
	}
	countWide(p, limited)
	return p
}

// countWide is count for a wide limiter, whose totals stop at totalMax.
func countWide(p []byte, limited bool) {
	at := headGranted
	if limited {
		at = headRefused
	}
	if total := uint48(p[at:]); total < totalMax {
		putUint48(p[at:], total+1)
	}
}

// CountRefused adds a call that was refused without being decided here, because
// others wait in line. It returns the limiter, as Take does.
func CountRefused(p []byte) []byte { return count(p, true) }

func (r Rule) room(state []byte, now int64) (available, resetMicros int64) {
	return r.row().room(r, state, now)
}

// Release gives n back, the oldest first, and returns how much more can be taken
// than before: at most n, and never above the capacity. With several rules it
// is the most that any of them got back. Where nothing comes back nothing changes,
// since it is not told.
func Release(p []byte, now, n int64) (int64, error) {
	if n < 0 || n > CountMax {
		return 0, ErrCost
	}
	var room [128]byte
	was := append(room[:0], p...)
	var o opened
	o.open(p)
	var back int64
	for i := 0; i < o.n; i++ {
		r, state := o.rules[i], p[o.at[i]:o.at[i+1]]
		before, _ := r.room(state, now)
		r.row().give(r, state, now, n)
		after, _ := r.room(state, now)
		back = max(back, after-before)
	}
	if back == 0 {
		copy(p, was)
	}
	return back, nil
}
