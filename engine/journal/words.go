package journal

// Words in lines as Redis splits and quotes them: in the manifest, names may be quoted.

import "fmt"

const hexDigits = "0123456789abcdef"

// appendName appends a name, quoted where it would not be one word otherwise.
func appendName(out []byte, name string) []byte {
	plain := name != ""
	for i := range len(name) {
		// Redis does not quote an apostrophe, and cannot read what it wrote then.
		if c := name[i]; c <= ' ' || c >= 0x7f || c == '\\' || c == '"' || c == '\'' {
			plain = false
		}
	}
	if plain {
		return append(out, name...)
	}
	out = append(out, '"')
	for i := range len(name) {
		switch c := name[i]; c {
		case '\\', '"':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, `\n`...)
		case '\r':
			out = append(out, `\r`...)
		case '\t':
			out = append(out, `\t`...)
		case '\a':
			out = append(out, `\a`...)
		case '\b':
			out = append(out, `\b`...)
		default:
			if c < ' ' || c >= 0x7f {
				out = fmt.Appendf(out, `\x%02x`, c)
			} else {
				out = append(out, c)
			}
		}
	}
	return append(out, '"')
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }

// splitWords splits a line into words, which may be quoted in part or whole. It fails where a quote is not closed, or
// is followed by more of a word.
func splitWords(line string) (words []string, ok bool) {
	i := 0
	for {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return words, true
		}
		var word []byte
		for i < len(line) && !isSpace(line[i]) {
			quote := line[i]
			if quote != '"' && quote != '\'' {
				word = append(word, quote)
				i++
				continue
			}
			var closed bool
			word, i, closed = quoted(word, line, i)
			if !closed || i < len(line) && !isSpace(line[i]) {
				return nil, false
			}
		}
		words = append(words, string(word))
	}
}

// quoted reads a quoted part that begins at i, and says where it ends.
func quoted(word []byte, line string, i int) (_ []byte, end int, closed bool) {
	quote := line[i]
	for i++; i < len(line); i++ {
		c := line[i]
		switch {
		case c == quote:
			return word, i + 1, true
		case c == '\\' && quote == '\'' && i+1 < len(line) && line[i+1] == '\'':
			word = append(word, '\'')
			i++
		case c == '\\' && quote == '"' && i+3 < len(line) && line[i+1] == 'x' && hexDigit(line[i+2]) >= 0 && hexDigit(line[i+3]) >= 0:
			word = append(word, byte(hexDigit(line[i+2])<<4|hexDigit(line[i+3])))
			i += 3
		case c == '\\' && quote == '"' && i+1 < len(line):
			i++
			word = append(word, unescaped(line[i]))
		default:
			word = append(word, c)
		}
	}
	return word, i, false
}

func unescaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'b':
		return '\b'
	case 'a':
		return '\a'
	}
	return c
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
