package luavm

// From source to functions that a VM runs.

import (
	"strings"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/budget"
	"github.com/limitkv/limitkv/luavm/bytecode"
	"github.com/limitkv/limitkv/luavm/syntax"
)

// chunk is compiled source: a script, or a string given to loadstring. It is immutable; each VM has its own
// values for some of its constants, see VM.function.
type chunk struct {
	main    *bytecode.Function
	escapes bool // the script might change or store KEYS or ARGV
}

// syntaxNameMax and runtimeNameMax are how many bytes of a chunk's name errors show.
const (
	syntaxNameMax  = 80
	runtimeNameMax = 60
)

// shortSource returns a chunk's name as errors show it: "@name" and "=name" without the sign, code as [string "..."].
func shortSource(source string, room int) string {
	source = arg.CString(source)
	switch {
	case strings.HasPrefix(source, "="):
		return source[1:min(len(source), room)]
	case strings.HasPrefix(source, "@"):
		if s := source[1:]; len(s) <= room-len(" '...' ")-1 {
			return s
		}
		return "..." + source[len(source)-(room-len(" '...' ")-1):]
	}
	const dots = "..."
	room -= len(` [string "..."] `) + 1
	first, _, more := strings.Cut(strings.ReplaceAll(source, "\r", "\n"), "\n")
	if len(first) > room {
		first = first[:room]
		more = true
	}
	if more {
		first += dots
	}
	return `[string "` + first + `"]`
}

// compileChunk compiles a source. known are the functions that become constants. fold makes KEYS and ARGV constants too,
// if they cannot escape. b, unless nil, counts the compiler's steps. level is the depth of nested calls at this point.
func compileChunk(code, source string, known *syntax.Known, fold bool, b *budget.Budget, level int) (*chunk, error) {
	main, escapes, err := syntax.Compile(code, &syntax.Options{
		Chunk: shortSource(source, syntaxNameMax), Name: shortSource(source, runtimeNameMax), Source: source,
		Known: known, Fold: fold, Budget: b, Level: level,
	})
	if err != nil {
		return nil, err
	}
	return &chunk{main, escapes}, nil
}

// function makes a function of compiled code.
func (vm *VM) function(c *chunk) *lua.LFunction {
	return vm.L.NewFunctionFromProto(&c.main.Link(vm.constant).FunctionProto)
}

// constant returns this VM's value of a hidden constant.
func (vm *VM) constant(name string) lua.LValue {
	v, ok := vm.constants[name]
	if !ok {
		panic("luavm: no constant " + name)
	}
	return v
}
