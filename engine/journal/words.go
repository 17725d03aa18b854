package journal

// Quoting of names in the manifest, as Redis does it.

import "fmt"

const hexDigits = "0123456789abcdef"

// appendName appends a name, quoted if it would not be one word otherwise.
func appendName(out []byte, name string) []byte {
	plain := name != ""
	for i := range len(name) {
		// Redis does not quote a name for its apostrophe, and then cannot read what it wrote.
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
