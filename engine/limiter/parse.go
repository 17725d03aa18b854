// This file reads rules as clients write them:
//
//	GCRA count period [BURST n] | LOG count period |
//	WINDOW count period | FIXED count period
//
// with the period in milliseconds and the words in any case.
package limiter

import (
	"bytes"
	"errors"
)

// What is wrong with the words of a rule. Values out of range are the errors of
// Validate.
var (
	// ErrWord is a word where the name of an algorithm was expected.
	ErrWord = errors.New("limiter: unknown word in rule")
	// ErrMissing is a rule that ends too early.
	ErrMissing = errors.New("limiter: rule without count or period")
	// ErrNumber is a count, period or burst that is no integer.
	ErrNumber = errors.New("limiter: not an integer")
)

var algorithmWords = [...][]byte{GCRA: []byte("GCRA"), Log: []byte("LOG"), Window: []byte("WINDOW"), Fixed: []byte("FIXED")}

var burstWord = []byte("BURST")

// AlgorithmOf is the algorithm that word names.
func AlgorithmOf(word []byte) (Algorithm, bool) {
	for a, name := range algorithmWords {
		if len(name) == len(word) && bytes.EqualFold(name, word) {
			return Algorithm(a), true
		}
	}
	return 0, false
}

// ParseRules reads args to their end as one rule after the other and appends
// them to dst, which holds at most RulesMax then.
func ParseRules(dst []Rule, args [][]byte) ([]Rule, error) {
	for len(args) > 0 {
		r, n, err := parseRule(args)
		if err != nil {
			return dst, err
		}
		if len(dst) == RulesMax {
			return dst, ErrRules
		}
		dst = append(dst, r)
		args = args[n:]
	}
	return dst, nil
}

// parseRule reads the rule at the front of args and says how many it took.
func parseRule(args [][]byte) (r Rule, n int, err error) {
	var known bool
	if r.Algorithm, known = AlgorithmOf(args[0]); !known {
		return r, 0, ErrWord
	}
	if len(args) < 3 {
		return r, 0, ErrMissing
	}
	var ok bool
	if r.Count, ok = parseInt(args[1]); !ok {
		return r, 0, ErrNumber
	}
	millis, ok := parseInt(args[2])
	if !ok {
		return r, 0, ErrNumber
	}
	if millis < 1 || millis > PeriodMicrosMax/1000 {
		// Said here because it may not fit in microseconds, after the count as
		// Validate does.
		if r.Count < 1 || r.Count > CountMax {
			return r, 0, ErrCount
		}
		return r, 0, ErrPeriod
	}
	r.PeriodMicros = millis * 1000
	n = 3
	if r.Algorithm == GCRA {
		r.Burst = r.Count
		if len(args) > 3 && len(args[3]) == len(burstWord) && bytes.EqualFold(args[3], burstWord) {
			if len(args) < 5 {
				return r, 0, ErrMissing
			}
			if r.Burst, ok = parseInt(args[4]); !ok {
				return r, 0, ErrNumber
			}
			n = 5
		}
	}
	return r, n, r.Validate()
}

// parseInt reads a decimal integer as strictly as Redis does: an optional minus,
// no plus, no leading zero, no space.
func parseInt(b []byte) (int64, bool) {
	digits := b
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 19 || digits[0] == '0' && len(b) > 1 {
		return 0, false
	}
	var v uint64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + uint64(c-'0')
	}
	if negative {
		return int64(-v), v <= 1<<63
	}
	return int64(v), v < 1<<63
}

// AppendText appends the rule as it is written in a command, period in
// milliseconds, so that ParseRules reads it again. A period of a fraction of a
// millisecond, which only the commands in seconds can set, is rounded up.
func (r Rule) AppendText(dst []byte) []byte {
	dst = append(dst, algorithmWords[r.Algorithm]...)
	dst = appendInt(append(dst, ' '), r.Count)
	dst = appendInt(append(dst, ' '), CeilMillis(r.PeriodMicros))
	if r.Algorithm == GCRA && r.Burst != r.Count {
		dst = append(dst, " BURST "...)
		dst = appendInt(dst, r.Burst)
	}
	return dst
}
