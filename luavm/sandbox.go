package luavm

// The sandbox of a script: Redis 8's globals and libraries, all read-only.
//
// gopher-lua has no read-only tables. A script gets an empty table instead, a view, whose metatable reads from the real table
// and refuses writes. The library functions here use the table behind a view. Compiled code does not pay for that, since
// known functions are constants in it, see package syntax.

import (
	"maps"
	"slices"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/tables"

	"github.com/limitkv/limitkv/luavm/arg"

	"github.com/limitkv/limitkv/luavm/bitlib"
	"github.com/limitkv/limitkv/luavm/bytecode"
	"github.com/limitkv/limitkv/luavm/cjson"
	"github.com/limitkv/limitkv/luavm/cmsgpack"
	"github.com/limitkv/limitkv/luavm/structlib"
	"github.com/limitkv/limitkv/luavm/syntax"
)

type functions map[string]lua.LGFunction

const readonlyError = "Attempt to modify a readonly table"

// knownFunctions returns the functions that are constants in compiled code, such as "tonumber" and "redis.call". Every VM has
// a constant for each. The list is made when the first script is compiled, since it needs a VM, which takes half a
// millisecond to build.
func knownFunctions() *syntax.Known {
	known.once.Do(func() {
		k := syntax.Known{Functions: map[string]string{}, Libraries: map[string]map[string]string{}}
		for path := range New(Config{}).constants {
			library, name, ok := strings.Cut(path, ".")
			switch {
			case ok && k.Libraries[library] == nil:
				k.Libraries[library] = map[string]string{name: path}
			case ok:
				k.Libraries[library][name] = path
			case path != bytecode.HiddenKeys && path != bytecode.HiddenArgv:
				k.Functions[path] = path
			}
		}
		known.functions = k
	})
	return &known.functions
}

var known struct {
	once      sync.Once
	functions syntax.Known
}

func (vm *VM) openLibs() {
	vm.constants = map[string]lua.LValue{
		bytecode.HiddenKeys: vm.keys.table,
		bytecode.HiddenArgv: vm.argvTable.table,
	}
	vm.guard(vm.L.NewFunction(vm.undefinedGlobal), vm.env)
	tables.SetString(vm.env, "_VERSION", lua.LString("Lua 5.1"))
	for name, fn := range vm.baseFunctions() {
		f := vm.L.NewFunction(fn)
		tables.SetString(vm.env, name, f)
		vm.constants[name] = f
	}
	vm.strings = vm.library("string", vm.stringFunctions(), nil)
	vm.library("table", vm.tableFunctions(), nil)
	vm.library("math", vm.mathFunctions(), map[string]lua.LValue{"pi": lua.LNumber(3.14159265358979323846), "huge": lua.LNumber(infinity)})
	vm.library("os", functions{"clock": vm.osClock}, nil)
	vm.library("coroutine", vm.coroutineFunctions(), nil)
	vm.publish("bit", bitlib.Open(vm.L))
	vm.publish("struct", structlib.Open(vm.L, &vm.boxes, &vm.budget))
	vm.publish("cjson", cjson.Open(vm.L, &vm.budget))
	vm.publish("cmsgpack", cmsgpack.Open(vm.L, &vm.boxes, &vm.budget))
	vm.library("redis", vm.redisFunctions(), vm.redisConstants())
	vm.globalsView = vm.show(vm.env)
	tables.SetString(vm.env, "_G", vm.globalsView)
	vm.openMetatables()
}

// library makes a library a global.
func (vm *VM) library(name string, fns functions, values map[string]lua.LValue) *lua.LTable {
	t := tables.New(0, len(fns)+len(values))
	for _, key := range slices.Sorted(maps.Keys(fns)) {
		tables.SetString(t, key, vm.L.NewFunction(fns[key]))
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		tables.SetString(t, key, values[key])
	}
	vm.publish(name, t)
	return t
}

// publish makes a table a read-only global.
func (vm *VM) publish(name string, t *lua.LTable) {
	tables.SetString(vm.env, name, vm.show(t))
	tables.Each(t, func(k, v lua.LValue) bool {
		if key, ok := k.(lua.LString); ok && v.Type() == lua.LTFunction {
			vm.constants[name+"."+string(key)] = v
		}
		return true
	})
}

// show returns a read-only view of a table.
func (vm *VM) show(t *lua.LTable) *lua.LTable {
	view := tables.New(0, 0)
	vm.guard(t, view)
	tables.Show(view, t)
	return view
}

// guard gives t a metatable that reads from index and refuses new fields.
func (vm *VM) guard(index lua.LValue, t *lua.LTable) {
	mt := tables.New(0, 2)
	tables.SetString(mt, "__index", index)
	tables.SetString(mt, "__newindex", vm.L.NewFunction(vm.refuse))
	t.Metatable = mt
}

// refuse raises the error of a write to a read-only table.
func (vm *VM) refuse(L *lua.LState) int {
	vm.throwf(L, readonlyError)
	return 0
}

func (vm *VM) undefinedGlobal(L *lua.LState) int {
	name, ok := arg.ToString(L.Get(2))
	if !ok {
		vm.throwf(L, "Second argument to luaProtectedTableError must be a string or number")
	}
	vm.throwf(L, "Script attempted to access nonexistent global variable '%s'", arg.CString(name))
	return 0
}

// tableArg is arg.Table for functions that read the table.
func (vm *VM) tableArg(L *lua.LState, n int) *lua.LTable {
	t, _ := tables.Behind(arg.Table(L, n))
	return t
}

// writable is arg.Table for functions that change the table without regard to metamethods.
func (vm *VM) writable(L *lua.LState, n int) *lua.LTable {
	t := arg.Table(L, n)
	if _, isView := tables.Behind(t); isView {
		vm.throw(L, lua.LString(readonlyError))
	}
	return t
}

// openMetatables makes strings behave as in Lua 5.1, and makes the views of metatables that Redis shows to scripts.
func (vm *VM) openMetatables() {
	vm.L.SetMetatable(lua.LString(""), vm.stringMetatable())
	mt := tables.New(0, 1)
	tables.SetString(mt, "__index", tables.GetString(vm.env, "string"))
	vm.stringsMeta = vm.show(mt)
	mt = tables.New(0, 1)
	tables.SetString(mt, "__index", indexEvent.of(vm.env))
	vm.globalsMeta = vm.show(mt)
}
