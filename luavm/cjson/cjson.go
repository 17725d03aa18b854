// Package cjson, internal to the server, is the library cjson of Redis's Lua: JSON both ways, as lua-cjson 2.1.0 does it.
//
// A table becomes an array if all its keys are whole numbers from 1 on and not too sparse. Other tables become objects, and
// so does an empty table. null is the special value cjson.null. Numbers are written as %.14g. The keys of an object are in
// the order of Lua's hash tables, see package tables.
//
// Settings belong to the table that Open or cjson.new() returned, and last until they are changed again.
package cjson

import (
	"math"
	"strconv"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/budget"
	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/tables"
)

// Null is cjson.null, the value that decode returns for null, since a table cannot hold nil. There is only one, so that scripts
// can compare with it.
var Null = &lua.LUserData{Metatable: lua.LNil}

const (
	depthDefault     = 1000
	precisionDefault = 14
	stackMax         = 8000 // values that a C function of Lua 5.1 may have at once; bounds what depth can be set to
)

// EncodedSizeMax is how many bytes of JSON one value may become. Redis has no such limit and is killed instead.
const EncodedSizeMax = 512 << 20

// config has the settings of one module.
type config struct {
	budget               *budget.Budget
	sparseConvert        bool
	sparseRatio          int
	sparseSafe           int
	encodeDepthMax       int
	decodeDepthMax       int
	precision            int
	keepBuffer           bool
	encodeInvalidNumbers int // an index of invalidNumbers
	decodeInvalidNumbers bool
	sizeMax              int // EncodedSizeMax except in tests
}

var (
	onOff          = []string{"off", "on"}
	invalidNumbers = []string{"off", "on", "null"}
)

const (
	invalidNumbersOff = iota
	invalidNumbersOn
	invalidNumbersNull
)

// Open returns a new table with the functions of the library, with Redis's default settings. b counts their steps.
func Open(L *lua.LState, b *budget.Budget) *lua.LTable { return open(L, b, EncodedSizeMax) }

func open(L *lua.LState, b *budget.Budget, sizeMax int) *lua.LTable {
	c := &config{
		budget:      b,
		sparseRatio: 2, sparseSafe: 10, encodeDepthMax: depthDefault, decodeDepthMax: depthDefault,
		precision: precisionDefault, keepBuffer: true, decodeInvalidNumbers: true,
		sizeMax: sizeMax,
	}
	t := tables.New(0, 13)
	for _, f := range []struct {
		name string
		fn   lua.LGFunction
	}{
		{"encode", c.encode},
		{"decode", c.decode},
		{"encode_sparse_array", c.setSparseArray},
		{"encode_max_depth", func(L *lua.LState) int { return c.setInteger(L, &c.encodeDepthMax, 1, math.MaxInt32) }},
		{"decode_max_depth", func(L *lua.LState) int { return c.setInteger(L, &c.decodeDepthMax, 1, math.MaxInt32) }},
		{"encode_number_precision", func(L *lua.LState) int { return c.setInteger(L, &c.precision, 1, precisionDefault) }},
		{"encode_keep_buffer", func(L *lua.LState) int { return c.setBool(L, &c.keepBuffer) }},
		{"encode_invalid_numbers", c.setEncodeInvalidNumbers},
		{"decode_invalid_numbers", func(L *lua.LState) int { return c.setBool(L, &c.decodeInvalidNumbers) }},
		{"new", func(L *lua.LState) int { L.Push(open(L, b, sizeMax)); return 1 }},
	} {
		tables.SetString(t, f.name, L.NewFunction(f.fn))
	}
	tables.SetString(t, "null", Null)
	tables.SetString(t, "_NAME", lua.LString("cjson"))
	tables.SetString(t, "_VERSION", lua.LString("2.1.0"))
	return t
}

// atMost raises an error if there are more arguments than n.
func atMost(L *lua.LState, n int) {
	if L.GetTop() > n {
		arg.Error(L, n+1, "found too many arguments")
	}
}

// exactlyOne raises an error unless there is one argument.
func exactlyOne(L *lua.LState) {
	if L.GetTop() != 1 {
		arg.Error(L, 1, "expected 1 argument")
	}
}

// integerOption changes a setting to argument n, unless that is nil, and pushes the setting.
func integerOption(L *lua.LState, n int, setting *int, low, high int) {
	if L.Get(n) != lua.LNil {
		v := arg.Int(L, n)
		if v < low || v > high {
			arg.Error(L, 1, "expected integer between "+strconv.Itoa(low)+" and "+strconv.Itoa(high))
		}
		*setting = v
	}
	L.Push(lua.LNumber(*setting))
}

// boolOption is integerOption for a boolean setting.
func boolOption(L *lua.LState, n int, setting *bool) {
	switch v := L.Get(n).(type) {
	case *lua.LNilType:
	case lua.LBool:
		*setting = bool(v)
	default:
		*setting = arg.Option(L, n, "", onOff) == 1
	}
	L.Push(lua.LBool(*setting))
}

func (c *config) setInteger(L *lua.LState, setting *int, low, high int) int {
	atMost(L, 1)
	integerOption(L, 1, setting, low, high)
	return 1
}

func (c *config) setBool(L *lua.LState, setting *bool) int {
	atMost(L, 1)
	boolOption(L, 1, setting)
	return 1
}

// setSparseArray changes three settings: whether sparse arrays become objects (else they are errors), the ratio of the highest
// index to the number of elements above which an array is sparse, and the index up to which no array is sparse.
func (c *config) setSparseArray(L *lua.LState) int {
	atMost(L, 3)
	for L.GetTop() < 3 {
		L.Push(lua.LNil)
	}
	boolOption(L, 1, &c.sparseConvert)
	integerOption(L, 2, &c.sparseRatio, 0, math.MaxInt32)
	integerOption(L, 3, &c.sparseSafe, 0, math.MaxInt32)
	return 3
}

func (c *config) setEncodeInvalidNumbers(L *lua.LState) int {
	atMost(L, 1)
	switch v := L.Get(1).(type) {
	case *lua.LNilType:
	case lua.LBool:
		c.encodeInvalidNumbers = invalidNumbersOff
		if v {
			c.encodeInvalidNumbers = invalidNumbersOn
		}
	default:
		c.encodeInvalidNumbers = arg.Option(L, 1, "", invalidNumbers)
	}
	if c.encodeInvalidNumbers == invalidNumbersNull {
		L.Push(lua.LString(invalidNumbers[c.encodeInvalidNumbers]))
	} else {
		L.Push(lua.LBool(c.encodeInvalidNumbers == invalidNumbersOn))
	}
	return 1
}
