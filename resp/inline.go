package resp

// Inline commands are lines as a person types them over telnet: words with
// blanks between them, quoted as in a shell. The rules are those of Redis's
// sdssplitargs. The words of a line without quotes alias the input; those of a line
// with quotes are written to the parser's scratch buffer.

import (
	"bytes"

	"github.com/limitkv/limitkv/resp/words"
)

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
		return n, words.Plain(args, line), nil
	}
	out, ok := p.splitQuoted(line, args)
	if !ok {
		return 0, args, errQuotes
	}
	return n, out, nil
}

// splitQuoted cuts a line with quotes; ok is false if they are unbalanced.
func (p *Parser) splitQuoted(line []byte, args [][]byte) (out [][]byte, ok bool) {
	// The words together are never longer than their line, so appending to w does not move it.
	// Arguments of earlier commands of the batch stay in the old buffer.
	if cap(p.scratch)-len(p.scratch) < len(line) {
		p.scratch = make([]byte, 0, max(len(line), 256))
	}
	w := p.scratch
	out = args
	for i := 0; ; {
		start := len(w)
		var found bool
		if w, i, found, ok = words.Next(w, line, i); !ok {
			return args, false
		}
		if !found {
			p.scratch = w
			return out, true
		}
		out = append(out, w[start:len(w):len(w)])
	}
}
