package luavm

// From a reply in wire form to a Lua value.

import (
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/boxes"
	"github.com/limitkv/limitkv/luavm/tables"
)

func luaInt(n int64) lua.LValue { return boxes.Lasting(float64(n)) }

// decode reads one reply and returns it with the bytes that follow. Replies come from the server itself, so nothing is
// checked; a panic here is a bug in a command.
func (vm *VM) decode(L *lua.LState, b []byte) (lua.LValue, []byte) {
	line, rest := cutLine(b)
	switch b[0] {
	case ':':
		return vm.boxes.Int(parseInt(line)), rest
	case '$':
		n := parseInt(line)
		if n < 0 {
			return lua.LFalse, rest
		}
		return vm.boxes.String(rest[:n]), rest[n+2:]
	case '+':
		t := tables.New(0, 1)
		tables.SetString(t, "ok", lua.LString(line))
		return t, rest
	case '-':
		return decodeError(L, b), rest
	case '*':
		n := parseInt(line)
		if n < 0 {
			return lua.LFalse, rest
		}
		t, items := vm.arrays.New(int(n))
		for i := range items {
			var v lua.LValue
			if v, rest = vm.decode(L, rest); v == lua.LNil {
				return vm.decodeRest(L, items[:i], int(n), rest)
			}
			items[i] = v
		}
		return t, rest
	case '_':
		return lua.LNil, rest
	case '#':
		return lua.LBool(line[0] == 't'), rest
	case ',':
		return wrapped(L, "double", lua.LNumber(parseDouble(line))), rest
	case '(':
		return wrapped(L, "big_number", lua.LString(line)), rest
	case '=':
		n := parseInt(line)
		v := tables.New(0, 2)
		tables.SetString(v, "string", lua.LString(rest[4:n]))
		tables.SetString(v, "format", lua.LString(rest[:3]))
		return wrapped(L, "verbatim_string", v), rest[n+2:]
	case '%', '|':
		n := parseInt(line)
		m := tables.New(0, 0)
		var k, v lua.LValue
		for range n {
			k, rest = vm.decode(L, rest)
			v, rest = vm.decode(L, rest)
			if b[0] == '%' {
				tables.Set(m, k, v)
			}
		}
		if b[0] == '|' { // an attribute: it is dropped, and the reply follows
			return vm.decode(L, rest)
		}
		return wrapped(L, "map", m), rest
	case '~':
		n := parseInt(line)
		set := tables.New(0, 0)
		var v lua.LValue
		for range n {
			v, rest = vm.decode(L, rest)
			tables.Set(set, v, lua.LTrue)
		}
		return wrapped(L, "set", set), rest
	}
	panic("luavm: a reply starts with " + strconv.QuoteRune(rune(b[0])))
}

// decodeRest reads the rest of an array of n values, from a null of protocol version 3 on. The room of
// such a table depends on where its holes are.
func (vm *VM) decodeRest(L *lua.LState, first []lua.LValue, n int, rest []byte) (lua.LValue, []byte) {
	t := tables.New(0, 0)
	for i, v := range first {
		tables.SetInt(t, i+1, v)
	}
	tables.SetInt(t, len(first)+1, lua.LNil)
	for i := len(first) + 2; i <= n; i++ {
		var v lua.LValue
		v, rest = vm.decode(L, rest)
		tables.SetInt(t, i, v)
	}
	return t, rest
}

// wrapped returns the table with one field that represents a RESP3 type.
func wrapped(L *lua.LState, field string, v lua.LValue) lua.LValue {
	t := tables.New(0, 1)
	tables.SetString(t, field, v)
	return t
}

// decodeError turns an error reply into the table that redis.pcall returns.
func decodeError(L *lua.LState, b []byte) *lua.LTable {
	line, _ := cutLine(b)
	t := errorTable(L, errorReplyText(string(line)))
	tables.SetString(t, "ignore_error_stats_update", lua.LTrue)
	return t
}

// cutLine returns the first line without its type and its end, and the bytes after it.
func cutLine(b []byte) (line, rest []byte) {
	for i := 1; ; i++ {
		if b[i] == '\r' {
			return b[1:i], b[i+2:]
		}
	}
}

func parseInt(b []byte) (n int64) {
	negative := b[0] == '-'
	if negative {
		b = b[1:]
	}
	for _, c := range b {
		n = n*10 + int64(c-'0')
	}
	if negative {
		return -n
	}
	return n
}

func parseDouble(b []byte) float64 {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil && !math.IsInf(f, 0) {
		return math.NaN()
	}
	return f
}
