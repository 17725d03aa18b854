package luavm

// Numbers as text and as integers, by the rules of Lua 5.1 and of Redis.

import (
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"
)

// formatNumber is Lua's number to string conversion, %.14g.
func formatNumber(f float64) string { return strconv.FormatFloat(f, 'g', 14, 64) }

// appendArgument appends a number as Redis passes it to a command: all digits of an integer, else the shortest form.
func appendArgument(b []byte, f float64) []byte {
	if f >= -(1<<62) && f <= 1<<62 && f == math.Trunc(f) {
		return strconv.AppendInt(b, int64(f), 10)
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}

// truncate converts to an integer as C does on amd64: what does not fit becomes the smallest.
func truncate(f float64) int64 {
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f)
	}
	return math.MinInt64
}

// truncateInt is truncate to C's int.
func truncateInt(f float64) int {
	if f > -(1<<31)-1 && f < 1<<31 {
		return int(f)
	}
	return math.MinInt32
}

// numberArg converts as lua_tonumber does.
func numberArg(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		f, err := strconv.ParseFloat(string(v), 64)
		return f, err == nil
	}
	return 0, false
}

// stringArg converts as lua_tolstring does.
func stringArg(v lua.LValue) (string, bool) {
	switch v := v.(type) {
	case lua.LString:
		return string(v), true
	case lua.LNumber:
		return formatNumber(float64(v)), true
	}
	return "", false
}
