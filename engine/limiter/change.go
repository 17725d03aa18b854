// This file changes the rules of a limiter. What was consumed stays consumed: a higher rate never refuses a call that
// would have passed, and a lower rate forgives nothing.

package limiter

// Change appends a limiter with these rules. It keeps what p has in use, its totals, and whether it is kept when full.
//
// A new rule takes over the state of one old rule, and each old rule is used at most once. The same rule comes first,
// then one with the same algorithm and period, then the first one left with the same algorithm. What is taken over
// depends on the algorithm: a bucket keeps the tokens in use, a log its times, a window its place and counts. If only
// rules of other algorithms are left, the new rule starts with what the first of them has in use, as if taken now. If
// no old rule is left, the new rule starts full.
func Change(dst, p []byte, rules []Rule, now int64) []byte {
	var o opened
	o.open(p)
	var from [RulesMax]int
	heirs(from[:len(rules)], rules, o.rules[:o.n])

	head := len(dst)
	dst = append(dst, p[:headOf(p)]...)
	dst[head] = dst[head]&^rulesMask | byte(len(rules))
	for _, r := range rules {
		dst = r.append(dst, compact(p))
	}
	for i, r := range rules {
		if from[i] < 0 {
			dst = append(dst, make([]byte, r.row().size(r, nil))...)
			continue
		}
		old := o.rules[from[i]]
		dst = r.carry(dst, old, p[o.at[from[i]]:o.at[from[i]+1]], now)
	}
	if p[0]&shadowFlag != 0 {
		dst = append(dst, p[len(p)-shadowSize:]...)
	}
	return dst
}

// heirs finds for each new rule the old one whose state it takes over, or -1.
func heirs(from []int, rules, olds []Rule) {
	taken := [RulesMax]bool{}
	for i := range from {
		from[i] = -1
	}
	alike := [...]func(a, b Rule) bool{
		func(a, b Rule) bool { return a == b },
		func(a, b Rule) bool { return a.Algorithm == b.Algorithm && a.PeriodMicros == b.PeriodMicros },
		func(a, b Rule) bool { return a.Algorithm == b.Algorithm },
		func(a, b Rule) bool { return true },
	}
	for _, same := range alike {
		for i, r := range rules {
			for j := 0; from[i] < 0 && j < len(olds); j++ {
				if !taken[j] && same(r, olds[j]) {
					from[i], taken[j] = j, true
				}
			}
		}
	}
}

// carry appends the state of a rule that replaces old.
func (r Rule) carry(dst []byte, old Rule, oldState []byte, now int64) []byte {
	row, at := r.row(), len(dst)
	dst = append(dst, make([]byte, row.size(r, nil))...)
	if r.Algorithm == old.Algorithm {
		return append(dst[:at], row.carry(r, dst[at:], now, old, oldState)...)
	}
	// CONC holds what the named grants hold, see Named.StateFor.
	if used := old.inUse(oldState, now); used > 0 && !row.needsLease {
		return append(dst[:at], row.take(r, dst[at:], now, min(used, UsedMax))...)
	}
	return dst
}

// inUse is how much the rule has in use.
func (r Rule) inUse(state []byte, now int64) int64 {
	available, _ := r.room(state, now)
	return r.Capacity() - available
}

// resetWait is wait for algorithms where everything comes back at the same moment.
func (r Rule) resetWait(state []byte, now, cost int64) int64 {
	available, reset := r.room(state, now)
	if cost <= available {
		return 0
	}
	return reset
}

// usedBears is bears for algorithms that count what is in use as one number.
func (r Rule) usedBears(state []byte, now, cost int64) bool {
	return r.inUse(state, now)+cost < UsedMax
}
