package params

// Reading parameters from a file and from the command line, in redis.conf's
// form.

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/limitkv/limitkv/resp/words"
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
		parts, ok := words.Split(line)
		if !ok {
			return nil, fmt.Errorf("%s: unbalanced quotes in configuration line", at)
		}
		if strings.EqualFold(parts[0], "include") && len(parts) == 2 {
			f, err := os.Open(parts[1])
			if err != nil {
				return nil, fmt.Errorf("%s: %v", at, err)
			}
			more, err := ReadSettings(f, parts[1])
			f.Close()
			if err != nil {
				return nil, err
			}
			all = append(all, more...)
			continue
		}
		all = append(all, Setting{strings.ToLower(parts[0]), strings.Join(parts[1:], " "), at})
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
		parts, ok := words.Split(a)
		if !ok || !strings.HasPrefix(a, "--") || strings.Contains(a, "=") {
			parts = []string{a}
		}
		out = append(out, parts...)
	}
	return out
}
