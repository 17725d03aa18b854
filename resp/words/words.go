// Package words, internal to the server, cuts lines into words as Redis does, for text that people write:
// inline commands, configuration files, the first lines of scripts, the manifest of an append-only file.
//
// Blanks separate words. Text in double quotes is one word; inside, \n \r \t \b \a and \xHH mean one byte, and \ before
// any other byte means that byte. Text in single quotes is one word too; inside, only \' is special. A closing quote ends
// the word. The vertical tab and the form feed do not end a word, but are skipped between words like other blanks.
package words

// Next appends the next word of line[i:] to dst. end is where the word ends. found is false if there is no further word; ok is
// false if quotes are not balanced.
func Next[T string | []byte](dst []byte, line T, i int) (word []byte, end int, found, ok bool) {
	for i < len(line) && isSpace(line[i]) {
		i++
	}
	if i == len(line) {
		return dst, i, false, true
	}
	for i < len(line) && !endsWord(line[i]) {
		c := line[i]
		if c == '"' || c == '\'' {
			dst, i, ok = unquoted(dst, line, i)
			return dst, i, true, ok && (i == len(line) || isSpace(line[i]))
		}
		dst = append(dst, c)
		i++
	}
	return dst, i, true, true
}

// Split cuts a line into all its words; ok is false if quotes are not balanced.
func Split(line string) (words []string, ok bool) {
	for i := 0; ; {
		word, end, found, ok := Next(nil, line, i)
		if !ok {
			return nil, false
		}
		if !found {
			return words, true
		}
		words, i = append(words, string(word)), end
	}
}

// Plain cuts a line that has no quotes, without copying, and appends its words to dst.
func Plain(dst [][]byte, line []byte) [][]byte {
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return dst
		}
		start := i
		for i < len(line) && !endsWord(line[i]) {
			i++
		}
		dst = append(dst, line[start:i:i])
	}
}

// isSpace is C's isspace.
func isSpace(c byte) bool { return c == ' ' || c-'\t' < 5 }

func endsWord(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// unquoted appends the quoted text that begins at line[i].
func unquoted[T string | []byte](dst []byte, line T, i int) (text []byte, end int, closed bool) {
	quote := line[i]
	for i++; i < len(line); i++ {
		c := line[i]
		switch {
		case c == quote:
			return dst, i + 1, true
		case c != '\\' || i+1 == len(line) || quote == '\'' && line[i+1] != '\'':
			dst = append(dst, c)
		case line[i+1] == 'x' && i+3 < len(line) && hexDigit(line[i+2]) >= 0 && hexDigit(line[i+3]) >= 0:
			dst = append(dst, byte(hexDigit(line[i+2])<<4|hexDigit(line[i+3])))
			i += 3
		default:
			i++
			dst = append(dst, unescaped(line[i]))
		}
	}
	return dst, i, false
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

// hexDigit is the value of a hexadecimal digit, -1 if it is none.
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
