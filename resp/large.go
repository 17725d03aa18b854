package resp

// Large arguments. An argument that arrives in many reads is put into its own memory, of exactly its length, and the handler
// may keep that memory. So a value of 300 MB is in memory once, and not a second time in a read buffer. The shorter arguments
// of the command are copied, since later reads overwrite the buffer.
//
// Such a command is parsed only when no earlier command of its batch waits to be run, since its bytes are consumed as they
// arrive and could not be parsed again. Its last two bytes stay in the buffer until it has run: as long as they are there, the
// parser returns the command again.

import (
	"slices"
	"strings"
	"unsafe"
)

// aheadTimes bounds how much memory an announced length alone makes us reserve: that many times the bytes that have arrived.
// When the reserved memory is full, the argument moves to a larger one. So the copies that remain from growing are an eighth
// of the argument, an eighth of that, and so on.
const aheadTimes = 8

// large is a command with a large argument, from the first bytes of that argument until the command has run.
type large struct {
	args    [][]byte // the complete arguments
	arg     []byte   // the large argument under way, nil for none
	length  int      // its full length
	rest    []byte   // buffer for short arguments
	missing int      // number of incomplete arguments
	size    int      // bytes of the command consumed so far
}

// takes tells whether an incomplete argument of this length gets its own memory.
func (p *Parser) takes(length int) bool { return p.Large > 0 && length >= p.Large }

// begin switches the command under way, whose next argument is large, to p.large. buf begins with the command.
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
	if len(b) > cap(l.rest)-len(l.rest) { // earlier arguments stay in the old buffer
		l.rest = make([]byte, 0, max(len(b), min(2*cap(l.rest), largeRestMax), largeRestMin))
	}
	from := len(l.rest)
	l.rest = append(l.rest, b...)
	if len(l.args) == cap(l.args) {
		l.args = slices.Grow(l.args, max(8, min(len(l.args), l.missing)))
	}
	l.args = append(l.args, l.rest[from:len(l.rest):len(l.rest)])
}

// fill copies the bytes of the large argument that have arrived, and returns how many these are.
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

// bytesFor returns an empty slice with room for exactly n bytes. The room is not cleared, since the system provides physical
// memory only for pages that were written to.
func bytesFor(n int) []byte {
	var b strings.Builder
	b.Grow(n)
	b.WriteByte(0)
	return unsafe.Slice(unsafe.StringData(b.String()), n)[:0:n]
}

// takeLarge continues a command with a large argument. n is as in Next.
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
			return n, args, nil // an error is found again by the next call
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

// length reads the line with the length of the next argument, at the start of buf. next is 0 if the line is incomplete.
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

// ready tells whether the last command that Next returned has large arguments in their own memory.
func (p *Parser) ready() bool { return p.large != nil && p.large.missing == 0 }

// forgetLarge ends a command with large arguments, after it has run.
func (p *Parser) forgetLarge() { p.large = nil }

// held is how many bytes of the command under way the parser has consumed into p.large, and how many of them belong to an
// incomplete argument.
func (p *Parser) held() (all, coming int) {
	if p.large == nil {
		return 0, 0
	}
	return p.large.size, len(p.large.arg)
}
