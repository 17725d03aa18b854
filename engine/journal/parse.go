package journal

// The parser reads commands from bytes of the log: arrays of bulk strings, with comment lines between them, and with
// MULTI and EXEC around commands that belong together.

import (
	"bytes"
	"strconv"
)

// Command is one command of the log.
type Command struct {
	// DB is the database that was selected.
	DB   int
	Args [][]byte
}

// Unit is applied as a whole: one command, or the commands between MULTI and EXEC. It is valid until the next one is
// read.
type Unit struct {
	// Offset is where the unit begins in its file.
	Offset   int64
	Commands []Command
	// Marked says that the unit is in a group with a mark, so that limitkv wrote it.
	Marked bool
}

// commentMax is how long a comment line may be, as in Redis.
const commentMax = 1024

// argsMax is how many arguments a command may have: a damaged number must not allocate too much memory.
const argsMax = 1 << 30

// outcome is how a parser ended.
type outcome int

const (
	whole   outcome = iota
	partial         // the bytes end inside a unit
	bad
)

// parser reads units from a buffer. It copies nothing: arguments point into the buffer.
type parser struct {
	db       int
	dbs      []int // of the unit's commands
	dbMax    int   // databases have lower numbers; 0: any number
	stopAt   int64 // Unix seconds: a later time stamp ends the log; 0: none does
	args     [][]byte
	ends     []int // of the unit's commands in args
	need     int   // after a partial outcome: the least size of the unit in bytes
	reason   string
	badAt    int
	stopped  bool
	multi    bool // MULTI without EXEC so far
	commands []Command
	taken    Unit
}

func (p *parser) fail(at int, reason string) (int, outcome) {
	p.badAt, p.reason = at, reason
	return 0, bad
}

// unit reads the unit at the beginning of b and returns where it ends. SELECT alone is a unit without commands.
func (p *parser) unit(b []byte) (end int, o outcome) {
	p.args, p.ends, p.dbs = p.args[:0], p.ends[:0], p.dbs[:0]
	db, i := p.db, 0
	p.multi = false
	for {
		if p.multi && i < len(b) && b[i] == '#' {
			n, o := p.comment(b[i:])
			if o != whole || p.stopped {
				p.badAt += i
				p.need += i
				return 0, o
			}
			i += n
			continue
		}
		first := len(p.args)
		next, o := p.command(b, i)
		if o != whole {
			return 0, o
		}
		args := p.args[first:]
		frame := true // Whether it only structures the log and is no command of the unit.
		switch {
		case len(args) == 2 && is(args[0], "SELECT"):
			// A SELECT that fails changes nothing. It stays a command, so that Apply reports the error.
			if n, err := strconv.Atoi(string(args[1])); err == nil && n >= 0 && (p.dbMax == 0 || n < p.dbMax) {
				db = n
			} else {
				frame = false
			}
		case len(args) == 1 && is(args[0], "MULTI"):
			p.multi = true
			i = next
			p.args = p.args[:first]
			continue
		case len(args) == 1 && is(args[0], "EXEC"):
			p.multi = false
		default:
			frame = false
		}
		i = next
		if frame {
			p.args = p.args[:first]
		} else {
			p.ends = append(p.ends, len(p.args))
			p.dbs = append(p.dbs, db)
		}
		if !p.multi {
			p.db = db
			return i, whole
		}
	}
}

// take returns the unit that was read, its arguments as one slice for each command.
func (p *parser) take(offset int64) *Unit {
	p.commands = p.commands[:0]
	from := 0
	for i, end := range p.ends {
		p.commands = append(p.commands, Command{p.dbs[i], p.args[from:end:end]})
		from = end
	}
	p.taken = Unit{Offset: offset, Commands: p.commands}
	return &p.taken
}

// is compares a word with one in capitals, ignoring case.
func is(word []byte, with string) bool {
	if len(word) != len(with) {
		return false
	}
	for i := range len(with) {
		if word[i]&^0x20 != with[i] {
			return false
		}
	}
	return true
}

// command reads the command at i.
func (p *parser) command(b []byte, i int) (next int, o outcome) {
	argc, i, o := p.number(b, i, '*')
	if o != whole {
		return 0, o
	}
	if argc < 1 || argc > argsMax {
		return p.fail(i, "a command without arguments, or with too many")
	}
	for ; argc > 0; argc-- {
		var n int
		at := i
		// Nearly all lengths have one or two digits. The general way takes twice the time.
		if i+5 <= len(b) && b[i] == '$' && b[i+1]-'0' <= 9 && b[i+2] == '\r' && b[i+3] == '\n' {
			n, i = int(b[i+1]-'0'), i+4
		} else if i+5 <= len(b) && b[i] == '$' && b[i+1]-'0' <= 9 && b[i+2]-'0' <= 9 && b[i+3] == '\r' && b[i+4] == '\n' {
			n, i = int(b[i+1]-'0')*10+int(b[i+2]-'0'), i+5
		} else if n, i, o = p.number(b, i, '$'); o != whole {
			return 0, o
		}
		if len(b)-i < n+2 {
			p.need = i + n + 2
			return 0, partial
		}
		if b[i+n] != '\r' || b[i+n+1] != '\n' {
			return p.fail(at, "an argument is longer or shorter than it says")
		}
		p.args = append(p.args, b[i:i+n:i+n])
		i += n + 2
	}
	return i, whole
}

// number reads a line of a sign and a number.
func (p *parser) number(b []byte, i int, sign byte) (n, next int, o outcome) {
	at := i
	if i >= len(b) {
		p.need = len(b) + 1
		return 0, 0, partial
	}
	if b[i] != sign {
		_, o = p.fail(at, "expected '"+string(sign)+"', got "+strconv.QuoteToASCII(string(b[i:i+1])))
		return 0, 0, o
	}
	for i++; i < len(b) && b[i]-'0' <= 9 && i-at <= 18; i++ {
		n = n*10 + int(b[i]-'0')
	}
	switch {
	case i == len(b), i+1 == len(b) && b[i] == '\r' && i-at > 1:
		p.need = len(b) + 1
		return 0, 0, partial
	case i-at == 1 || n < 0 || b[i] != '\r' || b[i+1] != '\n':
		_, o = p.fail(at, "a length that is no number")
		return 0, 0, o
	}
	return n, i + 2, whole
}

// comment reads a comment line, and stops the parser at a time stamp later than stopAt.
func (p *parser) comment(b []byte) (end int, o outcome) {
	n := bytes.IndexByte(b[:min(len(b), commentMax)], '\n')
	if n < 0 {
		if len(b) >= commentMax {
			return p.fail(0, "a comment line that does not end")
		}
		p.need = len(b) + 1
		return 0, partial
	}
	if bytes.IndexByte(b[:n], 0) >= 0 {
		// The line's end was lost with its sector, and a later line's end is taken for it.
		return p.fail(0, "a comment line with a byte that is 0")
	}
	if p.stopAt != 0 && bytes.HasPrefix(b[:n], []byte("#TS:")) {
		seconds, err := strconv.ParseInt(string(bytes.TrimSuffix(b[4:n], []byte("\r"))), 10, 64)
		if err != nil {
			return p.fail(0, "Invalid timestamp annotation")
		}
		p.stopped = seconds > p.stopAt
	}
	return n + 1, whole
}
