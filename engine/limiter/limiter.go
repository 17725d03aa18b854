// This file is a call on a limiter: the decision, and giving back.
//
// A call takes its cost from all rules of a limiter, or from none. In the reply, Limit is the capacity of the deciding
// rule: the one with the longest wait or, if the call passed, the one with the least left. Remaining is the least that
// any rule has left, RetryAfterMicros the longest wait, and ResetAfterMicros the time until all rules are full again.

package limiter

import "errors"

// Mode says what a call does with the cost.
type Mode uint8

const (
	// Try takes the cost if it fits, or nothing.
	Try Mode = iota
	// Peek answers as Try does and takes nothing.
	Peek
	// Force takes the cost in any case, into debt if it does not fit, and is never limited.
	Force
	// AtMost takes what is available, at least 1 and at most the cost.
	AtMost
)

// Decision is the outcome of a call.
type Decision struct {
	// Limited is true if the cost did not fit.
	Limited bool
	// Rule is the index of the deciding rule.
	Rule int
	// Limit is the capacity of the deciding rule.
	Limit int64
	// Remaining is what could be taken at once after this call. It is never negative: debt shows as a longer wait.
	Remaining int64
	// RetryAfterMicros is how long until the cost fits, if nobody else takes any; -1 if it was granted or that is
	// unknown.
	RetryAfterMicros int64
	// ResetAfterMicros is how long until the limiter is full, -1 if that is unknown.
	ResetAfterMicros int64
	// Taken is what was granted: the cost, or less with AtMost. A shadow grants the whole cost.
	Taken int64
	// Shadowed tells that the call passed only because the limiter is a shadow.
	Shadowed bool
}

// Errors of a call. A call that returns one changes nothing.
var (
	// ErrCost is a cost below 0 or above CountMax.
	ErrCost = errors.New("limiter: cost out of range")
	// ErrCapacity is a cost above what a rule can ever grant. FORCE may take it.
	ErrCapacity = errors.New("limiter: cost above the capacity")
	// ErrDebt is a forced cost that would make the debt exceed UsedMax, or what comes back within FillMicrosMax.
	ErrDebt = errors.New("limiter: too much debt")
	// ErrLease is a cost that CONC would never get back, because the grant has no name and lease.
	ErrLease = errors.New("limiter: CONC without a lease")
)

// Take decides on a cost at now, in Unix microseconds, writes the outcome into p and returns p: the same bytes, or
// others in other memory if a LOG grew or shrank, or a compact limiter became wide. If the clock was set back, nothing
// passes that would not have passed before.
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

// Call is one request to a limiter.
type Call struct {
	Cost int64
	Mode Mode
	// Keep is how much must be left afterwards.
	Keep int64
	// Lease says that the grant is named and has a lease. CONC grants nothing without it.
	Lease bool
	// named are the limiter's grants, from which the call learns when what they hold comes back.
	named *Named
}

// Decide is Take with all options.
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

// shadow finishes a call on a shadow: it takes the cost if it fits, and the call passes.
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

// reset is how long until all rules are full, as far as the grants tell; -1 if one never will be.
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

// least is the least that any rule has available.
func (o *opened) least(p []byte, now int64) int64 {
	least := never
	for i := 0; i < o.n; i++ {
		available, _ := o.rules[i].room(p[o.at[i]:o.at[i+1]], now)
		least = min(least, available)
	}
	return least
}

// Long tells whether the effect of a grant at now is only the cost, instead of the limiter's new state. That saves
// bytes if the limiter is long, as with a log in use. Of wholeEvery grants one logs the whole limiter nevertheless,
// because only that contains the count of refused calls.
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

// Again repeats a grant from the log, so many times, as Decide made it with the same bytes. It returns false if that
// grant is impossible.
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

// take adds the cost to every rule. A cost of 0 changes nothing, because it is not logged either.
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

// takeGCRA is Take for the usual limiter, one GCRA rule: the same, with one look at the state instead of three.
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

// counted adds the call to the totals. A call that takes nothing is no grant.
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

// CountRefused counts a call that was refused without a decision here, for example because others wait in line. It
// returns the limiter, as Take does.
func CountRefused(p []byte) []byte { return count(p, true) }

func (r Rule) room(state []byte, now int64) (available, resetMicros int64) {
	return r.row().room(r, state, now)
}

// Release gives back n, the oldest first, and returns how much more can be taken than before: at most n, and never
// above the capacity. With several rules it returns the most that any of them got back. If nothing comes back it
// changes nothing, because that is not logged.
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
