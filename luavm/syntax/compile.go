package syntax

// The compiler: it compiles source to the code of gopher-lua's virtual machine in one pass, without a tree, as Lua does.
// So its time is proportional to the length of the source, and its stack to levelsMax. The code is the same as Lua's, with
// Lua's limits, lines and registers, which the error texts are made from (see package bytecode).
//
// There are three differences to Lua. Known functions (redis.call, tonumber) are constants, which saves their lookups; this is
// possible since globals and libraries are read-only. KEYS and ARGV are constants too if the script only reads them. An
// assignment to a global, which always fails, assigns to a name that no global has.

import (
	"slices"
	"strings"
	"sync"

	lua "github.com/yuin/gopher-lua"

	"github.com/limitkv/limitkv/luavm/budget"
	"github.com/limitkv/limitkv/luavm/bytecode"
)

const (
	localsMax   = 200 // visible local variables of a function
	upvaluesMax = 60  // different outer variables in a function
	listFlush   = 50  // items of a constructor that are stored at once
)

// For a source longer than smallSource, the compiler allocates all room for the code at once: one instruction per
// bytesPerInstruction bytes.
const (
	smallSource          = 8 << 10
	bytesPerInstruction  = 3
	instructionsExpected = 4 << 20
)

// Known are the functions that are constants in compiled code: global functions by name, functions of libraries by the names
// of library and function. The values of the maps are the names of the constants.
type Known struct {
	Functions map[string]string
	Libraries map[string]map[string]string
}

// Options say how a source is compiled.
type Options struct {
	Chunk  string         // the chunk's name in syntax errors
	Name   string         // the chunk's name in runtime errors
	Source string         // the chunk's full name
	Known  *Known         // nil: none
	Fold   bool           // KEYS and ARGV may be constants
	Budget *budget.Budget // counts steps while the source is read; may be nil
	Level  int            // depth of nested calls; blocks and expressions may nest that much less
}

// compiler is a source being compiled.
type compiler struct {
	reader
	*Options
	f         *code
	functions []*code // all functions, inner ones first
	unused    []*code // for reuse
	fold      bool
	escapes   bool                  // KEYS or ARGV might be changed or stored
	names     map[string]lua.LValue // constants that are strings: one for all functions

	// iterations counts the calls of ipairs and pairs with KEYS or ARGV for which no loop over their results has been seen yet.
	// The last such call is in iterates, at iteratesAt.
	iterations int
	iterates   *code
	iteratesAt int
}

var compilers = sync.Pool{New: func() any { return &compiler{} }}

// Compile compiles a source. escapes tells whether it might change or store KEYS or ARGV. The error is an *Error.
func Compile(src string, o *Options) (f *bytecode.Function, escapes bool, err error) {
	c := compilers.Get().(*compiler)
	c.reader = reader{lexer: lexer{src: src, chunk: o.Chunk, line: 1}, budget: o.Budget, level: o.Level}
	c.Options, c.f, c.fold, c.escapes, c.iterations = o, nil, o.Fold, false, 0
	defer func() {
		switch r := recover().(type) {
		case nil:
			c.reader, c.Options = reader{}, nil
			compilers.Put(c)
		case *Error:
			f, err = nil, r
		default:
			panic(r)
		}
	}()
	c.open(0)
	c.f.vararg, c.f.made.IsVarArg = true, lua.VarArgIsVarArg
	if len(src) > smallSource {
		n := min(len(src)/bytesPerInstruction, instructionsExpected)
		c.f.instructions, c.f.lines = make([]uint32, 0, n), make([]int, 0, n)
	}
	c.advance()
	c.chunkOf()
	c.check(tkEOF)
	c.f.made.LastLineDefined = c.line
	c.close()
	main := c.functions[len(c.functions)-1].made
	c.escapes = c.escapes || c.iterations > 0
	c.complete()
	return main, c.escapes, nil
}

// Functions.

// open begins a function.
func (c *compiler) open(line int) {
	f := &code{}
	if n := len(c.unused); n > 0 {
		f, c.unused = c.unused[n-1], c.unused[:n-1]
	}
	f.c, f.outer, f.line, f.pending, f.registers = c, c.f, line, noJump, 2
	f.made = &bytecode.Function{Source: c.Source}
	f.made.SourceName, f.made.LineDefined = c.Name, line
	c.f = f
}

// close ends a function.
func (c *compiler) close() {
	f := c.f
	f.hide(0)
	f.emitABC(lua.OP_RETURN, 0, 1, 0)
	m := f.made
	m.NumUpvalues = uint8(len(f.upvalues))
	// One more than needed, since a tail call to a function leaves its last register empty.
	m.NumUsedRegisters = uint8(f.registers + 1)
	if len(f.upvalues) > 0 {
		m.DbgUpvalues = make([]string, len(f.upvalues))
		for i, v := range f.upvalues {
			m.DbgUpvalues[i] = v.name
		}
	}
	c.functions = append(c.functions, f)
	c.f = f.outer
}

// complete makes the prototypes of all functions, once it is known whether KEYS and ARGV are constants.
func (c *compiler) complete() {
	for _, f := range c.functions {
		if c.escapes && c.fold {
			f.unfold()
		}
		m := f.made
		m.Locals, m.Hidden = slices.Clone(m.Locals), slices.Clone(m.Hidden)
		const keep = 1 << 10 // instructions; the memory of larger functions is not reused
		if cap(f.instructions) > keep || f.strings != nil {
			m.Code, m.DbgSourcePositions = fitting(f.instructions), fitting(f.lines)
			m.SetConstants(fitting(f.constants))
			continue
		}
		m.Code, m.DbgSourcePositions = slices.Clone(f.instructions), slices.Clone(f.lines)
		m.SetConstants(slices.Clone(f.constants))
		clear(f.constants)
		clear(f.upvalues)
		*f = code{
			instructions: f.instructions[:0], lines: f.lines[:0], constants: f.constants[:0], active: f.active[:0],
			upvalues: f.upvalues[:0], blocks: f.blocks[:0],
		}
		if len(c.unused) < 8 {
			c.unused = append(c.unused, f)
		}
	}
	clear(c.functions)
	c.functions = c.functions[:0]
}

// fitting returns the slice, or a copy of it if its capacity is much larger than its length.
func fitting[T any](s []T) []T {
	if cap(s)-len(s) > len(s)/4 {
		return slices.Clone(s)
	}
	return s
}

// unfold turns the constants KEYS and ARGV back into globals.
func (f *code) unfold() {
	var globals [2]int
	f.made.Hidden = slices.DeleteFunc(f.made.Hidden, func(h bytecode.Hidden) bool {
		name, n := "KEYS", 0
		switch h.Name {
		default:
			return false
		case bytecode.HiddenKeys:
		case bytecode.HiddenArgv:
			name, n = "ARGV", 1
		}
		f.constants[h.Index] = f.c.nameOfField(name)
		globals[n] = int(h.Index) + 1
		return true
	})
	for pc := 0; pc < len(f.instructions); pc++ {
		switch i := f.at(pc); i.Op() {
		case lua.OP_LOADK:
			if k := i.Bx() + 1; k == globals[0] || k == globals[1] {
				i.SetOp(lua.OP_GETGLOBAL)
			}
		case lua.OP_SETLIST:
			if i.C() == 0 {
				pc++
			}
		}
	}
}

// Variables.

func (c *compiler) limit(f *code, n, most int, what string) {
	if n <= most {
		return
	}
	if f.line == 0 {
		c.fail(0, "main function has more than %d %s", most, what)
	}
	c.fail(0, "function at line %d has more than %d %s", f.line, most, what)
}

// declare declares a local variable, which show makes visible. It is the n-th of those not yet visible.
func (c *compiler) declare(n int, name string) {
	f := c.f
	c.limit(f, len(f.active)+n, localsMax, "local variables")
	if len(f.made.Locals) >= declaredMax {
		panic(&Error{"too many local variables"})
	}
	f.made.Locals = append(f.made.Locals, bytecode.Local{Name: name})
}

// show makes n declared variables visible: the last ones, before the later ones that stay invisible.
func (f *code) show(n, later int) {
	first := len(f.made.Locals) - n - later
	for i := range n {
		f.made.Locals[first+i].From = int32(len(f.instructions))
		f.active = append(f.active, first+i)
	}
}

// hide ends the scope of all variables but the first n.
func (f *code) hide(n int) {
	for _, i := range f.active[n:] {
		f.made.Locals[i].To = int32(len(f.instructions))
	}
	f.active = f.active[:n]
}

// local returns the register of a variable, -1 if there is none of that name.
func (f *code) local(name string) int {
	for r := len(f.active) - 1; r >= 0; r-- {
		if f.made.Locals[f.active[r]].Name == name {
			return r
		}
	}
	return -1
}

// find finds the variable with a name. inner tells whether an inner function of f uses it, so that a local variable is captured.
func (c *compiler) find(f *code, name string, inner bool) operand {
	if f == nil {
		e := operandOf(formGlobal, 0)
		e.name = name
		return e
	}
	if r := f.local(name); r >= 0 {
		if inner {
			for i := len(f.blocks) - 1; i >= 0; i-- {
				if b := &f.blocks[i]; b.active <= r {
					b.captive = true
					break
				}
			}
		}
		return operandOf(formLocal, r)
	}
	e := c.find(f.outer, name, true)
	if e.form == formGlobal {
		return e
	}
	v := upvalue{e.form == formLocal, e.index, name}
	for i, u := range f.upvalues {
		if u.local == v.local && u.index == v.index {
			return operandOf(formUpvalue, i)
		}
	}
	c.limit(f, len(f.upvalues)+1, upvaluesMax, "upvalues")
	f.upvalues = append(f.upvalues, v)
	return operandOf(formUpvalue, len(f.upvalues)-1)
}

// variable reads the name of a variable and finds it.
func (c *compiler) variable() operand { return c.find(c.f, c.name(), false) }

// escaping sets escapes if the use of a global could change or store KEYS or ARGV: the two themselves, and
// globals through which a script can reach them unnoticed.
func (c *compiler) escaping(name string) {
	switch name {
	case "KEYS", "ARGV", "_G", "load", "loadstring":
		c.escapes = true
	}
}

// known makes a global a constant if it is a known function.
func (c *compiler) known(e *operand) {
	if e.form != formGlobal || c.Known == nil {
		return
	}
	if hidden, ok := c.Known.Functions[e.name]; ok {
		c.escaping(e.name)
		e.become(formConstant, c.f.hidden(hidden))
	}
}

// isLibrary tells whether an operand is a library of known functions.
func (c *compiler) isLibrary(e *operand) bool {
	return e.form == formGlobal && c.Known != nil && c.Known.Libraries[e.name] != nil
}

// knownField makes e.name a constant if it is a known function of a library.
func (c *compiler) knownField(e *operand, name string) bool {
	hidden, ok := c.Known.Libraries[e.name][name]
	if ok {
		e.become(formConstant, c.f.hidden(hidden))
		e.name = hidden
	}
	return ok
}

// unknown makes a known function of a library a field again, since the source assigns to it.
func (c *compiler) unknown(e *operand) {
	if e.form != formConstant || e.name == "" {
		return
	}
	library, name, _ := strings.Cut(e.name, ".")
	e.become(formGlobal, 0)
	e.name = library
	c.f.intoAny(e)
	key := c.f.textOperand(name)
	c.f.field(e, &key)
}
