// Package budget, internal to the server, is how what runs for a script asks, now and then, whether it may go on.
//
// The interpreter counts where a script can repeat itself: jumps, calls, commands. A library function, the compiler
// or anything else that a script can make long counts what it does itself, in steps of some tens of nanoseconds. Every
// so many steps whoever watches over the script is asked. So a script is not watched by another thread, and what ends
// soon pays one subtraction where it repeats itself.
package budget

// Steps is how many steps go before the first question: some 50 microseconds.
const Steps = 1000

// Budget counts. The zero value never ends anything. It belongs to one goroutine.
type Budget struct {
	left int
	// Spent, if not nil, is called when all steps have been used, and returns how many more there are: fewer where
	// steps have turned out to be slow. Or it ends what runs, by a panic.
	Spent func() (steps int)
}

// Begin gives Steps.
func (b *Budget) Begin() { b.left = Steps }

// Use counts n steps. It may not return.
func (b *Budget) Use(n int) {
	if b.left -= n; b.left < 0 {
		b.Renew()
	}
}

// Step counts one step. If it returns false, Renew is to be called.
func (b *Budget) Step() bool {
	b.left--
	return b.left >= 0
}

// Charge counts n steps where what runs must not end: the next Use asks.
func (b *Budget) Charge(n int) { b.left -= n }

// Bytes counts the copying or comparing of n bytes.
func (b *Budget) Bytes(n int) { b.Use(n >> bytesPerStep) }

// bytesPerStep is a power of 2: a step is as long as it takes to copy that many bytes.
const bytesPerStep = 8

// Renew asks whether there are more steps. It may not return. It is not inlined so that Use is.
//
//go:noinline
func (b *Budget) Renew() {
	b.left = Steps
	if b.Spent != nil {
		b.left = b.Spent()
	}
}
