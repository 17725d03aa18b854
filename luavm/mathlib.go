package luavm

// The library math.

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/precise"
)

func (vm *VM) mathFunctions() functions {
	of := func(f func(float64) float64) lua.LGFunction {
		return func(L *lua.LState) int {
			x := arg.Number(L, 1)
			L.Push(lua.LNumber(invalid(f(x), x)))
			return 1
		}
	}
	positive := func(f func(float64) float64) lua.LGFunction { // for a number, its NaN is positive in C
		return func(L *lua.LState) int {
			x := arg.Number(L, 1)
			if y := f(x); y == y || x != x {
				x = y
			} else {
				x = precise.PositiveNaN
			}
			L.Push(lua.LNumber(x))
			return 1
		}
	}
	return functions{
		"abs": positive(math.Abs), "acos": positive(precise.Acos), "asin": positive(precise.Asin), "atan": of(precise.Atan), "ceil": of(math.Ceil),
		"cos": of(precise.Cos), "cosh": of(precise.Cosh), "exp": of(precise.Exp), "floor": of(math.Floor), "log": of(precise.Log),
		"log10": positive(precise.Log10), "sin": of(precise.Sin), "sinh": of(precise.Sinh), "sqrt": of(math.Sqrt), "tan": of(precise.Tan),
		"tanh": of(precise.Tanh),
		"deg":  of(func(x float64) float64 { return x / (math.Pi / 180) }),
		"rad":  of(func(x float64) float64 { return x * (math.Pi / 180) }),

		"atan2": mathAtan2, "fmod": mathFmod, "mod": mathFmod, "frexp": mathFrexp, "ldexp": mathLdexp, "max": mathMax,
		"min": mathMin, "modf": mathModf, "pow": mathPow, "random": vm.mathRandom, "randomseed": vm.mathRandomSeed,
	}
}

// invalid gives a NaN result of a number the sign that the processor would give it.
func invalid(result, x float64) float64 {
	if result != result {
		if x != x {
			return x
		}
		return precise.NegativeNaN
	}
	return result
}

// twoNumbers reads two arguments, the second one first: Redis reads them within the arguments of a C call, which its
// compiler evaluates from the right. So if both are wrong, the error names the second.
func twoNumbers(L *lua.LState) (a, b float64) {
	b = arg.Number(L, 2)
	return arg.Number(L, 1), b
}

func mathAtan2(L *lua.LState) int {
	y, x := twoNumbers(L)
	L.Push(lua.LNumber(precise.Atan2(y, x)))
	return 1
}

func mathFmod(L *lua.LState) int {
	x, y := twoNumbers(L)
	r := math.Mod(x, y)
	if r != r {
		if x == x && y != y {
			x = y
		}
		r = invalid(r, x)
	}
	L.Push(lua.LNumber(r))
	return 1
}

func mathFrexp(L *lua.LState) int {
	x := arg.Number(L, 1)
	fraction, exponent := math.Frexp(x)
	L.Push(lua.LNumber(fraction))
	L.Push(lua.LNumber(exponent))
	return 2
}

func mathLdexp(L *lua.LState) int {
	exponent := arg.Int(L, 2)
	L.Push(lua.LNumber(math.Ldexp(arg.Number(L, 1), exponent)))
	return 1
}

func mathMax(L *lua.LState) int {
	most := arg.Number(L, 1)
	for i := 2; i <= L.GetTop(); i++ {
		if x := arg.Number(L, i); x > most {
			most = x
		}
	}
	L.Push(lua.LNumber(most))
	return 1
}

func mathMin(L *lua.LState) int {
	least := arg.Number(L, 1)
	for i := 2; i <= L.GetTop(); i++ {
		if x := arg.Number(L, i); x < least {
			least = x
		}
	}
	L.Push(lua.LNumber(least))
	return 1
}

func mathModf(L *lua.LState) int {
	x := arg.Number(L, 1)
	whole, fraction := math.Modf(x)
	if math.IsInf(x, 0) {
		fraction = math.Copysign(0, x)
	}
	L.Push(lua.LNumber(whole))
	L.Push(lua.LNumber(fraction))
	return 2
}

func mathPow(L *lua.LState) int {
	x, y := twoNumbers(L)
	L.Push(lua.LNumber(precise.Pow(x, y)))
	return 1
}

const randomMax = math.MaxInt32

func (vm *VM) mathRandom(L *lua.LState) int {
	r := float64(vm.config.Random.next()%randomMax) / randomMax
	switch L.GetTop() {
	case 0:
	case 1:
		u := arg.Int(L, 1)
		if u < 1 {
			arg.Error(L, 1, "interval is empty")
		}
		r = math.Floor(r*float64(u)) + 1
	case 2:
		l, u := arg.Int(L, 1), arg.Int(L, 2)
		if l > u {
			arg.Error(L, 2, "interval is empty")
		}
		r = math.Floor(r*float64(int32(u-l+1))) + float64(l) // the width wraps as C's int does
	default:
		arg.Raise(L, "wrong number of arguments")
	}
	L.Push(lua.LNumber(r))
	return 1
}

func (vm *VM) mathRandomSeed(L *lua.LState) int {
	vm.config.Random.Seed(int32(arg.Int(L, 1)))
	return 0
}
