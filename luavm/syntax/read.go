package syntax

// Reading tokens, for the parser and the compiler: a reader always has the next token at hand, as current.

import "github.com/limitkv/limitkv/luavm/budget"

const levelsMax = 200 // nested blocks and expressions

// reader reads the tokens of a source.
type reader struct {
	lexer
	current  lexeme
	lastLine int // line of the token before the current one
	level    int
	budget   *budget.Budget // counts steps while the source is read, unless nil
	asked    int            // position up to which steps have been counted
}

// askBytes is how many bytes are read between two uses of the budget; stepBytes is how many bytes cost one step.
const (
	askBytes  = 512
	stepBytes = 4
)

func (p *reader) advance() {
	p.lastLine = p.line
	p.scan(&p.current)
	if read := p.pos - p.asked; read >= askBytes && p.budget != nil {
		p.asked = p.pos
		p.budget.Use(read / stepBytes)
	}
}

func (p *reader) at(t token) bool { return p.current.token == t }

// accept skips a token if it is the current one.
func (p *reader) accept(t token) bool {
	if !p.at(t) {
		return false
	}
	p.advance()
	return true
}

// syntaxError fails at the current token.
func (p *reader) syntaxError(format string, args ...any) { p.fail(p.current.token, format, args...) }

func (p *reader) check(t token) {
	if !p.at(t) {
		p.syntaxError("'%s' expected", t)
	}
}

func (p *reader) expect(t token) {
	p.check(t)
	p.advance()
}

// closing skips the token t, which closes the token open of the given line.
func (p *reader) closing(t, open token, line int) {
	if p.accept(t) {
		return
	}
	if line == p.line {
		p.check(t)
	}
	p.syntaxError("'%s' expected (to close '%s' at line %d)", t, open, line)
}

func (p *reader) name() string {
	p.check(tkName)
	s := p.current.text
	p.advance()
	return s
}

func (p *reader) enter() {
	p.level++
	if p.level > levelsMax {
		p.fail(0, "chunk has too many syntax levels")
	}
}

func (p *reader) leave() { p.level-- }

// blockEnds tells whether the current token ends a block.
func (p *reader) blockEnds() bool {
	switch p.current.token {
	case tkElse, tkElseif, tkEnd, tkUntil, tkEOF:
		return true
	}
	return false
}
