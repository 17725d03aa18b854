// Package budget, internal to the server, counts the steps of a script, so that the watch is called now and then and can end it.
//
// The interpreter counts steps where a script can repeat itself: jumps, calls, commands. Library functions, the compiler
// and other code that a script can make run long count their own steps, of some tens of nanoseconds each. When the budget
// is spent, the function Spent is called. So no other thread must watch a script, and a short script pays only one
// subtraction at each such place.
package budget

// Steps is how many steps run before the first call of Spent: some 50 microseconds.
const Steps = 1000

// Budget counts. The zero value never ends anything. It belongs to one goroutine.
type Budget struct {
	left int
	// Spent, if not nil, is called when all steps have been used. It returns how many more steps there are, fewer if
	// the steps were slow, or it ends the running code by a panic.
	Spent func() (steps int)
}

// Begin gives Steps.
func (b *Budget) Begin() { b.left = Steps }

// Use counts n steps. It may panic, see Spent.
func (b *Budget) Use(n int) {
	if b.left -= n; b.left < 0 {
		b.Renew()
	}
}

// Step counts one step. If it returns false, the caller must call Renew.
func (b *Budget) Step() bool {
	b.left--
	return b.left >= 0
}

// Charge counts n steps where the running code must not end: the next Use calls Spent if necessary.
func (b *Budget) Charge(n int) { b.left -= n }

// Bytes counts the copying or comparing of n bytes.
func (b *Budget) Bytes(n int) { b.Use(n >> bytesPerStep) }

// bytesPerStep is an exponent: to copy 1<<bytesPerStep bytes takes as long as one step.
const bytesPerStep = 8

// Renew calls Spent for more steps. It may panic. It is not inlined, so that Use can be.
//
//go:noinline
func (b *Budget) Renew() {
	b.left = Steps
	if b.Spent != nil {
		b.left = b.Spent()
	}
}
