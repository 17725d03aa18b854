package luavm

// The meaning of gopher-lua's instructions. The compiler makes code for its machine, some of which its functions carry
// out and some of which the loop here does itself. A new version of the library that numbers an instruction otherwise,
// has its operands in other bits or lets it do something else is found here: each is run alone, by the library's own
// loop and by ours, and what is then in the registers is compared with what is written here. The layout of the library's
// structures is looked at when the package is initialized (internals.go).

import (
	"fmt"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/bytecode"
	"github.com/limitkv/limitkv/luavm/tables"
)

// manual is what the library says of each instruction with the operands 1, 2, 3, or 1 and 5 where it has two.
var manual = [...]string{
	lua.OP_MOVE:       "MOVE      |  1, 2, 3; R(1) := R(2)",
	lua.OP_MOVEN:      "MOVEN      |  1, 2, 3; R(1) := R(2); followed by 3 MOVE ops",
	lua.OP_LOADK:      "LOADK      |  1, 5; R(1) := Kst(5)",
	lua.OP_LOADBOOL:   "LOADBOOL      |  1, 2, 3; R(1) := (Bool)2; if (3) pc++",
	lua.OP_LOADNIL:    "LOADNIL      |  1, 2, 3; R(1) := ... := R(2) := nil",
	lua.OP_GETUPVAL:   "GETUPVAL      |  1, 2, 3; R(1) := UpValue[2]",
	lua.OP_GETGLOBAL:  "GETGLOBAL      |  1, 5; R(1) := Gbl[Kst(5)]",
	lua.OP_GETTABLE:   "GETTABLE      |  1, 2, 3; R(1) := R(2)[RK(3)]",
	lua.OP_GETTABLEKS: "GETTABLEKS      |  1, 2, 3; R(1) := R(2)[RK(3)] ; RK(3) is constant string",
	lua.OP_SETGLOBAL:  "SETGLOBAL      |  1, 5; Gbl[Kst(5)] := R(1)",
	lua.OP_SETUPVAL:   "SETUPVAL      |  1, 2, 3; UpValue[2] := R(1)",
	lua.OP_SETTABLE:   "SETTABLE      |  1, 2, 3; R(1)[RK(2)] := RK(3)",
	lua.OP_SETTABLEKS: "SETTABLEKS      |  1, 2, 3; R(1)[RK(2)] := RK(3) ; RK(2) is constant string",
	lua.OP_NEWTABLE:   "NEWTABLE      |  1, 2, 3; R(1) := {} (size = BC)",
	lua.OP_SELF:       "SELF      |  1, 2, 3; R(1+1) := R(2); R(1) := R(2)[RK(3)]",
	lua.OP_ADD:        "ADD      |  1, 2, 3; R(1) := RK(2) + RK(3)",
	lua.OP_SUB:        "SUB      |  1, 2, 3; R(1) := RK(2) - RK(3)",
	lua.OP_MUL:        "MUL      |  1, 2, 3; R(1) := RK(2) * RK(3)",
	lua.OP_DIV:        "DIV      |  1, 2, 3; R(1) := RK(2) / RK(3)",
	lua.OP_MOD:        "MOD      |  1, 2, 3; R(1) := RK(2) % RK(3)",
	lua.OP_POW:        "POW      |  1, 2, 3; R(1) := RK(2) ^ RK(3)",
	lua.OP_UNM:        "UNM      |  1, 2, 3; R(1) := -R(2)",
	lua.OP_NOT:        "NOT      |  1, 2, 3; R(1) := not R(2)",
	lua.OP_LEN:        "LEN      |  1, 2, 3; R(1) := length of R(2)",
	lua.OP_CONCAT:     "CONCAT      |  1, 2, 3; R(1) := R(2).. ... ..R(3)",
	lua.OP_JMP:        "JMP      |  1, 5; pc+=5",
	lua.OP_EQ:         "EQ      |  1, 2, 3; if ((RK(2) == RK(3)) ~= 1) then pc++",
	lua.OP_LT:         "LT      |  1, 2, 3; if ((RK(2) <  RK(3)) ~= 1) then pc++",
	lua.OP_LE:         "LE      |  1, 2, 3; if ((RK(2) <= RK(3)) ~= 1) then pc++",
	lua.OP_TEST:       "TEST      |  1, 2, 3; if not (R(1) <=> 3) then pc++",
	lua.OP_TESTSET:    "TESTSET      |  1, 2, 3; if (R(2) <=> 3) then R(1) := R(2) else pc++",
	lua.OP_CALL:       "CALL      |  1, 2, 3; R(1) ... R(1+3-2) := R(1)(R(1+1) ... R(1+2-1))",
	lua.OP_TAILCALL:   "TAILCALL      |  1, 2, 3; return R(1)(R(1+1) ... R(1+2-1))",
	lua.OP_RETURN:     "RETURN      |  1, 2, 3; return R(1) ... R(1+2-2)",
	lua.OP_FORLOOP:    "FORLOOP      |  1, 5; R(1)+=R(1+2); if R(1) <?= R(1+1) then { pc+=5; R(1+3)=R(1) }",
	lua.OP_FORPREP:    "FORPREP      |  1, 5; R(1)-=R(1+2); pc+=5",
	lua.OP_TFORLOOP:   "TFORLOOP      |  1, 2, 3; R(1+3) ... R(1+3+3) := R(1)(R(1+1) R(1+2)); if R(1+3) ~= nil then { pc++; R(1+2)=R(1+3); }",
	lua.OP_SETLIST:    "SETLIST      |  1, 2, 3; R(1)[(3-1)*FPF+i] := R(1+i) 1 <= i <= 2",
	lua.OP_CLOSE:      "CLOSE      |  1, 2, 3; close all variables in the stack up to (>=) R(1)",
	lua.OP_CLOSURE:    "CLOSURE      |  1, 5; R(1) := closure(KPROTO[5] R(1) ... R(1+n))",
	lua.OP_VARARG:     "VARARG      |  1, 2, 3;  R(1) R(1+1) ... R(1+2-1) = vararg",
	lua.OP_NOP:        "NOP      |  1, 5",
}

// There are these instructions and no others, of these numbers, with their operands where bytecode puts them.
func TestInstructionsAreThose(t *testing.T) {
	describe := func(inst bytecode.Instruction) string {
		inner := []*lua.FunctionProto{{}}
		text := (&lua.FunctionProto{Code: []uint32{uint32(inst)}, DbgSourcePositions: []int{1}, FunctionPrototypes: inner}).String()
		_, text, _ = strings.Cut(text, "[001] ")
		text, _, _ = strings.Cut(text, "(line:1)")
		return strings.TrimSpace(text)
	}
	for op, want := range manual {
		inst := bytecode.ABC(op, 1, 2, 3)
		if !strings.Contains(want, "1, 2, 3") {
			if inst = bytecode.ABx(op, 1, 5); op == lua.OP_JMP || op == lua.OP_FORLOOP || op == lua.OP_FORPREP || op == lua.OP_NOP {
				inst = bytecode.AJump(op, 1, 5)
			}
		}
		if got := describe(inst); got != want {
			t.Errorf("instruction %d is\n%s, not\n%s", op, got, want)
		}
	}
	if got := describe(bytecode.ABC(len(manual), 1, 2, 3)); got != "" {
		t.Errorf("there is an instruction %d: %s", len(manual), got)
	}
	if lua.FieldsPerFlush != 50 {
		t.Errorf("a SETLIST is for %d items", lua.FieldsPerFlush)
	}
}

// machine is a state whose functions are made of instructions.
type machine struct {
	L     *lua.LState
	table func() *lua.LTable
	set   func(t *lua.LTable, key string, v lua.LValue)
}

// assembly is what is run: registers from 0 on are given values, then comes the code, then the first of them are
// returned.
type assembly struct {
	op    int
	regs  []any
	code  []bytecode.Instruction
	inner *assembly // the function that CLOSURE makes; it returns by itself
	// ups is how many variables of the other function it has; args how many parameters, vararg whether there may be more.
	ups, args int
	vararg    bool
	want      string
}

// proto assembles a program. Constants are 0, 1, 2, ... 9 and then words.
func (p *assembly) proto(m *machine, returned int) *lua.FunctionProto {
	constants := []lua.LValue{}
	for i := range 10 {
		constants = append(constants, lua.LNumber(i))
	}
	constants = append(constants, tables.Field("x"), tables.Field("y"))
	f := &bytecode.Function{}
	for i, v := range p.regs {
		f.Code = append(f.Code, uint32(bytecode.ABx(lua.OP_LOADK, i, len(constants))))
		constants = append(constants, m.value(v))
	}
	for _, inst := range p.code {
		f.Code = append(f.Code, uint32(inst))
	}
	if returned >= 0 {
		f.Code = append(f.Code, uint32(bytecode.ABC(lua.OP_RETURN, 0, returned+1, 0)))
	}
	f.SetConstants(constants)
	f.NumUsedRegisters, f.NumParameters, f.NumUpvalues = 20, uint8(p.args), uint8(p.ups)
	if p.vararg {
		f.IsVarArg = lua.VarArgIsVarArg
	}
	f.DbgSourcePositions = make([]int, len(f.Code))
	if p.inner != nil {
		f.FunctionPrototypes = []*lua.FunctionProto{p.inner.proto(m, -1)}
	}
	return &f.FunctionProto
}

type emptyTable struct{}

// pair is a function that returns its last argument and the sum of all.
type pair struct{}

// counts is an iterator: from the last value it makes the next one and its double, up to 3.
type counts struct{}

func (m *machine) value(v any) lua.LValue {
	switch v := v.(type) {
	case int:
		return lua.LNumber(v)
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case emptyTable:
		return m.table()
	case pair:
		return m.L.NewFunction(func(L *lua.LState) int {
			sum := lua.LNumber(0)
			for i := range L.GetTop() {
				sum += L.CheckNumber(i + 1)
			}
			L.Push(L.Get(-1))
			L.Push(sum)
			return 2
		})
	case counts:
		return m.L.NewFunction(func(L *lua.LState) int {
			n := L.CheckNumber(2) + 1
			if n > 3 {
				return 0
			}
			L.Push(n)
			L.Push(2 * n)
			return 2
		})
	}
	return lua.LNil
}

// run runs a program and shows the registers.
func (m *machine) run(p *assembly) (shown string) {
	defer func() {
		if r := recover(); r != nil {
			shown = fmt.Sprint("panic: ", r)
		}
	}()
	n := len(strings.Fields(p.want))
	fn := m.L.NewFunctionFromProto(p.proto(m, n))
	fn.Env = m.table()
	m.set(fn.Env, "x", lua.LNumber(77))
	m.L.SetTop(0)
	m.L.Push(fn)
	m.L.Call(0, lua.MultRet)
	var words []string
	for i := 1; i <= m.L.GetTop(); i++ {
		switch v := m.L.Get(i).(type) {
		case *lua.LTable, *lua.LFunction:
			words = append(words, v.Type().String())
		default:
			words = append(words, v.String())
		}
	}
	m.L.SetTop(0)
	return strings.Join(words, " ")
}

func TestInstructionsMean(t *testing.T) {
	abc, abx, jump := bytecode.ABC, bytecode.ABx, bytecode.AJump
	type code = []bytecode.Instruction
	type regs = []any
	const k = bytecode.ConstantBit // k+n is the number n, k+10 and k+11 are x and y
	mark := func(r int) bytecode.Instruction { return abx(lua.OP_LOADK, r, 9) }
	skip := func(inst bytecode.Instruction) code { // the one behind it leaves a mark unless it is jumped over
		return code{inst, jump(lua.OP_JMP, 0, 1), mark(0)}
	}
	programs := []assembly{
		{op: lua.OP_MOVE, regs: regs{1, 2}, code: code{abc(lua.OP_MOVE, 0, 1, 0)}, want: "2 2"},
		{op: lua.OP_MOVEN, regs: regs{1, 2, 3, 4}, code: code{abc(lua.OP_MOVEN, 0, 3, 2), abc(lua.OP_MOVE, 1, 0, 0), abc(lua.OP_MOVE, 2, 1, 0)}, want: "4 4 4 4"},
		{op: lua.OP_LOADK, code: code{abx(lua.OP_LOADK, 0, 7), abx(lua.OP_LOADK, 1, 10)}, want: "7 x"},
		{op: lua.OP_LOADBOOL, regs: regs{1, 1}, code: code{abc(lua.OP_LOADBOOL, 0, 1, 0), abc(lua.OP_LOADBOOL, 1, 0, 1), mark(1)}, want: "true false"},
		{op: lua.OP_LOADNIL, regs: regs{1, 2, 3, 4}, code: code{abc(lua.OP_LOADNIL, 1, 2, 0)}, want: "1 nil nil 4"},
		{op: lua.OP_GETGLOBAL, code: code{abx(lua.OP_GETGLOBAL, 0, 10), abx(lua.OP_GETGLOBAL, 1, 11)}, want: "77 nil"},
		{op: lua.OP_SETGLOBAL, regs: regs{5}, code: code{abx(lua.OP_SETGLOBAL, 0, 11), abx(lua.OP_GETGLOBAL, 1, 11)}, want: "5 5"},
		{op: lua.OP_NEWTABLE, code: code{abc(lua.OP_NEWTABLE, 0, 2, 1), abc(lua.OP_LEN, 1, 0, 0)}, want: "table 0"},
		{op: lua.OP_SETTABLE, regs: regs{emptyTable{}, 2}, code: code{abc(lua.OP_SETTABLE, 0, k+1, 1), abc(lua.OP_GETTABLE, 2, 0, k+1)}, want: "table 2 2"},
		{op: lua.OP_GETTABLE, regs: regs{emptyTable{}, true}, code: code{abc(lua.OP_SETTABLE, 0, 1, k+6), abc(lua.OP_GETTABLE, 2, 0, 1), abc(lua.OP_GETTABLE, 3, 0, k+1)}, want: "table true 6 nil"},
		{op: lua.OP_SETTABLEKS, regs: regs{emptyTable{}, 2}, code: code{abc(lua.OP_SETTABLEKS, 0, k+10, 1), abc(lua.OP_GETTABLE, 2, 0, k+10)}, want: "table 2 2"},
		{op: lua.OP_GETTABLEKS, regs: regs{emptyTable{}}, code: code{abc(lua.OP_SETTABLE, 0, k+11, k+4), abc(lua.OP_GETTABLEKS, 1, 0, k+11), abc(lua.OP_GETTABLEKS, 2, 0, k+10)}, want: "table 4 nil"},
		{op: lua.OP_SELF, regs: regs{emptyTable{}}, code: code{abc(lua.OP_SETTABLE, 0, k+10, k+3), abc(lua.OP_SELF, 1, 0, k+10)}, want: "table 3 table"},
		{op: lua.OP_ADD, regs: regs{0, 8}, code: code{abc(lua.OP_ADD, 0, 1, k+3)}, want: "11"},
		{op: lua.OP_SUB, regs: regs{0, 8}, code: code{abc(lua.OP_SUB, 0, k+3, 1)}, want: "-5"},
		{op: lua.OP_MUL, regs: regs{0, 8}, code: code{abc(lua.OP_MUL, 0, 1, 1)}, want: "64"},
		{op: lua.OP_DIV, regs: regs{0, 8}, code: code{abc(lua.OP_DIV, 0, 1, k+5)}, want: "1.6"},
		{op: lua.OP_MOD, regs: regs{0, 8}, code: code{abc(lua.OP_MOD, 0, 1, k+5)}, want: "3"},
		{op: lua.OP_POW, regs: regs{0, 8}, code: code{abc(lua.OP_POW, 0, 1, k+2)}, want: "64"},
		{op: lua.OP_UNM, regs: regs{0, 8}, code: code{abc(lua.OP_UNM, 0, 1, 0)}, want: "-8 8"},
		{op: lua.OP_NOT, regs: regs{0, 8, false}, code: code{abc(lua.OP_NOT, 0, 1, 0), abc(lua.OP_NOT, 1, 2, 0)}, want: "false true"},
		{op: lua.OP_LEN, regs: regs{0, "four"}, code: code{abc(lua.OP_LEN, 0, 1, 0)}, want: "4"},
		{op: lua.OP_CONCAT, regs: regs{0, "a", "b", "c"}, code: code{abc(lua.OP_CONCAT, 0, 1, 3)}, want: "abc a b c"},
		{op: lua.OP_JMP, regs: regs{1, 2}, code: code{jump(lua.OP_JMP, 0, 2), mark(0), jump(lua.OP_JMP, 0, 1), jump(lua.OP_JMP, 0, -2)}, want: "1 2"},
		{op: lua.OP_EQ, regs: regs{0, "a", "a"}, code: skip(abc(lua.OP_EQ, 1, 1, 2)), want: "0"},
		{op: lua.OP_EQ, regs: regs{0, "a", "a"}, code: skip(abc(lua.OP_EQ, 0, 1, 2)), want: "9"},
		{op: lua.OP_EQ, regs: regs{0, "a"}, code: skip(abc(lua.OP_EQ, 1, 1, k+1)), want: "9"},
		{op: lua.OP_LT, regs: regs{0, 5}, code: skip(abc(lua.OP_LT, 1, k+4, 1)), want: "0"},
		{op: lua.OP_LT, regs: regs{0, 5}, code: skip(abc(lua.OP_LT, 1, k+5, 1)), want: "9"},
		{op: lua.OP_LT, regs: regs{0, 5}, code: skip(abc(lua.OP_LT, 0, k+5, 1)), want: "0"},
		{op: lua.OP_LE, regs: regs{0, 5}, code: skip(abc(lua.OP_LE, 1, k+5, 1)), want: "0"},
		{op: lua.OP_LE, regs: regs{0, 5}, code: skip(abc(lua.OP_LE, 1, k+6, 1)), want: "9"},
		{op: lua.OP_LE, regs: regs{0, "a", "b"}, code: skip(abc(lua.OP_LE, 1, 1, 2)), want: "0"},
		{op: lua.OP_TEST, regs: regs{0, true}, code: skip(abc(lua.OP_TEST, 1, 0, 1)), want: "0 true"},
		{op: lua.OP_TEST, regs: regs{0, true}, code: skip(abc(lua.OP_TEST, 1, 0, 0)), want: "9 true"},
		{op: lua.OP_TEST, regs: regs{0, false}, code: skip(abc(lua.OP_TEST, 1, 0, 0)), want: "0 false"},
		{op: lua.OP_TESTSET, regs: regs{0, 4, 1}, code: skip(abc(lua.OP_TESTSET, 2, 1, 1)), want: "0 4 4"},
		{op: lua.OP_TESTSET, regs: regs{0, 4, 1}, code: skip(abc(lua.OP_TESTSET, 2, 1, 0)), want: "9 4 1"},
		{op: lua.OP_CALL, regs: regs{pair{}, 2, 3, 8}, code: code{abc(lua.OP_CALL, 0, 4, 3)}, want: "8 13"},
		{op: lua.OP_CALL, regs: regs{pair{}, 2, 3}, code: code{abc(lua.OP_CALL, 0, 3, 2)}, want: "3"},
		{op: lua.OP_CALL, regs: regs{pair{}, 2, 3}, code: code{abc(lua.OP_CALL, 0, 3, 4)}, want: "3 5 nil"},
		{op: lua.OP_CALL, regs: regs{pair{}, pair{}, 2, 3}, code: code{abc(lua.OP_CALL, 1, 3, 0), abc(lua.OP_CALL, 0, 0, 3)}, want: "5 8"},
		{op: lua.OP_TAILCALL, code: code{abx(lua.OP_CLOSURE, 0, 0), abx(lua.OP_LOADK, 1, 4), abc(lua.OP_CALL, 0, 2, 3)}, want: "4 5",
			inner: &assembly{args: 1, regs: nil, code: code{abx(lua.OP_CLOSURE, 1, 0), abc(lua.OP_MOVE, 2, 0, 0), abc(lua.OP_TAILCALL, 1, 2, 0), abc(lua.OP_RETURN, 1, 0, 0)},
				inner: &assembly{args: 1, code: code{abc(lua.OP_ADD, 1, 0, k+1), abc(lua.OP_RETURN, 0, 3, 0)}}}},
		{op: lua.OP_RETURN, code: code{abx(lua.OP_CLOSURE, 0, 0), abx(lua.OP_LOADK, 1, 4), abc(lua.OP_CALL, 0, 2, 4)}, want: "4 nil nil",
			inner: &assembly{args: 2, code: code{abc(lua.OP_RETURN, 0, 2, 0)}}},
		{op: lua.OP_FORPREP, regs: regs{5, 9, 2}, code: code{jump(lua.OP_FORPREP, 0, 1), mark(1)}, want: "3 9 2"},
		{op: lua.OP_FORLOOP, regs: regs{0, 1, 3, 1, 0}, code: code{jump(lua.OP_FORPREP, 1, 1), abc(lua.OP_ADD, 0, 0, 4), jump(lua.OP_FORLOOP, 1, -2)}, want: "6"},
		{op: lua.OP_FORLOOP, regs: regs{0, 3, 1, -2, 0}, code: code{jump(lua.OP_FORPREP, 1, 1), abc(lua.OP_ADD, 0, 0, 4), jump(lua.OP_FORLOOP, 1, -2)}, want: "4"},
		{op: lua.OP_TFORLOOP, regs: regs{0, counts{}, 0, 0, 0, 0}, code: code{jump(lua.OP_JMP, 0, 1), abc(lua.OP_ADD, 0, 0, 5), abc(lua.OP_TFORLOOP, 1, 0, 2), jump(lua.OP_JMP, 0, -3)}, want: "12"},
		{op: lua.OP_SETLIST, regs: regs{emptyTable{}, 4, 5, 6}, code: code{abc(lua.OP_SETLIST, 0, 3, 1), abc(lua.OP_LEN, 1, 0, 0), abc(lua.OP_GETTABLE, 2, 0, k+3)}, want: "table 3 6"},
		{op: lua.OP_CLOSURE, regs: regs{4}, code: code{abx(lua.OP_CLOSURE, 1, 0), abc(lua.OP_MOVE, 0, 0, 0), abc(lua.OP_CALL, 1, 1, 2)}, want: "4 4",
			inner: &assembly{ups: 1, code: code{abc(lua.OP_GETUPVAL, 0, 0, 0), abc(lua.OP_RETURN, 0, 2, 0)}}},
		{op: lua.OP_GETUPVAL, regs: regs{4, 6}, code: code{abx(lua.OP_CLOSURE, 2, 0), abc(lua.OP_MOVE, 0, 0, 0), abc(lua.OP_MOVE, 0, 1, 0), abc(lua.OP_CALL, 2, 1, 2)}, want: "4 6 6",
			inner: &assembly{ups: 2, code: code{abc(lua.OP_GETUPVAL, 0, 1, 0), abc(lua.OP_RETURN, 0, 2, 0)}}},
		{op: lua.OP_SETUPVAL, regs: regs{4}, code: code{abx(lua.OP_CLOSURE, 1, 0), abc(lua.OP_MOVE, 0, 0, 0), abc(lua.OP_CALL, 1, 1, 1)}, want: "8",
			inner: &assembly{ups: 1, code: code{abx(lua.OP_LOADK, 0, 8), abc(lua.OP_SETUPVAL, 0, 0, 0), abc(lua.OP_RETURN, 0, 1, 0)}}},
		{op: lua.OP_CLOSE, regs: regs{4}, code: code{abx(lua.OP_CLOSURE, 1, 0), abc(lua.OP_MOVE, 0, 0, 0), abc(lua.OP_CLOSE, 0, 0, 0), mark(0), abc(lua.OP_CALL, 1, 1, 2)}, want: "9 4",
			inner: &assembly{ups: 1, code: code{abc(lua.OP_GETUPVAL, 0, 0, 0), abc(lua.OP_RETURN, 0, 2, 0)}}},
		{op: lua.OP_VARARG, code: code{abx(lua.OP_CLOSURE, 0, 0), abx(lua.OP_LOADK, 1, 4), abx(lua.OP_LOADK, 2, 5), abc(lua.OP_CALL, 0, 3, 4)}, want: "4 5 nil",
			inner: &assembly{vararg: true, code: code{abc(lua.OP_VARARG, 0, 4, 0), abc(lua.OP_RETURN, 0, 4, 0)}}},
		{op: lua.OP_NOP, regs: regs{1}, code: code{abc(lua.OP_NOP, 0, 0, 0)}, want: "1"},
	}
	seen := map[int]bool{}
	for i := range programs {
		p := &programs[i]
		seen[p.op] = true
		theirs := lua.NewState(lua.Options{SkipOpenLibs: true})
		for name, m := range map[string]*machine{
			"the library's loop": {theirs, theirs.NewTable, (*lua.LTable).RawSetString},
			"our loop":           {New(Config{}).L, func() *lua.LTable { return tables.New(0, 0) }, func(t *lua.LTable, key string, v lua.LValue) { tables.SetString(t, key, v) }},
		} {
			if got := m.run(p); got != p.want {
				t.Errorf("%s\nin program %d: %s gives %s, not %s", manual[p.op], i, name, got, p.want)
			}
		}
		theirs.Close()
	}
	for op, text := range manual {
		if !seen[op] {
			t.Errorf("%s is in no program", text)
		}
	}
}
