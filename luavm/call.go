package luavm

// redis.call and redis.pcall: the hot path. Arguments are lent to the host without copying, the command is looked up
// once per name, the reply is decoded only if the script looks at it.

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// commandCache remembers the handles of command names by the address of the name: the names are constants of the
// scripts, so each call site has its own. An entry keeps its string alive, so no other can have its address.
type commandCache [64]struct {
	name string
	cmd  any
}

func (c *commandCache) lookup(host Host, name string) any {
	if name == "" {
		return host.Lookup(nil)
	}
	at := unsafe.StringData(name)
	e := &c[uintptr(unsafe.Pointer(at))>>4%uintptr(len(c))]
	if unsafe.StringData(e.name) == at && len(e.name) == len(name) {
		return e.cmd
	}
	e.name, e.cmd = name, host.Lookup(bytesOf(name))
	return e.cmd
}

// takeArgs reads the arguments of redis.call into vm.argv. It returns an error text if they cannot be a command.
func (vm *VM) takeArgs(L *lua.LState) (problem string) {
	ls := inside(L)
	values := ls.reg.array[ls.currentFrame.LocalBase:ls.reg.top]
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
	if problem := vm.takeArgs(L); problem != "" {
		t := errorTable(L, "ERR "+problem)
		if raise {
			vm.throw(L, t)
		}
		L.Push(t)
		return 1
	}
	cmd := vm.commands.lookup(vm.host, stringOf(vm.argv[0]))
	vm.inHost = true
	reply := vm.host.Call(cmd, vm.argv, vm.proto)
	vm.inHost = false
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

// returnsFromScript tells whether what the running function returns is what the script returns: return redis.call(...).
// Nobody sees it on the way, so it need not become a Lua value.
func returnsFromScript(f *luaFrame) bool {
	p := f.Parent
	return p != nil && p.Parent == nil && !p.Fn.IsG && instruction(p.Fn.Proto.Code[p.Pc-1]).op() == lua.OP_TAILCALL
}
