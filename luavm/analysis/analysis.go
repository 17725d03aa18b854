// Package analysis, internal to the server, proves of a script, from its syntax tree and before it ever runs, that
// every key which any redis.call or redis.pcall of it can touch is an element of KEYS. Such a script runs with the
// locks of its KEYS' shards alone.
//
// What is not understood is not proven, and an unproven script is merely slower. The proof
// is an inference of what each local variable can hold (kinds.go). It does not follow the order of statements: a
// variable is a key if every value ever assigned to it anywhere is one, which holds for closures, coroutines and loops
// alike, and is easy to be sure of. What is assumed of the sandbox: globals and libraries cannot be changed by scripts,
// there is no debug library, KEYS is a plain table of strings without a metatable when the script starts, and
// redis.call refuses arguments that are neither strings nor numbers. Scripts that use what could undo this (setfenv,
// loadstring, _G, metatables ...) are not proven.
package analysis

import (
	"fmt"

	"github.com/yuin/gopher-lua/ast"
)

// Limits of what is looked at. Beyond them nothing is proven.
const (
	// SourceMax is how long a source may be, in bytes.
	SourceMax = 64 << 10
	// NestingMax is how deep statements and expressions may nest.
	NestingMax = 400
	// PassesMax is how often the inference goes over the script before it gives up.
	PassesMax = 20
)

// Verdict is what is known of a script. Where the keys are not proven, the line and the reason are of the first place
// that prevents it.
type Verdict struct {
	KeysProven bool
	KeysLine   int
	KeysReason string
}

// TooLong is what is known of a script that is longer than SourceMax.
var TooLong = Verdict{KeysLine: 1, KeysReason: "longer than 64 KB"}

// Chunk analyses a parsed script. keys says where a command's keys are.
func Chunk(stmts []ast.Stmt, keys KeyFinder) Verdict {
	a := &analyzer{keys: keys, callees: map[*ast.FuncCallExpr]value{}, results: map[*ast.FuncCallExpr]value{}}
	if !a.resolve(stmts) {
		return Verdict{KeysLine: a.deepLine, KeysReason: "nested too deeply"}
	}
	a.infer()
	return Verdict{KeysProven: a.keysReason == "", KeysLine: a.keysLine, KeysReason: a.keysReason}
}

// analyzer holds what is known of one script.
type analyzer struct {
	keys KeyFinder

	// What resolve found.
	ident     map[*ast.IdentExpr]*variable    // a name that is a local variable
	declares  map[ast.Stmt][]*variable        // the variables that a statement declares, in order
	functions map[*ast.FunctionExpr]*function // all functions but main
	funcs     []*function                     // main first, then in source order
	deepLine  int                             // where nesting was too deep

	// What infer found. Of every call, the function called and the first result.
	callees map[*ast.FuncCallExpr]value
	results map[*ast.FuncCallExpr]value

	changed    bool // something rose in this pass
	checking   bool // the last pass: report
	keysReason string
	keysLine   int
}

// variable is one local variable, parameter or loop variable.
type variable struct {
	name  string
	owner *function // the function it is declared in
	val   value     // what it can hold, over the whole run
	decl  ast.PositionHolder
}

// function is main or a function expression.
type function struct {
	expr    *ast.FunctionExpr // nil for main
	stmts   []ast.Stmt
	params  []*variable
	vararg  bool
	parent  *function
	escaped bool  // it may be called by anyone with anything
	ret     value // what it returns, all results together
	line    int
}

// keysFail notes a reason why the keys are not proven; the first in the source counts.
func (a *analyzer) keysFail(line int, format string, args ...any) {
	if !a.checking {
		return
	}
	if a.keysReason == "" || line < a.keysLine {
		a.keysLine, a.keysReason = line, fmt.Sprintf(format, args...)
	}
}
