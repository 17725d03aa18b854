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
	plain := func(f func(float64) float64) lua.LGFunction { // its NaN is positive in C, too
		return func(L *lua.LState) int {
			L.Push(lua.LNumber(f(arg.Number(L, 1))))
			return 1
		}
	}
	return functions{
		"abs": of(math.Abs), "acos": plain(precise.Acos), "asin": plain(precise.Asin), "atan": of(precise.Atan), "ceil": of(math.Ceil),
		"cos": of(precise.Cos), "cosh": of(precise.Cosh), "exp": of(precise.Exp), "floor": of(math.Floor), "log": of(precise.Log),
		"log10": of(precise.Log10), "sin": of(precise.Sin), "sinh": of(precise.Sinh), "sqrt": of(math.Sqrt), "tan": of(precise.Tan),
		"tanh": of(precise.Tanh),
		"deg":  of(func(x float64) float64 { return x / (math.Pi / 180) }),
		"rad":  of(func(x float64) float64 { return x * (math.Pi / 180) }),

		"atan2": mathAtan2, "fmod": mathFmod, "mod": mathFmod, "frexp": mathFrexp, "ldexp": mathLdexp, "max": mathMax,
		"min": mathMin, "modf": mathModf, "pow": mathPow, "random": vm.mathRandom, "randomseed": vm.mathRandomSeed,
	}
}

// negativeNaN is what an invalid operation gives on amd64: printed as -nan.
var negativeNaN = math.Copysign(math.NaN(), -1)

// invalid gives a NaN that came of numbers the sign that the processor gives it.
func invalid(result, x float64) float64 {
	if result != result {
		if x != x {
			return x
		}
		return negativeNaN
	}
	return result
}

func mathAtan2(L *lua.LState) int {
	L.Push(lua.LNumber(precise.Atan2(arg.Number(L, 1), arg.Number(L, 2))))
	return 1
}

func mathFmod(L *lua.LState) int {
	x, y := arg.Number(L, 1), arg.Number(L, 2)
	r := math.Mod(x, y)
	if r != r {
		r = invalid(r, x)
		if y != y {
			r = y
		}
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
	L.Push(lua.LNumber(math.Ldexp(arg.Number(L, 1), arg.Int(L, 2))))
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
	L.Push(lua.LNumber(precise.Pow(arg.Number(L, 1), arg.Number(L, 2))))
	return 1
}

// modulo is Lua 5.1's %, which is not quite C's fmod: the quotient is rounded to a double.
func modulo(a, b float64) float64 { return a - float64(math.Floor(a/b)*b) }

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
