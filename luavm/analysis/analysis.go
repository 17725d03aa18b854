// Package analysis proves two things about a script from its syntax tree, before it ever runs.
//
// KeysProven: every key that any redis.call or redis.pcall of the script can touch is an element of KEYS. Such a script
// runs with the locks of its KEYS' shards alone.
//
// Bounded: the script ends, and soon: nothing loops but over data that is there, or a small number of times. Such a
// script runs inline on the event loop.
//
// Both are proofs: what is not understood is not proven, and an unproven script is merely slower. The proof of the keys
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

// Limits of what is looked at. Beyond them a script is neither proven nor bounded.
const (
	// SourceMax is how long a source may be, in bytes.
	SourceMax = 64 << 10
	// NestingMax is how deep statements and expressions may nest.
	NestingMax = 2000
	// PassesMax is how often the inference goes over the script before it gives up.
	PassesMax = 20
	// WorkMax is how many steps a bounded script may take, a step being about one node of the tree, not counting what
	// grows with data.
	WorkMax = 200_000
	// WorkPerElementMax is how many steps a bounded script may take for each element of the data it loops over.
	WorkPerElementMax = 5_000
	// ConstantRepeatMax is the longest string, in bytes, that string.rep may make in a bounded script.
	ConstantRepeatMax = 1 << 16
)

// Verdict is what is known of a script. Where something is not proven, the line and the reason are of the first place
// that prevents it.
type Verdict struct {
	KeysProven    bool
	KeysLine      int
	KeysReason    string
	Bounded       bool
	BoundedLine   int
	BoundedReason string
}

// TooLong is what is known of a script that is longer than SourceMax.
var TooLong = Verdict{KeysLine: 1, KeysReason: "longer than 64 KB", BoundedLine: 1, BoundedReason: "longer than 64 KB"}

// Chunk analyses a parsed script. keys says where a command's keys are.
func Chunk(stmts []ast.Stmt, keys KeyFinder) Verdict {
	a := &analyzer{keys: keys, callees: map[*ast.FuncCallExpr]value{}, results: map[ast.Expr]value{}}
	if !a.resolve(stmts) {
		return Verdict{
			KeysLine: a.deepLine, KeysReason: "nested too deeply",
			BoundedLine: a.deepLine, BoundedReason: "nested too deeply",
		}
	}
	a.infer()
	v := Verdict{KeysProven: a.keysReason == "", KeysLine: a.keysLine, KeysReason: a.keysReason}
	b := newBounds(a)
	b.run()
	v.Bounded, v.BoundedLine, v.BoundedReason = b.reason == "", b.line, b.reason
	return v
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
	results map[ast.Expr]value

	changed     bool // something rose in this pass
	checking    bool // the last pass: report
	keysReason  string
	keysLine    int
	keysTouched bool // KEYS may have been changed, or may be reached under another name
	argsTouched bool // ARGV likewise

	// The first global that is not followed, or another reason to give up on both proofs.
	globalReason string
	globalLine   int
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
	leaked  bool  // and by others than pcall and the like, to which it was handed
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

// giveUp notes a reason to prove nothing at all.
func (a *analyzer) giveUp(line int, format string, args ...any) {
	a.keysFail(line, format, args...)
	if a.checking && (a.globalReason == "" || line < a.globalLine) {
		a.globalLine, a.globalReason = line, fmt.Sprintf(format, args...)
	}
}

// valueOf is what an expression was found to be.
func (a *analyzer) valueOf(e ast.Expr) value { return a.results[e] }

func (a *analyzer) isTable(e ast.Expr, k kind) bool { return a.results[e].kind == k }
