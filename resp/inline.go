package resp

// Inline commands are lines as a person types them over telnet: words with
// blanks between them, quoted as in a shell. The rules are those of Redis's
// sdssplitargs. A line without quotes is cut in place; one with quotes is
// written to the parser's scratch buffer.

import "bytes"

// inline parses the line at the start of buf.
func (p *Parser) inline(buf []byte, args [][]byte) (int, [][]byte, error) {
	rest := buf
	if len(rest) > lineBytesMax+1 {
		rest = rest[:lineBytesMax+1]
	}
	// pos is how far the line was searched in earlier calls.
	end := bytes.IndexByte(rest[p.pos:], '\n')
	if end >= 0 {
		end += p.pos
	}
	if p.pos > 0 && bytes.IndexByte(rest[:p.pos], 0) >= 0 ||
		end >= 0 && bytes.IndexByte(rest[p.pos:end], 0) >= 0 {
		end = -1
	}
	if end < 0 {
		if len(buf) > lineBytesMax {
			return 0, args, errTooBigInline
		}
		p.partway, p.pos, p.missing, p.bulk = true, len(rest), 0, -1
		return 0, args, nil
	}
	n := end + 1
	line := rest[:end]
	if end > 0 && line[end-1] == '\r' {
		line = line[:end-1]
	}
	p.reset()
	if bytes.IndexByte(line, '"') < 0 && bytes.IndexByte(line, '\'') < 0 {
		return n, splitPlain(line, args), nil
	}
	out, ok := p.splitQuoted(line, args)
	if !ok {
		return 0, args, errQuotes
	}
	return n, out, nil
}

// isSpace is C's isspace.
func isSpace(c byte) bool { return c == ' ' || c-'\t' < 5 }

// endsWord is whether c ends an unquoted word: of the blanks, the vertical tab
// and the form feed do not.
func endsWord(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

func splitPlain(line []byte, args [][]byte) [][]byte {
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return args
		}
		start := i
		for i < len(line) && !endsWord(line[i]) {
			i++
		}
		args = append(args, line[start:i:i])
	}
}

// splitQuoted cuts a line with quotes; ok is false if they are unbalanced.
func (p *Parser) splitQuoted(line []byte, args [][]byte) (out [][]byte, ok bool) {
	// Words are never longer than the line they come from, so w does not move;
	// earlier commands of a batch keep the memory they are in.
	if cap(p.scratch)-len(p.scratch) < len(line) {
		p.scratch = make([]byte, 0, max(len(line), 256))
	}
	w := p.scratch
	out = args
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			p.scratch = w
			return out, true
		}
		start := len(w)
		for i < len(line) && !endsWord(line[i]) {
			c := line[i]
			i++
			if c != '"' && c != '\'' {
				w = append(w, c)
				continue
			}
			closed := false
			if c == '"' {
				w, i, closed = unquoteDouble(line, i, w)
			} else {
				w, i, closed = unquoteSingle(line, i, w)
			}
			// The closing quote must end the word.
			if !closed || i < len(line) && !isSpace(line[i]) {
				return args, false
			}
			break
		}
		out = append(out, w[start:len(w):len(w)])
	}
}

// unquoteDouble appends what stands between double quotes to w; i is behind the
// opening one.
func unquoteDouble(line []byte, i int, w []byte) (word []byte, next int, closed bool) {
	for ; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '"':
			return w, i + 1, true
		case c == '\\' && i+3 < len(line) && line[i+1] == 'x' &&
			hexDigit(line[i+2]) >= 0 && hexDigit(line[i+3]) >= 0:
			w = append(w, byte(hexDigit(line[i+2])<<4|hexDigit(line[i+3])))
			i += 3
		case c == '\\' && i+1 < len(line):
			i++
			switch c = line[i]; c {
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			case 'a':
				c = '\a'
			}
			w = append(w, c)
		default:
			w = append(w, c)
		}
	}
	return w, i, false
}

// unquoteSingle does the same for single quotes, inside which only \' is special.
func unquoteSingle(line []byte, i int, w []byte) (word []byte, next int, closed bool) {
	for ; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\'':
			return w, i + 1, true
		case c == '\\' && i+1 < len(line) && line[i+1] == '\'':
			i++
			w = append(w, '\'')
		default:
			w = append(w, c)
		}
	}
	return w, i, false
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
