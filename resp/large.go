package resp

// Large arguments. One that comes in many reads is put into memory of its own, of exactly its length, and its command is
// given to the handler with the right to keep it: a value of 300 MB is then there once, and not in a buffer that grew, and
// in the keyspace again. The arguments before and behind it are copied: the buffer has been read into since.
//
// Such a command is parsed only where no other of its batch waits to be run, since its bytes are consumed as they come and
// could not be parsed again. Its last two stay in the buffer until it has run: while they are there, it is found again.

import (
	"slices"
	"strings"
	"unsafe"
)

// aheadTimes bounds what an announced length makes us reserve: so many times what has come. An argument moves whenever
// that was all that it had, so an eighth of it, and an eighth of that, is what its growing takes beside it.
const aheadTimes = 8

// large is a command with a large argument while it comes, and until it has run.
type large struct {
	args    [][]byte // those that are complete
	arg     []byte   // the one that comes, nil if none does
	length  int      // its length
	rest    []byte   // where short arguments are put
	missing int      // arguments that are not complete
	size    int      // bytes of the command that were consumed
}

// takes tells whether an argument of which bytes are missing is to have memory of its own.
func (p *Parser) takes(length int) bool { return p.Large > 0 && length >= p.Large }

// begin has the command under way go on with memory of its own. Its next argument is large. buf begins with the command.
func (p *Parser) begin(buf []byte) (n int) {
	l := &large{missing: p.missing, size: p.pos}
	for _, s := range p.spans {
		l.add(buf[s.off : s.off+s.n])
	}
	l.length = p.bulk
	p.reset()
	p.large = l
	l.fill(buf[l.size:])
	return l.size
}

// add copies a complete argument.
func (l *large) add(b []byte) {
	if len(b) > cap(l.rest)-len(l.rest) { // those before stay where they are
		l.rest = make([]byte, 0, max(len(b), min(2*cap(l.rest), largeRestMax), largeRestMin))
	}
	from := len(l.rest)
	l.rest = append(l.rest, b...)
	if len(l.args) == cap(l.args) {
		l.args = slices.Grow(l.args, max(8, min(len(l.args), l.missing)))
	}
	l.args = append(l.args, l.rest[from:len(l.rest):len(l.rest)])
}

// fill takes what there is of the large argument, and returns how much that is.
func (l *large) fill(b []byte) (n int) {
	b = b[:min(len(b), l.length-len(l.arg))]
	if need := len(l.arg) + len(b); need > cap(l.arg) || l.arg == nil {
		room := l.length
		for room/aheadTimes >= max(need, 1) {
			room /= aheadTimes
		}
		l.arg = append(bytesFor(room), l.arg...)
	}
	l.arg = append(l.arg, b...)
	l.size += len(b)
	return len(b)
}

// bytesFor is an empty slice with room for exactly n bytes, which are not cleared: memory that nobody has written to takes
// none of the system's.
func bytesFor(n int) []byte {
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), n)[:0:n]
}

// takeLarge goes on with a command with a large argument. n is as Next's.
func (p *Parser) takeLarge(buf []byte, args [][]byte) (n int, out [][]byte, err error) {
	l := p.large
	for l.missing > 0 {
		if l.arg != nil {
			k := l.fill(buf[n:])
			n += k
			if len(l.arg) < l.length || len(buf)-n < 2 {
				return n, args, nil
			}
			l.args = append(l.args, l.arg)
			l.arg = nil
			if l.missing--; l.missing > 0 {
				n, l.size = n+2, l.size+2
			}
			continue
		}
		length, next, err := p.length(buf[n:], l.size)
		switch {
		case next == 0 && n > 0:
			return n, args, nil // an error is found again
		case next == 0:
			return 0, args, err
		case p.takes(length):
			n, l.size, l.length = n+next, l.size+next, length
			n += l.fill(buf[n:])
			continue
		case len(buf)-n-next < length+2:
			return n, args, nil
		}
		l.add(buf[n+next : n+next+length])
		n, l.size = n+next+length, l.size+next+length
		if l.missing--; l.missing > 0 {
			n, l.size = n+2, l.size+2
		}
	}
	if n > 0 {
		return n, args, nil
	}
	if len(buf) < 2 {
		return 0, args, nil
	}
	return 2, append(args, l.args...), nil
}

// length reads the line with the length of the next argument, which is the first of buf. next is 0 if it is not complete.
func (p *Parser) length(buf []byte, before int) (n, next int, err error) {
	if len(buf) == 0 {
		return 0, 0, nil
	}
	p.pos = 0
	v, ok, next, err := p.line(buf, errTooBigBulk)
	p.partway = false
	if err != nil || next == 0 {
		return 0, 0, err
	}
	if err := p.bulkError(buf[0], v, ok, int64(before+next)); err != nil {
		return 0, 0, err
	}
	return int(v), next, nil
}

// ready tells whether the last command that Next returned has memory of its own for its large arguments.
func (p *Parser) ready() bool { return p.large != nil && p.large.missing == 0 }

// forgetLarge ends a command with large arguments, which has run.
func (p *Parser) forgetLarge() { p.large = nil }

// held is how many bytes of the command under way the parser has, and how many of them are of an argument that comes.
func (p *Parser) held() (all, coming int) {
	if p.large == nil {
		return 0, 0
	}
	return p.large.size, len(p.large.arg)
}
