package luavm

// The global functions.

import (
	"math"
	"runtime/metrics"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/tables"
)

func (vm *VM) baseFunctions() functions {
	next := vm.L.NewFunction(vm.next)
	each := vm.L.NewFunction(vm.ipairsNext)
	vm.shortcuts.ipairsNext = each
	return functions{
		"assert":         vm.assert,
		"collectgarbage": collectGarbage,
		"error":          vm.error,
		"gcinfo":         gcInfo,
		"getmetatable":   vm.getMetatable,
		"ipairs":         func(L *lua.LState) int { return iterate(L, each, luaInt(0)) },
		"load":           vm.load,
		"loadstring":     vm.loadString,
		"next":           vm.next,
		"pairs":          func(L *lua.LState) int { return iterate(L, next, lua.LNil) },
		"pcall":          vm.pcall,
		"rawequal":       rawEqual,
		"rawget":         vm.rawGet,
		"rawset":         vm.rawSet,
		"select":         selectArgs,
		"setmetatable":   vm.setMetatable,
		"tonumber":       vm.toNumber,
		"tostring":       vm.toString,
		"type":           typeOf,
		"unpack":         vm.unpack,
		"xpcall":         vm.xpcall,

		"__redis__err__handler": vm.errorHandler,
	}
}

// placesPerStep is how many empty places of a table can be skipped in the time of one step of the budget.
const placesPerStep = 16

// clibSlots is how many values a function may return or push at once, LUAI_MAXCSTACK.
const clibSlots = 8000

func (vm *VM) assert(L *lua.LState) int {
	if lua.LVIsFalse(arg.Any(L, 1)) {
		arg.Raise(L, "%s", arg.CString(arg.OptString(L, 2, "assertion failed!")))
	}
	return L.GetTop()
}

var gcOptions = []string{"stop", "restart", "collect", "count", "step", "setpause", "setstepmul"}

// collectGarbage does nothing, since a script must not make the server collect garbage. The option count returns the memory
// of the server.
func collectGarbage(L *lua.LState) int {
	option := gcOptions[arg.Option(L, 1, "collect", gcOptions)]
	arg.OptInt(L, 2, 0)
	switch option {
	case "count":
		L.Push(lua.LNumber(float64(heapBytes()) / 1024))
	case "step":
		L.Push(lua.LTrue)
	case "setpause", "setstepmul":
		L.Push(lua.LNumber(200))
	default:
		L.Push(luaInt(0))
	}
	return 1
}

func gcInfo(L *lua.LState) int {
	L.Push(lua.LNumber(heapBytes() / 1024))
	return 1
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func (vm *VM) error(L *lua.LState) int {
	vm.throw(L, vm.errorValue(L))
	return 0
}

// errorValue is the value that the function error raises.
func (vm *VM) errorValue(L *lua.LState) lua.LValue {
	level := arg.OptInt(L, 2, 1)
	v := L.Get(1)
	if s, ok := arg.ToString(v); ok && level > 0 {
		v = lua.LString(where(L, level) + s)
	}
	return v
}

// errorHandler is the function that Redis runs for an uncaught error. Scripts can call it, too.
func (vm *VM) errorHandler(L *lua.LState) int {
	t, ok := L.Get(1).(*lua.LTable)
	if !ok {
		t = errorTable(L, "ERR "+tostring(L.Get(1)))
	}
	if place := vm.placeOf(inside(L).currentFrame.Parent); place.source != "" {
		setIndex(L, t, lua.LString("source"), lua.LString(place.source))
		setIndex(L, t, lua.LString("line"), lua.LNumber(place.line))
	}
	L.Push(t)
	return 1
}

func (vm *VM) getMetatable(L *lua.LState) int {
	v := arg.Any(L, 1)
	var mt lua.LValue = lua.LNil
	switch v := v.(type) {
	case *lua.LTable:
		mt = v.Metatable
		if v == vm.globalsView {
			mt = vm.globalsMeta
		} else if _, isView := tables.Behind(v); isView {
			mt = lua.LNil
		}
	case *lua.LUserData:
		mt = v.Metatable
	case lua.LString:
		mt = vm.stringsMeta
	}
	if t, ok := mt.(*lua.LTable); ok {
		if protected := tables.GetString(t, "__metatable"); protected != lua.LNil {
			mt = protected
		}
	}
	L.Push(mt)
	return 1
}

func (vm *VM) setMetatable(L *lua.LState) int {
	mt := L.Get(2)
	t := arg.Table(L, 1)
	if mt != lua.LNil && mt.Type() != lua.LTTable || L.GetTop() < 2 {
		arg.Error(L, 2, "nil or table expected")
	}
	if old, ok := t.Metatable.(*lua.LTable); ok && tables.GetString(old, "__metatable") != lua.LNil {
		arg.Raise(L, "cannot change a protected metatable")
	}
	vm.writable(L, 1)
	t.Metatable = mt
	L.Push(t)
	return 1
}

func iterate(L *lua.LState, fn *lua.LFunction, start lua.LValue) int {
	t := arg.Table(L, 1)
	L.Push(fn)
	L.Push(t)
	L.Push(start)
	return 3
}

func (vm *VM) ipairsNext(L *lua.LState) int {
	i := arg.Int(L, 2) + 1
	v := tables.GetInt(vm.tableArg(L, 1), i)
	if v == lua.LNil {
		L.Push(lua.LNil)
		return 1
	}
	L.Push(vm.boxes.Int(int64(i)))
	L.Push(v)
	return 2
}

func (vm *VM) next(L *lua.LState) int {
	k, v, ok := vm.walker.Next(vm.tableArg(L, 1), L.Get(2))
	vm.budget.Use(vm.walker.Skipped / placesPerStep)
	if !ok {
		vm.throw(L, lua.LString("invalid key to 'next'"))
	}
	L.Push(k)
	if k == lua.LNil {
		return 1
	}
	L.Push(v)
	return 2
}

// load reads a chunk piece by piece from a function.
func (vm *VM) load(L *lua.LState) int {
	source := arg.OptString(L, 2, "=(load)") // Lua checks this argument first
	fn := arg.Function(L, 1)
	var code strings.Builder
	for {
		L.SetTop(2)
		L.Push(fn)
		if ok, errv := vm.protectDeep(L, 0); !ok {
			L.Push(lua.LNil)
			L.Push(errv)
			return 2
		}
		L.SetTop(3)
		piece := L.Get(3)
		s, ok := arg.ToString(piece)
		if piece == lua.LNil || ok && s == "" {
			break
		}
		if !ok {
			L.Push(lua.LNil)
			L.Push(lua.LString(where(L, 1) + "reader function must return a string"))
			return 2
		}
		code.WriteString(s)
		vm.budget.Use(1)
		vm.budget.Bytes(len(s))
		vm.room(L, code.Len())
	}
	return vm.compiled(L, code.String(), source)
}

func (vm *VM) loadString(L *lua.LState) int {
	code := arg.String(L, 1)
	return vm.compiled(L, code, arg.OptString(L, 2, code))
}

// compiled pushes the function of a source, or nil and the error.
func (vm *VM) compiled(L *lua.LState, code, source string) int {
	c, err := compileChunk(code, source, knownFunctions(), false, &vm.budget, vm.ccalls+1) // the script itself counts as a call
	if err != nil {
		L.Push(lua.LNil)
		L.Push(lua.LString(err.Error()))
		return 2
	}
	L.Push(vm.function(c))
	return 1
}

// pcall is the function itself; the main loop executes most calls without it, see guard.go.
func (vm *VM) pcall(L *lua.LState) int {
	if L.GetTop() == 0 { // Redis does not check this, and calls the slot of its first result
		L.Push(lua.LTrue)
	}
	ok, errv := vm.protectDeep(L, L.GetTop()-1)
	if ok {
		L.Insert(lua.LTrue, 1)
		return L.GetTop()
	}
	return vm.pushFailure(L, errv)
}

// pushFailure pushes the results of pcall for an error. As in Redis, an error table becomes its text, the field err. If that
// is not text, pushFailure pushes the table and the value of err.
func (vm *VM) pushFailure(L *lua.LState, errv lua.LValue) int {
	L.Push(lua.LFalse)
	t, isTable := errv.(*lua.LTable)
	if !isTable {
		L.Push(errv)
		return 2
	}
	text := index(L, t, lua.LString("err"))
	if _, ok := arg.ToString(text); ok {
		L.Push(text)
		return 2
	}
	L.Push(errv)
	L.Push(text)
	return 3
}

func (vm *VM) xpcall(L *lua.LState) int {
	arg.Any(L, 2)
	handler, callable := L.Get(2).(*lua.LFunction) // __call is not used here
	L.SetTop(1)
	ok, errv := vm.protectDeep(L, 0)
	if ok {
		L.Insert(lua.LTrue, 1)
		return L.GetTop()
	}
	// If the handler fails, Lua calls it again for its own error, nested in itself, until calls through C are too deep.
	for depth := vm.ccalls + 3; callable && depth < handlersMax; depth++ {
		if depth == ccallsMax+1 {
			errv = lua.LString("C stack overflow")
			continue
		}
		L.SetTop(0)
		L.Push(handler)
		L.Push(errv)
		if ok, errv = vm.protectDeep(L, 1); ok {
			L.SetTop(1)
			L.Insert(lua.LFalse, 1)
			return 2
		}
	}
	L.SetTop(0)
	L.Push(lua.LFalse)
	L.Push(lua.LString("error in error handling"))
	return 2
}

// handlersMax is how deep calls through C may nest while errors are handled.
const handlersMax = 225

// protectDeep is protect for calls by the script, which may only nest so deep.
func (vm *VM) protectDeep(L *lua.LState, nargs int) (ok bool, errv lua.LValue) {
	if vm.ccalls >= ccallsMax-1 {
		L.SetTop(L.GetTop() - nargs - 1)
		return false, lua.LString("C stack overflow")
	}
	vm.ccalls++
	ok, errv = vm.protect(L, nargs, lua.MultRet)
	vm.ccalls--
	return ok, errv
}

func rawEqual(L *lua.LState) int {
	L.Push(lua.LBool(L.RawEqual(arg.Any(L, 1), arg.Any(L, 2))))
	return 1
}

func (vm *VM) rawGet(L *lua.LState) int {
	t := vm.tableArg(L, 1)
	L.Push(tables.Get(t, arg.Any(L, 2)))
	return 1
}

func (vm *VM) rawSet(L *lua.LState) int {
	t := arg.Table(L, 1)
	key, value := arg.Any(L, 2), arg.Any(L, 3)
	vm.writable(L, 1)
	if n, ok := key.(lua.LNumber); ok && n != n {
		vm.throw(L, lua.LString("table index is NaN"))
	}
	if key == lua.LNil {
		vm.throw(L, lua.LString("table index is nil"))
	}
	tables.Set(t, key, value)
	L.SetTop(1)
	return 1
}

func selectArgs(L *lua.LState) int {
	n := L.GetTop()
	if s, ok := L.Get(1).(lua.LString); ok && strings.HasPrefix(string(s), "#") {
		L.Push(lua.LNumber(n - 1))
		return 1
	}
	i := arg.Int(L, 1)
	if i < 0 {
		i = n + i
	} else if i > n {
		i = n
	}
	if i < 1 {
		arg.Error(L, 1, "index out of range")
	}
	return n - i
}

func (vm *VM) toNumber(L *lua.LState) int {
	base := arg.OptInt(L, 2, 10)
	if base == 10 {
		switch v := arg.Any(L, 1).(type) {
		case lua.LNumber:
			L.Push(L.Get(1)) // v would be boxed again
		case lua.LString:
			if f, ok := arg.ParseNumber(string(v)); ok {
				L.Push(vm.boxes.Number(f))
			} else {
				L.Push(lua.LNil)
			}
		default:
			L.Push(lua.LNil)
		}
		return 1
	}
	s := arg.String(L, 1)
	if base < 2 || base > 36 {
		arg.Error(L, 2, "base out of range")
	}
	if n, ok := parseUnsigned(arg.CString(s), base); ok {
		L.Push(lua.LNumber(n))
	} else {
		L.Push(lua.LNil)
	}
	return 1
}

// parseUnsigned is C's strtoul with nothing but blanks behind the number: a sign wraps, an overflow saturates.
func parseUnsigned(s string, base int) (float64, bool) {
	blank := func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
	i := 0
	for i < len(s) && blank(s[i]) {
		i++
	}
	negative := false
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		negative = s[i] == '-'
		i++
	}
	digit := func(i int) int {
		if i >= len(s) {
			return -1
		}
		d := -1
		switch c := s[i] | 0x20; {
		case s[i] >= '0' && s[i] <= '9':
			d = int(s[i] - '0')
		case c >= 'a' && c <= 'z':
			d = int(c-'a') + 10
		}
		if d >= base {
			d = -1
		}
		return d
	}
	if base == 16 && i+1 < len(s) && s[i] == '0' && s[i+1]|0x20 == 'x' && digit(i+2) >= 0 {
		i += 2
	}
	if digit(i) < 0 {
		return 0, false
	}
	var n uint64
	overflow := false
	for d := digit(i); d >= 0; d = digit(i) {
		if n > (math.MaxUint64-uint64(d))/uint64(base) {
			overflow = true
		}
		n = n*uint64(base) + uint64(d)
		i++
	}
	for i < len(s) && blank(s[i]) {
		i++
	}
	if i < len(s) {
		return 0, false
	}
	switch {
	case overflow:
		n = math.MaxUint64
	case negative:
		n = -n
	}
	return float64(n), true
}

func (vm *VM) toString(L *lua.LState) int {
	v := arg.Any(L, 1)
	if m := vm.metamethod(v, "__tostring"); m != lua.LNil {
		L.Push(vm.callMetamethod(L, m, v))
		return 1
	}
	L.Push(lua.LString(tostring(v)))
	return 1
}

func typeOf(L *lua.LState) int {
	L.Push(typeNames[arg.Any(L, 1).Type()])
	return 1
}

// typeNames are the types' names, boxed in advance.
var typeNames = func() (names [16]lua.LValue) {
	for t := lua.LTNil; t <= lua.LTChannel; t++ {
		names[t] = lua.LString(t.String())
	}
	return
}()

func (vm *VM) unpack(L *lua.LState) int {
	t := vm.tableArg(L, 1)
	from := arg.OptInt(L, 2, 1)
	to := tables.Border(t)
	if !arg.IsNoneOrNil(L, 3) {
		to = arg.Int(L, 3)
	}
	if from > to {
		return 0
	}
	n := to - from + 1
	if n+L.GetTop() > clibSlots {
		arg.Raise(L, "too many results to unpack")
	}
	for i := from; i <= to; i++ {
		L.Push(tables.GetInt(t, i))
	}
	return n
}
