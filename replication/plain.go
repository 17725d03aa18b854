package replication

// What replicas that know only Redis's types receive. All replicas have one stream with the same offsets: otherwise a
// replica could not take its primary's place, nor continue at another one. So a command that such a replica does not
// know is replaced, only for that replica, by as many bytes without effect: a PING with a text of the right length.
//
// Rejected: two streams, since a replica that feeds others receives one of them and would have to construct the other,
// with IDs and offsets that no other server knows. Also rejected: empty lines, since Redis reads each of them like a
// command, and adds its length to the next one's.

import (
	"bytes"
	"strconv"
)

// Plain converts what a cursor reads to what a plain replica receives. The zero value begins at the beginning of a
// command.
type Plain struct {
	// Native reports whether only limitkv understands a command.
	Native func(command []byte) bool
	// LeftOut counts commands that were replaced.
	LeftOut int64

	scan scan
	part []byte // an incomplete command
}

// Turn appends the converted bytes of b to out. An incomplete command waits for its rest. Turn returns false if b is not
// part of a stream of commands.
func (p *Plain) Turn(out, b []byte) ([]byte, bool) {
	if len(p.part) > 0 {
		b = append(p.part, b...)
		p.part = b[:0]
	}
	begin := 0 // where the bytes begin that are not in out yet
	at := 0    // where the command begins
	for {
		n, ok := p.scan.command(b[at:])
		if !ok {
			return out, false
		}
		if n == 0 {
			break
		}
		if p.Native(b[at : at+n]) {
			out = append(out, b[begin:at]...)
			out = AppendFiller(out, n)
			begin = at + n
			p.LeftOut++
		}
		at += n
	}
	out = append(out, b[begin:at]...)
	p.part = append(p.part[:0], b[at:]...)
	if len(p.part) == 0 && cap(p.part) > blockBytesMax {
		p.part = nil
	}
	return out, true
}

// Waiting is how many bytes of an incomplete command wait for its rest.
func (p *Plain) Waiting() int { return len(p.part) }

// scan finds the end of a command. It resumes where it left off when it is called with more of the same bytes.
type scan struct {
	pos  int
	left int // words to come, if on
	on   bool
}

// command returns the length of the command at the beginning of b, 0 if it is incomplete.
func (s *scan) command(b []byte) (n int, ok bool) {
	if !s.on {
		if len(b) == 0 {
			return 0, true
		}
		if b[0] == '\n' {
			return 1, true
		}
		words, next, ok := header(b, 0, '*')
		if !ok || next == 0 {
			return 0, ok
		}
		s.pos, s.left, s.on = next, words, true
	}
	for s.left > 0 {
		size, next, ok := header(b, s.pos, '$')
		if !ok || next == 0 || len(b)-next < size+2 {
			return 0, ok
		}
		s.pos = next + size + 2
		s.left--
	}
	s.on = false
	return s.pos, true
}

// header reads a line of a kind and a number. next is the place after it, 0 if it is incomplete.
func header(b []byte, at int, kind byte) (n, next int, ok bool) {
	if at >= len(b) {
		return 0, 0, true
	}
	if b[at] != kind {
		return 0, 0, false
	}
	for i := at + 1; i < len(b); i++ {
		switch c := b[i]; {
		case c >= '0' && c <= '9' && i-at < 12:
			n = n*10 + int(c-'0')
		case c == '\r' && i > at+1:
			if i+1 >= len(b) {
				return 0, 0, true
			}
			return n, i + 2, b[i+1] == '\n'
		default:
			return 0, 0, false
		}
	}
	return 0, 0, true
}

// Word returns the first word of a complete command, and the rest, from which Word returns the next. In the first call
// head is true: Word then skips the count of words.
func Word(command []byte, head bool) (word, rest []byte) {
	at := 0
	if head {
		_, at, _ = header(command, 0, '*')
	}
	size, next, ok := header(command, at, '$')
	if !ok || next == 0 || len(command) < next+size {
		return nil, nil
	}
	return command[next : next+size], command[min(next+size+2, len(command)):]
}

// pingHead is the beginning of a PING with a text, ping a PING without one.
const (
	pingHead = "*2\r\n$4\r\nPING\r\n$"
	ping     = "*1\r\n$4\r\nPING\r\n"
)

// AppendFiller appends n bytes that a replica counts but that have no effect.
func AppendFiller(out []byte, n int) []byte {
	const around = len(pingHead) + len("\r\n\r\n")
	for n > around {
		for digits := 1; digits <= n-around; digits++ {
			text := n - around - digits
			if size := strconv.Itoa(text); len(size) == digits {
				out = append(append(append(out, pingHead...), size...), "\r\n"...)
				out = append(out, bytes.Repeat([]byte{'.'}, text)...)
				return append(out, "\r\n"...)
			}
		}
		out = append(out, '\n') // no text has this length: 10 takes one digit more than 9
		n--
	}
	for ; n > 0 && n != len(ping); n-- {
		out = append(out, '\n')
	}
	if n == len(ping) {
		out = append(out, ping...)
	}
	return out
}
