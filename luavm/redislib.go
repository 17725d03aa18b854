package luavm

// The table redis, apart from call and pcall.

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
)

func (vm *VM) redisFunctions() functions {
	return functions{
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
	}
}

func (vm *VM) redisConstants() map[string]lua.LValue {
	return map[string]lua.LValue{
		"LOG_DEBUG": lua.LNumber(0), "LOG_VERBOSE": lua.LNumber(1), "LOG_NOTICE": lua.LNumber(2), "LOG_WARNING": lua.LNumber(3),
		"REPL_NONE": lua.LNumber(0), "REPL_AOF": lua.LNumber(1), "REPL_SLAVE": lua.LNumber(2), "REPL_REPLICA": lua.LNumber(2),
		"REPL_ALL":          lua.LNumber(3),
		"REDIS_VERSION":     lua.LString(vm.config.Version),
		"REDIS_VERSION_NUM": lua.LNumber(vm.config.VersionNum),
	}
}

// errorReplyText splits an error into code and message and joins them again, as Redis does for
// an error table. The text has no "-". A text of one word gets the code ERR.
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
	s, _ := arg.ToString(L.Get(1))
	vm.budget.Use(len(s) >> 5)
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
		L.Push(errorTable(L, errorReplyText(strings.TrimPrefix(arg.CString(s), "-"))))
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
	n, _ := arg.ToNumber(L.Get(1))
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
	n, _ := arg.ToNumber(L.Get(1))
	flags := truncateInt(n)
	if flags&^3 != 0 {
		vm.throwError(L, "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.")
	}
	vm.host.SetRepl(flags)
	return 0
}

func (vm *VM) redisACLCheck(L *lua.LState) int {
	if problem := vm.takeArgs(argumentsOf(L)); problem != "" {
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
	n, ok := arg.ToNumber(L.Get(1))
	if !ok {
		vm.throwError(L, "First argument must be a number (log level).")
	}
	level := truncateInt(n)
	if level < 0 || level > 3 {
		vm.throwError(L, "Invalid log level.")
	}
	var words []string
	for i := 2; i <= L.GetTop(); i++ {
		if s, ok := arg.ToString(L.Get(i)); ok {
			words = append(words, s)
		}
	}
	vm.host.Log(level, strings.Join(words, " "))
	return 0
}

// redisBreakpoint never stops, since there is no script debugger.
func redisBreakpoint(L *lua.LState) int {
	L.Push(lua.LFalse)
	return 1
}

func redisDebug(*lua.LState) int { return 0 }

func redisReplicateCommands(L *lua.LState) int {
	L.Push(lua.LTrue)
	return 1
}
