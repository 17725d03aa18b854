package replication

// What replicas are sent that know Redis's types alone. All replicas have one stream with one count of bytes, or a replica
// could not take its primary's place, nor go on at another one. So a command that such a replica does not know is replaced,
// on its way to that replica, by as many bytes that change nothing there: a PING with a text as long as it takes.
//
// Rejected: two streams, since a replica that feeds others gets one of them and would have to make up the other, with
// names and offsets that nobody else knows; and empty lines, each of which Redis reads like a command of its own, and counts
// with the next one.

import (
	"bytes"
	"strconv"
)

// Plain turns what a cursor reads into what a plain replica is sent. The zero value begins at the beginning of a command.
type Plain struct {
	// Native tells whether a command is for limitkv alone.
	Native func(command []byte) bool
	// LeftOut counts those that were.
	LeftOut int64

	scan scan
	part []byte // a command that is not complete yet
}

// Turn appends to out what stands for b. What is not complete waits for more. It reports false for what is no stream.
func (p *Plain) Turn(out, b []byte) ([]byte, bool) {
	if len(p.part) > 0 {
		b = append(p.part, b...)
		p.part = b[:0]
	}
	begin := 0 // of what is not in out yet
	at := 0    // of the command
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

// Waiting is how many bytes wait to be complete.
func (p *Plain) Waiting() int { return len(p.part) }

// scan finds the end of a command. It goes on where it left off when it is called again with more of the same bytes.
type scan struct {
	pos  int
	left int // words, once begun
	on   bool
}

// command returns how long the command is that b begins with, 0 if it is not all there.
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

// header reads a line with a kind and a number. next is behind it, 0 if it is not all there.
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

// Word returns the first word of a command, which is whole, and those behind it, of which Word gives the next. head is for
// the first call: whether the count of words is to be passed over.
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

// pingHead and what follows are a PING, with and without a text.
const (
	pingHead = "*2\r\n$4\r\nPING\r\n$"
	ping     = "*1\r\n$4\r\nPING\r\n"
)

// AppendFiller appends n bytes that a replica counts and that change nothing there.
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
