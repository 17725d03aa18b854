package luavm

// redis.register_function: a library calls it to register its functions. Its arguments are a name and a function, or one table
// of named arguments.

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/tables"

	"github.com/limitkv/limitkv/luavm/arg"
)

func (vm *VM) registerFunction(L *lua.LState) int {
	r := vm.register
	if r == nil {
		vm.throwError(L, "redis.register_function can only be called on FUNCTION LOAD command")
	}
	var f Function
	var callback *lua.LFunction
	var problem string
	switch L.GetTop() {
	case 1:
		f, callback, problem = vm.namedArguments(L.Get(1))
	case 2:
		f, callback, problem = positionalArguments(L.Get(1), L.Get(2))
	default:
		problem = "wrong number of arguments to redis.register_function"
	}
	switch {
	case problem != "":
	case !isName(f.Name):
		problem = badName
	default:
		for _, other := range r.functions {
			if other.Name == f.Name {
				problem = "Function already exists in the library"
			}
		}
	}
	if problem != "" {
		vm.throwError(L, problem)
	}
	r.functions = append(r.functions, f)
	r.callbacks = append(r.callbacks, callback)
	return 0
}

func positionalArguments(name, fn lua.LValue) (f Function, callback *lua.LFunction, problem string) {
	text, ok := arg.ToString(name)
	if !ok {
		return f, nil, "first argument to redis.register_function must be a string"
	}
	callback, ok = fn.(*lua.LFunction)
	if !ok {
		return f, nil, "second argument to redis.register_function must be a function"
	}
	f.Name = text
	return f, callback, ""
}

func (vm *VM) namedArguments(v lua.LValue) (f Function, callback *lua.LFunction, problem string) {
	t, ok := v.(*lua.LTable)
	if !ok {
		return f, nil, "calling redis.register_function with a single argument is only applicable to Lua table (representing named arguments)."
	}
	named := false
	tables.Each(t, func(k, v lua.LValue) bool {
		key, ok := arg.ToString(k)
		if !ok {
			problem = "named argument key given to redis.register_function is not a string"
			return false
		}
		switch strings.ToLower(arg.CString(key)) {
		case "function_name":
			if f.Name, named = arg.ToString(v); !named {
				problem = "function_name argument given to redis.register_function must be a string"
			}
		case "description":
			if f.Description, f.Described = arg.ToString(v); !f.Described {
				problem = "description argument given to redis.register_function must be a string"
			}
		case "callback":
			if callback, ok = v.(*lua.LFunction); !ok {
				problem = "callback argument given to redis.register_function must be a function"
			}
		case "flags":
			f.Flags, problem = vm.functionFlags(v)
		default:
			problem = "unknown argument given to redis.register_function"
		}
		return problem == ""
	})
	switch {
	case problem != "":
	case !named:
		problem = "redis.register_function must get a function name argument"
	case callback == nil:
		problem = "redis.register_function must get a callback argument"
	}
	return f, callback, problem
}

func (vm *VM) functionFlags(v lua.LValue) (flags Flags, problem string) {
	t, ok := v.(*lua.LTable)
	if !ok {
		return 0, "flags argument to redis.register_function must be a table representing function flags"
	}
list:
	for i := 1; ; i++ {
		v := tables.GetInt(t, i)
		if v == lua.LNil {
			return flags, ""
		}
		name, _ := arg.ToString(v)
		for _, f := range flagNames {
			if strings.EqualFold(f.name, arg.CString(name)) {
				flags |= f.flag
				continue list
			}
		}
		return 0, "unknown flag given"
	}
}

// Names lists flags in the order and with the names of Redis.
func (f Flags) Names() (names []string) {
	for _, x := range flagNames {
		if f&x.flag != 0 {
			names = append(names, x.name)
		}
	}
	return names
}
