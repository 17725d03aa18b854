package main

// The reading of what the suite prints and of the list, and that the places of the suite that are changed must be there.

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const printed = `Starting test server at port 21079
[ready]: 4112
[testing]: unit/some
` + "\x1b[0;32m[ok]\x1b[0m" + `: first test (3 ms)
[ok]: same name (1 ms)
[ok]: same name (20 ms)
[err]: second test in tests/unit/some.tcl
Expected '1' to be equal to '2'
[ok]: third: with [brackets] (0 ms)
[exception]: Executing test client: ERR no such thing.
`

func TestRead(t *testing.T) {
	r := read(printed)
	if want := map[string]int{"first test": 1, "same name": 2, "third: with [brackets]": 1}; !reflect.DeepEqual(r.passed, want) {
		t.Errorf("passed: %v, want %v", r.passed, want)
	}
	if got := r.problem("second test"); got != "Expected '1' to be equal to '2'" {
		t.Errorf("the problem is %q", got)
	}
	if r.ended || !read(printed+"[1/1 done]: unit/some (3 seconds)\n").ended {
		t.Error("the end of a file is not found, or where there is none")
	}
	const lost = "[err]: Can't start the Redis server\nCONFIGURATION:\nport 1\n[ok]: in vain (5 ms)\n[ok]: not in vain (5 ms)\n"
	if x := read(lost); !reflect.DeepEqual(x.passed, map[string]int{"not in vain": 1}) || x.problem("in vain") != "its server did not start" {
		t.Errorf("a test without its server: %v, %v", x.passed, x.failed)
	}
	if !strings.Contains(r.ending(), "no such thing") {
		t.Errorf("the ending is %q", r.ending())
	}
	got := compare(r, &outcome{passed: map[string]int{"first test": 1, "same name": 1}})
	if got.want != 4 || got.got != 2 || !reflect.DeepEqual(got.missing, []string{"same name", "third: with [brackets]"}) {
		t.Errorf("compared: %+v", got)
	}
	again := r.better(&outcome{passed: map[string]int{"same name": 3, "fourth": 1}})
	if want := map[string]int{"first test": 1, "same name": 3, "third: with [brackets]": 1, "fourth": 1}; !reflect.DeepEqual(again.passed, want) {
		t.Errorf("passed in one of two runs: %v, want %v", again.passed, want)
	}
}

func TestSentinelOutcome(t *testing.T) {
	passed, failed := sentinelOutcome("Testing unit: 00\n21:06:36> one: \x1b[0;32mOK\x1b[0m\n21:06:46> two: limitkv 0.1.0 listens\n" +
		"OK\n21:06:47> three: FAILED: caught an error\n21:06:47> four: \n")
	if want := []string{"three: 21:06:47> three: FAILED: caught an error", "four: it did not end"}; passed != 2 || !reflect.DeepEqual(failed, want) {
		t.Errorf("%d passed, %q failed", passed, failed)
	}
}

func TestFailing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "failing.txt")
	const text = header + "\nunit/a:\none\twhy one\ntwo\twhy two\n\nunit/b:\nthree\twhy three\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := readFailing(path)
	if err != nil {
		t.Fatal(err)
	}
	missing := tally{missing: []string{"one", "two"}}
	if missing.unexpected(list, "unit/a") || !missing.unexpected(list, "unit/b") {
		t.Error("what is known to fail is not told from what is not")
	}
	if err := list.write(path, []string{"unit/a", "unit/c"}, map[string][]string{"unit/a": {"two"}, "unit/c": {"four"}}); err != nil {
		t.Fatal(err)
	}
	const want = header + "\nunit/a:\ntwo\twhy two\n\nunit/b:\nthree\twhy three\n\nunit/c:\nfour\tto be looked into\n"
	if b, _ := os.ReadFile(path); string(b) != want {
		t.Errorf("written:\n%s\nwant:\n%s", b, want)
	}
	if err := os.WriteFile(path, []byte("unit/a:\none without a reason\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readFailing(path); err == nil {
		t.Error("a test without a reason is taken")
	}
}

func TestPatchedNeedsTheSuite(t *testing.T) {
	source := t.TempDir()
	for _, p := range patches {
		path := filepath.Join(source, "tests", p.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("another suite"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := patched(source, t.TempDir(), "server"); err == nil {
		t.Error("a suite without the places to change is taken")
	}
}
