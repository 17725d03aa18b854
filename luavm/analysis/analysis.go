// Package analysis, internal to the server, proves from a script's syntax tree, before the script runs, that
// every key which its calls of redis.call and redis.pcall can touch is an element of KEYS. Such a script locks only the
// shards of its KEYS.
//
// A script that the analysis does not understand is not proven; it is then merely slower. The proof
// infers which values each local variable can hold (kinds.go). It ignores the order of statements: a
// variable is a key if every value assigned to it anywhere is a key. That is true for closures, coroutines and loops
// alike, and easy to verify. The proof assumes of the sandbox: scripts cannot change globals and libraries,
// there is no debug library, KEYS is a plain table of strings without a metatable when the script starts, and
// redis.call refuses arguments that are neither strings nor numbers. Scripts that use functions which could break these
// assumptions (setfenv, loadstring, _G, metatables ...) are not proven.
package analysis

import (
	"fmt"

	"github.com/yuin/gopher-lua/ast"
)

// Limits of the analysis. A script beyond them is not proven.
const (
	// SourceMax is how long a source may be, in bytes.
	SourceMax = 64 << 10
	// NestingMax is how deep statements and expressions may nest.
	NestingMax = 400
	// PassesMax is how often the inference goes over the script before it gives up.
	PassesMax = 20
)

// Verdict is the result of the analysis. If the keys are not proven, line and reason are those of the first place in the
// source that prevents the proof.
type Verdict struct {
	KeysProven bool
	KeysLine   int
	KeysReason string
}

// TooLong is the verdict for a script that is longer than SourceMax.
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

// analyzer is the analysis of one script.
type analyzer struct {
	keys KeyFinder

	// The results of resolve.
	ident     map[*ast.IdentExpr]*variable    // a name that is a local variable
	declares  map[ast.Stmt][]*variable        // the variables that a statement declares, in order
	functions map[*ast.FunctionExpr]*function // all functions but main
	funcs     []*function                     // main first, then in source order
	deepLine  int                             // where nesting was too deep

	// The results of infer: for every call, the function called and the first result.
	callees map[*ast.FuncCallExpr]value
	results map[*ast.FuncCallExpr]value

	changed    bool // some value rose in the lattice in this pass
	checking   bool // the last pass: report
	keysReason string
	keysLine   int
}

// variable is one local variable, parameter or loop variable.
type variable struct {
	name  string
	owner *function // the function it is declared in
	val   value     // all that it can hold during the run
	decl  ast.PositionHolder
}

// function is main or a function expression.
type function struct {
	expr    *ast.FunctionExpr // nil for main
	stmts   []ast.Stmt
	params  []*variable
	vararg  bool
	parent  *function
	escaped bool  // it may be called by anyone with any arguments
	ret     value // the values that it can return, all results joined
	line    int
}

// keysFail notes a reason why the keys are not proven; the verdict has the first one in the source.
func (a *analyzer) keysFail(line int, format string, args ...any) {
	if !a.checking {
		return
	}
	if a.keysReason == "" || line < a.keysLine {
		a.keysLine, a.keysReason = line, fmt.Sprintf(format, args...)
	}
}
