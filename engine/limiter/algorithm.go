// This file is the table of algorithms. Each algorithm is a file of its own (gcra.go, log.go, window.go, fixed.go, cal.go,
// conc.go, total.go) that adds its row. The rest of the package asks the row, by an operation or by a property. Only three
// places name an algorithm: the fast paths of a limiter with one GCRA rule (Take, FullAt), and CellRule, which makes such a
// rule.

package limiter

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Algorithm is how a rule counts. Its number is what files have: it is never given to another algorithm.
type Algorithm uint8

// algorithm is the row of an algorithm. A state is always the bytes of one rule; a new one is zeros. now is in Unix
// microseconds.
type algorithm struct {
	// word is the name, which begins a rule.
	word string
	// grammar is how the rule goes on behind its count.
	*grammar
	// version is the form of limitkv's files that was the first to have it.
	version int

	// bucket: tokens come back one after the other, at most Burst of them are there, and the state is a moment (gcra.go). A
	// named grant notes when what it took will be back.
	bucket bool
	// untimed: time brings nothing back, but named grants that end do. The state is what is held (hold.go).
	untimed bool
	// needsLease: it gives to named grants with a lease only, and holds just what they hold.
	needsLease bool

	// size is how many bytes the state at the front of p takes; of a new state if p is nil.
	size func(r Rule, p []byte) int
	// wait is how long a cost, at most the capacity, has to wait: 0 if it fits, never if time does not help.
	wait func(r Rule, state []byte, now, cost int64) int64
	// take adds a cost, however much is in use already; to a new state whatever was in use under a rule of another
	// algorithm, up to UsedMax. It returns the state, in other memory if its size changed.
	take func(r Rule, state []byte, now, cost int64) []byte
	// room is what is available, negative in debt, and how long until all is.
	room func(r Rule, state []byte, now int64) (available, resetMicros int64)
	// bears says whether a forced cost stays within the bounds of debt.
	bears func(r Rule, state []byte, now, cost int64) bool
	// give gives n back, the oldest first, as far as it is in use.
	give func(r Rule, state []byte, now, n int64)

	// during is for how long yet the window lasts that a grant was taken from, 0 or less if it is over. diff is what is to
	// be settled there.
	during func(r Rule, state []byte, now, diff int64, g spent) int64
	// settle gives diff back in the window of a grant, which lasts, or charges it if it is negative. It returns the state
	// as take does.
	settle func(r Rule, state []byte, now, diff int64, g spent) []byte
	// over is when the window that was taken from at now is over.
	over func(r Rule, state []byte, now int64) int64

	// fullAt is since when or from when on nothing is in use, 0 if nothing ever was.
	fullAt func(r Rule, state []byte) int64
	// carry makes of a new state what was in use under another rule of the algorithm. It returns the state as take does.
	carry func(r Rule, state []byte, now int64, old Rule, oldState []byte) []byte
	// back has what is in use come back as soon as it would have before the clock was set by so much, which is below 0.
	back func(r Rule, state []byte, now, by int64)
	// check returns what is wrong with a state that may come from anywhere.
	check func(r Rule, state []byte) error
}

// spent is what a named grant took of a rule.
type spent struct {
	taken int64  // when
	rest  moment // of a bucket: how long until it has that back
}

// rows has a place for each number that fits in a rule's first byte.
var rows [algorithmMask + 1]*algorithm

// register adds a row. The program does not start with one that lacks something.
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

// Syntax is how a rule is written, in the notation of COMMAND DOCS: the names of all algorithms, the count, and whatever
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
