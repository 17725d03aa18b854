// This file reports the status of a limiter: when it is full, what it allows and what it has counted.

package limiter

import (
	"encoding/binary"
)

// FullAt is the time since which the limiter has been full, or from which on it will be if nobody takes, in Unix
// microseconds; 0 if it was never used. A full limiter equals a new one except for its totals, so a limiter that is not
// kept can be removed then.
func FullAt(p []byte) int64 {
	if head := headOf(p); p[0]&rulesMask == 1 && p[head]&algorithmMask == byte(GCRA) { // the usual one, a shadow or not
		r, at := decodeRule(p, head)
		return r.loadMoment(p[at:]).up()
	}
	var o opened
	o.open(p)
	var last int64
	for i := 0; i < o.n; i++ {
		r := o.rules[i]
		last = max(last, r.row().fullAt(r, p[o.at[i]:o.at[i+1]]))
	}
	return last
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
	if compact(p) {
		return int64(binary.LittleEndian.Uint16(p[headGranted:])), int64(binary.LittleEndian.Uint16(p[compactRefused:]))
	}
	return int64(uint48(p[headGranted:])), int64(uint48(p[headRefused:]))
}

// Shadow tells whether the limiter refuses nothing, and how many calls it would have refused.
func Shadow(p []byte) (shadow bool, refused int64) {
	if p[0]&shadowFlag == 0 {
		return false, 0
	}
	return true, int64(uint48(p[len(p)-shadowSize:]))
}

// SetShadow makes the limiter a shadow, or ends that, and returns it: in other memory if that changes it. The count of
// calls that it would have refused ends with the shadow.
func SetShadow(p []byte, shadow bool) []byte {
	switch is := p[0]&shadowFlag != 0; {
	case shadow && !is:
		p = append(p[:len(p):len(p)], make([]byte, shadowSize)...)
	case !shadow && is:
		p = append([]byte(nil), p[:len(p)-shadowSize]...)
	default:
		return p
	}
	p[0] ^= shadowFlag
	return p
}

// WithoutRefused is a copy in the wide form without its counts of refused calls, to compare two limiters that should
// grant the same.
func WithoutRefused(p []byte) []byte {
	p = AppendWide(nil, p)
	putUint48(p[headRefused:], 0)
	if p[0]&shadowFlag != 0 {
		putUint48(p[len(p)-shadowSize:], 0)
	}
	return p
}

// Rules appends the limiter's rules.
func Rules(dst []Rule, p []byte) []Rule {
	at := headOf(p)
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
	at := headOf(p)
	for _, r := range rules {
		var is Rule
		if is, at = decodeRule(p, at); is != r {
			return false
		}
	}
	return true
}

// Capacity is the most that one call can be granted: the least of the rules'.
func Capacity(p []byte) int64 {
	least := CountMax
	at := headOf(p)
	for i := 0; i < int(p[0]&rulesMask); i++ {
		var r Rule
		r, at = decodeRule(p, at)
		least = min(least, r.Capacity())
	}
	return least
}

// NeedsLease tells whether a rule gives nothing without a name and a lease.
func NeedsLease(p []byte) bool {
	at := headOf(p)
	for i := 0; i < int(p[0]&rulesMask); i++ {
		var r Rule
		if r, at = decodeRule(p, at); r.row().needsLease {
			return true
		}
	}
	return false
}

// RuleStatus is the status of one rule of a limiter.
type RuleStatus struct {
	Rule Rule
	// Available is what could be taken at once, negative in debt.
	Available int64
	// ResetAfterMicros is how long until nothing is in use, -1 if that is unknown.
	ResetAfterMicros int64
	// PeriodMicros is the length of the period, of a calendar the current one, 0 for a rule without a period.
	PeriodMicros int64
}

// Status appends the status of each rule at now. n are the limiter's named grants, nil for none.
func Status(dst []RuleStatus, p []byte, now int64, n *Named) []RuleStatus {
	var o opened
	o.open(p)
	for i := 0; i < o.n; i++ {
		r, state := o.rules[i], p[o.at[i]:o.at[i+1]]
		s := RuleStatus{Rule: r, PeriodMicros: r.row().period(r, now)}
		s.Available, s.ResetAfterMicros = n.room(r, state, now)
		dst = append(dst, s)
	}
	return dst
}
