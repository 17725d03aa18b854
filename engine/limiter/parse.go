// This file reads rules as clients write them:
//
//	GCRA count period [BURST n] | LOG count period |
//	WINDOW count period | FIXED count period |
//	CAL count HOUR|DAY|WEEK|MONTH [TZ zone] [FROM n] |
//	CONC n | TOTAL n
//
// with the period in milliseconds and the words in any case, but for zones.
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

var algorithmWords = [algorithms][]byte{
	GCRA: []byte("GCRA"), Log: []byte("LOG"), Window: []byte("WINDOW"), Fixed: []byte("FIXED"),
	Cal: []byte("CAL"), Conc: []byte("CONC"), Total: []byte("TOTAL"),
}

var (
	burstWord = []byte("BURST")
	zoneWord  = []byte("TZ")
	fromWord  = []byte("FROM")
)

// isWord tells whether there is a word in front of args.
func isWord(args [][]byte, word []byte) bool {
	return len(args) > 0 && len(args[0]) == len(word) && bytes.EqualFold(args[0], word)
}

// AlgorithmOf is the algorithm that word names.
func AlgorithmOf(word []byte) (Algorithm, bool) {
	for a, name := range algorithmWords { // as it is mostly written
		if string(name) == string(word) {
			return Algorithm(a), true
		}
	}
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
	rules, rest, err := ParseSome(dst, args)
	if err == nil && len(rest) > 0 {
		err = ErrWord
	}
	return rules, err
}

// ParseSome is ParseRules up to a word that begins no rule. It returns what is
// left, that word first.
func ParseSome(dst []Rule, args [][]byte) (rules []Rule, rest [][]byte, err error) {
	for len(args) > 0 {
		algorithm, known := AlgorithmOf(args[0])
		if !known {
			break
		}
		r, n, err := parseRule(algorithm, args)
		if err != nil {
			return dst, args, err
		}
		if len(dst) == RulesMax {
			return dst, args, ErrRules
		}
		dst = append(dst, r)
		args = args[n:]
	}
	return dst, args, nil
}

// parseRule reads the rule at the front of args, whose word has been read, and says how many it took.
func parseRule(algorithm Algorithm, args [][]byte) (r Rule, n int, err error) {
	r.Algorithm = algorithm
	hold := r.Algorithm == Conc || r.Algorithm == Total
	if len(args) < 2 || len(args) < 3 && !hold {
		return r, 0, ErrMissing
	}
	var ok bool
	if r.Count, ok = parseInt(args[1]); !ok {
		return r, 0, ErrNumber
	}
	switch {
	case hold:
		return r, 2, r.Validate()
	case r.Algorithm == Cal:
		c, n, err := parseCalendar(args[2:])
		if err != nil {
			return r, 0, err
		}
		r.Burst = c.pack()
		return r, 2 + n, r.Validate()
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
		if isWord(args[3:], burstWord) {
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

// parseCalendar reads the period of CAL at the front of args.
func parseCalendar(args [][]byte) (c Calendar, n int, err error) {
	for c.Unit = 0; c.Unit < units && !isWord(args, []byte(unitWords[c.Unit])); c.Unit++ {
	}
	if c.Unit == units {
		return c, 0, ErrUnit
	}
	c.From = fromRange[c.Unit][0]
	zoned, from := false, false
	for n = 1; ; n += 2 {
		switch rest := args[n:]; {
		case !zoned && isWord(rest, zoneWord):
			if zoned = true; len(rest) < 2 {
				return c, 0, ErrMissing
			}
			if c.zone, err = zoneOf(rest[1]); err != nil {
				return c, 0, err
			}
		case !from && isWord(rest, fromWord):
			if from = true; len(rest) < 2 {
				return c, 0, ErrMissing
			}
			v, ok := parseInt(rest[1])
			switch {
			case !ok:
				return c, 0, ErrNumber
			case v < int64(fromRange[c.Unit][0]) || v > int64(fromRange[c.Unit][1]):
				return c, 0, ErrFrom
			}
			c.From = uint8(v)
		default:
			return c, n, nil
		}
	}
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
	switch r.Algorithm {
	case Conc, Total:
		return dst
	case Cal:
		return r.Calendar().appendText(dst)
	}
	dst = appendInt(append(dst, ' '), CeilMillis(r.PeriodMicros))
	if r.Algorithm == GCRA && r.Burst != r.Count {
		dst = append(dst, " BURST "...)
		dst = appendInt(dst, r.Burst)
	}
	return dst
}

// appendText appends the period with what is not its default.
func (c Calendar) appendText(dst []byte) []byte {
	dst = append(append(dst, ' '), unitWords[c.Unit]...)
	if c.zone != 0 {
		dst = append(append(dst, " TZ "...), c.location().String()...)
	}
	if c.From != fromRange[c.Unit][0] {
		dst = appendInt(append(dst, " FROM "...), int64(c.From))
	}
	return dst
}
