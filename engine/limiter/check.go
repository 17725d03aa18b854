// This file checks a limiter's bytes. Tests run it after each step, and bytes from outside must pass it.

package limiter

import (
	"bytes"
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
		if a := p[at] &^ flags; int(a) >= len(rows) || rows[a] == nil {
			return fmt.Errorf("limiter: rule %d: algorithm %d", i, a)
		}
		start := at
		o.rules[i], at = decodeRule(p, at)
		if err := o.rules[i].Validate(); err != nil {
			return fmt.Errorf("limiter: rule %d: %w", i, err)
		}
		if compact(p) && !bytes.Equal(p[start:at], o.rules[i].append(nil, true)) {
			return fmt.Errorf("limiter: rule %d: a period in microseconds that could be in seconds", i)
		}
	}
	for i := 0; i < n; i++ {
		r := o.rules[i]
		size := r.row().size(r, p[at:])
		if err := r.row().check(r, p[at:at+size]); err != nil {
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
		if o.rules[i].row().needsLease && loadHold(p[o.at[i]:]) != 0 {
			return fmt.Errorf("limiter: rule %d holds what nobody has", i)
		}
	}
	return nil
}
