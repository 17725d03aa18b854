package luavm

// The first line of a script may be "#!lua flags=...": it names the engine and declares properties of the script.

import (
	"bytes"
	"strings"

	"github.com/limitkv/limitkv/resp/words"
)

// Flags is the set of properties that a script declares in its shebang line.
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
	// Compat: there is no shebang line, so the rules for old scripts apply.
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

// FlagsOf returns the flags that a source declares. ok is false if its shebang line is wrong.
func FlagsOf(body []byte) (flags Flags, ok bool) {
	if !bytes.HasPrefix(body, []byte("#!")) {
		return Compat, true
	}
	flags, _, err := parseShebang(string(body))
	return flags, err == nil
}

// parseShebang returns the flags of a shebang line and where the code starts: at the end of that line, so that the code has
// the line numbers of the script.
func parseShebang(body string) (flags Flags, skip int, err error) {
	if !strings.HasPrefix(body, "#!") {
		return Compat, 0, nil
	}
	skip = strings.IndexByte(body, '\n')
	if nul := strings.IndexByte(body, 0); nul >= 0 && nul < skip {
		skip = -1 // Redis searches the line's end only up to a NUL byte
	}
	if skip < 0 {
		return 0, 0, &CompileError{Text: "Invalid script shebang"}
	}
	parts, ok := words.Split(body[:skip])
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
