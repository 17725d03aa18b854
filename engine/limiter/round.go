// This file is the one place where a time is rounded for a reply: always up, so that a retry after exactly that long
// succeeds.

package limiter

import "strconv"

// CeilMillis is microseconds in milliseconds, rounded up; -1 stays -1.
func CeilMillis(micros int64) int64 { return ceilDiv(micros, 1_000) }

// CeilSeconds is microseconds in seconds, rounded up; -1 stays -1.
func CeilSeconds(micros int64) int64 { return ceilDiv(micros, 1_000_000) }

func ceilDiv(v, by int64) int64 {
	if v <= 0 {
		return v // 0, or -1 for never
	}
	return (v-1)/by + 1
}

func appendInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }
