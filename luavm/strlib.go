package luavm

// The library string, without patterns (strmatch.go, strfind.go) and format (strformat.go).

import (
	"bytes"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
)

func (vm *VM) stringFunctions() functions {
	return functions{
		"byte": stringByte, "char": vm.stringChar, "dump": stringDump, "find": vm.stringFind, "format": vm.stringFormat,
		"gfind": vm.stringGmatch, "gmatch": vm.stringGmatch, "gsub": vm.stringGsub, "len": stringLen, "lower": vm.stringLower,
		"match": vm.stringMatch, "rep": vm.stringRep, "reverse": vm.stringReverse, "sub": stringSub, "upper": vm.stringUpper,
	}
}

// stringBytesMax is the longest string, the same as Redis's limit for a value.
const stringBytesMax = 512 << 20

// NoMemory is the error of a script that needs more memory than it may have.
const NoMemory = "not enough memory"

// room raises an error if a string of this size would be too long.
func (vm *VM) room(L *lua.LState, size int) {
	if size > stringBytesMax {
		vm.throw(L, lua.LString(NoMemory))
	}
}

// roomAsked is the largest allocation that is made without asking the function set by Room. Smaller and growing strings are
// noticed in time after they are allocated.
const roomAsked = 1 << 20

// roomAtOnce is room for a string that will be allocated at once.
func (vm *VM) roomAtOnce(L *lua.LState, size int) {
	vm.room(L, size)
	if size <= roomAsked || vm.roomFor == nil {
		return
	}
	vm.inHost = true
	ok := vm.roomFor(size)
	if vm.inHost = false; !ok {
		vm.throw(L, lua.LString(NoMemory))
	}
}

// position converts an index that may count from the end.
func position(i int64, length int) int64 {
	if i < 0 {
		i += int64(length) + 1
	}
	return max(i, 0)
}

func stringLen(L *lua.LState) int {
	L.Push(luaInt(int64(len(arg.String(L, 1)))))
	return 1
}

func stringSub(L *lua.LState) int {
	s := arg.String(L, 1)
	from := max(position(arg.Integer(L, 2), len(s)), 1)
	to := min(position(arg.OptInteger(L, 3, -1), len(s)), int64(len(s)))
	if from > to {
		L.Push(lua.LString(""))
	} else {
		L.Push(lua.LString(s[from-1 : to]))
	}
	return 1
}

func (vm *VM) stringReverse(L *lua.LState) int {
	s := arg.String(L, 1)
	b := make([]byte, len(s))
	for i := range len(s) {
		if i%atOnce == atOnce-1 {
			vm.budget.Use(atOnceSteps)
		}
		b[len(s)-1-i] = s[i]
	}
	L.Push(lua.LString(stringOf(b)))
	return 1
}

// atOnce is how many bytes are processed one by one before they are counted, as atOnceSteps steps.
const atOnce, atOnceSteps = 1 << 10, 1 << 5

// mapBytes pushes a string with every byte converted. Only ASCII has cases.
func (vm *VM) mapBytes(L *lua.LState, s string, convert func(byte) byte) int {
	b := []byte(s)
	for i, c := range b {
		if i%atOnce == atOnce-1 {
			vm.budget.Use(atOnceSteps)
		}
		b[i] = convert(c)
	}
	L.Push(lua.LString(stringOf(b)))
	return 1
}

func (vm *VM) stringLower(L *lua.LState) int { return vm.mapBytes(L, arg.String(L, 1), toLower) }

func (vm *VM) stringUpper(L *lua.LState) int { return vm.mapBytes(L, arg.String(L, 1), toUpper) }

func toLower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

func toUpper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 'a' + 'A'
	}
	return c
}

func (vm *VM) stringRep(L *lua.LState) int {
	s, n := arg.String(L, 1), arg.Int(L, 2)
	if n <= 0 || s == "" {
		L.Push(lua.LString(""))
		return 1
	}
	if n > stringBytesMax/len(s) {
		vm.room(L, stringBytesMax+1)
	}
	vm.roomAtOnce(L, n*len(s))
	vm.budget.Bytes(n * len(s))
	L.Push(lua.LString(strings.Repeat(s, n)))
	return 1
}

func stringByte(L *lua.LState) int {
	s := arg.String(L, 1)
	from := position(arg.OptInteger(L, 2, 1), len(s))
	to := min(position(arg.OptInteger(L, 3, from), len(s)), int64(len(s)))
	from = max(from, 1)
	if from > to {
		return 0
	}
	n := int(to - from + 1)
	if n+L.GetTop() > clibSlots {
		arg.Raise(L, "stack overflow (string slice too long)")
	}
	for _, c := range bytesOf(s[from-1 : to]) {
		L.Push(luaInt(int64(c)))
	}
	return n
}

func (vm *VM) stringChar(L *lua.LState) int {
	n := L.GetTop()
	b := make([]byte, n)
	for i := range n {
		c := arg.Int(L, i+1)
		if c < 0 || c > 255 {
			arg.Error(L, i+1, "invalid value")
		}
		b[i] = byte(c)
	}
	L.Push(lua.LString(stringOf(b)))
	return 1
}

// stringDump returns a string that looks like the real Lua's. It has no use, since Redis does not load bytecode.
func stringDump(L *lua.LState) int {
	f := arg.Function(L, 1)
	if f.IsG {
		arg.Raise(L, "unable to dump given function")
	}
	L.Push(lua.LString("\x1bLuaQ\x00\x01\x04\x08\x04\x08\x00"))
	return 1
}

// special tells whether a pattern has special characters. As in C, a NUL byte ends the pattern.
func special(pattern string) bool {
	if i := strings.IndexByte(pattern, 0); i >= 0 {
		pattern = pattern[:i]
	}
	return strings.ContainsAny(pattern, "^$*+?.([%-")
}

func (vm *VM) stringFind(L *lua.LState) int { return vm.find(L, true) }

func (vm *VM) stringMatch(L *lua.LState) int { return vm.find(L, false) }

// find is string.find and string.match.
func (vm *VM) find(L *lua.LState, wantPlace bool) int {
	s, pattern := arg.String(L, 1), arg.String(L, 2)
	init := position(arg.OptInteger(L, 3, 1), len(s)) - 1
	init = min(max(init, 0), int64(len(s)))
	if wantPlace && (lua.LVAsBool(L.Get(4)) || !special(pattern)) {
		vm.budget.Bytes(len(s) - int(init))
		at := strings.Index(s[init:], pattern)
		if at < 0 {
			L.Push(lua.LNil)
			return 1
		}
		L.Push(luaInt(init + int64(at) + 1))
		L.Push(luaInt(init + int64(at) + int64(len(pattern))))
		return 2
	}
	m := vm.matcherFor(L, s, pattern)
	anchored := strings.HasPrefix(pattern, "^")
	start := 0
	if anchored {
		start = 1
	}
	for at := int(init); at <= len(s); at++ {
		m.level = 0
		end := m.match(at, start)
		if end >= 0 {
			if !wantPlace {
				return m.pushCaptures(at, end, true)
			}
			L.Push(luaInt(int64(at) + 1))
			L.Push(luaInt(int64(end)))
			return 2 + m.pushCaptures(at, end, false)
		}
		if anchored {
			break
		}
	}
	L.Push(lua.LNil)
	return 1
}

func (vm *VM) stringGmatch(L *lua.LState) int {
	s, pattern := arg.String(L, 1), arg.String(L, 2)
	at := 0
	L.SetTop(2)
	L.Push(L.NewFunction(func(L *lua.LState) int {
		m := vm.matcherFor(L, s, pattern)
		for ; at <= len(s); at++ {
			m.level = 0
			if end := m.match(at, 0); end >= 0 {
				start := at
				at = end
				if end == start {
					at++ // an empty match: continue behind it
				}
				return m.pushCaptures(start, end, true)
			}
		}
		return 0
	}))
	return 1
}

func (vm *VM) stringGsub(L *lua.LState) int {
	s, pattern := arg.String(L, 1), arg.String(L, 2)
	replacement := L.Get(3)
	limit := arg.OptInt(L, 4, len(s)+1)
	switch replacement.(type) {
	case lua.LNumber, lua.LString, *lua.LFunction, *lua.LTable:
	default:
		arg.Error(L, 3, "string/function/table expected")
	}
	text, _ := arg.ToString(replacement)
	anchored := strings.HasPrefix(pattern, "^")
	start := 0
	if anchored {
		start = 1
	}
	m := *vm.matcherFor(L, s, pattern) // a copy, since the replacement function may use the VM's matcher
	var b bytes.Buffer
	n := 0
	for at := 0; n < limit; {
		m.level = 0
		end := m.match(at, start)
		if end >= 0 {
			n++
			before := b.Len()
			vm.replace(&m, &b, at, end, replacement, text)
			vm.budget.Bytes(b.Len() - before)
			vm.room(L, b.Len())
		}
		switch {
		case end > at: // a match that is not empty
			at = end
		case at < len(s):
			b.WriteByte(s[at])
			at++
		default:
			at++
		}
		if at > len(s) || anchored {
			b.WriteString(s[min(at, len(s)):])
			L.Push(lua.LString(b.String()))
			L.Push(luaInt(int64(n)))
			return 2
		}
		m.tail = at
	}
	b.WriteString(s[m.tail:])
	L.Push(lua.LString(b.String()))
	L.Push(luaInt(int64(n)))
	return 2
}

// replace writes the replacement of a match.
func (vm *VM) replace(m *matcher, b *bytes.Buffer, at, end int, replacement lua.LValue, text string) {
	L := m.L
	var v lua.LValue
	switch r := replacement.(type) {
	case *lua.LFunction:
		top := L.GetTop()
		L.Push(r)
		vm.callStacked(L, m.pushCaptures(at, end, true), 1)
		v = L.Get(-1)
		L.SetTop(top)
	case *lua.LTable:
		v = index(L, r, m.capture(0, at, end))
	default:
		for i := 0; i < len(text); i++ {
			if text[i] != '%' {
				b.WriteByte(text[i])
				continue
			}
			i++
			switch {
			case i == len(text):
				b.WriteByte(0) // C reads the NUL at the end of the string
			case text[i] < '0' || text[i] > '9':
				b.WriteByte(text[i])
			case text[i] == '0':
				b.WriteString(m.src[at:end])
			default:
				s, _ := arg.ToString(m.capture(int(text[i]-'1'), at, end))
				b.WriteString(s)
			}
		}
		return
	}
	if lua.LVIsFalse(v) {
		b.WriteString(m.src[at:end])
		return
	}
	s, ok := arg.ToString(v)
	if !ok {
		arg.Raise(L, "invalid replacement value (a %s)", typeName(v))
	}
	b.WriteString(s)
}
