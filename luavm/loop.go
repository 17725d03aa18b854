package luavm

// The main loop. It counts steps where a script can repeat itself, at jumps, calls and commands, so that the watch is called
// now and then (see Watch). Other instructions do not pay for that.
//
// gopher-lua calls a function for each instruction, and sets up a frame of ten words for each call of a Go function. This
// loop executes the common instructions in place. It also executes calls of redis.call, tonumber, the remainder and the
// iterator of ipairs in place, since their arguments are in registers already. gopher-lua's functions, which are in its
// jumpTable, execute everything that may raise an error and all other cases. So the code here changes nothing before it is
// certain to succeed.

import (
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/boxes"
	"github.com/limitkv/limitkv/luavm/bytecode"
	"github.com/limitkv/limitkv/luavm/syntax"
	"github.com/limitkv/limitkv/luavm/tables"
)

// shortcuts are the Go functions that the loop executes without calling them.
type shortcuts struct {
	call, tonumber, ipairsNext, pcall, error, yield, resume *lua.LFunction
}

// direct is the Proto of Go functions that the loop may call directly: all except yield, which does not return. gopher-lua
// uses the Proto only of Lua functions.
type direct struct {
	lua.FunctionProto
	quick   quick // nil: none
	resumes bool  // it resumes a coroutine
}

// openShortcuts finds the functions of shortcuts, and marks the Go functions that may be called directly.
func (vm *VM) openShortcuts() {
	vm.shortcuts.call = vm.constants["redis.call"].(*lua.LFunction)
	vm.shortcuts.tonumber = vm.constants["tonumber"].(*lua.LFunction)
	vm.shortcuts.pcall = vm.constants["pcall"].(*lua.LFunction)
	vm.shortcuts.yield = vm.constants["coroutine.yield"].(*lua.LFunction)
	vm.shortcuts.resume = vm.constants["coroutine.resume"].(*lua.LFunction)
	vm.shortcuts.error = vm.constants["error"].(*lua.LFunction)
	for name, v := range vm.constants {
		if f, ok := v.(*lua.LFunction); ok && f.IsG && name != "coroutine.yield" {
			f.Proto = &(&direct{quick: quickly[name], resumes: f == vm.shortcuts.resume}).FunctionProto
		}
	}
}

// run is the loop, see guarded. failed is the error that ends the pcall of the newest frame, nil at first.
//
// Numbers in registers may have no boxes (see boxes.Loose), which only the code here understands. So before any other code
// runs they get boxes: all numbers of the running function, or only the arguments of a Go function. Numbers of functions
// further down the stack may stay without boxes: only the loop reads these registers, and closures through upvalues.
//
// A jump follows each comparison. The comparison of two numbers executes that jump at once.
//
// While a Lua function runs, the stack's top is above all of its registers, except between an instruction that leaves
// a variable number of values and the instruction that takes them.
func (vm *VM) run(L *lua.LState, base unsafe.Pointer, failed lua.LValue) {
	var on running
	on.in(vm, L, base)
	if failed != nil {
		if current := L.G.CurrentThread; current != L {
			on.in(vm, current, nil)
		}
		vm.endFailed(on.L, failed)
	}
	var (
		cf                            *luaFrame
		pc                            int
		code, constants, regs, places unsafe.Pointer
	)
frames:
	for {
		reg, loose := on.reg, on.loose
		cf = on.ls.currentFrame
		proto := cf.Fn.Proto
		local := cf.LocalBase
		pc = cf.Pc
		if local+int(proto.NumUsedRegisters) > len(reg.array) {
			panic("luavm: a function with too few registers")
		}
		code, constants = unsafe.Pointer(unsafe.SliceData(proto.Code)), unsafe.Pointer(unsafe.SliceData(proto.Constants))
		if need := local + int(proto.NumUsedRegisters); reg.top < need && (pc == 0 || !instructionAt(code, pc-1).LeavesMany()) {
			reg.top = need
		}
		loose.Fit(len(reg.array))
		regs, places = unsafe.Pointer(&reg.array[local]), loose.From(local)
	entered: // from here on the variables above belong to the running function, and its registers exist
		for {
			inst := instructionAt(code, pc)
			pc++
			switch inst.Op() {
			case lua.OP_MOVE:
				a := inst.A()
				b := inst.B()
				if v, n := at(regs, b), placeAt(places, b); !boxes.Has(v, n) {
					*at(regs, a) = *v
				} else {
					boxes.Put(at(regs, a), placeAt(places, a), float64(*n))
				}
				continue
			case lua.OP_LOADK:
				a := inst.A()
				*at(regs, a) = *at(constants, inst.Bx())
				continue
			case lua.OP_JMP:
				pc += inst.Jump()
				if !vm.budget.Step() {
					vm.renew(cf, pc+1)
				}
				continue
			case lua.OP_GETGLOBAL:
				a := inst.A()
				if v := tables.Get(cf.Fn.Env, *at(constants, inst.Bx())); !tables.IsNil(v) {
					*at(regs, a) = v
					continue
				}
			case lua.OP_GETTABLE, lua.OP_GETTABLEKS:
				a := inst.A()
				if t, ok := (*at(regs, inst.B())).(*lua.LTable); ok {
					if inst.Op() == lua.OP_GETTABLEKS && inst.C()&bytecode.ConstantBit != 0 {
						name := at(constants, inst.C()&^bytecode.ConstantBit)
						if near := tables.Near(t, name); near != nil && *near != nil {
							*at(regs, a) = *near
							continue
						}
						if v := tables.Named(t, name, indirectionsMax); v != nil {
							*at(regs, a) = v
							continue
						}
						break
					}
					key := operandAt(regs, constants, inst.C())
					if i, ok := key.(lua.LNumber); ok {
						if v := tables.Item(t, float64(i)); v != nil {
							*at(regs, a) = v
							continue
						}
					}
					if v := fieldOf(t, key); v != nil {
						*at(regs, a) = v
						continue
					}
				}
			case lua.OP_SETTABLE, lua.OP_SETTABLEKS:
				a := inst.A()
				if t, ok := (*at(regs, a)).(*lua.LTable); ok {
					key, v := operandAt(regs, constants, inst.B()), vm.boxedOperand(regs, places, constants, inst.C())
					if inst.Op() == lua.OP_SETTABLEKS && inst.B()&bytecode.ConstantBit != 0 {
						name := at(constants, inst.B()&^bytecode.ConstantBit)
						if near := tables.Near(t, name); near != nil && *near != nil && !tables.IsNil(v) && !tables.IsEvent(name) {
							*near = v
							continue
						}
						if tables.SetField(t, name, v) {
							continue
						}
					}
					if i, ok := key.(lua.LNumber); ok && tables.SetItem(t, float64(i), v) {
						continue
					}
					if isKey(key) && (tables.IsNil(t.Metatable) || tables.IsNil(newIndexEvent.of(t))) {
						tables.Set(t, vm.boxedOperand(regs, places, constants, inst.B()), v)
						continue
					}
				}
			case lua.OP_SELF:
				a := inst.A()
				object := *at(regs, inst.B())
				t, ok := object.(*lua.LTable)
				if !ok {
					if _, ok = object.(lua.LString); ok {
						t = vm.strings
					}
				}
				if c := inst.C(); ok && c&bytecode.ConstantBit != 0 {
					if v := tables.Named(t, at(constants, c&^bytecode.ConstantBit), indirectionsMax); v != nil {
						*at(regs, a) = v
						*at(regs, a+1) = object
						continue
					}
				}
			case lua.OP_LEN:
				a := inst.A()
				n := 0
				switch v := (*at(regs, inst.B())).(type) {
				case *lua.LTable:
					n = tables.Border(v)
				case lua.LString:
					n = len(v)
				default:
					n = -1
				}
				if n >= 0 {
					boxes.Put(at(regs, a), placeAt(places, a), float64(n))
					continue
				}
			case lua.OP_TEST:
				a := inst.A()
				if isTrue(*at(regs, a)) == (inst.C() == 0) {
					pc++
				}
				continue
			case lua.OP_TESTSET:
				a := inst.A()
				b := inst.B()
				if v, n := at(regs, b), placeAt(places, b); isTrue(*v) == (inst.C() == 0) {
					pc++
				} else if boxes.Has(v, n) {
					boxes.Put(at(regs, a), placeAt(places, a), float64(*n))
				} else {
					*at(regs, a) = *v
				}
				continue
			case lua.OP_NOT:
				a := inst.A()
				*at(regs, a) = lua.LBool(!isTrue(*at(regs, inst.B())))
				continue
			case lua.OP_LOADBOOL:
				a := inst.A()
				*at(regs, a) = lua.LBool(inst.B() != 0)
				if inst.C() != 0 {
					pc++
				}
				continue
			case lua.OP_LOADNIL:
				a := inst.A()
				for last := inst.B(); a <= last; a++ {
					*at(regs, a) = lua.LNil
				}
				continue
			case lua.OP_EQ:
				a := inst.A()
				equal, certain := vm.equals(operandAt(regs, constants, inst.B()), operandAt(regs, constants, inst.C()))
				if certain {
					if equal != (a != 0) {
						pc++
					}
					continue
				}
			case lua.OP_LT:
				a := inst.A()
				x, y := placeOf(regs, constants, inst.B()), placeOf(regs, constants, inst.C())
				if boxes.IsNumber(x) && boxes.IsNumber(y) {
					if (boxes.Float(x) < boxes.Float(y)) == (a != 0) {
						jump := instructionAt(code, pc).Jump()
						if pc += jump; jump < 0 && !vm.budget.Step() {
							vm.renew(cf, pc+2)
						}
					}
					pc++
					continue
				}
				vm.compares(*x, *y)
			case lua.OP_LE:
				a := inst.A()
				x, y := placeOf(regs, constants, inst.B()), placeOf(regs, constants, inst.C())
				if boxes.IsNumber(x) && boxes.IsNumber(y) {
					if (boxes.Float(x) <= boxes.Float(y)) == (a != 0) {
						jump := instructionAt(code, pc).Jump()
						if pc += jump; jump < 0 && !vm.budget.Step() {
							vm.renew(cf, pc+2)
						}
					}
					pc++
					continue
				}
				vm.compares(*x, *y)
			case lua.OP_ADD:
				a := inst.A()
				x, y := placeOf(regs, constants, inst.B()), placeOf(regs, constants, inst.C())
				if boxes.IsNumber(x) && boxes.IsNumber(y) {
					boxes.Put(at(regs, a), placeAt(places, a), boxes.Float(x)+boxes.Float(y))
					continue
				}
			case lua.OP_SUB:
				a := inst.A()
				x, y := placeOf(regs, constants, inst.B()), placeOf(regs, constants, inst.C())
				if boxes.IsNumber(x) && boxes.IsNumber(y) {
					boxes.Put(at(regs, a), placeAt(places, a), boxes.Float(x)-boxes.Float(y))
					continue
				}
			case lua.OP_MUL:
				a := inst.A()
				x, y := placeOf(regs, constants, inst.B()), placeOf(regs, constants, inst.C())
				if boxes.IsNumber(x) && boxes.IsNumber(y) {
					boxes.Put(at(regs, a), placeAt(places, a), boxes.Float(x)*boxes.Float(y))
					continue
				}
			case lua.OP_MOD:
				a := inst.A()
				x, y := placeOf(regs, constants, inst.B()), placeOf(regs, constants, inst.C())
				if boxes.IsNumber(x) && boxes.IsNumber(y) {
					boxes.Put(at(regs, a), placeAt(places, a), syntax.Modulo(boxes.Float(x), boxes.Float(y)))
					continue
				}
			case lua.OP_DIV, lua.OP_POW:
				a := inst.A()
				x, y := placeOf(regs, constants, inst.B()), placeOf(regs, constants, inst.C())
				if boxes.IsNumber(x) && boxes.IsNumber(y) {
					boxes.Put(at(regs, a), placeAt(places, a), compute(inst.Op(), boxes.Float(x), boxes.Float(y)))
					continue
				}
			case lua.OP_UNM:
				a := inst.A()
				if x := at(regs, inst.B()); boxes.IsNumber(x) {
					boxes.Put(at(regs, a), placeAt(places, a), -boxes.Float(x))
					continue
				}
			case lua.OP_FORPREP:
				a := inst.A()
				if boxes.IsNumber(at(regs, a)) && boxes.IsNumber(at(regs, a+1)) && boxes.IsNumber(at(regs, a+2)) {
					boxes.Put(at(regs, a), placeAt(places, a), boxes.Float(at(regs, a))-boxes.Float(at(regs, a+2)))
					pc += inst.Jump()
					continue
				}
			case lua.OP_FORLOOP:
				a := inst.A()
				if boxes.IsNumber(at(regs, a)) && boxes.IsNumber(at(regs, a+1)) && boxes.IsNumber(at(regs, a+2)) {
					if !vm.budget.Step() {
						vm.renew(cf, pc)
					}
					limit, step := boxes.Float(at(regs, a+1)), boxes.Float(at(regs, a+2))
					i := boxes.Float(at(regs, a)) + step
					if step > 0 && i <= limit || step <= 0 && i >= limit {
						pc += inst.Jump()
						boxes.Put(at(regs, a), placeAt(places, a), i)
						boxes.Put(at(regs, a+3), placeAt(places, a+3), i)
					}
					continue
				}
			case lua.OP_GETUPVAL:
				a := inst.A()
				u := cf.upvalue(inst.B())
				if u.closed || u.reg == nil {
					*at(regs, a) = u.value
				} else if down := u.index - cf.LocalBase; u.reg != on.reg {
					*at(regs, a) = u.reg.array[u.index]
				} else if v, n := at(regs, down), placeAt(places, down); boxes.Has(v, n) {
					boxes.Put(at(regs, a), placeAt(places, a), float64(*n))
				} else {
					*at(regs, a) = *v
				}
				continue
			case lua.OP_SETUPVAL:
				a := inst.A()
				u := (*luaUpvalue)(unsafe.Pointer(cf.Fn.Upvalues[inst.B()]))
				if n := placeAt(places, a); u.reg == on.reg && !u.closed && boxes.Has(at(regs, a), n) {
					boxes.Put(&on.reg.array[u.index], on.loose.At(u.index), float64(*n))
				} else {
					u.set(vm.boxedOperand(regs, places, constants, a))
				}
				continue
			case lua.OP_CLOSURE:
				a := inst.A()
				if !vm.budget.Step() {
					vm.renew(cf, pc)
				}
				cf.Pc = pc
				*at(regs, a) = vm.closures.closure(on.ls, cf, inst)
				pc = cf.Pc
				continue
			case lua.OP_CALL:
				a := inst.A()
				f, ok := (*at(regs, a)).(*lua.LFunction)
				if !ok {
					break
				}
				cf.Pc = pc
				switch {
				case !f.IsG:
					if !vm.budget.Step() {
						vm.budget.Renew()
					}
					called := on.enter(cf, f, a, inst)
					if called == nil {
						called = vm.callLua(on.ls, f, cf.LocalBase+a, inst)
					}
					if called != nil {
						cf, pc = called, 0
						code, constants = unsafe.Pointer(unsafe.SliceData(f.Proto.Code)), unsafe.Pointer(unsafe.SliceData(f.Proto.Constants))
						regs, places = unsafe.Pointer(at(regs, a+1)), unsafe.Pointer(placeAt(places, a+1))
						goto entered
					}
				case f == vm.shortcuts.call:
					if vm.callShortly(on.reg, cf.LocalBase+a, inst) {
						vm.budget.Use(1)
						if inst.B() != 0 && inst.C() != 0 {
							continue
						}
						continue frames // to set the stack's top
					}
					if vm.raiseFailed(on.L, on.loose, on.base, cf.LocalBase+a, inst) {
						continue frames
					}
				case f == vm.shortcuts.pcall:
					if vm.protectHere(on.L, on.loose, on.base, cf.LocalBase+a, inst) {
						continue frames
					}
				case f == vm.shortcuts.error:
					if vm.raiseError(on.L, on.loose, on.base, cf.LocalBase+a, inst) {
						continue frames
					}
				case f == vm.shortcuts.yield:
					if vm.yieldHere(on.L, on.loose, on.base, cf.LocalBase+a, inst) {
						vm.budget.Use(1)
						if vm.comeBack(&on, L, base) {
							continue frames
						}
						return
					}
				case f.Proto != nil:
					d := (*direct)(unsafe.Pointer(f.Proto))
					if d.resumes && vm.resumeHere(&on, f, cf.LocalBase+a, inst) {
						vm.budget.Use(1)
						continue frames
					}
					if call := d.quick; call != nil && callQuickly(on.reg, on.loose, call, cf.LocalBase+a, inst) {
						vm.budget.Use(1)
						if inst.B() != 0 && inst.C() != 0 {
							continue
						}
						continue frames
					}
					if f == vm.shortcuts.tonumber && vm.convert(on.reg, on.loose, cf.LocalBase+a, inst) || vm.callDirectly(on.L, on.loose, f, cf.LocalBase+a, inst) {
						vm.budget.Use(1)
						continue frames // the registers may have moved
					}
				}
			case lua.OP_TAILCALL:
				a := inst.A()
				called := *at(regs, a)
				f, isFunction := called.(*lua.LFunction)
				if !isFunction {
					f, _ = vm.metamethod(called, "__call").(*lua.LFunction)
				}
				if f == nil || !f.IsG {
					break
				}
				cf.Pc = pc
				if isFunction && f == vm.shortcuts.call && cf.Parent == nil && on.L == vm.L && vm.passOnCall(on.reg, cf.LocalBase+a, inst) {
					inst = returnOne | inst&registerA
					break
				}
				// As in Lua, a Go function gets a normal call, and the next instruction returns its results. gopher-lua would
				// remove the frame, which a coroutine needs to continue.
				inst = bytecode.ABC(lua.OP_CALL, a, inst.B(), 0)
				if isFunction && f == vm.shortcuts.pcall && vm.protectHere(on.L, on.loose, on.base, cf.LocalBase+a, inst) {
					continue frames
				}
				if isFunction && f.Proto != nil {
					if vm.callDirectly(on.L, on.loose, f, cf.LocalBase+a, inst) {
						vm.budget.Use(1)
						continue frames
					}
				}
			case lua.OP_RETURN:
				if cf.NArgs == plainly && inst.B() != 0 {
					if cf.NRet != 0 {
						from, to := inst.A(), cf.ReturnBase-cf.LocalBase
						if inst.B() == 1 {
							*at(regs, to) = lua.LNil
						} else if v, n := at(regs, from), placeAt(places, from); boxes.Has(v, n) {
							boxes.Put(at(regs, to), placeAt(places, to), float64(*n))
						} else {
							*at(regs, to) = *v
						}
					}
					vm.highest = max(vm.highest, on.reg.top)
					caller := on.leave(cf)
					down := caller.LocalBase - cf.LocalBase
					regs, places = unsafe.Pointer(at(regs, down)), unsafe.Pointer(placeAt(places, down))
					cf, pc = caller, caller.Pc
					code, constants = unsafe.Pointer(unsafe.SliceData(caller.Fn.Proto.Code)), unsafe.Pointer(unsafe.SliceData(caller.Fn.Proto.Constants))
					goto entered
				}
				if unsafe.Pointer(cf) != on.base {
					caller, done := vm.returnLua(on.L, on.ls, on.loose, inst)
					if !done {
						break
					}
					if !vm.budget.Step() {
						vm.budget.Renew()
					}
					if caller == nil {
						continue frames
					}
					down := caller.LocalBase - cf.LocalBase
					regs, places = unsafe.Pointer(at(regs, down)), unsafe.Pointer(placeAt(places, down))
					cf, pc = caller, caller.Pc
					code, constants = unsafe.Pointer(unsafe.SliceData(caller.Fn.Proto.Code)), unsafe.Pointer(unsafe.SliceData(caller.Fn.Proto.Constants))
					goto entered
				}
			case lua.OP_TFORLOOP:
				a := inst.A()
				if f, ok := (*at(regs, a)).(*lua.LFunction); ok && f == vm.shortcuts.ipairsNext {
					if more, ok := vm.nextItem(on.reg, on.loose, cf.LocalBase+a, inst.C()); ok {
						if more {
							pc += instructionAt(code, pc).Jump()
						}
						pc++
						if !vm.budget.Step() {
							vm.renew(cf, pc+1)
						}
						continue
					}
				}
			}
			cf.Pc = pc
			on.loose.Settle(on.reg.array[cf.LocalBase:on.reg.top], cf.LocalBase, &vm.boxes)
			vm.budget.Use(1)
			if op := inst.Op(); (op == lua.OP_GETTABLE || op == lua.OP_GETTABLEKS || op == lua.OP_SELF) && vm.raiseIndex(on.L, on.base, inst.B()) {
				continue frames
			}
			if operations[inst.Op()](on.L, uint32(inst), on.base) == 1 && !vm.comeBack(&on, L, base) {
				return
			}
			continue frames // there may be another frame, or another function in the frame
		}
	}
}

// instructionAt returns the instruction at pc. code is the address of the first instruction.
func instructionAt(code unsafe.Pointer, pc int) instruction {
	return *(*instruction)(unsafe.Add(code, uintptr(pc)*unsafe.Sizeof(instruction(0))))
}

// looseOf returns the numbers without boxes of a state's registers.
func (vm *VM) looseOf(L *lua.LState) *boxes.Loose {
	if L == vm.L {
		return &vm.loose
	}
	return &(*coroutine)(unsafe.Pointer(L)).loose
}

// renew asks the watch whether the script may continue. If not, the error shows the line of the instruction before pc. The
// watch reads no registers, so numbers need no boxes here.
func (vm *VM) renew(cf *luaFrame, pc int) {
	cf.Pc = pc
	vm.budget.Renew()
}
