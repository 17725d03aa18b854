package luavm

// Libraries of functions, as FUNCTION LOAD takes them. A library first runs once in a VM that has only the functions that a
// library may use while it loads. This trial run finds its errors and its functions. Each VM that calls one of the functions
// later runs the library's code once, too. The code can only register functions while it loads, so every VM gets the same
// functions. Local variables of a library exist once per VM.

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/budget"
	"github.com/limitkv/limitkv/luavm/tables"
	"github.com/limitkv/limitkv/resp"
	"github.com/limitkv/limitkv/resp/words"
)

// libraryChunkName is the chunk name of libraries in error texts.
const libraryChunkName = "user_function"

// loadTimeMax is how long a library may take to register its functions.
const loadTimeMax = 500 * time.Millisecond

// Library is a library of functions. It is immutable once Try has succeeded, and may be used by any number of VMs.
type Library struct {
	Name   string
	Engine string // as written in the first line
	Code   string
	// Functions are in the order in which they were registered.
	Functions []Function

	skip  int // length of the first line of Code, which is not Lua
	chunk *chunk

	compiled bool
	plain    *chunk // for Try: compiled without known functions, so that it looks globals up
	err      error  // why it does not compile
}

// Function describes a library's function.
type Function struct {
	Name        string
	Description string
	Described   bool
	Flags       Flags
}

// ParseLibrary reads the first line of a library. The text of an error is Redis's without the "ERR " in front.
func ParseLibrary(code []byte) (*Library, error) {
	l := &Library{Code: string(code)}
	end := strings.IndexByte(arg.CString(l.Code), '\n')
	switch {
	case !strings.HasPrefix(l.Code, "#!"):
		return nil, &CompileError{"Missing library metadata"}
	case end < 0:
		return nil, &CompileError{"Invalid library metadata"}
	}
	parts, ok := words.Split(l.Code[:end])
	if !ok || len(parts) == 0 {
		return nil, &CompileError{"Invalid library metadata"}
	}
	l.skip, l.Engine = end, parts[0][2:]
	named := false
	for _, part := range parts[1:] {
		const key = "name="
		switch {
		case len(part) < len(key) || !strings.EqualFold(part[:len(key)], key):
			return nil, &CompileError{"Invalid metadata value given: " + part}
		case named:
			return nil, &CompileError{"Invalid metadata value, name argument was given multiple times"}
		}
		l.Name, named = part[len(key):], true
	}
	switch {
	case !named:
		return nil, &CompileError{"Library name was not given"}
	case !isName(l.Name):
		return nil, &CompileError{badName}
	}
	return l, nil
}

// Bytes is the memory that the library needs after Try: its text and its compiled form.
func (l *Library) Bytes() int64 {
	n := int64(len(l.Code))
	if l.chunk != nil {
		n += l.chunk.main.Bytes(l.Code)
	}
	return n
}

// badName is Redis's error for names of libraries and of functions alike.
const badName = "Library names can only contain letters, numbers, or underscores(_) and must be at least one character long"

// isName tells whether a text can name a library or a function.
func isName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != ""
}

// Compile compiles the library, unless that has been done. Try calls it, and returns its error.
func (l *Library) Compile() {
	if l.compiled {
		return
	}
	code := l.Code[l.skip:]
	const source = "@" + libraryChunkName
	if l.plain, l.err = compileChunk(code, source, nil, false, nil, 0); l.err == nil {
		l.chunk, l.err = compileChunk(code, source, knownFunctions(), false, nil, 0)
	}
	l.compiled = true
}

// Try runs the library's code for the first time, to find its functions. It uses host only for logging.
func (l *Library) Try(config Config, host Host) error {
	l.Compile()
	if l.err != nil {
		return &CompileError{"Error compiling function: " + l.err.Error()}
	}
	plain := l.plain
	l.plain = nil
	vm := barePool.take(config)
	var late atomic.Bool
	timer := time.AfterFunc(loadTimeMax, func() { late.Store(true) })
	defer timer.Stop()
	vm.Watch(func() (int, error) {
		if late.Load() {
			return 0, &CompileError{"FUNCTION LOAD timeout"}
		}
		return budget.Steps, nil
	})
	fn := vm.function(plain)
	r := &registration{}
	if errv, ok := vm.runLibrary(fn, r, host); !ok {
		text := "ERR " + arg.CString(tostring(errv))
		if t, isTable := errv.(*lua.LTable); isTable {
			text = errText(t)
		}
		return &CompileError{"Error registering functions: " + text}
	}
	barePool.put(vm)
	if len(r.functions) == 0 {
		return &CompileError{"No functions registered"}
	}
	l.Functions = r.functions
	return nil
}

// barePool stores VMs without globals for Try, since to make one takes half a millisecond. A library that loaded without an
// error has left nothing in its VM, since it can only register functions.
var barePool vmPool

type vmPool struct{ vms sync.Pool }

func (p *vmPool) take(config Config) *VM {
	vm, _ := p.vms.Get().(*VM)
	if vm == nil || vm.config.Version != config.Version || vm.config.VersionNum != config.VersionNum {
		vm = New(config)
		vm.bare()
	}
	return vm
}

func (p *vmPool) put(vm *VM) {
	vm.Watch(nil)
	p.vms.Put(vm)
}

// bare removes all globals; only redis is defined again while a library loads.
func (vm *VM) bare() {
	var names []lua.LValue
	tables.Each(vm.env, func(k, _ lua.LValue) bool {
		names = append(names, k)
		return true
	})
	for _, k := range names {
		tables.Set(vm.env, k, lua.LNil)
	}
}

// registration collects the functions that a library registers.
type registration struct {
	functions []Function
	callbacks []*lua.LFunction
}

// loadedLibrary is a library in a VM.
type loadedLibrary struct {
	callbacks map[string]*callback
}

// callback is a function in a VM. Errors name it by its script.
type callback struct {
	fn     *lua.LFunction
	script *Script

	lendsKeys, lendsArgs bool // it only reads the table, so that the table can be reused
}

// runLibrary runs the main function of a library.
func (vm *VM) runLibrary(fn *lua.LFunction, r *registration, host Host) (errv lua.LValue, ok bool) {
	global := tables.GetString(vm.env, "redis")
	tables.SetString(vm.env, "redis", vm.loadingTable())
	vm.register, vm.host, vm.proto = r, host, 2
	vm.ccalls, vm.killed, vm.inHost = 0, false, false
	vm.budget.Begin()
	vm.L.Push(fn)
	ok, errv = vm.protect(vm.L, 0, 0)
	vm.L.SetTop(0)
	vm.register, vm.host = nil, nil
	tables.SetString(vm.env, "redis", global)
	vm.forgetRun()
	return errv, ok
}

// loadingTable is the table redis that libraries see while they load. It is read-only, so all of them share it.
func (vm *VM) loadingTable() *lua.LTable {
	if vm.loading != nil {
		return vm.loading
	}
	t := tables.New(0, 8)
	tables.SetString(t, "register_function", vm.L.NewFunction(vm.registerFunction))
	tables.SetString(t, "log", vm.L.NewFunction(vm.redisLog))
	for name, v := range vm.redisConstants() {
		if !strings.HasPrefix(name, "REPL_") {
			tables.SetString(t, name, v)
		}
	}
	mt := tables.New(0, 1)
	tables.SetString(mt, "__index", vm.L.NewFunction(vm.undefinedGlobal))
	t.Metatable = mt
	vm.loading = vm.show(t)
	return vm.loading
}

// loadLibrary returns the library in this VM. It runs the library's code if it has not run here yet.
func (vm *VM) loadLibrary(l *Library, host Host) (*loadedLibrary, error) {
	if loaded := vm.libraries[l]; loaded != nil {
		return loaded, nil
	}
	r := &registration{}
	if errv, ok := vm.runLibrary(vm.function(l.chunk), r, host); !ok {
		return nil, &CompileError{"Error registering functions: " + tostring(errv)}
	}
	loaded := &loadedLibrary{callbacks: make(map[string]*callback, len(r.functions))}
	for i, f := range r.functions {
		c := &callback{fn: r.callbacks[i], script: &Script{Body: l.Code, SHA: f.Name, Flags: f.Flags, chunk: l.chunk}}
		if p := c.fn.Proto; !c.fn.IsG {
			c.lendsKeys, c.lendsArgs = onlyRead(p, 0), onlyRead(p, 1)
		}
		loaded.callbacks[f.Name] = c
	}
	if vm.libraries == nil {
		vm.libraries = map[*Library]*loadedLibrary{}
	}
	vm.libraries[l] = loaded
	return loaded, nil
}

// KeepLibraries drops all libraries for which keep returns false.
func (vm *VM) KeepLibraries(keep func(*Library) bool) {
	for l := range vm.libraries {
		if !keep(l) {
			delete(vm.libraries, l)
		}
	}
}

// CallFunction calls a function of a library and writes exactly one reply. keys and args are copied. The VM must not
// be used for scripts too, since libraries may change what scripts would see.
func (vm *VM) CallFunction(l *Library, name string, keys, args [][]byte, host Host, out *resp.Writer) (outcome Outcome) {
	loaded, err := vm.loadLibrary(l, host)
	if err != nil { // Try succeeded, so only a time or memory limit can be the cause
		out.Error("ERR " + oneLine(err.Error()))
		return Outcome{Failure: "ERR " + oneLine(err.Error()), Broken: vm.broken}
	}
	f := loaded.callbacks[name]
	vm.script, vm.host, vm.proto = f.script, host, 2
	vm.ccalls, vm.killed, vm.inHost = 0, false, false
	vm.budget.Begin()
	vm.L.Push(f.fn)
	vm.L.Push(vm.lend(&vm.keys, f.lendsKeys, keys))
	vm.L.Push(vm.lend(&vm.argvTable, f.lendsArgs, args))
	if ok, errv := vm.protect(vm.L, 2, 1); ok {
		vm.writeResult(out, vm.L.Get(-1), &outcome)
	} else {
		outcome = vm.writeError(out, errv)
	}
	outcome.Broken = vm.broken
	vm.L.SetTop(0)
	vm.script, vm.host = nil, nil
	vm.forgetRun()
	return outcome
}
