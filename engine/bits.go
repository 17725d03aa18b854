package engine

// Small pieces of arithmetic that more than one file needs.

import "math/bits"

// never is a deadline that does not come.
const never = int64(1<<63 - 1)

func trailingZeros(m uint64) int { return bits.TrailingZeros64(m) }

// ceilMillis rounds microseconds up to milliseconds.
func ceilMillis(micros int64) int64 {
	ms := micros / 1000
	if micros%1000 > 0 {
		ms++
	}
	return ms
}
