// Package luavm, internal to the server, is Redis's Lua: it compiles scripts and libraries of functions, runs them in Redis's
// sandbox, and turns their results into replies. It calls the server through the interface Host.
package luavm

// The interpreter: each event loop has one, which one goroutine at a time uses, for the life of the process. It is built
// once; a run only replaces KEYS and ARGV.

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/boxes"
	"github.com/limitkv/limitkv/luavm/budget"
	"github.com/limitkv/limitkv/luavm/tables"
	"github.com/limitkv/limitkv/resp"
)

// Config is what a VM needs to know about its server.
type Config struct {
	Version    string         // redis.REDIS_VERSION
	VersionNum int            // redis.REDIS_VERSION_NUM: 0xMMmmpp
	CPUSeconds func() float64 // os.clock; nil: always 0
	Random     *Random        // math.random: all VMs of a server share one, as Redis has one; nil: the VM makes its own
}

const (
	// callDepthMax is how deep calls may nest, as in Lua 5.1: its limit is 20,000, but it doubles its stack, and the next
	// doubling would exceed the limit.
	callDepthMax = 16383
	// registersStart, registersStep and registersMax bound the value stack. Redis's grows with the call depth alone,
	// and a frame has at most 250 registers.
	registersStart = 8 << 10
	registersStep  = 16 << 10
	registersMax   = 4 << 20
	// linkedMax is how many scripts a VM has ready to run before it drops some: those that have not run since it last
	// dropped scripts.
	linkedMax = 500
)

// VM runs scripts.
type VM struct {
	config Config
	L      *lua.LState
	budget budget.Budget // of the running script, see Watch
	watch  func() (steps int, err error)
	// roomFor tells whether the script may allocate so many bytes at once; nil: always.
	roomFor func(size int) bool

	env       *lua.LTable // the globals as compiled code sees them
	constants map[string]lua.LValue
	strings   *lua.LTable // the string library

	globalsView, globalsMeta, stringsMeta *lua.LTable // read-only views for scripts: _G, its metatable, the metatable of strings
	keys                                  arguments
	argvTable                             arguments

	theirLoop mainLoop // gopher-lua's main loop
	shortcuts shortcuts

	linked, formerly map[*Script]*lua.LFunction // ready to run

	libraries map[*Library]*loadedLibrary // see library.go
	loading   *lua.LTable                 // see loadingTable
	register  *registration               // of the library being loaded

	// Of the present run:
	script *Script
	host   Host
	proto  int // protocol version of replies to redis.call: 2, or 3 after redis.setresp(3)
	fault  errorPlace
	ccalls int  // calls from Go into Lua that nest
	killed bool // the watch has ended the run: no error handler runs any more
	inHost bool // a command or the watch is running: a panic now is a bug in the server
	broken bool // see Outcome.Broken

	passed   []byte     // the reply that the script returns unchanged
	failed   []byte     // the error of a command that its call has yet to raise
	passedOn lua.LValue // the value that represents passed
	argv     [][]byte   // arguments of the command being called
	digits   []byte     // the text of numbers in argv
	commands commandCache
	scratch  []byte
	matcher  *matcher
	walker   tables.Walker
	boxes    boxes.Boxes
	loose    boxes.Loose
	arrays   tables.Arrays // of replies
	closures closures

	highest        int // all registers from here on are clear, see forgetRegisters
	coroutines     int // coroutines of the run that have not ended
	madeCoroutines bool
	spareStacks    []coroutineStack // of coroutines that have ended
}

// argumentsKept is how many arguments the reused table has room for between runs. Arguments longer than argumentBytesKept
// are dropped when their run ends.
const (
	argumentsKept     = 1024
	argumentBytesKept = 64 << 10
)

// arguments is KEYS or ARGV: a table that the next run reuses as long as scripts only read it.
type arguments struct {
	table *lua.LTable
	n     int
	long  bool // some are longer than argumentBytesKept
}

// New builds an interpreter.
func New(config Config) *VM {
	if config.Random == nil {
		config.Random = NewRandom()
	}
	vm := &VM{
		config: config,
		linked: map[*Script]*lua.LFunction{},
		proto:  2,
	}
	vm.L = lua.NewState(lua.Options{
		CallStackSize:    callDepthMax,
		RegistrySize:     registersStart,
		RegistryGrowStep: registersStep,
		RegistryMaxSize:  registersMax,
		SkipOpenLibs:     true,
	})
	vm.spareStacks = make([]coroutineStack, 0, spareStacksMax)
	vm.budget.Spent = vm.asked
	vm.passedOn = vm.L.NewUserData()
	vm.L.G.Registry.Metatable = &lua.LUserData{Value: vm} // see vmOf
	vm.env = vm.L.G.Global
	vm.keys.table, vm.argvTable.table = tables.New(0, 0), tables.New(0, 0)
	vm.openLibs()
	vm.take(vm.L)
	vm.openShortcuts()

	// The first call into an LState takes another path through its main loop, so an empty call is made here.
	vm.L.Push(vm.L.NewFunction(func(*lua.LState) int { return 0 }))
	vm.L.Call(0, 0)
	return vm
}

// take replaces a state's error function and main loop by ours.
func (vm *VM) take(L *lua.LState) {
	L.Panic = vm.raised
	ls := inside(L)
	ls.hasErrorFunc = true // so that gopher-lua does not close upvalues, see closeUpvalues
	if L == vm.L {
		vm.theirLoop = ls.mainLoop
	}
	ls.mainLoop = vm.loop
}

// Watch sets a function that is called about every 50 microseconds while a script runs, on the goroutine that
// runs it: after budget.Steps steps, and again after as many steps as it returns. If it returns an error, the script ends
// with that error. nil: nothing ends scripts.
func (vm *VM) Watch(fn func() (steps int, err error)) { vm.watch = fn }

// Room sets a function that is called before a script allocates much memory at once. If it returns false, the script gets an
// error, which it may catch.
func (vm *VM) Room(fn func(size int) bool) { vm.roomFor = fn }

// Charge adds the cost of a slow command, in steps of budget, so that the watch is called earlier.
func (vm *VM) Charge(steps int) { vm.budget.Charge(steps) }

// asked is called when the budget is spent. It returns the next budget, in steps.
func (vm *VM) asked() (steps int) {
	if vm.watch == nil {
		return budget.Steps
	}
	vm.inHost = true
	steps, err := vm.watch()
	vm.inHost = false
	if err != nil {
		vm.killed = true
		vm.throwError(vm.L.G.CurrentThread, err.Error())
	}
	return steps
}

// Outcome is how a run ended.
type Outcome struct {
	Failure string // the error in the reply (the last, if an array holds several), empty if there is none
	Counted bool   // the error came from a command, which has already counted it in the error statistics
	Broken  bool   // a bug has ended the run: the VM must not be used again
}

// Run runs a script and writes exactly one reply. keys and args are copied.
func (vm *VM) Run(s *Script, keys, args [][]byte, host Host, out *resp.Writer) (outcome Outcome) {
	fn := vm.link(s)
	vm.script, vm.host, vm.proto = s, host, 2
	vm.ccalls, vm.killed, vm.inHost = 0, false, false
	vm.budget.Begin()
	vm.closures.begin()
	if s.chunk.escapes {
		tables.SetString(vm.env, "KEYS", vm.stringArray(keys))
		tables.SetString(vm.env, "ARGV", vm.stringArray(args))
		defer vm.forgetLong(keys, args)
	} else {
		vm.keys.set(keys, &vm.boxes)
		vm.argvTable.set(args, &vm.boxes)
	}

	vm.L.Push(fn)
	if ok, errv := vm.protect(vm.L, 0, 1); ok {
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

// forgetRun drops the values that a run has left in the VM.
func (vm *VM) forgetRun() {
	vm.forgetCoroutines()
	vm.forgetRegisters()
	vm.forgetFrames()
	if m := vm.matcher; m != nil {
		m.L, m.src, m.pat = nil, "", ""
	}
	vm.walker.Forget()
	vm.closures.end()
	clear(vm.argv[:cap(vm.argv)])
	if cap(vm.argv) > argumentsKept {
		vm.argv = nil
	}
	vm.passed = nil
	if vm.keys.forgetLong() || vm.argvTable.forgetLong() {
		vm.argvTable.forgetLong()
		vm.boxes = boxes.Boxes{} // its blocks hold the arguments
	}
}

// forgetLong drops KEYS and ARGV after a run that had them in globals, if some arguments are long.
func (vm *VM) forgetLong(lists ...[][]byte) {
	for _, values := range lists {
		for _, v := range values {
			if len(v) > argumentBytesKept {
				tables.SetString(vm.env, "KEYS", lua.LNil)
				tables.SetString(vm.env, "ARGV", lua.LNil)
				vm.arrays, vm.boxes = tables.Arrays{}, boxes.Boxes{} // their blocks hold the arguments
				return
			}
		}
	}
}

// forgetLong drops the long arguments of the last run. It reports whether there were any.
func (a *arguments) forgetLong() bool {
	if !a.long {
		return false
	}
	a.long = false
	for i, v := range tables.Items(a.table) {
		if s, ok := v.(lua.LString); ok && len(s) > argumentBytesKept {
			tables.SetInt(a.table, i+1, lua.LString(""))
		}
	}
	return true
}

// forgetRegisters clears the registers after a run. To clear them at each return would make returns slower.
func (vm *VM) forgetRegisters() {
	if reg := inside(vm.L).reg; vm.highest > reg.top {
		clear(reg.array[reg.top:min(vm.highest, len(reg.array))])
	}
	vm.highest = 0
}

// forgetFrames clears the unused frames after a run. They hold functions, and a function of gopher-lua may be a closure that
// holds a coroutine or a long string.
func (vm *VM) forgetFrames() {
	frames := inside(vm.L).frames()
	for i := frames.sp; i < len(frames.array) && frames.array[i].Fn != nil; i++ {
		frames.array[i] = luaFrame{}
	}
}

func (vm *VM) stringArray(values [][]byte) *lua.LTable {
	t, items := vm.arrays.New(len(values))
	for i, v := range values {
		items[i] = vm.boxes.String(v)
	}
	return t
}

// set stores the arguments of a run. It keeps a string that the table has already, as with the key of a busy limiter.
func (a *arguments) set(values [][]byte, from *boxes.Boxes) {
	if a.n > argumentsKept && len(values) <= argumentsKept {
		tables.Reset(a.table, argumentsKept)
		a.n = 0
	}
	items := tables.Items(a.table)
	for i, v := range values {
		a.long = a.long || len(v) > argumentBytesKept
		var old lua.LValue
		if i < len(items) {
			old = items[i]
		}
		if s, ok := old.(lua.LString); !ok || string(s) != string(v) {
			tables.SetInt(a.table, i+1, from.String(v))
		}
	}
	for i := len(values); i < a.n; i++ {
		tables.SetInt(a.table, i+1, lua.LNil)
	}
	a.n = len(values)
}

// link returns the script's function in this VM.
func (vm *VM) link(s *Script) *lua.LFunction {
	if fn := vm.linked[s]; fn != nil {
		return fn
	}
	if len(vm.linked) >= linkedMax {
		vm.linked, vm.formerly = map[*Script]*lua.LFunction{}, vm.linked
	}
	fn := vm.formerly[s]
	if fn == nil {
		fn = vm.function(s.chunk)
	}
	if !s.ran.Swap(true) {
		return fn // most scripts that run once do not run again
	}
	vm.linked[s] = fn
	return fn
}

// tostring converts any value to text, without metamethods.
func tostring(v lua.LValue) string {
	if n, ok := v.(lua.LNumber); ok {
		return arg.FormatNumber(float64(n))
	}
	if u, ok := v.(*lua.LUserData); ok && u.Value == nil {
		return "userdata: (nil)" // the null of cjson
	}
	return v.String()
}
