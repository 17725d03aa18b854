package luavm

// Conversion of numbers for commands and replies.

import (
	"math"
	"strconv"

	"github.com/limitkv/limitkv/resp/number"
)

// appendArgument appends a number as Redis passes it to a command: all digits of an integer, else the shortest form.
func appendArgument(b []byte, f float64) []byte {
	const most = 1 << 62
	if f >= -most && f <= most {
		if i := int64(f); float64(i) == f {
			return strconv.AppendInt(b, i, 10)
		}
	}
	if f != f && math.Signbit(f) {
		b = append(b, '-')
	}
	return number.AppendDouble(b, f)
}

// truncateInt converts to C's int as amd64 does: a number that does not fit becomes the smallest int.
func truncateInt(f float64) int {
	if f > math.MinInt32-1 && f < math.MaxInt32+1 {
		return int(f)
	}
	return math.MinInt32
}
