package luavm

// The first line of a script may be "#!lua flags=...": it names the engine and says what the script will not do.

import (
	"bytes"
	"strings"
)

// Flags is a set of what a script declares of itself in its shebang line.
type Flags uint8

const (
	// NoWrites: the script calls no write command; calling one is an error.
	NoWrites Flags = 1 << iota
	// AllowOOM: the script runs even when memory is over the limit.
	AllowOOM
	// AllowStale: the script runs on a stale replica.
	AllowStale
	// NoCluster: the script does not run in a cluster.
	NoCluster
	// AllowCrossSlotKeys: the script may use keys of several slots.
	AllowCrossSlotKeys
	// Compat: there is no shebang line, so the rules of old apply.
	Compat
)

var flagNames = []struct {
	name string
	flag Flags
}{
	{"no-writes", NoWrites},
	{"allow-oom", AllowOOM},
	{"allow-stale", AllowStale},
	{"no-cluster", NoCluster},
	{"allow-cross-slot-keys", AllowCrossSlotKeys},
}

// FlagsOf returns what a source declares. ok is false if its shebang line is wrong.
func FlagsOf(body []byte) (flags Flags, ok bool) {
	if !bytes.HasPrefix(body, []byte("#!")) {
		return Compat, true
	}
	flags, _, err := parseShebang(string(body))
	return flags, err == nil
}

// parseShebang returns what a shebang line declares and where the code starts: at the line's end, so that line
// numbers stay the user's.
func parseShebang(body string) (flags Flags, skip int, err error) {
	if !strings.HasPrefix(body, "#!") {
		return Compat, 0, nil
	}
	skip = strings.IndexByte(body, '\n')
	if nul := strings.IndexByte(body, 0); nul >= 0 && nul < skip {
		skip = -1 // Redis searches the line's end as in a C string
	}
	if skip < 0 {
		return 0, 0, &CompileError{Text: "Invalid script shebang"}
	}
	parts, ok := splitArgs(body[:skip])
	if !ok || len(parts) == 0 {
		return 0, 0, &CompileError{Text: "Invalid engine in script shebang"}
	}
	if parts[0] != "#!lua" {
		return 0, 0, &CompileError{Text: "Unexpected engine in script shebang: " + parts[0]}
	}
	for _, part := range parts[1:] {
		list, found := strings.CutPrefix(part, "flags=")
		if !found {
			return 0, 0, &CompileError{Text: "Unknown lua shebang option: " + part}
		}
		if list == "" {
			continue
		}
	names:
		for _, name := range strings.Split(list, ",") {
			for _, f := range flagNames {
				if f.name == name {
					flags |= f.flag
					continue names
				}
			}
			return 0, 0, &CompileError{Text: "Unexpected flag in script shebang: " + name}
		}
	}
	return flags, skip, nil
}

// splitArgs splits a line at blanks as redis-cli does: double quotes with \n, \xHH and so on, single quotes with \'.
// A closing quote must be followed by a blank or the end.
func splitArgs(line string) (parts []string, ok bool) {
	blank := func(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
	i := 0
	for {
		for i < len(line) && blank(line[i]) {
			i++
		}
		if i == len(line) {
			return parts, true
		}
		var part []byte
	word:
		for i < len(line) {
			switch c := line[i]; {
			case blank(c):
				break word
			case c == '"' || c == '\'':
				var closed bool
				part, i, closed = unquote(part, line, i)
				if !closed || i < len(line) && !blank(line[i]) {
					return nil, false
				}
				break word
			default:
				part = append(part, c)
				i++
			}
		}
		parts = append(parts, string(part))
	}
}

// unquote appends the quoted text that starts at line[i] and returns where it ends.
func unquote(part []byte, line string, i int) (text []byte, end int, closed bool) {
	quote := line[i]
	for i++; i < len(line); i++ {
		c := line[i]
		switch {
		case c == quote:
			return part, i + 1, true
		case c != '\\' || i+1 == len(line):
			part = append(part, c)
		case quote == '\'':
			if line[i+1] == '\'' {
				i++
				c = '\''
			}
			part = append(part, c)
		case line[i+1] == 'x' && i+3 < len(line) && hexDigit(line[i+2]) >= 0 && hexDigit(line[i+3]) >= 0:
			part = append(part, byte(hexDigit(line[i+2])<<4|hexDigit(line[i+3])))
			i += 3
		default:
			i++
			c = line[i]
			if at := strings.IndexByte("nrtba", c); at >= 0 {
				c = "\n\r\t\b\a"[at]
			}
			part = append(part, c)
		}
	}
	return part, i, false
}

// hexDigit returns the value of a hexadecimal digit, -1 if it is none.
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
