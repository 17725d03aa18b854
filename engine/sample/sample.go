// Package sample, internal to the server, draws from a source of random numbers, which is a
// parameter wherever something is random: so a test, or a log of what was done, can repeat it.
package sample

import "math/bits"

// Below returns one of 0 … n-1 from a random number of 64 bits: the high word of the product, which costs no
// division; for any n that fits in memory the probabilities differ by less than can be measured.
func Below(random uint64, n int) int {
	hi, _ := bits.Mul64(random, uint64(n))
	return int(hi)
}

// Selection chooses some of a number of things that are offered in turn (Knuth's algorithm S): every choice
// has the same probability, nothing is stored.
type Selection struct{ left, want int }

// Select returns a selection of want of n things, of all of them if there are fewer.
func Select(want, n int) Selection { return Selection{n, min(want, n)} }

// Take decides on the next thing. It must be called once for each until Done.
func (s *Selection) Take(next func() uint64) bool {
	take := Below(next(), s.left) < s.want
	s.left--
	if take {
		s.want--
	}
	return take
}

// Done reports whether all that were wanted have been taken.
func (s *Selection) Done() bool { return s.want == 0 }
