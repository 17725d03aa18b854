package luavm

// From source to a prototype: parse, rewrite, compile, and a table that tells for each instruction what it came from.

import (
	"slices"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"

	"github.com/limitkv/limitkv/luavm/arg"
	"github.com/limitkv/limitkv/luavm/syntax"
)

// chunk is compiled source: that of a script or of a string given to loadstring. It is immutable; constants that
// stand for functions of a VM are still names in it, see link.
type chunk struct {
	proto   *lua.FunctionProto
	debug   map[*uint32]*protoDebug // by the address of a prototype's first instruction
	escapes bool                    // KEYS or ARGV might be changed or kept by the script
}

// protoDebug tells where the instructions of a prototype come from.
type protoDebug struct {
	source string // the chunk's name in Lua's form: "@user_script", or the code itself
	nodes  []ast.PositionHolder
	names  *names
}

// syntaxNameMax and runtimeNameMax are how much of a chunk's name errors show.
const (
	syntaxNameMax  = 80
	runtimeNameMax = 60
)

// shortSource is how errors show a chunk's name: "@name" and "=name" without the sign, code as [string "..."].
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

// compileChunk compiles a source. hide is a text that cannot be in it, under which the rewriter puts its constants.
// fold lets KEYS and ARGV be constants, too, if they cannot escape.
func compileChunk(code, source, hide string, fold bool) (*chunk, error) {
	stmts, err := syntax.Parse(code, shortSource(source, syntaxNameMax))
	if err != nil {
		return nil, err
	}
	c, err := compileTree(stmts, source, hide, fold)
	if err == nil && fold && c.escapes {
		if stmts, err = syntax.Parse(code, shortSource(source, syntaxNameMax)); err == nil {
			c, err = compileTree(stmts, source, hide, false)
		}
	}
	return c, err
}

// compileTree rewrites and compiles a tree, which it changes. fold makes KEYS and ARGV constants: not for a script
// from which they can escape.
func compileTree(stmts []ast.Stmt, source, hide string, fold bool) (*chunk, error) {
	return compileWith(newRewriter(hide, fold), stmts, source)
}

func compileWith(r *rewriter, stmts []ast.Stmt, source string) (*chunk, error) {
	stmts = r.chunk(stmts)
	r.nodes = append(r.nodes, numbered{}) // gopher-lua puts the main function's end a line behind the last one
	proto, err := lua.Compile(stmts, shortSource(source, runtimeNameMax))
	if err != nil {
		// What the parser accepted can only be too big: gopher-lua has 200 registers, a real Lua 250.
		return nil, &syntax.Error{Text: shortSource(source, syntaxNameMax) + ":1: function or expression too complex"}
	}
	proto.IsVarArg &^= lua.VarArgNeedsArg // Lua 5.1 has no table arg in a main chunk
	c := &chunk{proto: proto, debug: map[*uint32]*protoDebug{}, escapes: r.escapes}
	c.settle(proto, source, r)
	return c, nil
}

// shrink gives a prototype the memory that it needs: gopher-lua takes some 20 KB for each, however small it is.
func shrink(p *lua.FunctionProto) {
	p.Code = slices.Clone(p.Code)
	p.Constants = slices.Clone(p.Constants)
	p.FunctionPrototypes = slices.Clone(p.FunctionPrototypes)
	p.DbgSourcePositions = slices.Clone(p.DbgSourcePositions)
	p.DbgLocals = slices.Clone(p.DbgLocals)
	p.DbgCalls = slices.Clone(p.DbgCalls)
	p.DbgUpvalues = slices.Clone(p.DbgUpvalues)
}

// settle puts real lines where the rewriter has put the numbers of nodes.
func (c *chunk) settle(p *lua.FunctionProto, source string, r *rewriter) {
	shrink(p)
	d := &protoDebug{source: source, nodes: make([]ast.PositionHolder, len(p.Code)), names: r.names}
	for pc, id := range p.DbgSourcePositions {
		d.nodes[pc] = r.nodes[id].node
		p.DbgSourcePositions[pc] = r.nodes[id].line
	}
	for i, call := range p.DbgCalls {
		if node, ok := d.nodes[call.Pc].(*ast.FuncCallExpr); ok {
			p.DbgCalls[i].Name = r.names.called(node)
		}
	}
	p.LineDefined = r.nodes[p.LineDefined].line
	p.LastLineDefined = r.nodes[p.LastLineDefined].line
	c.debug[&p.Code[0]] = d
	for _, inner := range p.FunctionPrototypes {
		c.settle(inner, source, r)
	}
}

// link returns a prototype whose hidden constants are the values that a VM has for them.
func link(p *lua.FunctionProto, hide string, value func(name string) lua.LValue) *lua.FunctionProto {
	linked := *p
	linked.Constants = append([]lua.LValue(nil), p.Constants...)
	for i, k := range linked.Constants {
		if s, ok := k.(lua.LString); ok {
			if name, hidden := strings.CutPrefix(string(s), hide); hidden {
				linked.Constants[i] = value(name)
			}
		}
	}
	linked.FunctionPrototypes = make([]*lua.FunctionProto, len(p.FunctionPrototypes))
	for i, inner := range p.FunctionPrototypes {
		linked.FunctionPrototypes[i] = link(inner, hide, value)
	}
	return &linked
}
