package cjson

import (
	"math"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/tables"
	lua "github.com/yuin/gopher-lua"
)

// encoder writes one value.
type encoder struct {
	*config
	L   *lua.LState
	out []byte
}

func (c *config) encode(L *lua.LState) int {
	exactlyOne(L)
	e := encoder{config: c, L: L, out: make([]byte, 0, 128)}
	e.value(L.Get(1), 0, 1)
	L.Push(lua.LString(e.out))
	return 1
}

// fail raises the error about a value that JSON cannot represent.
func (e *encoder) fail(v lua.LValue, reason string) {
	arg.Raise(e.L, "Cannot serialise %s: %s", v.Type().String(), reason)
}

// value appends a value that is nested in depth tables. slots is how many stack slots the original uses at this point.
func (e *encoder) value(v lua.LValue, depth, slots int) {
	e.budget.Use(1)
	switch v := v.(type) {
	case lua.LString:
		e.string(string(v))
	case lua.LNumber:
		e.number(v)
	case lua.LBool:
		if v {
			e.out = append(e.out, "true"...)
		} else {
			e.out = append(e.out, "false"...)
		}
	case *lua.LTable:
		e.table(v, depth+1, slots)
	case *lua.LNilType:
		e.out = append(e.out, "null"...)
	default:
		if v != Null {
			e.fail(v, "type not supported")
		}
		e.out = append(e.out, "null"...)
	}
}

func (e *encoder) table(t *lua.LTable, depth, slots int) {
	t, _ = tables.Behind(t)
	if depth > e.encodeDepthMax || slots+3 > stackMax {
		arg.Raise(e.L, "Cannot serialise, excessive nesting (%d)", depth)
	}
	if n := e.arrayLength(t); n > 0 {
		e.out = append(e.out, '[')
		for i := 1; i <= n; i++ {
			if i > 1 {
				e.out = append(e.out, ',')
			}
			e.value(tables.GetInt(t, i), depth, slots+1)
			e.checkSize(0)
		}
		e.out = append(e.out, ']')
		return
	}
	e.out = append(e.out, '{')
	comma := false
	tables.Each(t, func(k, v lua.LValue) bool {
		if comma {
			e.out = append(e.out, ',')
		}
		comma = true
		switch k := k.(type) {
		case lua.LNumber:
			e.out = append(e.out, '"')
			e.number(k)
			e.out = append(e.out, '"', ':')
		case lua.LString:
			e.string(string(k))
			e.out = append(e.out, ':')
		default:
			e.fail(k, "table key must be a number or string")
		}
		e.value(v, depth, slots+2)
		e.checkSize(0)
		return true
	})
	e.out = append(e.out, '}')
}

// arrayLength returns the highest index of a table that is an array, else 0 or less.
func (e *encoder) arrayLength(t *lua.LTable) int {
	highest, items, isArray := 0, 0, true
	e.budget.Use(tables.Size(t) / 16) // the walk also passes empty places
	tables.Each(t, func(k, _ lua.LValue) bool {
		e.budget.Use(1)
		n, ok := k.(lua.LNumber)
		if f := float64(n); !ok || f < 1 || f != math.Floor(f) {
			isArray = false
			return false
		}
		if float64(n) > float64(highest) {
			highest = toInt(float64(n))
		}
		items++
		return true
	})
	if !isArray {
		return -1
	}
	if e.sparseRatio > 0 && highest > items*e.sparseRatio && highest > e.sparseSafe {
		if !e.sparseConvert {
			e.fail(t, "excessively sparse array")
		}
		return -1
	}
	return highest
}

// toInt is x86-64's conversion of a double to a C int.
func toInt(f float64) int {
	if f >= math.MinInt32 && f <= math.MaxInt32 {
		return int(f)
	}
	return math.MinInt32
}

func (e *encoder) number(n lua.LNumber) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		switch e.encodeInvalidNumbers {
		case invalidNumbersOff:
			e.fail(n, "must not be NaN or Inf")
		case invalidNumbersNull:
			e.out = append(e.out, "null"...)
			return
		}
		if f != f {
			e.out = append(e.out, "nan"...)
			return
		}
	}
	e.out = arg.AppendPrecision(e.out, f, e.precision)
}

// checkSize raises an error if the JSON gets too long. Tables that contain the same table in many places could otherwise fill
// the memory, even if they are not nested too deeply.
func (e *encoder) checkSize(more int) {
	if len(e.out)+more > e.sizeMax {
		arg.Raise(e.L, "not enough memory")
	}
}

const hexDigits = "0123456789abcdef"

// escapes maps each byte that must be escaped to the letter behind the backslash. u means that four hexadecimal digits follow.
var escapes = func() (t [256]byte) {
	for c := range 32 {
		t[c] = 'u'
	}
	t['\b'], t['\t'], t['\n'], t['\f'], t['\r'] = 'b', 't', 'n', 'f', 'r'
	t['"'], t['/'], t['\\'], t[127] = '"', '/', '\\', 'u'
	return t
}()

func (e *encoder) string(s string) {
	e.checkSize(len(s))
	e.budget.Use(len(s) >> 6)
	e.out = append(e.out, '"')
	from := 0
	for i := range len(s) {
		esc := escapes[s[i]]
		if esc == 0 {
			continue
		}
		e.out = append(e.out, s[from:i]...)
		e.out = append(e.out, '\\', esc)
		if esc == 'u' {
			e.out = append(e.out, '0', '0', hexDigits[s[i]>>4], hexDigits[s[i]&15])
		}
		from = i + 1
	}
	e.out = append(e.out, s[from:]...)
	e.out = append(e.out, '"')
}
