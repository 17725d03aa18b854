package resp

// The parser of requests.

import (
	"bytes"
	"slices"
)

// Parser splits a byte stream into commands as Redis's networking.c does, with its
// peculiarities: it checks neither the line feed after a carriage return nor the
// two bytes after a bulk, and a zero byte ends the search for the end of a line
// (so "\x00PING\r\n" waits for 64 KB of line and then is an error).
//
// It has a fast path and a slow path. Most commands lie complete in the buffer, in
// the form that clients write. The fast path cuts them in one pass and appends
// their arguments directly to the caller's slice. The slow path takes everything
// else (an incomplete command, an unusual line). It remembers its position, so
// each byte of a command is parsed once, in however many pieces the command arrives.
type Parser struct {
	// MaxBulk is the longest argument accepted, in bytes; 0 means
	// DefaultMaxBulkBytes.
	MaxBulk int64

	// Unauthenticated applies Redis's limits for clients that have yet to
	// authenticate: 10 arguments, 16 KB each.
	Unauthenticated bool

	// Large is the size from which an argument gets its own memory if it does not arrive in one read, see large.go; 0: no
	// argument does. Next then consumes the command in parts, and returns its arguments when it consumes the last two bytes.
	// It returns the same arguments again until forgetLarge is called.
	Large int

	spans   []span // arguments of the command under way
	scratch []byte // unquoted arguments of inline commands

	pos     int // how far the command under way is parsed, from its first byte
	missing int // arguments still to come of the multibulk under way
	bulk    int // length of the argument under way, -1 if not known yet
	partway bool

	large *large // the command under way, if it has a large argument
	waits bool   // the command under way has a large argument, but must wait until the commands before it have run
}

// span is where an argument lies, relative to the first byte of its command.
type span struct{ off, n uint32 }

// ProtocolError is the text of an error after which the connection must end,
// in Redis's words: "Protocol error: invalid bulk length".
type ProtocolError string

func (e ProtocolError) Error() string { return string(e) }

const (
	errTooBigInline   = ProtocolError("Protocol error: too big inline request")
	errQuotes         = ProtocolError("Protocol error: unbalanced quotes in request")
	errTooBigMbulk    = ProtocolError("Protocol error: too big mbulk count string")
	errTooBigBulk     = ProtocolError("Protocol error: too big bulk count string")
	errMultibulk      = ProtocolError("Protocol error: invalid multibulk length")
	errBulk           = ProtocolError("Protocol error: invalid bulk length")
	errUnauthMbulk    = ProtocolError("Protocol error: unauthenticated multibulk length")
	errUnauthBulk     = ProtocolError("Protocol error: unauthenticated bulk length")
	errTooBigCommand  = ProtocolError("Protocol error: command too long")
	errExpectedDollar = "Protocol error: expected '$', got '"
)

// Next parses the first command of buf and appends its arguments to args. They
// alias buf (those of an inline command with quotes alias the parser's own
// memory) and are valid until buf changes or Release is called.
//
// n is how many bytes of buf were consumed. n = 0 without an error means that
// the command is not complete: call again with the same bytes and more behind
// them. n > 0 with no arguments appended means that there was nothing to run (an
// empty line, "*0"). After an error the stream cannot be parsed any further.
func (p *Parser) Next(buf []byte, args [][]byte) (n int, out [][]byte, err error) {
	if p.partway {
		return p.resume(buf, args)
	}
	if p.large != nil {
		return p.takeLarge(buf, args)
	}
	if len(buf) == 0 {
		return 0, args, nil
	}
	if buf[0] != '*' {
		return p.inline(buf, args)
	}
	count, pos := fastLength(buf, 1)
	if pos == 0 || p.Unauthenticated {
		return p.resume(buf, args)
	}
	if count == 0 {
		return pos, args, nil
	}
	maxBulk := p.maxBulk()
	out = args
	for ; count > 0; count-- {
		// Lengths of one and two digits are read here, others by fastLength.
		length, start := 0, 0
		if pos+5 <= len(buf) {
			h := (*[5]byte)(buf[pos:])
			if h[0] != '$' {
				break
			}
			switch tens, ones := h[1]-'0', h[2]-'0'; {
			case h[2] == '\r' && tens <= 9:
				length, start = int(tens), pos+4
			case h[3] == '\r' && tens-1 <= 8 && ones <= 9:
				length, start = int(tens)*10+int(ones), pos+5
			default:
				length, start = fastLength(buf, pos+1)
			}
		}
		if start == 0 || int64(length) > maxBulk || len(buf)-start < length+2 {
			break
		}
		pos = start + length + 2
		out = append(out, buf[start:start+length:start+length])
	}
	if count == 0 {
		return pos, out, nil
	}
	p.remember(buf, out[len(args):], count)
	return p.resume(buf, args)
}

// fastLength reads the digits at buf[i:] up to the end of their line. It returns
// the number and where the next line starts. next is 0 if the line is incomplete or
// not in the plain form; then the slow path decides what it is.
func fastLength(buf []byte, i int) (n, next int) {
	if i >= len(buf) {
		return 0, 0
	}
	c := buf[i] - '0'
	if c > 9 || c == 0 && (i+1 >= len(buf) || buf[i+1] != '\r') {
		return 0, 0
	}
	n = int(c)
	for end := i + 8; ; {
		i++
		if i+1 >= len(buf) || i > end {
			return 0, 0
		}
		c = buf[i] - '0'
		if c > 9 {
			break
		}
		n = n*10 + int(c)
	}
	if buf[i] != '\r' {
		return 0, 0
	}
	return n, i + 2
}

// remember stores what the fast path has found, so that the slow path continues from there.
// It computes the positions of the arguments from their lengths, since the fast path accepts
// only lines without padding.
func (p *Parser) remember(buf []byte, found [][]byte, missing int) {
	_, pos := fastLength(buf, 1)
	for _, a := range found {
		pos += 1 + digits(len(a)) + 2
		p.spans = append(p.spans, span{uint32(pos), uint32(len(a))})
		pos += len(a) + 2
	}
	p.partway, p.pos, p.missing, p.bulk = true, pos, missing, -1
}

func digits(n int) int {
	d := 1
	for n >= 10 {
		n /= 10
		d++
	}
	return d
}

// resume continues the multibulk under way, or starts one.
func (p *Parser) resume(buf []byte, args [][]byte) (int, [][]byte, error) {
	if p.missing == 0 { // the line with the count
		if buf[0] != '*' {
			return p.inline(buf, args)
		}
		v, ok, next, err := p.line(buf, errTooBigMbulk)
		if err != nil || next == 0 {
			return 0, args, err
		}
		switch {
		case !ok || v > multibulkArgsMax:
			return 0, args, errMultibulk
		case v > unauthArgsMax && p.Unauthenticated:
			return 0, args, errUnauthMbulk
		case v <= 0:
			p.reset()
			return next, args, nil
		}
		p.partway, p.pos, p.missing, p.bulk = true, next, int(v), -1
	}
	for p.missing > 0 {
		if p.bulk < 0 {
			if p.pos >= len(buf) {
				return 0, args, nil
			}
			length, next := 0, 0
			if buf[p.pos] == '$' {
				length, next = fastLength(buf, p.pos+1)
			}
			v, ok := int64(length), true
			if next == 0 {
				var err error
				v, ok, next, err = p.line(buf, errTooBigBulk)
				if err != nil || next == 0 {
					return 0, args, err
				}
			}
			if err := p.bulkError(buf[p.pos], v, ok, int64(next)); err != nil {
				return 0, args, err
			}
			p.pos, p.bulk = next, int(v)
		}
		if len(buf)-p.pos < p.bulk+2 {
			if p.takes(p.bulk) {
				if p.waits = len(args) > 0; !p.waits {
					return p.begin(buf), args, nil
				}
			}
			return 0, args, nil
		}
		if len(p.spans) == cap(p.spans) { // doubled, since append grows large slices by a quarter
			p.spans = slices.Grow(p.spans, max(8, min(len(p.spans), p.missing)))
		}
		p.spans = append(p.spans, span{uint32(p.pos), uint32(p.bulk)})
		p.pos += p.bulk + 2
		p.bulk = -1
		p.missing--
	}
	for _, s := range p.spans {
		args = append(args, buf[s.off:s.off+s.n:s.off+s.n])
	}
	n := p.pos
	p.reset()
	return n, args, nil
}

// bulkError returns the error in the line that announces an argument, nil for none. The line begins with kind. before is how
// many bytes of the command come before the argument.
func (p *Parser) bulkError(kind byte, length int64, ok bool, before int64) error {
	switch {
	case kind != '$':
		return ProtocolError(errExpectedDollar + string([]byte{kind}) + "'")
	case !ok || length < 0 || length > p.maxBulk():
		return errBulk
	case length > unauthBulkBytesMax && p.Unauthenticated:
		return errUnauthBulk
	case before+length+2 > CommandBytesMax:
		return errTooBigCommand
	}
	return nil
}

// line reads the number on the line that starts at p.pos, behind its first
// byte. next is 0 if the line is incomplete. ok tells whether it holds a number.
func (p *Parser) line(buf []byte, tooBig ProtocolError) (v int64, ok bool, next int, err error) {
	rest := buf[p.pos:]
	if len(rest) > lineBytesMax+1 {
		rest = rest[:lineBytesMax+1]
	}
	end := bytes.IndexByte(rest, '\r')
	if zero := bytes.IndexByte(rest[:max(end, 0)], 0); zero >= 0 || end < 0 {
		if len(buf)-p.pos > lineBytesMax {
			return 0, false, 0, tooBig
		}
		p.partway = true
		return 0, false, 0, nil
	}
	if end+2 > len(buf)-p.pos {
		p.partway = true
		return 0, false, 0, nil
	}
	if end > 0 {
		v, ok = ParseInt(rest[1:end])
	}
	return v, ok, p.pos + end + 2, nil
}

// Release says that the caller no longer needs the arguments returned so far.
func (p *Parser) Release() {
	p.scratch = p.scratch[:0]
	if cap(p.scratch) > scratchKeptMax {
		p.scratch = nil
	}
}

// reset forgets the command under way.
func (p *Parser) reset() {
	p.partway, p.pos, p.missing, p.bulk, p.waits = false, 0, 0, -1, false
	p.spans = p.spans[:0]
	if cap(p.spans) > spansKeptMax {
		p.spans = nil
	}
}

func (p *Parser) maxBulk() int64 {
	if p.MaxBulk > 0 {
		return p.MaxBulk
	}
	return DefaultMaxBulkBytes
}

// Need is how many bytes, counted from the first byte of the command under way,
// the buffer must hold before parsing can continue. So the caller can make a
// buffer for all of a long argument at once. 0 means unknown.
func (p *Parser) Need() int {
	if p.partway && p.missing > 0 && p.bulk >= 0 {
		return p.pos + p.bulk + 2
	}
	return 0
}

// Parsed is how many bytes of the command under way have been parsed, and how many
// arguments it has so far.
func (p *Parser) Parsed() (bytes, args int) { return p.pos, len(p.spans) }
