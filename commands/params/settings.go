package params

// Reading parameters from a file and from the command line, in redis.conf's
// form.

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// Setting is a parameter as it was given.
type Setting struct {
	Name, Value string
	Where       string // for messages
}

// at is where and what, for messages.
func (s Setting) at() string {
	if strings.HasPrefix(s.Where, "--") {
		return s.Where
	}
	return s.Where + ": " + s.Name
}

// ReadSettings reads lines of a configuration file: a name and values, blank
// lines and comments, include.
func ReadSettings(r io.Reader, where string) (all []Setting, err error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		at := fmt.Sprintf("%s:%d", where, n)
		words, ok := SplitWords(line)
		if !ok {
			return nil, fmt.Errorf("%s: unbalanced quotes in configuration line", at)
		}
		if strings.EqualFold(words[0], "include") && len(words) == 2 {
			f, err := os.Open(words[1])
			if err != nil {
				return nil, fmt.Errorf("%s: %v", at, err)
			}
			more, err := ReadSettings(f, words[1])
			f.Close()
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
			continue
		}
		all = append(all, Setting{strings.ToLower(words[0]), strings.Join(words[1:], " "), at})
	}
	return all, sc.Err()
}

// ParseArgs reads a command line: an optional file's name ("-" for standard
// input), which it returns as well, then --name value ... .
func ParseArgs(args []string) (all []Setting, file string, err error) {
	if len(args) > 0 && (args[0] == "-" || !strings.HasPrefix(args[0], "-")) {
		file = args[0]
		f := os.Stdin
		if file != "-" {
			if f, err = os.Open(file); err != nil {
				return nil, "", err
			}
			defer f.Close()
		}
		if all, err = ReadSettings(f, file); err != nil {
			return nil, "", err
		}
		args = args[1:]
	}
	args = apart(args)
	for i := 0; i < len(args); {
		name, isFlag := strings.CutPrefix(args[i], "--")
		if !isFlag || name == "" {
			return nil, "", fmt.Errorf("%q is not a --parameter (a configuration file is named first)", args[i])
		}
		i++
		name, value, joined := strings.Cut(name, "=")
		var values []string
		if joined {
			values = append(values, value)
		}
		for !joined && i < len(args) && !strings.HasPrefix(args[i], "--") {
			values = append(values, args[i])
			i++
		}
		all = append(all, Setting{strings.ToLower(name), strings.Join(values, " "), "--" + name})
	}
	return all, file, nil
}

// apart takes "--name value", given as one argument, into its words, as
// redis-server does.
func apart(args []string) (out []string) {
	for _, a := range args {
		words, ok := SplitWords(a)
		if !ok || !strings.HasPrefix(a, "--") || strings.Contains(a, "=") {
			words = []string{a}
		}
		out = append(out, words...)
	}
	return out
}

// SplitWords splits a line into words as redis-cli and redis.conf do: blanks
// separate, double quotes with escapes and single quotes hold together.
func SplitWords(line string) (words []string, ok bool) {
	i := 0
	for {
		for i < len(line) && isBlank(line[i]) {
			i++
		}
		if i == len(line) {
			return words, true
		}
		var w []byte
		for i < len(line) && !isBlank(line[i]) {
			c := line[i]
			i++
			if c != '"' && c != '\'' {
				w = append(w, c)
				continue
			}
			closed := false
			for i < len(line) && !closed {
				switch {
				case line[i] == c:
					closed = true
				case line[i] == '\\' && i+1 < len(line) && (c == '"' || line[i+1] == '\''):
					i++
					w = append(w, unescaped(line, &i))
				default:
					w = append(w, line[i])
				}
				i++
			}
			if !closed || i < len(line) && !isBlank(line[i]) {
				return nil, false
			}
		}
		words = append(words, string(w))
	}
}

// unescaped is the byte that the escape at line[*i] stands for.
func unescaped(line string, i *int) byte {
	switch c := line[*i]; c {
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
	case 'x':
		if *i+2 < len(line) {
			var b byte
			if n, err := fmt.Sscanf(line[*i+1:*i+3], "%02x", &b); n == 1 && err == nil {
				*i += 2
				return b
			}
		}
		return c
	default:
		return c
	}
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' }
