package luavm

// From the result of a script to a reply.

import (
	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/tables"
	"github.com/limitkv/limitkv/resp"
)

// writeResult writes a script's result. The watch may end this too, since it can take long: tables may contain each other
// many times.
func (vm *VM) writeResult(out *resp.Writer, v lua.LValue, outcome *Outcome) {
	mark := out.Mark()
	defer func() {
		if vm.killed {
			errv := vm.caught(recover())
			out.Cut(mark)
			*outcome = vm.writeError(out, errv)
		}
	}()
	if v == vm.passedOn {
		vm.passOn(out, vm.passed, outcome)
		vm.passed = nil
		return
	}
	vm.write(out, v, 2, outcome) // the error handler and the value
}

// passOn writes a command's reply of protocol version 2 as if it had been converted to a Lua value and back. It returns
// the bytes after the reply.
func (vm *VM) passOn(out *resp.Writer, reply []byte, outcome *Outcome) (rest []byte) {
	line, rest := cutLine(reply)
	switch reply[0] {
	case ':':
		out.Int(arg.Truncate(float64(parseInt(line))))
	case '$':
		n := parseInt(line)
		if n < 0 {
			out.Null()
			return rest
		}
		out.Bulk(rest[:n])
		return rest[n+2:]
	case '+':
		out.Status(arg.CString(string(line)))
	case '*':
		n := parseInt(line)
		if n < 0 {
			out.Null()
			return rest
		}
		out.Array(int(n))
		for range n {
			rest = vm.passOn(out, rest, outcome)
		}
	default:
		v, rest := vm.decode(vm.L, reply)
		vm.write(out, v, 2, outcome)
		return rest
	}
	return rest
}

// write converts a value by Redis's rules. slots is how many slots of the Lua stack Redis would use here. At least four more
// must be free, which limits how deep tables may nest.
func (vm *VM) write(out *resp.Writer, v lua.LValue, slots int, outcome *Outcome) {
	if slots+4 > clibSlots {
		out.Error("ERR reached lua stack limit")
		return
	}
	vm.budget.Use(1)
	switch v := v.(type) {
	case lua.LString:
		vm.budget.Bytes(len(v))
		out.BulkString(string(v))
	case lua.LNumber:
		out.Int(arg.Truncate(float64(v)))
	case lua.LBool:
		switch {
		case vm.proto == 3:
			out.Bool(bool(v))
		case bool(v):
			out.Int(1)
		default:
			out.Null()
		}
	case *lua.LTable:
		vm.writeTable(out, v, slots, outcome)
	default:
		out.Null()
	}
}

func (vm *VM) writeTable(out *resp.Writer, t *lua.LTable, slots int, outcome *Outcome) {
	if _, ok := tables.GetString(t, "err").(lua.LString); ok {
		outcome.Failure = oneLine(errText(t))
		outcome.Counted = tables.GetString(t, "ignore_error_stats_update") == lua.LTrue
		out.Error(outcome.Failure)
		return
	}
	if ok, is := tables.GetString(t, "ok").(lua.LString); is {
		out.Status(oneLine(arg.CString(string(ok))))
		return
	}
	if d, is := tables.GetString(t, "double").(lua.LNumber); is {
		out.Double(float64(d))
		return
	}
	if n, is := tables.GetString(t, "big_number").(lua.LString); is {
		out.BigNumber(oneLine(string(n)))
		return
	}
	if s, is := tables.GetString(t, "verbatim_string").(*lua.LTable); is {
		format, is1 := tables.GetString(s, "format").(lua.LString)
		text, is2 := tables.GetString(s, "string").(lua.LString)
		if is1 && is2 {
			out.Verbatim(string(format), string(text))
			return
		}
	}
	if m, is := tables.GetString(t, "map").(*lua.LTable); is {
		out.Map(countPairs(m))
		tables.Each(m, func(k, v lua.LValue) bool {
			vm.write(out, k, slots+4, outcome)
			vm.write(out, v, slots+3, outcome)
			return true
		})
		return
	}
	if set, is := tables.GetString(t, "set").(*lua.LTable); is {
		out.Set(countPairs(set))
		tables.Each(set, func(k, _ lua.LValue) bool {
			vm.write(out, k, slots+3, outcome)
			return true
		})
		return
	}
	n := 0
	for tables.GetInt(t, n+1) != lua.LNil {
		n++
	}
	out.Array(n)
	for i := range n {
		vm.write(out, tables.GetInt(t, i+1), slots+1, outcome)
	}
}

func countPairs(t *lua.LTable) (n int) {
	tables.Each(t, func(_, _ lua.LValue) bool {
		n++
		return true
	})
	return n
}
