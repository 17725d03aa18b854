package luavm

// The table redis, apart from call and pcall.

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

func (vm *VM) openRedis() *lua.LTable {
	L := vm.L
	t := L.NewTable()
	for name, fn := range map[string]lua.LGFunction{
		"call":               vm.redisCall,
		"pcall":              vm.redisPCall,
		"log":                vm.redisLog,
		"setresp":            vm.redisSetResp,
		"sha1hex":            vm.redisSHA1Hex,
		"error_reply":        vm.redisErrorReply,
		"status_reply":       vm.redisStatusReply,
		"set_repl":           vm.redisSetRepl,
		"acl_check_cmd":      vm.redisACLCheck,
		"breakpoint":         redisBreakpoint,
		"debug":              redisDebug,
		"replicate_commands": redisReplicateCommands,
	} {
		t.RawSetString(name, L.NewFunction(fn))
	}
	for name, n := range map[string]int{
		"LOG_DEBUG": 0, "LOG_VERBOSE": 1, "LOG_NOTICE": 2, "LOG_WARNING": 3,
		"REPL_NONE": 0, "REPL_AOF": 1, "REPL_SLAVE": 2, "REPL_REPLICA": 2, "REPL_ALL": 3,
		"REDIS_VERSION_NUM": vm.config.VersionNum,
	} {
		t.RawSetString(name, lua.LNumber(n))
	}
	t.RawSetString("REDIS_VERSION", lua.LString(vm.config.Version))
	return t
}

// errorReplyText splits an error into code and message and puts them together again, as Redis does with what it makes
// an error table of: the text without "-". A text of one word gets the code ERR.
func errorReplyText(text string) string {
	code, message, found := strings.Cut(text, " ")
	if !found {
		code, message = "ERR", text
	}
	return code + " " + strings.Trim(message, "\r\n")
}

func (vm *VM) redisSHA1Hex(L *lua.LState) int {
	if L.GetTop() != 1 {
		vm.throwError(L, "wrong number of arguments")
	}
	s, _ := stringArg(L.Get(1))
	L.Push(lua.LString(SHA1Hex([]byte(s))))
	return 1
}

// oneString returns the only argument if it is a string; if not, it pushes the error.
func oneString(L *lua.LState) (string, bool) {
	s, ok := L.Get(1).(lua.LString)
	if L.GetTop() != 1 || !ok {
		L.Push(errorTable(L, "ERR wrong number or type of arguments"))
		return "", false
	}
	return string(s), true
}

func (vm *VM) redisErrorReply(L *lua.LState) int {
	if s, ok := oneString(L); ok {
		L.Push(errorTable(L, errorReplyText(strings.TrimPrefix(cString(s), "-"))))
	}
	return 1
}

func (vm *VM) redisStatusReply(L *lua.LState) int {
	if s, ok := oneString(L); ok {
		L.Push(wrapped(L, "ok", lua.LString(s)))
	}
	return 1
}

func (vm *VM) redisSetResp(L *lua.LState) int {
	if L.GetTop() != 1 {
		vm.throwError(L, "redis.setresp() requires one argument.")
	}
	n, _ := numberArg(L.Get(1))
	if v := truncateInt(n); v == 2 || v == 3 {
		vm.proto = v
		return 0
	}
	vm.throwError(L, "RESP version must be 2 or 3.")
	return 0
}

func (vm *VM) redisSetRepl(L *lua.LState) int {
	if L.GetTop() != 1 {
		vm.throwError(L, "redis.set_repl() requires one argument.")
	}
	n, _ := numberArg(L.Get(1))
	flags := truncateInt(n)
	if flags&^3 != 0 {
		vm.throwError(L, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	vm.host.SetRepl(flags)
	return 0
}

func (vm *VM) redisACLCheck(L *lua.LState) int {
	if problem := vm.takeArgs(L); problem != "" {
		vm.throwError(L, problem)
	}
	allowed, known := vm.host.ACLCheck(vm.argv)
	if !known {
		vm.throwError(L, "Invalid command passed to redis.acl_check_cmd()")
	}
	L.Push(lua.LBool(allowed))
	return 1
}

func (vm *VM) redisLog(L *lua.LState) int {
	if L.GetTop() < 2 {
		vm.throwError(L, "redis.log() requires two arguments or more.")
	}
	n, ok := numberArg(L.Get(1))
	if !ok {
		vm.throwError(L, "First argument must be a number (log level).")
	}
	level := truncateInt(n)
	if level < 0 || level > 3 {
		vm.throwError(L, "Invalid log level.")
	}
	var words []string
	for i := 2; i <= L.GetTop(); i++ {
		if s, ok := stringArg(L.Get(i)); ok {
			words = append(words, s)
		}
	}
	vm.host.Log(level, strings.Join(words, " "))
	return 0
}

// There is no script debugger, so a breakpoint never stops.
func redisBreakpoint(L *lua.LState) int {
	L.Push(lua.LFalse)
	return 1
}

func redisDebug(*lua.LState) int { return 0 }

func redisReplicateCommands(L *lua.LState) int {
	L.Push(lua.LTrue)
	return 1
}
