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
	"unsafe"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/boxes"
	"github.com/limitkv/limitkv/luavm/bytecode"
	"github.com/limitkv/limitkv/luavm/syntax"
	"github.com/limitkv/limitkv/luavm/tables"
)

// shortcuts are the Go functions that the loop does without calling them.
type shortcuts struct {
	call, tonumber, ipairsNext, pcall, error, yield *lua.LFunction
}

// direct is what Go functions have for a Proto that loop may call: all but yield, which does not return. The
// library looks at the Proto of functions in Lua only.
type direct struct {
	lua.FunctionProto
	quick quick // nil: none
}

var noShortcut direct

// openShortcuts finds the functions that need not be called, and marks those that may be called directly.
func (vm *VM) openShortcuts() {
	vm.shortcuts.call = vm.constants["redis.call"].(*lua.LFunction)
	vm.shortcuts.tonumber = vm.constants["tonumber"].(*lua.LFunction)
	vm.shortcuts.pcall = vm.constants["pcall"].(*lua.LFunction)
	vm.shortcuts.yield = vm.constants["coroutine.yield"].(*lua.LFunction)
	vm.shortcuts.error = vm.constants["error"].(*lua.LFunction)
	for name, v := range vm.constants {
		if f, ok := v.(*lua.LFunction); ok && f.IsG && name != "coroutine.yield" {
			f.Proto = &(&direct{quick: quickly[name]}).FunctionProto
		}
	}
}

// run is the loop, see guarded. failed is the error that ends the pcall whose frame is the newest, nil at first.
//
// What runs next may look at the registers, so numbers that have no boxes (see boxes.Loose) get them before anything but
// the instructions in place: all those of the running function, or what a Go function is called with. Those of the functions
// that wait for it keep theirs: nobody but the loop looks there, and closures by way of upvalues.
//
// While a function in Lua runs, the stack's top is above all of its registers, except between an instruction that leaves
// any number of values and the one that takes them.
func (vm *VM) run(L *lua.LState, base unsafe.Pointer, failed lua.LValue) {
	ls := inside(L)
	reg := ls.reg
	if failed != nil {
		vm.endFailed(L, failed)
	}
	loose := vm.looseOf(L)
	var (
		cf                      *luaFrame
		pc                      int
		code                    []uint32
		constants, regs, places unsafe.Pointer
	)
frames:
	for {
		cf = ls.currentFrame
		proto := cf.Fn.Proto
		local := cf.LocalBase
		pc = cf.Pc
		if local+int(proto.NumUsedRegisters) > len(reg.array) {
			panic("luavm: a function with too few registers")
		}
		code, constants = proto.Code, unsafe.Pointer(unsafe.SliceData(proto.Constants))
		if need := local + int(proto.NumUsedRegisters); reg.top < need && (pc == 0 || !instruction(code[pc-1]).LeavesMany()) {
			reg.top = need
		}
		loose.Fit(len(reg.array))
		regs, places = unsafe.Pointer(&reg.array[local]), loose.From(local)
	entered: // from here on the variables above are those of a function whose registers are there
		for {
			inst := instruction(code[pc])
			pc++
			a := inst.A()
			switch inst.Op() {
			case lua.OP_MOVE:
				b := inst.B()
				if v, n := at(regs, b), placeAt(places, b); !boxes.Has(v, n) {
					*at(regs, a) = *v
				} else {
					boxes.Put(at(regs, a), placeAt(places, a), float64(*n))
				}
				continue
			case lua.OP_LOADK:
				*at(regs, a) = *at(constants, inst.Bx())
				continue
			case lua.OP_JMP:
				pc += inst.Jump()
				if !vm.budget.Step() {
					vm.renew(cf, pc)
				}
				continue
			case lua.OP_GETGLOBAL:
				if v := tables.Get(cf.Fn.Env, *at(constants, inst.Bx())); !tables.IsNil(v) {
					*at(regs, a) = v
					continue
				}
			case lua.OP_GETTABLE, lua.OP_GETTABLEKS:
				if t, ok := (*at(regs, inst.B())).(*lua.LTable); ok {
					if inst.Op() == lua.OP_GETTABLEKS && inst.C()&bytecode.ConstantBit != 0 {
						name := at(constants, inst.C()&^bytecode.ConstantBit)
						if near := tables.Near(t, name); near != nil && *near != nil {
							*at(regs, a) = *near
							continue
						}
						if v := fieldNamed(t, name); v != nil {
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
				object := *at(regs, inst.B())
				t, ok := object.(*lua.LTable)
				if _, isString := object.(lua.LString); isString {
					t, ok = vm.strings, true
				}
				if c := inst.C(); ok && c&bytecode.ConstantBit != 0 {
					if v := fieldNamed(t, at(constants, c&^bytecode.ConstantBit)); v != nil {
						*at(regs, a) = v
						*at(regs, a+1) = object
						continue
					}
				}
			case lua.OP_LEN:
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
				if isTrue(*at(regs, a)) == (inst.C() == 0) {
					pc++
				}
				continue
			case lua.OP_TESTSET:
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
				*at(regs, a) = lua.LBool(!isTrue(*at(regs, inst.B())))
				continue
			case lua.OP_LOADBOOL:
				*at(regs, a) = lua.LBool(inst.B() != 0)
				if inst.C() != 0 {
					pc++
				}
				continue
			case lua.OP_LOADNIL:
				for last := inst.B(); a <= last; a++ {
					*at(regs, a) = lua.LNil
				}
				continue
			case lua.OP_EQ:
				equal, certain := vm.equals(operandAt(regs, constants, inst.B()), operandAt(regs, constants, inst.C()))
				if certain {
					if equal != (a != 0) {
						pc++
					}
					continue
				}
			case lua.OP_LT:
				x, y := placeOf(regs, constants, inst.B()), placeOf(regs, constants, inst.C())
				if boxes.IsNumber(x) && boxes.IsNumber(y) {
					if (boxes.Float(x) < boxes.Float(y)) != (a != 0) {
						pc++
					}
					continue
				}
				vm.compares(*x, *y)
			case lua.OP_LE:
				x, y := placeOf(regs, constants, inst.B()), placeOf(regs, constants, inst.C())
				if boxes.IsNumber(x) && boxes.IsNumber(y) {
					if (boxes.Float(x) <= boxes.Float(y)) != (a != 0) {
						pc++
					}
					continue
				}
				vm.compares(*x, *y)
			case lua.OP_ADD:
				x, y := placeOf(regs, constants, inst.B()), placeOf(regs, constants, inst.C())
				if boxes.IsNumber(x) && boxes.IsNumber(y) {
					boxes.Put(at(regs, a), placeAt(places, a), boxes.Float(x)+boxes.Float(y))
					continue
				}
			case lua.OP_SUB:
				x, y := placeOf(regs, constants, inst.B()), placeOf(regs, constants, inst.C())
				if boxes.IsNumber(x) && boxes.IsNumber(y) {
					boxes.Put(at(regs, a), placeAt(places, a), boxes.Float(x)-boxes.Float(y))
					continue
				}
			case lua.OP_MUL:
				x, y := placeOf(regs, constants, inst.B()), placeOf(regs, constants, inst.C())
				if boxes.IsNumber(x) && boxes.IsNumber(y) {
					boxes.Put(at(regs, a), placeAt(places, a), boxes.Float(x)*boxes.Float(y))
					continue
				}
			case lua.OP_MOD:
				x, y := placeOf(regs, constants, inst.B()), placeOf(regs, constants, inst.C())
				if boxes.IsNumber(x) && boxes.IsNumber(y) {
					boxes.Put(at(regs, a), placeAt(places, a), syntax.Modulo(boxes.Float(x), boxes.Float(y)))
					continue
				}
			case lua.OP_DIV, lua.OP_POW:
				x, y := placeOf(regs, constants, inst.B()), placeOf(regs, constants, inst.C())
				if boxes.IsNumber(x) && boxes.IsNumber(y) {
					boxes.Put(at(regs, a), placeAt(places, a), compute(inst.Op(), boxes.Float(x), boxes.Float(y)))
					continue
				}
			case lua.OP_UNM:
				if x := at(regs, inst.B()); boxes.IsNumber(x) {
					boxes.Put(at(regs, a), placeAt(places, a), -boxes.Float(x))
					continue
				}
			case lua.OP_FORPREP:
				if boxes.IsNumber(at(regs, a)) && boxes.IsNumber(at(regs, a+1)) && boxes.IsNumber(at(regs, a+2)) {
					boxes.Put(at(regs, a), placeAt(places, a), boxes.Float(at(regs, a))-boxes.Float(at(regs, a+2)))
					pc += inst.Jump()
					continue
				}
			case lua.OP_FORLOOP:
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
				u := (*luaUpvalue)(unsafe.Pointer(cf.Fn.Upvalues[inst.B()]))
				if u.closed || u.reg == nil {
					*at(regs, a) = u.value
				} else if v := &u.reg.array[u.index]; u.reg == reg && boxes.Has(v, loose.At(u.index)) {
					boxes.Put(at(regs, a), placeAt(places, a), float64(*loose.At(u.index)))
				} else {
					*at(regs, a) = *v
				}
				continue
			case lua.OP_SETUPVAL:
				u := (*luaUpvalue)(unsafe.Pointer(cf.Fn.Upvalues[inst.B()]))
				if n := placeAt(places, a); u.reg == reg && !u.closed && boxes.Has(at(regs, a), n) {
					boxes.Put(&reg.array[u.index], loose.At(u.index), float64(*n))
				} else {
					u.set(vm.boxedOperand(regs, places, constants, a))
				}
				continue
			case lua.OP_CLOSURE:
				if !vm.budget.Step() {
					vm.renew(cf, pc)
				}
				cf.Pc = pc
				*at(regs, a) = vm.closures.closure(ls, cf, inst)
				pc = cf.Pc
				continue
			case lua.OP_CALL:
				f, ok := (*at(regs, a)).(*lua.LFunction)
				if !ok {
					break
				}
				cf.Pc = pc
				switch {
				case !f.IsG:
					if called := vm.callLua(ls, f, cf.LocalBase+a, inst); called != nil {
						cf, pc = called, 0
						code, constants = f.Proto.Code, unsafe.Pointer(unsafe.SliceData(f.Proto.Constants))
						regs, places = unsafe.Pointer(at(regs, a+1)), unsafe.Pointer(placeAt(places, a+1))
						goto entered
					}
				case f == vm.shortcuts.call:
					if vm.callShortly(reg, cf.LocalBase+a, inst) {
						vm.budget.Use(1)
						if inst.B() != 0 && inst.C() != 0 {
							continue
						}
						continue frames // for the stack's top
					}
					if vm.raiseFailed(L, loose, base, cf.LocalBase+a, inst) {
						continue frames
					}
				case f == vm.shortcuts.pcall:
					if vm.protectHere(L, loose, base, cf.LocalBase+a, inst) {
						continue frames
					}
				case f == vm.shortcuts.error:
					if vm.raiseError(L, loose, base, cf.LocalBase+a, inst) {
						continue frames
					}
				case f == vm.shortcuts.yield:
					if vm.yieldHere(L, loose, base, cf.LocalBase+a, inst) {
						vm.budget.Use(1)
						return
					}
				case f.Proto != nil:
					if vm.callQuickly(reg, loose, f, cf.LocalBase+a, inst) {
						vm.budget.Use(1)
						if inst.B() != 0 && inst.C() != 0 {
							continue
						}
						continue frames
					}
					if vm.convert(reg, loose, f, cf.LocalBase+a, inst) || vm.callDirectly(L, loose, f, cf.LocalBase+a, inst) {
						vm.budget.Use(1)
						continue frames // the registers may have moved
					}
				}
			case lua.OP_TAILCALL:
				called := *at(regs, a)
				f, isFunction := called.(*lua.LFunction)
				if !isFunction {
					f, _ = vm.metamethod(called, "__call").(*lua.LFunction)
				}
				if f == nil || !f.IsG {
					break
				}
				cf.Pc = pc
				if isFunction && f == vm.shortcuts.call && cf.Parent == nil && L == vm.L && vm.passOnCall(reg, cf.LocalBase+a, inst) {
					inst = returnOne | inst&registerA
					break
				}
				// As in Lua, a Go function is called, and what it returns is returned by the next instruction. The library would
				// take the frame away under a coroutine that is to go on.
				inst = bytecode.ABC(lua.OP_CALL, a, inst.B(), 0)
				if isFunction && f == vm.shortcuts.pcall && vm.protectHere(L, loose, base, cf.LocalBase+a, inst) {
					continue frames
				}
				if isFunction && f.Proto != nil {
					if vm.callDirectly(L, loose, f, cf.LocalBase+a, inst) {
						vm.budget.Use(1)
						continue frames
					}
				}
			case lua.OP_RETURN:
				if unsafe.Pointer(cf) != base {
					caller, done := vm.returnLua(L, ls, loose, inst)
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
					code, constants = caller.Fn.Proto.Code, unsafe.Pointer(unsafe.SliceData(caller.Fn.Proto.Constants))
					goto entered
				}
			case lua.OP_TFORLOOP:
				if f, ok := (*at(regs, a)).(*lua.LFunction); ok && f == vm.shortcuts.ipairsNext {
					if more, ok := vm.nextItem(reg, loose, cf.LocalBase+a, inst.C()); ok {
						if more {
							pc += instruction(code[pc]).Jump()
						}
						pc++
						if !vm.budget.Step() {
							vm.renew(cf, pc)
						}
						continue
					}
				}
			}
			cf.Pc = pc
			loose.Settle(reg.array[cf.LocalBase:reg.top], cf.LocalBase, &vm.boxes)
			vm.budget.Use(1)
			if op := inst.Op(); (op == lua.OP_GETTABLE || op == lua.OP_GETTABLEKS || op == lua.OP_SELF) && vm.raiseIndex(L, base, inst.B()) {
				continue frames
			}
			if operations[inst.Op()](L, uint32(inst), base) == 1 {
				return
			}
			continue frames // the frame may be another, or have another function
		}
	}
}

// at is a register or a constant, by the address of the first one.
func at(first unsafe.Pointer, i int) *lua.LValue {
	return (*lua.LValue)(unsafe.Add(first, uintptr(i)*unsafe.Sizeof(lua.LValue(nil))))
}

// placeAt is the place of a register for a number, by the address of that of the first one.
func placeAt(first unsafe.Pointer, i int) *lua.LNumber {
	return (*lua.LNumber)(unsafe.Add(first, uintptr(i)*unsafe.Sizeof(lua.LNumber(0))))
}

// placeOf is where a register or a constant is.
func placeOf(regs, constants unsafe.Pointer, n int) *lua.LValue {
	if n&bytecode.ConstantBit != 0 {
		regs = constants
	}
	return at(regs, n&^bytecode.ConstantBit)
}

// operandAt is a register or a constant. It may be a number without a box: who keeps it takes boxedOperand.
func operandAt(regs, constants unsafe.Pointer, n int) lua.LValue {
	if n&bytecode.ConstantBit != 0 {
		return *at(constants, n&^bytecode.ConstantBit)
	}
	return *at(regs, n)
}

// boxedOperand is a register or a constant that may be kept.
func (vm *VM) boxedOperand(regs, places, constants unsafe.Pointer, n int) lua.LValue {
	if n&bytecode.ConstantBit != 0 {
		return *at(constants, n&^bytecode.ConstantBit)
	}
	v := at(regs, n)
	if f := placeAt(places, n); boxes.Has(v, f) {
		return vm.boxes.Number(float64(*f))
	}
	return *v
}

// looseOf has the numbers without boxes of a state's registers.
func (vm *VM) looseOf(L *lua.LState) *boxes.Loose {
	if L == vm.L {
		return &vm.loose
	}
	return &(*coroutine)(unsafe.Pointer(L)).loose
}

// renew asks whether the script may go on. The function that asks ends nothing but the script, and looks at no registers.
func (vm *VM) renew(cf *luaFrame, pc int) {
	cf.Pc = pc
	vm.budget.Renew()
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
