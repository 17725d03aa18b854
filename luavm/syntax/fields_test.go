package syntax

import (
	"fmt"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/bytecode"
	"github.com/limitkv/limitkv/luavm/tables"
)

// The names in instructions on fields are made by tables.Field, as the main loop needs them: each finds its field without
// hashing. They are constants up to the last one that an instruction can hold.
func TestNamesOfFields(t *testing.T) {
	source := &strings.Builder{}
	for i := range 300 {
		fmt.Fprintf(source, "local o = ... o.f%d = o.g%d + 1 o:h%d() ", i, i, i)
		if i%100 == 99 {
			source.WriteString("return function(...) ")
		}
	}
	source.WriteString(strings.Repeat(" end", 3))
	main, _, err := Compile(source.String(), &Options{Chunk: "c", Name: "c", Source: "c", Known: &Known{}})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	var look func(p *lua.FunctionProto)
	look = func(p *lua.FunctionProto) {
		for _, c := range p.Code {
			inst, operand := bytecode.Instruction(c), -1
			switch inst.Op() {
			case lua.OP_GETTABLEKS, lua.OP_SELF:
				operand = inst.C()
			case lua.OP_SETTABLEKS:
				operand = inst.B()
			}
			if operand < 0 || operand&bytecode.ConstantBit == 0 {
				continue
			}
			name := p.Constants[operand&^bytecode.ConstantBit]
			table := tables.New(0, 4)
			tables.SetString(table, string(name.(lua.LString)), lua.LTrue)
			if tables.GetField(table, &name) != lua.LTrue {
				t.Errorf("%v does not find its field", name)
			}
			seen++
		}
		for _, inner := range p.FunctionPrototypes {
			look(inner)
		}
	}
	look(&main.FunctionProto)
	if seen < 500 {
		t.Errorf("only %d names", seen)
	}
}
