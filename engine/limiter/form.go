// This file is the form in which the engine stores a limiter: bytes without pointers, stored like a string's value.
// Functions change them in place, unless their size changes: then they return other bytes.
//
//	1 byte   number of rules, and flags: kept, shadow
//	6 bytes  calls granted
//	6 bytes  calls refused
//	         the rules, as rule.go encodes them
//	         the state of each rule, in their order
//	6 bytes  in a shadow only: calls that would have been refused
//
// A GCRA limiter of 100 per minute takes 13 + 6 + 8 = 27 bytes, in its compact form (compact.go) 5 + 3 + 8 = 16.

package limiter

const (
	headGranted = 1
	headRefused = 7
	headSize    = 13

	rulesMask = 0x0f
	keptFlag  = 0x10
	// shadowFlag: nothing is refused; calls that would have been refused are counted.
	shadowFlag = 0x20
	shadowSize = 6

	totalMax = 1<<48 - 1
)

// opened is a limiter's bytes with the rules decoded and the states located.
type opened struct {
	n     int
	rules [RulesMax]Rule
	at    [RulesMax + 1]int // where the states begin; at[n] is the end
}

func (o *opened) open(p []byte) {
	o.n = int(p[0] & rulesMask)
	at := headOf(p)
	for i := 0; i < o.n; i++ {
		o.rules[i], at = decodeRule(p, at)
	}
	for i := 0; i < o.n; i++ {
		o.at[i] = at
		at += o.rules[i].row().size(o.rules[i], p[at:])
	}
	o.at[o.n] = at
}

// New appends a limiter with nothing in use. There must be 1 to RulesMax rules, all valid. kept says that the limiter
// stays when it is full.
func New(dst []byte, rules []Rule, kept bool) []byte {
	first := byte(len(rules)) | compactFlag
	if kept {
		first |= keptFlag
	}
	dst = append(dst, first)
	dst = append(dst, make([]byte, compactHead-1)...)
	for _, r := range rules {
		dst = r.append(dst, true)
	}
	for _, r := range rules {
		dst = append(dst, make([]byte, r.row().size(r, nil))...)
	}
	return dst
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
