package main

// Parsing replies. The generator must be cheaper than the servers it loads, so a reply is only scanned, never built.

import "errors"

// reply is what a workload needs of a reply.
type reply struct {
	kind byte // its first byte
	null bool
	// n is the value of an integer, the length of a string or the number of elements of an aggregate.
	n int64
	// first is the first element of an aggregate if that is an integer.
	first int64
	// text is the line of a status or an error, without its end.
	text []byte
}

const malformed = -1

var errReply = errors.New("the server's answer is not the Redis protocol")

// scan parses the reply at the start of b and returns its size. It returns 0 if the reply is not complete, malformed if it is
// invalid.
func scan(b []byte, r *reply) int {
	kind, n, text, pos := line(b)
	if pos <= 0 {
		return pos
	}
	*r = reply{kind: kind, n: n, text: text}
	missing := int64(0)
	switch kind {
	case ':', '+', '-', ',', '#', '(':
		return pos
	case '_':
		r.null = true
		return pos
	case '$', '=', '!':
		if n < 0 {
			r.null = true
			return pos
		}
		pos += int(n) + 2
		if pos > len(b) {
			return 0
		}
		return pos
	case '*', '~', '>':
		missing = n
	case '%':
		missing = 2 * n
	default:
		return malformed
	}
	if n < 0 {
		r.null = true
		return pos
	}
	for first := true; missing > 0; first = false {
		kind, n, _, size := line(b[pos:])
		if size <= 0 {
			return size
		}
		pos += size
		missing--
		switch kind {
		case '$', '=', '!':
			if n >= 0 {
				pos += int(n) + 2
			}
		case '*', '~', '>':
			missing += max(n, 0)
		case '%':
			missing += 2 * max(n, 0)
		case ':':
			if first {
				r.first = n
			}
		case '+', '-', ',', '#', '(', '_':
		default:
			return malformed
		}
		if pos > len(b) {
			return 0
		}
	}
	return pos
}

// line parses the line at the start of b: its kind, its number if it has one, and its size.
func line(b []byte) (kind byte, n int64, text []byte, size int) {
	if len(b) < 3 {
		return 0, 0, nil, 0
	}
	kind = b[0]
	i := 1
	negative := b[1] == '-'
	if negative {
		i++
	}
	for i < len(b) && b[i]-'0' <= 9 {
		n = n*10 + int64(b[i]-'0')
		i++
	}
	if negative {
		n = -n
	}
	for i < len(b) && b[i] != '\r' {
		i++
	}
	if i+1 >= len(b) {
		return 0, 0, nil, 0
	}
	if b[i+1] != '\n' {
		return 0, 0, nil, malformed
	}
	return kind, n, b[1:i], i + 2
}
