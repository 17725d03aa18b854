package luavm

// redis.call and redis.pcall: the hot path. The host gets the arguments without a copy, a command is looked up
// once per name, and a reply is decoded only if the script uses it.

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// commandCache stores the handles of commands by the address of the name. Names are constants of the scripts, so
// the address is the same at each run. An entry keeps its string alive, so no other string can get its address. A name can be
// in one of a few neighbouring places: with a single place, two names of one script could replace each other at each run.
type commandCache struct {
	entries [256]struct {
		name string
		cmd  any
	}
	victim uint // which neighbour is replaced next
}

// neighbours is how many places a name may be in.
const neighbours = 4

func (c *commandCache) lookup(host Host, name string) any {
	if name == "" {
		return host.Lookup(nil)
	}
	at := unsafe.StringData(name)
	// Go aligns short strings to 8 bytes and longer ones to 16; in blocks of package boxes they can have any address.
	set := c.entries[uintptr(unsafe.Pointer(at))>>3%uintptr(len(c.entries)/neighbours)*neighbours:][:neighbours]
	for i := range set {
		if e := &set[i]; unsafe.StringData(e.name) == at && len(e.name) == len(name) {
			return e.cmd
		}
	}
	c.victim++
	e := &set[c.victim%neighbours]
	e.name, e.cmd = name, host.Lookup(bytesOf(name))
	return e.cmd
}

// argumentsOf returns what the running Go function was called with.
func argumentsOf(L *lua.LState) []lua.LValue {
	ls := inside(L)
	return ls.reg.array[ls.currentFrame.LocalBase:ls.reg.top]
}

// takeArgs reads the arguments of redis.call into vm.argv. It returns an error text if they cannot be a command.
func (vm *VM) takeArgs(values []lua.LValue) (problem string) {
	if len(values) == 0 {
		return "Please specify at least one argument for this redis lib call"
	}
	vm.argv, vm.digits = vm.argv[:0], vm.digits[:0]
	for _, v := range values {
		switch v := v.(type) {
		case lua.LString:
			vm.argv = append(vm.argv, bytesOf(string(v)))
		case lua.LNumber:
			start := len(vm.digits)
			vm.digits = appendArgument(vm.digits, float64(v))
			vm.argv = append(vm.argv, vm.digits[start:len(vm.digits):len(vm.digits)])
		default:
			return "Lua redis lib command arguments must be strings or integers"
		}
	}
	return ""
}

func (vm *VM) redisCall(L *lua.LState) int { return vm.command(L, true) }

func (vm *VM) redisPCall(L *lua.LState) int { return vm.command(L, false) }

func (vm *VM) command(L *lua.LState, raise bool) int {
	if problem := vm.takeArgs(argumentsOf(L)); problem != "" {
		t := errorTable(L, "ERR "+problem)
		if raise {
			vm.throw(L, t)
		}
		L.Push(t)
		return 1
	}
	reply := vm.failed
	vm.failed = nil
	if reply == nil {
		reply = vm.callHost()
	}
	if reply[0] == '-' {
		t := decodeError(L, reply)
		if raise {
			vm.throw(L, t)
		}
		L.Push(t)
		return 1
	}
	switch {
	case !wantsResults(L):
		return 0
	case vm.proto == 2 && L == vm.L && returnsFromScript(inside(L).currentFrame):
		vm.passed = reply
		L.Push(vm.passedOn)
		return 1
	}
	v, _ := vm.decode(L, reply)
	L.Push(v)
	return 1
}

// commandSteps is how many steps a brief command counts as.
const commandSteps = 20

// callHost runs the command in vm.argv.
func (vm *VM) callHost() (reply []byte) {
	cmd := vm.commands.lookup(vm.host, stringOf(vm.argv[0]))
	vm.budget.Charge(commandSteps)
	vm.inHost = true
	reply = vm.host.Call(cmd, vm.argv, vm.proto)
	vm.budget.Charge(len(reply) >> 6)
	vm.inHost = false
	return reply
}

// callQuietly is redis.call without errors. It returns nil if there is an error: then redis.call must be called, which
// raises the error, without running a command that has run already.
func (vm *VM) callQuietly(args []lua.LValue, wanted bool) lua.LValue {
	if vm.takeArgs(args) != "" {
		return nil
	}
	reply := vm.callHost()
	switch {
	case reply[0] == '-':
		vm.failed = reply
		return nil
	case !wanted:
		return lua.LNil
	}
	v, _ := vm.decode(vm.L, reply)
	return v
}

// returnsFromScript tells whether the script returns what the running function returns: return redis.call(...).
// The script does not use such a reply, so it need not become a Lua value.
func returnsFromScript(f *luaFrame) bool {
	p := f.Parent
	return p != nil && p.Parent == nil && !p.Fn.IsG && instruction(p.Fn.Proto.Code[p.Pc-1]).Op() == lua.OP_TAILCALL
}
