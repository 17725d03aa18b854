package luavm

// The interpreter: one per event loop, used by one goroutine at a time, kept for its process's life. It is built
// once; a run only swaps in KEYS and ARGV.

import (
	"context"

	lua "github.com/yuin/gopher-lua"
)

// Config is what a VM needs to know of its server.
type Config struct {
	Version    string         // redis.REDIS_VERSION
	VersionNum int            // redis.REDIS_VERSION_NUM: 0xMMmmpp
	CPUSeconds func() float64 // os.clock; nil: always 0
}

const (
	// callDepthMax is how deep calls may nest, as in Lua 5.1.
	callDepthMax = 20000
	// registersStart, registersStep and registersMax bound the value stack. Redis's grows with the call depth alone,
	// and a frame has at most 250 registers.
	registersStart = 8 << 10
	registersStep  = 16 << 10
	registersMax   = 4 << 20
	// linkedMax is how many scripts a VM keeps ready to run.
	linkedMax = 4096
)

// VM runs scripts.
type VM struct {
	config Config
	L      *lua.LState
	stack  frameStack
	env    *lua.LTable // the globals

	linked map[*Script]*lua.LFunction

	// Of the run going on:
	script *Script
	host   Host
	proto  int // protocol version of replies to redis.call: 2, or 3 after redis.setresp(3)
	fault  errorPlace

	argv     [][]byte // arguments of the command being called
	digits   []byte   // numbers among them
	commands commandCache
}

// New builds an interpreter.
func New(config Config) *VM {
	vm := &VM{config: config, linked: map[*Script]*lua.LFunction{}, proto: 2}
	vm.L = lua.NewState(lua.Options{
		CallStackSize:    callDepthMax,
		RegistrySize:     registersStart,
		RegistryGrowStep: registersStep,
		RegistryMaxSize:  registersMax,
		SkipOpenLibs:     true,
	})
	vm.stack = stackOf(vm.L)
	vm.env = vm.L.G.Global
	vm.openLibs()
	vm.L.Panic = vm.raised
	inside(vm.L).hasErrorFunc = true // closing upvalues is ours, see closeUpvalues

	// The first call into an LState takes another path through its main loop: have it behind us.
	vm.L.Push(vm.L.NewFunction(func(*lua.LState) int { return 0 }))
	vm.L.Call(0, 0)
	return vm
}

// SetContext makes the scripts that follow end with an error once ctx is done. nil makes them unstoppable, and
// some 7 % faster.
func (vm *VM) SetContext(ctx context.Context) {
	if ctx == nil {
		vm.L.RemoveContext()
	} else {
		vm.L.SetContext(ctx)
	}
}

// Outcome is how a run ended.
type Outcome struct {
	Failed  bool // the reply is an error
	Counted bool // the error came from a command, which has counted it in the error statistics already
}

// Run runs a script and writes exactly one reply. keys and args are copied.
func (vm *VM) Run(s *Script, keys, args [][]byte, host Host, out Reply) Outcome {
	vm.script, vm.host, vm.proto = s, host, 2
	vm.env.RawSetString("KEYS", vm.stringArray(keys))
	vm.env.RawSetString("ARGV", vm.stringArray(args))

	vm.L.Push(vm.link(s))
	ok, errv := vm.protect(vm.L, 0, 1)
	var outcome Outcome
	if ok {
		outcome = vm.writeResult(out, vm.L.Get(-1))
	} else {
		outcome = vm.writeError(out, errv)
	}
	vm.L.SetTop(0)
	vm.script, vm.host = nil, nil
	return outcome
}

func (vm *VM) stringArray(values [][]byte) *lua.LTable {
	t := vm.L.CreateTable(len(values), 0)
	for _, v := range values {
		t.Append(lua.LString(v))
	}
	return t
}

// link returns the script's function in this VM.
func (vm *VM) link(s *Script) *lua.LFunction {
	if fn := vm.linked[s]; fn != nil {
		return fn
	}
	if len(vm.linked) >= linkedMax {
		clear(vm.linked)
	}
	fn := vm.L.NewFunctionFromProto(s.proto)
	vm.linked[s] = fn
	return fn
}
