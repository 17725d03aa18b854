// This file is a limiter as the engine stores it: one run of bytes without
// pointers, kept like a string's value. The functions read and write it in
// place; only a LOG that grows returns other bytes.
//
//	1 byte   how many rules, and the kept flag
//	6 bytes  calls granted
//	6 bytes  calls refused
//	         the rules, as rule.go encodes them
//	         the state of each rule, in their order
//
// A GCRA limiter of 100 per minute takes 13 + 6 + 8 = 27 bytes.
//
// Several rules on one limiter are taken all or nothing. What the reply says is
// then: Limit is the capacity of the deciding rule, which is the one that has to
// be waited for longest or, if the call passed, the one with the least left.
// Remaining is the least that any rule has left, RetryAfterMicros the longest
// wait, ResetAfterMicros when all rules are full again.
package limiter

import (
	"bytes"
	"encoding/binary"
	"errors"
)

const (
	headGranted = 1
	headRefused = 7
	headSize    = 13

	rulesMask = 0x0f
	keptFlag  = 0x10

	totalMax = 1<<48 - 1
)

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
	// takes; -1 if it was granted or never will.
	RetryAfterMicros int64
	// ResetAfterMicros is how long until the limiter is full.
	ResetAfterMicros int64
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
)

// opened is a limiter's bytes with their rules decoded and states found.
type opened struct {
	n     int
	rules [RulesMax]Rule
	at    [RulesMax + 1]int // where the states begin; at[n] is the end
}

func (o *opened) open(p []byte) {
	o.n = int(p[0] & rulesMask)
	at := headSize
	for i := 0; i < o.n; i++ {
		o.rules[i], at = decodeRule(p, at)
	}
	for i := 0; i < o.n; i++ {
		o.at[i] = at
		at += o.rules[i].stateSize(p[at:])
	}
	o.at[o.n] = at
}

// stateSize is how many bytes the rule's state at the front of p takes.
func (r Rule) stateSize(p []byte) int {
	if r.Algorithm == Log {
		return logFixed + int(binary.LittleEndian.Uint16(p[logSize:]))
	}
	return r.emptySize()
}

// emptySize is the size of the state in which nothing is in use. All of it is
// zeros, whatever the algorithm.
func (r Rule) emptySize() int {
	switch r.Algorithm {
	case GCRA:
		return 8 + r.fracWidth()
	case Log:
		return logFixed
	case Window:
		return windowSize
	default:
		return fixedSize
	}
}

// New appends a limiter with nothing in use. The rules are 1 to RulesMax and
// valid; kept says that the limiter stays when it is full.
func New(dst []byte, rules []Rule, kept bool) []byte {
	first := byte(len(rules))
	if kept {
		first |= keptFlag
	}
	dst = append(dst, first)
	dst = append(dst, make([]byte, headSize-1)...)
	for _, r := range rules {
		dst = r.append(dst)
	}
	for _, r := range rules {
		dst = append(dst, make([]byte, r.emptySize())...)
	}
	return dst
}

// Take decides on a cost at now, writes the outcome into p and returns p: the
// same bytes, or others in other memory where a LOG had to grow or shrank. now
// is in Unix microseconds. After a clock was put back nothing passes that would
// not have passed before.
func Take(p []byte, now, cost int64, mode Mode) ([]byte, Decision, error) {
	if cost < 0 || cost > CountMax {
		return p, Decision{}, ErrCost
	}
	if p[0]&rulesMask == 1 && p[headSize]&^burstFlag == byte(GCRA) {
		d, err := takeGCRA(p, now, cost, mode)
		return p, d, err
	}
	var o opened
	o.open(p)
	var d Decision
	d.RetryAfterMicros = -1
	for i := 0; i < o.n; i++ {
		r, state := o.rules[i], p[o.at[i]:o.at[i+1]]
		if mode == Force {
			if !r.bears(state, now, cost) {
				return p, Decision{}, ErrDebt
			}
			continue
		}
		if cost > r.Capacity() {
			return p, Decision{}, ErrCapacity
		}
		if wait := r.wait(state, now, cost); wait > 0 {
			d.Limited = true
			if wait > d.RetryAfterMicros {
				d.RetryAfterMicros, d.Rule = wait, i
			}
		}
	}
	if mode != Peek && !d.Limited {
		p = o.take(p, now, cost)
	}
	count(p, mode, d.Limited)
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
	d.Limit = o.rules[d.Rule].Capacity()
	return p, d, nil
}

// take adds the cost to every rule.
func (o *opened) take(p []byte, now, cost int64) []byte {
	for i := 0; i < o.n; i++ {
		state := p[o.at[i]:o.at[i+1]]
		switch r := o.rules[i]; r.Algorithm {
		case GCRA:
			r.gcraTake(state, now, cost)
		case Log:
			if grown := r.logTake(state, now, cost); len(grown) != len(state) {
				p = o.splice(p, i, grown)
			}
		case Window:
			r.windowTake(state, now, cost)
		default:
			r.fixedTake(state, now, cost)
		}
	}
	return p
}

// splice returns p with another state for rule i.
func (o *opened) splice(p []byte, i int, state []byte) []byte {
	out := make([]byte, 0, len(p)+len(state)-(o.at[i+1]-o.at[i]))
	out = append(out, p[:o.at[i]]...)
	out = append(out, state...)
	out = append(out, p[o.at[i+1]:]...)
	for by := len(out) - len(p); i < o.n; i++ {
		o.at[i+1] += by
	}
	return out
}

// takeGCRA is Take for the usual limiter, one GCRA rule: the same, without
// looking at the state three times.
func takeGCRA(p []byte, now, cost int64, mode Mode) (Decision, error) {
	r, at := decodeRule(p, headSize)
	state := p[at:]
	d := Decision{Limit: r.Burst, RetryAfterMicros: -1}
	if mode == Force {
		if !r.gcraBears(state, now, cost) {
			return Decision{}, ErrDebt
		}
	} else if cost > r.Burst {
		return Decision{}, ErrCapacity
	}
	n := uint64(r.Count)
	used := r.gcraInUse(state, now)
	span, _ := r.span(cost)
	sum := used.add(span, n)
	if fill := r.fill(); mode != Force && fill.less(sum) {
		d.Limited = true
		d.RetryAfterMicros = sum.sub(fill, n).up()
	} else if mode != Peek {
		used = sum
		r.storeMoment(state, moment{sum.micros + now, sum.frac})
	}
	count(p, mode, d.Limited)
	d.ResetAfterMicros = used.up()
	whole, rest, ok := r.tokens(used)
	if rest > 0 {
		whole++
	}
	if ok && whole < uint64(r.Burst) {
		d.Remaining = r.Burst - int64(whole)
	}
	return d, nil
}

// count adds the call to the totals, which stop at totalMax.
func count(p []byte, mode Mode, limited bool) {
	if mode == Peek {
		return
	}
	at := headGranted
	if limited {
		at = headRefused
	}
	if total := uint48(p[at:]); total < totalMax {
		putUint48(p[at:], total+1)
	}
}

// CountRefused adds a call that was refused without being decided here, because
// others wait in line.
func CountRefused(p []byte) { count(p, Try, true) }

// wait is how long a cost has to wait, 0 if it fits.
func (r Rule) wait(state []byte, now, cost int64) int64 {
	switch r.Algorithm {
	case GCRA:
		return r.gcraWait(state, now, cost)
	case Log:
		return r.logWait(state, now, cost)
	case Window:
		return r.windowWait(state, now, cost)
	default:
		return r.fixedWait(state, now, cost)
	}
}

// room is what is available now, negative in debt, and how long until full.
func (r Rule) room(state []byte, now int64) (available, resetMicros int64) {
	switch r.Algorithm {
	case GCRA:
		return r.gcraRoom(state, now)
	case Log:
		return r.logRoom(state, now)
	case Window:
		return r.windowRoom(state, now)
	default:
		return r.fixedRoom(state, now)
	}
}

// bears says whether a forced cost stays within the bounds of debt.
func (r Rule) bears(state []byte, now, cost int64) bool {
	switch r.Algorithm {
	case GCRA:
		return r.gcraBears(state, now, cost)
	case Log:
		return r.logBears(state, now, cost)
	case Window:
		w := r.windowLoad(state, now)
		return w.current+cost < UsedMax
	default:
		_, used := r.fixedLoad(state, now)
		return used+cost < UsedMax
	}
}

// Release gives n back, the oldest first, and returns how much more can be taken
// than before: at most n, and never above the capacity. With several rules it
// is the most that any of them got back.
func Release(p []byte, now, n int64) (int64, error) {
	if n < 0 || n > CountMax {
		return 0, ErrCost
	}
	var o opened
	o.open(p)
	var back int64
	for i := 0; i < o.n; i++ {
		r, state := o.rules[i], p[o.at[i]:o.at[i+1]]
		before, _ := r.room(state, now)
		switch r.Algorithm {
		case GCRA:
			r.gcraGive(state, now, n)
		case Log:
			r.logGive(state, now, n)
		case Window:
			r.windowGive(state, now, n)
		default:
			r.fixedGive(state, now, n)
		}
		after, _ := r.room(state, now)
		back = max(back, after-before)
	}
	return back, nil
}

// FullAt is since when the limiter is full, or from when on it will be if nobody
// takes, in Unix microseconds; 0 if it never was anything else. A limiter that
// is full equals a new one but for its totals, so one that is not kept can
// vanish then.
func FullAt(p []byte) int64 {
	if p[0]&rulesMask == 1 && p[headSize]&^burstFlag == byte(GCRA) { // the usual one
		r, at := decodeRule(p, headSize)
		return r.loadMoment(p[at:]).up()
	}
	var o opened
	o.open(p)
	var last int64
	for i := 0; i < o.n; i++ {
		last = max(last, o.rules[i].fullAt(p[o.at[i]:o.at[i+1]]))
	}
	return last
}

func (r Rule) fullAt(state []byte) int64 {
	switch r.Algorithm {
	case GCRA:
		return r.loadMoment(state).up()
	case Log:
		l := loadLog(state)
		if l.newestCost == 0 {
			return l.newest
		}
		return l.newest + r.PeriodMicros
	case Window:
		w := loadWindow(state)
		switch {
		case w.current > 0:
			return w.start + 2*r.PeriodMicros
		case w.previous > 0:
			return w.start + r.PeriodMicros
		}
		return w.start
	default:
		start, used := loadFixed(state)
		if used == 0 {
			return start
		}
		return start + r.PeriodMicros
	}
}

// Kept says whether the limiter stays when it is full.
func Kept(p []byte) bool { return p[0]&keptFlag != 0 }

// Keep sets whether the limiter stays when it is full.
func Keep(p []byte, kept bool) {
	p[0] &^= keptFlag
	if kept {
		p[0] |= keptFlag
	}
}

// Totals are the calls granted and refused since the limiter was made.
func Totals(p []byte) (granted, refused int64) {
	return int64(uint48(p[headGranted:])), int64(uint48(p[headRefused:]))
}

// ForgetRefused sets the calls refused to none, in place: for two limiters to be compared that are to grant the same.
func ForgetRefused(p []byte) []byte {
	putUint48(p[headRefused:], 0)
	return p
}

// Rules appends the limiter's rules.
func Rules(dst []Rule, p []byte) []Rule {
	at := headSize
	for i := 0; i < int(p[0]&rulesMask); i++ {
		var r Rule
		r, at = decodeRule(p, at)
		dst = append(dst, r)
	}
	return dst
}

// HasRules says whether the limiter has just these rules, in this order.
func HasRules(p []byte, rules []Rule) bool {
	if int(p[0]&rulesMask) != len(rules) {
		return false
	}
	var buf [32]byte
	at := headSize
	for _, r := range rules {
		want := r.append(buf[:0])
		if !bytes.HasPrefix(p[at:], want) {
			return false
		}
		at += len(want)
	}
	return true
}

// Capacity is the most that one call can be granted: the least of the rules'.
func Capacity(p []byte) int64 {
	least := CountMax
	at := headSize
	for i := 0; i < int(p[0]&rulesMask); i++ {
		var r Rule
		r, at = decodeRule(p, at)
		least = min(least, r.Capacity())
	}
	return least
}

// RuleStatus is how one rule of a limiter stands.
type RuleStatus struct {
	Rule Rule
	// Available is what could be taken at once, negative in debt.
	Available int64
	// ResetAfterMicros is how long until nothing is in use.
	ResetAfterMicros int64
}

// Status appends how each rule stands at now.
func Status(dst []RuleStatus, p []byte, now int64) []RuleStatus {
	var o opened
	o.open(p)
	for i := 0; i < o.n; i++ {
		available, reset := o.rules[i].room(p[o.at[i]:o.at[i+1]], now)
		dst = append(dst, RuleStatus{o.rules[i], available, reset})
	}
	return dst
}
