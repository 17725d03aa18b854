// This file is the check of a limiter's bytes, which tests run after each step
// and which guards bytes that come from elsewhere.
package limiter

import (
	"fmt"
)

// Check returns what is wrong with a limiter's bytes, or nil.
func Check(p []byte) (err error) {
	defer func() {
		if recover() != nil { // the decoder read past the end
			err = fmt.Errorf("limiter: cut short")
		}
	}()
	if len(p) == 0 || len(p) <= headOf(p) || p[0]&^(rulesMask|keptFlag|shadowFlag|compactFlag) != 0 {
		return fmt.Errorf("limiter: bad head")
	}
	n := int(p[0] & rulesMask)
	if n < 1 || n > RulesMax {
		return fmt.Errorf("limiter: %d rules", n)
	}
	var o opened
	o.n = n
	at := headOf(p)
	flags := byte(burstFlag)
	if compact(p) {
		flags |= secondsFlag
	}
	for i := 0; i < n; i++ {
		if a := Algorithm(p[at] &^ flags); a >= algorithms {
			return fmt.Errorf("limiter: rule %d: algorithm %d", i, a)
		}
		o.rules[i], at = decodeRule(p, at)
		if err := o.rules[i].Validate(); err != nil {
			return fmt.Errorf("limiter: rule %d: %w", i, err)
		}
	}
	if compact(p) && !HasRules(p, o.rules[:n]) {
		return fmt.Errorf("limiter: a period in microseconds that could be in seconds")
	}
	for i := 0; i < n; i++ {
		size := o.rules[i].stateSize(p[at:])
		if err := o.rules[i].checkState(p[at : at+size]); err != nil {
			return fmt.Errorf("limiter: rule %d: %w", i, err)
		}
		at += size
	}
	if p[0]&shadowFlag != 0 {
		at += shadowSize
	}
	if at != len(p) {
		return fmt.Errorf("limiter: %d bytes too many", len(p)-at)
	}
	return nil
}

// CheckPlain is Check for a limiter without named grants, where CONC holds nothing.
func CheckPlain(p []byte) error {
	if err := Check(p); err != nil {
		return err
	}
	var o opened
	o.open(p)
	for i := 0; i < o.n; i++ {
		if o.rules[i].Algorithm == Conc && loadHold(p[o.at[i]:]) != 0 {
			return fmt.Errorf("limiter: rule %d holds what nobody has", i)
		}
	}
	return nil
}

func (r Rule) checkState(state []byte) error {
	switch r.Algorithm {
	case GCRA:
		if m := r.loadMoment(state); m.micros < 0 || m.micros > TimeMax+FillMicrosMax || m.frac >= uint64(r.Count) {
			return fmt.Errorf("time %d+%d/%d", m.micros, m.frac, r.Count)
		}
	case Log:
		return checkLog(state)
	case Fixed:
		if start, used := loadFixed(state); start < 0 || start > TimeMax || used > UsedMax {
			return fmt.Errorf("%d used from %d", used, start)
		}
	case Cal:
		if s := loadCal(state); s.start < -calBefore || s.start > TimeMax || s.used > UsedMax {
			return fmt.Errorf("%d used from %d", s.used, s.start)
		}
	case Conc, Total:
		if used := loadHold(state); used > UsedMax {
			return fmt.Errorf("%d used", used)
		}
	case Window:
		if w := loadWindow(state); w.start < 0 || w.start > TimeMax || w.current > UsedMax || w.previous > UsedMax {
			return fmt.Errorf("%d and %d used from %d", w.current, w.previous, w.start)
		}
	}
	return nil
}

func checkLog(state []byte) error {
	l := loadLog(state)
	if l.head > l.tail || l.tail > len(l.area) {
		return fmt.Errorf("entries %d:%d of %d bytes", l.head, l.tail, len(l.area))
	}
	if l.used < 0 || l.used > UsedMax || l.oldest < 0 || l.oldest > TimeMax || l.newest < 0 || l.newest > TimeMax {
		return fmt.Errorf("%d used from %d to %d", l.used, l.oldest, l.newest)
	}
	sum, when := l.newestCost, l.oldest
	for at := l.head; at < l.tail; {
		cost, gap, next := l.entry(at)
		if next > l.tail || cost < 1 || cost > UsedMax || gap < 1 || gap > l.newest-when {
			return fmt.Errorf("entry at %d: cost %d, gap %d", at, cost, gap)
		}
		sum, when, at = sum+cost, when+gap, next
	}
	if sum != l.used || l.head < l.tail && (when != l.newest || l.newestCost == 0) {
		return fmt.Errorf("entries sum to %d of %d and end at %d of %d", sum, l.used, when, l.newest)
	}
	return nil
}
