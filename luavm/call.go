package luavm

// redis.call and redis.pcall: the hot path. Arguments are lent to the host without copying, the command is looked up
// once per name, the reply is decoded only if the script looks at it.

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// commandCache remembers the handles of command names by the address of the name: the names are constants of the
// scripts, so each call site has its own. An entry keeps its string alive, so no other can have its address. A name is
// in one of a few neighbouring places, for two of one script that drove each other out would do so at each run.
type commandCache struct {
	entries [256]struct {
		name string
		cmd  any
	}
	victim uint // which neighbour is given up next
}

// neighbours is how many places a name may be in.
const neighbours = 4

func (c *commandCache) lookup(host Host, name string) any {
	if name == "" {
		return host.Lookup(nil)
	}
	at := unsafe.StringData(name)
	// Go aligns short strings to 8 bytes, long ones to 16; blocks of package boxes hold them at any address.
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

// callQuietly is redis.call where all goes well. It returns nil where not: then redis.call has to be called, which raises
// the error, that of the command if that has run already.
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

// returnsFromScript tells whether what the running function returns is what the script returns: return redis.call(...).
// Nobody sees it on the way, so it need not become a Lua value.
func returnsFromScript(f *luaFrame) bool {
	p := f.Parent
	return p != nil && p.Parent == nil && !p.Fn.IsG && instruction(p.Fn.Proto.Code[p.Pc-1]).Op() == lua.OP_TAILCALL
}
