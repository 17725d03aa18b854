// Package bitlib, internal to the server, is the library bit of Redis's Lua: operations on 32-bit integers.
//
// Arguments may be any numbers; each is rounded to the nearest integer and taken modulo 2^32. Like the original, the code
// does both by adding 2^52+2^51, so that the rounding and the results for huge numbers are the same. Results are signed.
package bitlib

import (
	"math"

	"github.com/limitkv/limitkv/luavm/arg"
	lua "github.com/yuin/gopher-lua"
)

func and(a, b uint32) uint32 { return a & b }
func or(a, b uint32) uint32  { return a | b }
func xor(a, b uint32) uint32 { return a ^ b }

var (
	folds  = map[string]func(a, b uint32) uint32{"band": and, "bor": or, "bxor": xor}
	shifts = map[string]func(b, n uint32) uint32{
		"lshift":  func(b, n uint32) uint32 { return b << n },
		"rshift":  func(b, n uint32) uint32 { return b >> n },
		"arshift": func(b, n uint32) uint32 { return uint32(int32(b) >> n) },
		"rol":     func(b, n uint32) uint32 { return b<<n | b>>(32-n) },
		"ror":     func(b, n uint32) uint32 { return b<<(32-n) | b>>n },
	}
)

// OfTwo are the functions that take two numbers, by name.
var OfTwo = func() map[string]func(x, y float64) float64 {
	all := map[string]func(x, y float64) float64{}
	for name, f := range folds {
		all[name] = func(x, y float64) float64 { return float64(int32(f(bitsOf(x), bitsOf(y)))) }
	}
	for name, f := range shifts {
		all[name] = func(x, y float64) float64 { return float64(int32(f(bitsOf(x), bitsOf(y)&31))) }
	}
	return all
}()

// Open returns a new table with the functions of the library.
func Open(L *lua.LState) *lua.LTable {
	t := L.CreateTable(0, 12)
	all := map[string]lua.LGFunction{
		"tobit": unary(func(b uint32) uint32 { return b }),
		"bnot":  unary(func(b uint32) uint32 { return ^b }),
		"bswap": unary(func(b uint32) uint32 { return b>>24 | b>>8&0xff00 | b&0xff00<<8 | b<<24 }),
		"tohex": toHex,
	}
	for name, f := range folds {
		all[name] = fold(f)
	}
	for name, f := range shifts {
		all[name] = shift(f)
	}
	for name, fn := range all {
		t.RawSetString(name, L.NewFunction(fn))
	}
	return t
}

// bitsOf are the 32 bits of a number.
func bitsOf(x float64) uint32 { return uint32(math.Float64bits(x + (1<<52 + 1<<51))) }

// bits returns argument n as 32 bits. Like the original it first takes an argument that is not a number for 0.
func bits(L *lua.LState, n int) uint32 {
	v, ok := arg.ToNumber(L.Get(n))
	if !ok {
		arg.TypeError(L, n, "number")
	}
	return bitsOf(v)
}

func push(L *lua.LState, b uint32) int {
	L.Push(lua.LNumber(int32(b)))
	return 1
}

func unary(f func(uint32) uint32) lua.LGFunction {
	return func(L *lua.LState) int { return push(L, f(bits(L, 1))) }
}

// fold combines all arguments. It reads the first one first, and the others from the last to the second.
func fold(f func(a, b uint32) uint32) lua.LGFunction {
	return func(L *lua.LState) int {
		b := bits(L, 1)
		for i := L.GetTop(); i > 1; i-- {
			b = f(b, bits(L, i))
		}
		return push(L, b)
	}
}

// shift takes a number of bits modulo 32.
func shift(f func(b, n uint32) uint32) lua.LGFunction {
	return func(L *lua.LState) int {
		b := bits(L, 1)
		return push(L, f(b, bits(L, 2)&31))
	}
}

// toHex writes the lowest hexadecimal digits. The second argument is their number; if it is negative, they are in upper case.
func toHex(L *lua.LState) int {
	b, n, digits := bits(L, 1), int64(8), "0123456789abcdef"
	if L.GetTop() >= 2 {
		n = int64(int32(bits(L, 2)))
	}
	if n < 0 {
		n, digits = -n, "0123456789ABCDEF"
	}
	n = min(n, 8)
	var out [8]byte
	for i := n - 1; i >= 0; i-- {
		out[i] = digits[b&15]
		b >>= 4
	}
	L.Push(lua.LString(out[:n]))
	return 1
}
