// This file is GCRA. Its state is one point in time, the "theoretical arrival time": when the bucket will be full
// again. A token takes period/count microseconds to come back. In general that is no whole number, and for rates above
// a million a second it is below one microsecond. So a time here is whole microseconds and a fraction with the rule's
// count as its denominator. With that every sum and comparison is exact; only replies are rounded.
//
// If the count divides the period, the fraction is always 0 and not stored: the state is one time of 8 bytes. Otherwise
// it takes 1 to 5 bytes more.

package limiter

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// GCRA is the token bucket in its exact form: Count tokens come back per period, evenly, and at most Burst can be taken
// at once.
const GCRA Algorithm = 0

func init() {
	register(GCRA, &algorithm{
		word: "GCRA", version: 1, bucket: true,
		grammar: &grammar{
			arguments: []string{periodSyntax, "BURST burst:integer"}, needs: 1,
			parse: parseGCRA, text: textOfGCRA, validate: Rule.validateGCRA, period: Rule.period,
			encode: encodeNothing, decode: decodeNothing,
		},
		size: func(r Rule, _ []byte) int { return 8 + r.fracWidth() },
		wait: Rule.gcraWait, take: Rule.gcraTake, room: Rule.gcraRoom, bears: Rule.gcraBears, give: Rule.gcraGive,
		during: Rule.gcraDuring, settle: Rule.gcraSettle, over: Rule.overWhenFull,
		fullAt: Rule.gcraFullAt, carry: Rule.gcraCarry, back: Rule.gcraBack, check: Rule.gcraCheck,
	})
}

func parseGCRA(r Rule, args [][]byte) (Rule, int, error) {
	r, n, err := parsePeriod(r, args)
	if r.Burst = r.Count; err != nil || !startsWith(args[1:], "BURST") {
		return r, n, err
	}
	if len(args) < 3 {
		return r, 0, ErrMissing
	}
	var ok bool
	if r.Burst, ok = parseInt(args[2]); !ok {
		return r, 0, ErrNumber
	}
	return r, 3, nil
}

func textOfGCRA(dst []byte, r Rule) []byte {
	dst = textOfPeriod(dst, r)
	if r.Burst != r.Count {
		dst = appendInt(append(dst, " BURST "...), r.Burst)
	}
	return dst
}

func (r Rule) validateGCRA() error {
	if err := r.validatePeriod(); err != nil {
		return err
	}
	if r.Burst < 1 || r.Burst > CountMax {
		return ErrBurst
	}
	if fill, ok := r.span(r.Burst); !ok || fill.micros >= FillMicrosMax {
		return ErrFill
	}
	return nil
}

// moment is a time, or a length of time, of micros + frac/count microseconds, where count is the rule's and 0 <= frac <
// count.
type moment struct {
	micros int64
	frac   uint64
}

// less says that a is before b.
func (a moment) less(b moment) bool {
	return a.micros < b.micros || a.micros == b.micros && a.frac < b.frac
}

// add returns a+b. Both are far below 2^62, see FillMicrosMax.
func (a moment) add(b moment, count uint64) moment {
	micros, frac := a.micros+b.micros, a.frac+b.frac
	if frac >= count {
		micros, frac = micros+1, frac-count
	}
	return moment{micros, frac}
}

// sub returns a-b. Only micros can be negative in it.
func (a moment) sub(b moment, count uint64) moment {
	micros := a.micros - b.micros
	if a.frac < b.frac {
		return moment{micros - 1, a.frac + count - b.frac}
	}
	return moment{micros, a.frac - b.frac}
}

// up rounds up to whole microseconds.
func (a moment) up() int64 {
	if a.frac > 0 {
		return a.micros + 1
	}
	return a.micros
}

// span is how long cost tokens take to come back. It returns false if that is longer than FillMicrosMax.
func (r Rule) span(cost int64) (moment, bool) {
	n := uint64(r.Count)
	hi, lo := bits.Mul64(uint64(cost), uint64(r.PeriodMicros))
	if hi >= n {
		return moment{}, false
	}
	micros, frac := bits.Div64(hi, lo, n)
	if micros > uint64(FillMicrosMax) {
		return moment{}, false
	}
	return moment{int64(micros), frac}, true
}

// tokens is how many tokens come back in a length of time: whole ones, and a rest in 1/period of a token. ok is false
// if that does not fit.
func (r Rule) tokens(m moment) (whole uint64, rest uint64, ok bool) {
	hi, lo := bits.Mul64(uint64(m.micros), uint64(r.Count))
	lo, carry := bits.Add64(lo, m.frac, 0)
	hi += carry
	if hi >= uint64(r.PeriodMicros) {
		return 0, 0, false
	}
	whole, rest = bits.Div64(hi, lo, uint64(r.PeriodMicros))
	return whole, rest, true
}

// fracWidth is how many bytes the fraction takes in the state.
func (r Rule) fracWidth() int {
	if r.PeriodMicros%r.Count == 0 {
		return 0
	}
	return (bits.Len64(uint64(r.Count-1)) + 7) / 8
}

func (r Rule) loadMoment(state []byte) moment {
	m := moment{micros: int64(binary.LittleEndian.Uint64(state))}
	for i := r.fracWidth() - 1; i >= 0; i-- {
		m.frac = m.frac<<8 | uint64(state[8+i])
	}
	return m
}

func (r Rule) storeMoment(state []byte, m moment) []byte {
	binary.LittleEndian.PutUint64(state, uint64(m.micros))
	for i, w := 0, r.fracWidth(); i < w; i++ {
		state[8+i] = byte(m.frac)
		m.frac >>= 8
	}
	return state
}

// gcraInUse is how long until the bucket is full, never negative.
func (r Rule) gcraInUse(state []byte, now int64) moment {
	tat := r.loadMoment(state)
	if tat.micros < now {
		return moment{}
	}
	tat.micros -= now
	return tat
}

func (r Rule) gcraWait(state []byte, now, cost int64) int64 {
	used := r.gcraInUse(state, now)
	span, _ := r.span(cost)
	capacity := r.fill()
	sum := used.add(span, uint64(r.Count))
	if !capacity.less(sum) {
		return 0
	}
	return sum.sub(capacity, uint64(r.Count)).up()
}

// fill is how long the bucket takes from empty to full.
func (r Rule) fill() moment {
	if r.Burst == r.Count {
		return moment{micros: r.PeriodMicros}
	}
	m, _ := r.span(r.Burst)
	return m
}

// gcraRoom is how much could be taken now, negative in debt, and how long until the bucket is full. A partial token
// does not count.
func (r Rule) gcraRoom(state []byte, now int64) (available, reset int64) {
	used := r.gcraInUse(state, now)
	if used == (moment{}) {
		return r.Burst, 0
	}
	whole, rest, ok := r.tokens(used)
	if rest > 0 {
		whole++
	}
	if !ok || whole > uint64(UsedMax) { // only if the clock was set back by millennia
		whole = uint64(UsedMax)
	}
	return r.Burst - int64(whole), used.up()
}

// gcraTake adds a cost. If that is more than a state can hold, as after a change of algorithm, it becomes
// FillMicrosMax.
func (r Rule) gcraTake(state []byte, now, cost int64) []byte {
	span, ok := r.span(cost)
	used := r.gcraInUse(state, now).add(span, uint64(r.Count))
	if !ok || used.micros >= FillMicrosMax {
		used = moment{micros: FillMicrosMax}
	}
	used.micros += now
	return r.storeMoment(state, used)
}

// gcraBears says whether a forced cost stays within UsedMax and FillMicrosMax.
func (r Rule) gcraBears(state []byte, now, cost int64) bool {
	span, ok := r.span(cost)
	if !ok {
		return false
	}
	used := r.gcraInUse(state, now).add(span, uint64(r.Count))
	whole, _, ok := r.tokens(used)
	return ok && whole < uint64(UsedMax) && used.micros < FillMicrosMax
}

func (r Rule) gcraGive(state []byte, now, n int64) {
	used := r.gcraInUse(state, now)
	span, ok := r.span(n)
	if !ok || !span.less(used) {
		r.storeMoment(state, moment{micros: now})
		return
	}
	used = used.sub(span, uint64(r.Count))
	used.micros += now
	r.storeMoment(state, used)
}

// gcraCarry writes to state what is in use under an older rule: the tokens, not the time that they take. A part of a
// token that the new period cannot express is rounded up to a multiple of 1/period. Capacities and costs are whole
// tokens, so the rounding never changes a decision.
func (r Rule) gcraCarry(state []byte, now int64, old Rule, oldState []byte) []byte {
	used := old.gcraInUse(oldState, now)
	whole, rest, ok := old.tokens(used)
	if !ok || whole > uint64(UsedMax) {
		whole, rest = uint64(UsedMax), 0
	}
	// rest/old.Period of a token is part/r.Period of one.
	hi, lo := bits.Mul64(rest, uint64(r.PeriodMicros))
	part, over := bits.Div64(hi, lo, uint64(old.PeriodMicros))
	if over > 0 {
		part++
	}
	// (whole*period + part)/count microseconds.
	hi, lo = bits.Mul64(whole, uint64(r.PeriodMicros))
	lo, carry := bits.Add64(lo, part, 0)
	hi += carry
	m := moment{micros: FillMicrosMax}
	if hi < uint64(r.Count) {
		micros, frac := bits.Div64(hi, lo, uint64(r.Count))
		if micros < uint64(FillMicrosMax) {
			m = moment{int64(micros), frac}
		}
	}
	if r.fracWidth() == 0 {
		// A part of a token can be a part of a microsecond here. All other times are whole, so rounding up changes no
		// decision.
		m = moment{micros: m.up()}
	}
	m.micros += now
	return r.storeMoment(state, m)
}

// gcraDuring is how long until the bucket has back what the grant took. What is charged now comes back after that.
func (r Rule) gcraDuring(_ []byte, _, diff int64, g spent) int64 {
	if diff < 0 {
		span, _ := r.span(-diff)
		return g.rest.micros + span.up()
	}
	return g.rest.up()
}

// gcraSettle gives back tokens, at most those of the grant that are not back yet. A charge comes back after the grant's
// tokens: the part that would be back by now is not charged.
func (r Rule) gcraSettle(state []byte, now, diff int64, g spent) []byte {
	used := r.gcraInUse(state, now)
	if diff < 0 {
		span, _ := r.span(-diff)
		if rest := g.rest.micros + span.up(); span.micros >= rest {
			span = moment{micros: rest}
		}
		used = used.add(span, uint64(r.Count))
	} else {
		span, ok := r.span(diff)
		if !ok || g.rest.less(span) {
			span = g.rest
		}
		if used.less(span) {
			span = used
		}
		used = used.sub(span, uint64(r.Count))
	}
	used.micros += now
	return r.storeMoment(state, used)
}

func (r Rule) gcraFullAt(state []byte) int64 { return r.loadMoment(state).up() }

func (r Rule) gcraBack(state []byte, _, by int64) {
	m := r.loadMoment(state)
	m.micros = max(m.micros+by, 0)
	r.storeMoment(state, m)
}

func (r Rule) gcraCheck(state []byte) error {
	if m := r.loadMoment(state); m.micros < 0 || m.micros > TimeMax+FillMicrosMax || m.frac >= uint64(r.Count) {
		return fmt.Errorf("time %d+%d/%d", m.micros, m.frac, r.Count)
	}
	return nil
}
