package params

// Reading parameters from a file and from the command line, in the form of redis.conf.

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/limitkv/limitkv/resp/words"
)

// Setting is a parameter as given in a file or on the command line.
type Setting struct {
	Name, Value string
	Where       string // for messages
	// Extra is the number of words in Value minus one: -1 if there was none.
	Extra int
}

// at says where and which, for messages.
func (s Setting) at() string {
	if strings.HasPrefix(s.Where, "--") {
		return s.Where
	}
	return s.Where + ": " + s.Name
}

// includesMax is how deep files may include one another.
const includesMax = 32

// source collects settings from files and arguments.
type source struct {
	all   []Setting
	depth int // of includes
}

// ReadSettings reads lines of a configuration file: a name and values, blank
// lines and comments, include.
func ReadSettings(r io.Reader, where string) (all []Setting, err error) {
	var s source
	err = s.read(r, where)
	return s.all, err
}

func (s *source) read(r io.Reader, where string) error {
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
			return fmt.Errorf("%s: unbalanced quotes in configuration line", at)
		}
		if err := s.take(parts[0], parts[1:], at); err != nil {
			return err
		}
	}
	return sc.Err()
}

// take adds a parameter with its values, or reads an included file.
func (s *source) take(name string, values []string, at string) error {
	if name = strings.ToLower(name); name == "include" && len(values) == 1 {
		return s.include(values[0], at)
	}
	s.all = append(s.all, Setting{name, strings.Join(values, " "), at, len(values) - 1})
	return nil
}

// include reads a file, or all files that match a pattern, if any.
func (s *source) include(path, at string) error {
	files := []string{path}
	if strings.ContainsAny(path, "*?[") {
		files, _ = filepath.Glob(path) // a malformed pattern matches nothing, as in Redis
	}
	if s.depth++; s.depth > includesMax {
		return fmt.Errorf("%s: files include each other", at)
	}
	defer func() { s.depth-- }()
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("%s: %v", at, err)
		}
		err = s.read(f, path)
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// ParseArgs reads a command line: an optional file name, which it also returns, then --name value ... . "-", as the first or
// last argument, reads standard input after the file. Later settings override earlier ones.
func ParseArgs(args []string) (all []Setting, file string, err error) {
	var s source
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		file, args = args[0], args[1:]
		f, err := os.Open(file)
		if err != nil {
			return nil, "", err
		}
		defer f.Close()
		if err := s.read(f, file); err != nil {
			return nil, "", err
		}
	}
	rest, stdin := args, false
	switch n := len(args); {
	case n > 0 && args[0] == "-":
		rest, stdin = args[1:], true
	case n > 0 && args[n-1] == "-" && (n < 2 || !lonely(args[n-2])):
		rest, stdin = args[:n-1], true
	}
	if stdin {
		if err := s.read(os.Stdin, "-"); err != nil {
			return nil, "", err
		}
		if file == "" {
			file = "-"
		}
	}
	if err := s.options(rest); err != nil {
		return nil, "", err
	}
	return s.all, file, nil
}

// lonely tells whether an argument is only a parameter's name. The next argument is its value then, whatever it begins with.
func lonely(arg string) bool {
	parts, ok := words.Split(arg)
	return ok && len(parts) == 1 && strings.HasPrefix(arg, "--") && !strings.Contains(arg, "=")
}

// options reads the arguments that are --name value ..., --name=value, or "--name value" as one.
func (s *source) options(args []string) error {
	for i := 0; i < len(args); {
		arg := args[i]
		i++
		flag, isFlag := strings.CutPrefix(arg, "--")
		if !isFlag || strings.TrimSpace(flag) == "" {
			return fmt.Errorf("%q is not a --parameter (a configuration file is named first)", arg)
		}
		var values []string
		name, value, joined := strings.Cut(flag, "=")
		if joined && !strings.ContainsAny(name, " \t") {
			if value != "" { // an empty value counts as missing
				values = append(values, value)
			}
		} else {
			parts, ok := words.Split(flag)
			if !ok {
				return errors.New("--" + flag + ": unbalanced quotes")
			}
			joined, name, values = false, parts[0], parts[1:]
			switch {
			case len(values) > 0 || i == len(args):
			case name == "save" && strings.HasPrefix(args[i], "--"): // as in Redis: "--save" alone is "--save ''"
			default:
				values = append(values, args[i])
				i++
			}
		}
		for !joined && i < len(args) && !strings.HasPrefix(args[i], "--") && len(values) > 0 {
			values = append(values, args[i])
			i++
		}
		if err := s.take(name, values, "--"+name); err != nil {
			return err
		}
	}
	return nil
}
