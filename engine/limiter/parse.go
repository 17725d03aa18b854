// This file reads and writes rules as clients write them: the name of an algorithm, the count, and what the algorithm's
// grammar defines after it. Words can be in any case.

package limiter

import (
	"errors"
	"strings"
)

// Errors in the words of a rule. For values out of range, Validate has the errors.
var (
	// ErrWord is a word where the name of an algorithm was expected.
	ErrWord = errors.New("limiter: unknown word in rule")
	// ErrMissing is a rule that ends too early.
	ErrMissing = errors.New("limiter: rule without count or period")
	// ErrNumber is a count, period or burst that is no integer.
	ErrNumber = errors.New("limiter: not an integer")
)

// grammar is what follows the count in a rule: its words, and its bytes in a file.
type grammar struct {
	// arguments are the words in the notation of COMMAND DOCS.
	arguments []string
	// needs is the minimum number of words.
	needs int
	// parse reads the words at the front of args into the rule and returns how many it read. The caller validates.
	parse func(r Rule, args [][]byte) (Rule, int, error)
	// text appends the words as parse reads them.
	text func(dst []byte, r Rule) []byte
	// validate returns what is out of range, except the count.
	validate func(r Rule) error
	// period is how long the period at now is, 0 if there is none.
	period func(r Rule, now int64) int64
	// encode is what is stored beside count, period and burst. decode reads that at p[at:] and returns where it ends.
	// It is a string so that the slice that it is appended to can be on the stack.
	encode func(r Rule) string
	decode func(r Rule, p []byte, at int) (Rule, int)
}

// countAlone is the grammar of rules without a period.
var countAlone = &grammar{
	parse:    func(r Rule, _ [][]byte) (Rule, int, error) { return r, 0, nil },
	text:     func(dst []byte, _ Rule) []byte { return dst },
	validate: func(Rule) error { return nil },
	period:   Rule.period,
	encode:   encodeNothing,
	decode:   decodeNothing,
}

// countPerPeriod is the grammar of rules with a period in milliseconds.
var countPerPeriod = &grammar{
	arguments: []string{periodSyntax},
	needs:     1,
	parse:     parsePeriod,
	text:      textOfPeriod,
	validate:  Rule.validatePeriod,
	period:    Rule.period,
	encode:    encodeNothing,
	decode:    decodeNothing,
}

const periodSyntax = "period:string"

func encodeNothing(Rule) string { return "" }

func decodeNothing(r Rule, _ []byte, at int) (Rule, int) { return r, at }

func (r Rule) period(int64) int64 { return r.PeriodMicros }

func parsePeriod(r Rule, args [][]byte) (Rule, int, error) {
	millis, ok := parseInt(args[0])
	if !ok {
		return r, 0, ErrNumber
	}
	if millis < 1 || millis > PeriodMicrosMax/1000 {
		// Checked here because it may not fit in microseconds, and after the count as in Validate.
		if r.Count < 1 || r.Count > CountMax {
			return r, 0, ErrCount
		}
		return r, 0, ErrPeriod
	}
	r.PeriodMicros = millis * 1000
	return r, 1, nil
}

func textOfPeriod(dst []byte, r Rule) []byte {
	return appendInt(append(dst, ' '), CeilMillis(r.PeriodMicros))
}

func (r Rule) validatePeriod() error {
	if r.PeriodMicros < PeriodMicrosMin || r.PeriodMicros > PeriodMicrosMax {
		return ErrPeriod
	}
	return nil
}

// isWord tells whether a client wrote the word, in any case.
func isWord(b []byte, word string) bool {
	return len(b) == len(word) && (string(b) == word || strings.EqualFold(string(b), word))
}

// startsWith tells whether args begins with a word.
func startsWith(args [][]byte, word string) bool { return len(args) > 0 && isWord(args[0], word) }

// ParseRules reads all of args as rules and appends them to dst, to at most RulesMax.
func ParseRules(dst []Rule, args [][]byte) ([]Rule, error) {
	rules, rest, err := ParseSome(dst, args)
	if err == nil && len(rest) > 0 {
		err = ErrWord
	}
	return rules, err
}

// ParseSome is ParseRules up to the first word that begins no rule. It returns the rest, which begins with that word.
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

// parseRule reads the rule at the front of args, whose algorithm is known, and returns how many words it took.
func parseRule(algorithm Algorithm, args [][]byte) (r Rule, n int, err error) {
	r.Algorithm = algorithm
	row := r.row()
	if len(args) < 2+row.needs {
		return r, 0, ErrMissing
	}
	var ok bool
	if r.Count, ok = parseInt(args[1]); !ok {
		return r, 0, ErrNumber
	}
	if r, n, err = row.parse(r, args[2:]); err != nil {
		return r, 0, err
	}
	return r, 2 + n, r.Validate()
}

// parseInt reads a decimal integer as strictly as Redis does: an optional minus, no plus, no leading zero, no space.
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

// AppendText appends the rule as it is written in a command, with the period in milliseconds, so that ParseRules can
// read it. A fraction of a millisecond, which only the commands in seconds can set, is rounded up.
func (r Rule) AppendText(dst []byte) []byte {
	row := r.row()
	dst = append(dst, row.word...)
	return row.text(appendInt(append(dst, ' '), r.Count), r)
}
