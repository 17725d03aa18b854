package luavm

// Library functions that compute a number from numbers or from a string, in a form that the main loop calls without a frame
// and without boxes for arguments and result. For such arguments they do the same as the library's functions. They leave
// all other arguments to those.

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/bitlib"
	"github.com/limitkv/limitkv/luavm/boxes"
)

// quick returns the one result, or false for arguments that it leaves to the library. There is at least one argument.
type quick func(args []lua.LValue) (float64, bool)

var quickly = map[string]quick{
	"math.floor": ofNumber(math.Floor), "math.ceil": ofNumber(math.Ceil), "math.abs": ofNumber(math.Abs),
	"math.max": ofNumbers(func(most, x float64) float64 {
		if x > most {
			return x
		}
		return most
	}),
	"math.min": ofNumbers(func(least, x float64) float64 {
		if x < least {
			return x
		}
		return least
	}),
	"string.byte": quickByte, "string.len": quickLen,
}

func init() {
	for name, f := range bitlib.OfTwo {
		quickly["bit."+name] = func(args []lua.LValue) (float64, bool) {
			if len(args) != 2 {
				return 0, false
			}
			x, ok1 := args[0].(lua.LNumber)
			y, ok2 := args[1].(lua.LNumber)
			if !ok1 || !ok2 {
				return 0, false
			}
			return f(float64(x), float64(y)), true
		}
	}
}

// ofNumber leaves NaN, whose sign the processor decides, to the library.
func ofNumber(f func(float64) float64) quick {
	return func(args []lua.LValue) (float64, bool) {
		x, ok := args[0].(lua.LNumber)
		return f(float64(x)), ok && x == x
	}
}

func ofNumbers(f func(x, y float64) float64) quick {
	return func(args []lua.LValue) (float64, bool) {
		first, ok := args[0].(lua.LNumber)
		if !ok {
			return 0, false
		}
		result := float64(first)
		for _, v := range args[1:] {
			x, ok := v.(lua.LNumber)
			if !ok {
				return 0, false
			}
			result = f(result, float64(x))
		}
		return result, true
	}
}

// quickByte is string.byte for one existing byte.
func quickByte(args []lua.LValue) (float64, bool) {
	s, ok := args[0].(lua.LString)
	if !ok || len(args) > 2 {
		return 0, false
	}
	i := lua.LNumber(1)
	if len(args) == 2 {
		if i, ok = args[1].(lua.LNumber); !ok {
			return 0, false
		}
	}
	if !(i >= 1 && i <= lua.LNumber(len(s))) {
		return 0, false
	}
	return float64(s[int(i)-1]), true
}

func quickLen(args []lua.LValue) (float64, bool) {
	s, ok := args[0].(lua.LString)
	return float64(len(s)), ok
}

// callQuickly executes a call of a quick function if the caller wants its result.
func callQuickly(reg *luaRegistry, loose *boxes.Loose, call quick, at int, inst instruction) bool {
	if inst.C() != 2 && inst.C() != 0 {
		return false
	}
	n := inst.B() - 1
	if n < 0 {
		n = reg.top - (at + 1)
	}
	if n < 1 {
		return false
	}
	result, ok := call(reg.array[at+1 : at+1+n])
	if !ok {
		return false
	}
	boxes.Put(&reg.array[at], loose.At(at), result)
	if inst.C() == 0 {
		reg.top = at + 1
	}
	return true
}
