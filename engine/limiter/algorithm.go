// This file is the table of algorithms. Each algorithm is a file (gcra.go, log.go, window.go, fixed.go, cal.go,
// conc.go, total.go) that adds its row. The rest of the package uses the row's operations and properties. Only three
// places name an algorithm: the fast paths of a limiter with one GCRA rule (Take, FullAt), and CellRule, which makes
// such a rule.

package limiter

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Algorithm is how a rule counts. Files store its number, so no other algorithm may ever get it.
type Algorithm uint8

// algorithm is the row of an algorithm. A state is the bytes of one rule; a new one is zeros. now is in Unix
// microseconds.
type algorithm struct {
	// word is the name, with which a rule begins.
	word string
	// grammar is what follows the count in a rule.
	*grammar
	// version is the first version of limitkv's files that has the algorithm.
	version int

	// bucket: tokens come back one after the other, up to Burst of them, and the state is a moment (gcra.go). A named
	// grant stores when its tokens are back.
	bucket bool
	// untimed: time brings nothing back, only named grants that end do. The state is what is in use (hold.go).
	untimed bool
	// needsLease: only named grants with a lease can take, and the state is the sum of what they hold.
	needsLease bool

	// size is how many bytes the state at the front of p takes, or a new state if p is nil.
	size func(r Rule, p []byte) int
	// wait is how long until a cost, at most the capacity, fits: 0 if it fits now, never if time does not help.
	wait func(r Rule, state []byte, now, cost int64) int64
	// take adds a cost, even above the capacity. To a new state it also adds what was in use under a rule of another
	// algorithm, up to UsedMax. It returns the state, in other memory if its size changed.
	take func(r Rule, state []byte, now, cost int64) []byte
	// room is how much is available, negative in debt, and how long until everything is.
	room func(r Rule, state []byte, now int64) (available, resetMicros int64)
	// bears says whether a forced cost stays within the limits of debt.
	bears func(r Rule, state []byte, now, cost int64) bool
	// give gives back n, the oldest first, or all that is in use if that is less.
	give func(r Rule, state []byte, now, n int64)

	// during is how much longer the window lasts that a grant was taken from, 0 or less if it is over. diff is the
	// amount that would be settled in it.
	during func(r Rule, state []byte, now, diff int64, g spent) int64
	// settle gives back diff in a grant's window, which is not over, or charges it if it is negative. It returns the
	// state as take does.
	settle func(r Rule, state []byte, now, diff int64, g spent) []byte
	// over is when the window ends that a grant at now was taken from.
	over func(r Rule, state []byte, now int64) int64

	// fullAt is the moment since which, or from which on, nothing is in use; 0 if nothing ever was.
	fullAt func(r Rule, state []byte) int64
	// carry sets a new state to what was in use under another rule of the same algorithm. It returns the state as take
	// does.
	carry func(r Rule, state []byte, now int64, old Rule, oldState []byte) []byte
	// back adapts a state to a clock that was set by so much, which is below 0: what is in use comes back after the
	// same time.
	back func(r Rule, state []byte, now, by int64)
	// check returns what is wrong with a state, which may be any bytes.
	check func(r Rule, state []byte) error
}

// spent is what a named grant took of a rule.
type spent struct {
	taken int64  // when
	rest  moment // only in a bucket: how long until that is back
}

// rows has a place for each number that fits in a rule's first byte.
var rows [algorithmMask + 1]*algorithm

// register adds a row. It panics at the start of the program if the row lacks something.
func register(number Algorithm, row *algorithm) {
	if err := row.complete(); err != nil {
		panic(err)
	}
	if _, taken := AlgorithmOf([]byte(row.word)); taken || rows[number] != nil {
		panic(fmt.Errorf("limiter: algorithm %s: its number or its name is another's", row.word))
	}
	rows[number] = row
}

// complete returns an error that names the first operation that is missing.
func (a *algorithm) complete() error {
	if a.word == "" || a.grammar == nil || a.version == 0 {
		return fmt.Errorf("limiter: algorithm %q lacks its word, grammar or version", a.word)
	}
	for _, operations := range []reflect.Value{reflect.ValueOf(*a), reflect.ValueOf(*a.grammar)} {
		for i := range operations.NumField() {
			if f := operations.Field(i); f.Kind() == reflect.Func && f.IsNil() {
				return fmt.Errorf("limiter: algorithm %s lacks %s", a.word, operations.Type().Field(i).Name)
			}
		}
	}
	return nil
}

// row is the rule's algorithm.
func (r Rule) row() *algorithm { return rows[r.Algorithm&algorithmMask] }

// String gives the name of the algorithm as it is written in a rule.
func (a Algorithm) String() string {
	if int(a) < len(rows) && rows[a] != nil {
		return rows[a].word
	}
	return "UNKNOWN"
}

// AlgorithmOf is the algorithm that word names.
func AlgorithmOf(word []byte) (Algorithm, bool) {
	for a, row := range rows {
		if row != nil && isWord(word, row.word) {
			return Algorithm(a), true
		}
	}
	return 0, false
}

// Syntax is how a rule is written, in the notation of COMMAND DOCS: the names of all algorithms, the count, and what
// may follow it.
func Syntax() string {
	var words, more []string
	for _, row := range rows {
		if row == nil {
			continue
		}
		words = append(words, row.word)
		for _, argument := range row.arguments {
			if argument = " [" + argument + "]"; !slices.Contains(more, argument) {
				more = append(more, argument)
			}
		}
	}
	return "{algorithm=(" + strings.Join(words, " | ") + ") count:integer" + strings.Join(more, "") + "}..."
}
