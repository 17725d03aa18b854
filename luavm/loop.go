package luavm

// The main loop. It counts what it does where a script can repeat itself, so that whoever watches over the script is
// asked now and then (see Watch): at jumps, calls and commands. What goes straight on costs nothing.
//
// gopher-lua calls a function for each instruction, and sets up a frame of ten words for each call of a Go function. Here
// the instructions that such scripts are made of are carried out in place, and so are calls of redis.call, tonumber, the
// remainder and the iterator of ipairs: their arguments are where they are already. All that may raise an error, or is none of the simple
// cases, goes the library's way: its functions for instructions stand in its jumpTable. So nothing here has an effect
// before it is certain to succeed.

import (
	"strings"
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/bytecode"
	"github.com/limitkv/limitkv/luavm/tables"
)

// shortcuts are the Go functions that the loop does without calling them.
type shortcuts struct {
	call, tonumber, ipairsNext *lua.LFunction
}

// directly marks Go functions that loop may call: those that do not switch to another coroutine. The library looks at
// the Proto of functions in Lua only.
var directly = &lua.FunctionProto{}

// openShortcuts finds the functions that need not be called, and marks those that may be called directly.
func (vm *VM) openShortcuts() {
	vm.shortcuts.call = vm.constants["redis.call"].(*lua.LFunction)
	vm.shortcuts.tonumber = vm.constants["tonumber"].(*lua.LFunction)
	for name, v := range vm.constants {
		if f, ok := v.(*lua.LFunction); ok && f.IsG && !strings.HasPrefix(name, "coroutine.") {
			f.Proto = directly
		}
	}
}

// loop runs the function of the newest frame until that has returned.
func (vm *VM) loop(L *lua.LState, base unsafe.Pointer) {
	ls := inside(L)
	reg := ls.reg
	if ls.currentFrame == nil || ls.currentFrame.Fn.IsG {
		vm.theirLoop(L, base)
		return
	}
frames:
	for {
		cf := ls.currentFrame
		code, constants, local := cf.Fn.Proto.Code, cf.Fn.Proto.Constants, cf.LocalBase
		for {
			inst := instruction(code[cf.Pc])
			cf.Pc++
			a := local + inst.A()
			switch inst.Op() {
			case lua.OP_MOVE:
				if reg.put(a, reg.array[local+inst.B()]) {
					continue
				}
			case lua.OP_LOADK:
				if reg.put(a, constants[inst.Bx()]) {
					continue
				}
			case lua.OP_JMP:
				cf.Pc += inst.Jump()
				vm.budget.Use(1)
				continue
			case lua.OP_GETTABLE, lua.OP_GETTABLEKS:
				if t, ok := reg.array[local+inst.B()].(*lua.LTable); ok {
					key := reg.operand(inst.C(), local, constants)
					if i, ok := key.(lua.LNumber); ok {
						if v := tables.Item(t, float64(i)); v != nil && reg.put(a, v) {
							continue
						}
					}
					if v := tables.Get(t, key); (v != lua.LNil || t.Metatable == lua.LNil) && reg.put(a, v) {
						continue
					}
				}
			case lua.OP_SETTABLE, lua.OP_SETTABLEKS:
				if t, ok := reg.array[a].(*lua.LTable); ok {
					key, v := reg.operand(inst.B(), local, constants), reg.operand(inst.C(), local, constants)
					if i, ok := key.(lua.LNumber); ok && tables.SetItem(t, float64(i), v) {
						continue
					}
					if t.Metatable == lua.LNil && isKey(key) {
						tables.Set(t, key, v)
						continue
					}
				}
			case lua.OP_LEN:
				if t, ok := reg.array[local+inst.B()].(*lua.LTable); ok && reg.put(a, vm.boxes.Int(int64(tables.Border(t)))) {
					continue
				}
			case lua.OP_TEST:
				if isTrue(reg.array[a]) == (inst.C() == 0) {
					cf.Pc++
				}
				continue
			case lua.OP_EQ:
				equal, certain := vm.equals(reg.operand(inst.B(), local, constants), reg.operand(inst.C(), local, constants))
				if certain {
					if equal != (inst.A() != 0) {
						cf.Pc++
					}
					continue
				}
			case lua.OP_LT:
				b, c := reg.operand(inst.B(), local, constants), reg.operand(inst.C(), local, constants)
				x, ok1 := b.(lua.LNumber)
				y, ok2 := c.(lua.LNumber)
				if ok1 && ok2 {
					if (x < y) != (inst.A() != 0) {
						cf.Pc++
					}
					continue
				}
				vm.compares(b, c)
			case lua.OP_LE:
				b, c := reg.operand(inst.B(), local, constants), reg.operand(inst.C(), local, constants)
				x, ok1 := b.(lua.LNumber)
				y, ok2 := c.(lua.LNumber)
				if ok1 && ok2 {
					if (x <= y) != (inst.A() != 0) {
						cf.Pc++
					}
					continue
				}
				vm.compares(b, c)
			case lua.OP_ADD, lua.OP_SUB, lua.OP_MUL, lua.OP_DIV, lua.OP_MOD:
				x, ok1 := arg.ToNumber(reg.operand(inst.B(), local, constants))
				y, ok2 := arg.ToNumber(reg.operand(inst.C(), local, constants))
				if ok1 && ok2 && reg.put(a, vm.boxes.Number(compute(inst.Op(), x, y))) {
					continue
				}
			case lua.OP_FORLOOP:
				i, ok1 := reg.array[a].(lua.LNumber)
				limit, ok2 := reg.array[a+1].(lua.LNumber)
				step, ok3 := reg.array[a+2].(lua.LNumber)
				if ok1 && ok2 && ok3 && a+3 < len(reg.array) {
					vm.budget.Use(1)
					i += step
					v := vm.boxes.Number(float64(i))
					if step > 0 && i <= limit || step <= 0 && i >= limit {
						cf.Pc += inst.Jump()
						reg.array[a] = v
						reg.put(a+3, v)
					} else {
						reg.results(a, 1, v)
					}
					continue
				}
			case lua.OP_CALL:
				if f, ok := reg.array[a].(*lua.LFunction); ok && f.Proto == directly {
					if vm.shortcut(reg, f, a, inst) || L == vm.L && vm.callDirectly(L, f, a, inst) {
						vm.budget.Use(1)
						continue
					}
				}
			case lua.OP_TAILCALL:
				if f, ok := reg.array[a].(*lua.LFunction); ok && f == vm.shortcuts.call && cf.Parent == nil && L == vm.L && vm.passOnCall(reg, a, inst) {
					inst = returnOne | inst&registerA
				}
			case lua.OP_TFORLOOP:
				if f, ok := reg.array[a].(*lua.LFunction); ok && f == vm.shortcuts.ipairsNext {
					if more, ok := vm.nextItem(reg, a, inst.C()); ok {
						vm.budget.Use(1)
						if more {
							cf.Pc += instruction(code[cf.Pc]).Jump()
						}
						cf.Pc++
						continue
					}
				}
			}
			vm.budget.Use(1)
			if operations[inst.Op()](L, uint32(inst), base) == 1 {
				return
			}
			continue frames // the frame may be another, or have another function
		}
	}
}

// put assigns to a register; false if the stack has to grow first.
func (r *luaRegistry) put(i int, v lua.LValue) bool {
	if uint(i) >= uint(len(r.array)) {
		return false
	}
	r.array[i] = v
	if i >= r.top {
		r.top = i + 1
	}
	return true
}

// operand is a register or a constant.
func (r *luaRegistry) operand(n, local int, constants []lua.LValue) lua.LValue {
	if n&bytecode.ConstantBit != 0 {
		return constants[n&^bytecode.ConstantBit]
	}
	return r.array[local+n]
}

// isTrue tells whether a value counts as true.
func isTrue(v lua.LValue) bool {
	if b, ok := v.(lua.LBool); ok {
		return bool(b)
	}
	_, none := v.(*lua.LNilType)
	return !none
}

// isKey tells whether a value can be a key of a table.
func isKey(v lua.LValue) bool {
	switch v := v.(type) {
	case lua.LNumber:
		return v == v
	case *lua.LNilType:
		return false
	}
	return true
}

// longString is from how many bytes on comparing strings counts as more than a step.
const longString = 4 << 10

// compares counts what it takes to compare two strings.
func (vm *VM) compares(x, y lua.LValue) {
	if x, ok := x.(lua.LString); ok && len(x) > longString {
		if y, ok := y.(lua.LString); ok {
			vm.budget.Bytes(8 * min(len(x), len(y))) // the library looks at each byte
		}
	}
}

// equals compares what needs no metamethod.
func (vm *VM) equals(x, y lua.LValue) (equal, certain bool) {
	switch x := x.(type) {
	case lua.LNumber:
		y, ok := y.(lua.LNumber)
		return ok && x == y, true
	case lua.LString:
		y, ok := y.(lua.LString)
		if len(x) > longString && ok && len(x) == len(y) {
			vm.budget.Bytes(len(x))
		}
		return ok && x == y, true
	case lua.LBool:
		y, ok := y.(lua.LBool)
		return ok && x == y, true
	case *lua.LNilType:
		_, ok := y.(*lua.LNilType)
		return ok, true
	}
	return false, false
}

// results puts the result of a call where the function was, nil in place of others that are wanted, and drops what is
// above.
func (r *luaRegistry) results(at, want int, v lua.LValue) {
	top := at
	if want != 0 {
		r.array[at] = v
		top++
	}
	for ; want > 1; want-- {
		r.array[top] = lua.LNil
		top++
	}
	if top < r.top {
		clear(r.array[top:r.top])
	}
	r.top = top
}

// shortcut carries out a call of a Go function. It returns false, having done nothing, if the function has to be called.
func (vm *VM) shortcut(reg *luaRegistry, f *lua.LFunction, at int, inst instruction) bool {
	end := at + inst.B()
	if inst.B() == 0 {
		end = reg.top
	}
	want := inst.C() - 1
	if max(end, at+want) > len(reg.array) || end <= at+1 {
		return false
	}
	args := reg.array[at+1 : end]
	switch f {
	case vm.shortcuts.call:
		v := vm.callQuietly(args, want != 0)
		if v == nil {
			return false
		}
		reg.results(at, want, v)
		return true
	case vm.shortcuts.tonumber:
		if len(args) != 1 {
			return false
		}
		var v lua.LValue = lua.LNil
		switch s := args[0].(type) {
		case lua.LNumber:
			v = args[0] // not s, which would be boxed again
		case lua.LString:
			if n, ok := arg.ParseNumber(string(s)); ok {
				v = vm.boxes.Number(n)
			}
		}
		reg.results(at, want, v)
		return true
	}
	return false
}

// returnOne is the instruction that returns the value in register A, registerA where that is told.
const (
	returnOne = instruction(lua.OP_RETURN)<<26 | 2
	registerA = instruction(0xff) << 18
)

// passOnCall carries out return redis.call(...) at the end of the script and puts what stands for the reply where the
// function was. It returns false where the function has to be called.
func (vm *VM) passOnCall(reg *luaRegistry, at int, inst instruction) bool {
	end := at + inst.B()
	if inst.B() == 0 {
		end = reg.top
	}
	if vm.proto != 2 || end > len(reg.array) || end <= at || vm.takeArgs(reg.array[at+1:end]) != "" {
		return false
	}
	reply := vm.callHost()
	if reply[0] == '-' {
		vm.failed = reply
		return false
	}
	vm.passed, reg.array[at] = reply, vm.passedOn
	return true
}

// callDirectly calls a Go function as the library does, in a frame of its own. It returns false, having done nothing, if
// the stack has to grow first.
func (vm *VM) callDirectly(L *lua.LState, f *lua.LFunction, at int, inst instruction) bool {
	ls := inside(L)
	reg, frames := ls.reg, vm.frames
	end, want := at+inst.B(), inst.C()-1
	if inst.B() == 0 {
		end = reg.top
	}
	if frames.sp == len(frames.array) || max(end, at+want) > len(reg.array) || end > reg.top {
		return false
	}
	caller := ls.currentFrame
	frame := &frames.array[frames.sp]
	*frame = luaFrame{
		Idx: frames.sp, Fn: f, Parent: caller, Base: at, LocalBase: at + 1, ReturnBase: at, NArgs: end - at - 1, NRet: want,
	}
	frames.sp++
	ls.currentFrame = frame
	if end < reg.top {
		clear(reg.array[end:reg.top])
		reg.top = end
	}
	n := f.GFunction(L)
	frames.sp--
	ls.currentFrame = caller
	top := reg.top
	switch {
	case want == 1 && n > 0:
		reg.array[at] = reg.array[top-n]
		clear(reg.array[at+1 : top])
		reg.top = at + 1
		return true
	case want < 0:
		want = n
	}
	kept := min(n, want)
	copy(reg.array[at:at+kept], reg.array[top-n:])
	for i := at + kept; i < at+want; i++ {
		reg.array[i] = lua.LNil
	}
	if reg.top = at + want; reg.top < top {
		clear(reg.array[reg.top:top])
	}
	return true
}

// nextItem is a step of a loop over ipairs, whose table and index stand behind the iterator. ok is false if it is none of
// the simple cases.
func (vm *VM) nextItem(reg *luaRegistry, at, want int) (more, ok bool) {
	t, isTable := reg.array[at+1].(*lua.LTable)
	i, isNumber := reg.array[at+2].(lua.LNumber)
	if !isTable || !isNumber || t.Metatable != lua.LNil || want < 1 || at+3+want > len(reg.array) {
		return false, false
	}
	v := tables.Item(t, float64(i)+1)
	if v == nil {
		v = tables.GetInt(t, int(i)+1) // it may be in the hash part
		if v == lua.LNil || float64(int(i)) != float64(i) {
			reg.results(at+3, want, lua.LNil)
			return false, true
		}
	}
	index := vm.boxes.Number(float64(i) + 1)
	reg.array[at+2] = index
	reg.results(at+3, 1, index)
	if want > 1 {
		reg.results(at+4, want-1, v)
	}
	return true, true
}
