package main

// The list of what does not pass, and comparing outcomes.

import (
	"fmt"
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
