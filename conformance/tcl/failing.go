package main

// The list of what does not pass, and comparing outcomes.

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// compare counts the tests that pass on Redis.
func compare(want, got *outcome) (t tally) {
	for name, n := range want.passed {
		t.want += n
		t.got += min(n, got.passed[name])
		if got.passed[name] < n {
			t.missing = append(t.missing, name)
		}
	}
	slices.Sort(t.missing)
	return t
}

// unexpected tells whether a test does not pass that is not known for it.
func (t *tally) unexpected(known failing, file string) bool {
	return slices.ContainsFunc(t.missing, func(name string) bool { return known.reason(file, name) == "" })
}

// failing are reasons by test by file.
type failing map[string]map[string]string

func (f failing) reason(file, test string) string {
	if r := f[file]["*"]; r != "" {
		return r
	}
	return f[file][test]
}

func (f failing) names(file string) (names []string) {
	for name := range f[file] {
		if name != "*" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// header is how the list begins.
const header = `# The tests of Redis 8.0.6 that limitkv does not pass, with the reason for each: below a file's name and a colon the tests'
# names, each with its reason behind a tab.
`

// write writes the list anew: what does not pass now, with the reasons that are known, in the order of files. Files that
// were not run keep what they have.
func (f failing) write(path string, files []string, now map[string][]string) error {
	names := slices.Collect(maps.Keys(f))
	for _, file := range files {
		if !slices.Contains(names, file) {
			names = append(names, file)
		}
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString(header)
	for _, file := range names {
		tests, run := now[file]
		if !run {
			tests = f.names(file)
		}
		if len(tests) == 0 {
			continue
		}
		b.WriteString("\n" + file + ":\n")
		for _, test := range tests {
			reason := f.reason(file, test)
			if reason == "" {
				reason = "to be looked into"
			}
			b.WriteString(test + "\t" + reason + "\n")
		}
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// readFailing reads the list: below a line "file:" a line "test\treason" for each test; * stands for all of the file.
func readFailing(path string) (failing, error) {
	list := failing{}
	if path == "" {
		return list, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	file := ""
	for i, l := range strings.Split(string(b), "\n") {
		switch {
		case l == "" || strings.HasPrefix(l, "#"):
		case strings.HasSuffix(l, ":") && !strings.Contains(l, "\t"):
			file = strings.TrimSuffix(l, ":")
			list[file] = map[string]string{}
		default:
			test, reason, ok := strings.Cut(l, "\t")
			if !ok || reason == "" || file == "" {
				return nil, fmt.Errorf("%s:%d: a test and, after a tab, a reason are wanted", relative(path), i+1)
			}
			list[file][test] = reason
		}
	}
	return list, nil
}
