package engine

// Small pieces of arithmetic that more than one file needs.

import "math/bits"

// never is a deadline that does not come.
const never = int64(1<<63 - 1)

func trailingZeros(m uint64) int { return bits.TrailingZeros64(m) }
