package limiter

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// A row that lacks any one of its operations is refused, and the error names the operation.
func TestIncomplete(t *testing.T) {
	checked := 0
	for number, row := range rows {
		if row == nil {
			continue
		}
		if err := row.complete(); err != nil {
			t.Errorf("%v: %v", Algorithm(number), err)
		}
		less, words := *row, *row.grammar
		less.grammar = &words
		for _, operations := range []reflect.Value{reflect.ValueOf(&less).Elem(), reflect.ValueOf(&words).Elem()} {
			for i := range operations.NumField() {
				f := operations.Field(i)
				if f.Kind() != reflect.Func {
					continue
				}
				name := operations.Type().Field(i).Name
				// Fields that are not exported are set by their address.
				at := reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
				was := reflect.ValueOf(at.Interface())
				at.SetZero()
				if err := less.complete(); err == nil || !strings.HasSuffix(err.Error(), "algorithm "+row.word+" lacks "+name) {
					t.Errorf("%s without %s: %v", row.word, name, err)
				}
				at.Set(was)
				checked++
			}
		}
	}
	if checked < 7*18 {
		t.Errorf("%d operations of all algorithms", checked)
	}
}

// A number or a name can be registered once only.
func TestRegisterTwice(t *testing.T) {
	for _, r := range []struct {
		number Algorithm
		word   string
	}{{Fixed, "NEW"}, {algorithmMask - 1, "fixed"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d %s is registered twice", r.number, r.word)
				}
			}()
			row := *rows[Fixed]
			row.word = r.word
			register(r.number, &row)
		}()
	}
}

// The documentation describes each algorithm, also what a step of the clock does to it.
func TestDocumented(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	limiters, clock, example := read("docs/limiters.md"), read("docs/time.md"), read("CONTRIBUTING.md")
	for _, row := range rows {
		switch {
		case row == nil:
		case row.word == "TOY":
			if !strings.Contains(example, row.word) {
				t.Error("CONTRIBUTING.md does not tell of the example")
			}
		case !strings.Contains(limiters, row.word), !strings.Contains(clock, row.word):
			t.Errorf("docs/limiters.md or docs/time.md does not tell of %s", row.word)
		}
	}
}

// Without an operation of TOY (toy.go) the program does not start. What it does with TOY is commands/ratelimit's to test.
func TestToyIncomplete(t *testing.T) {
	path, err := filepath.Abs("toy.go")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	start := func(source string) (string, error) {
		overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{path: filepath.Join(dir, "toy.go")}})
		if err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"toy.go": source, "overlay": string(overlay)} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out, err := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-pgo=off", "-tags", "toyalgorithm",
			"-overlay", filepath.Join(dir, "overlay"), "-run", "^TestIncomplete$", ".").CombinedOutput()
		return string(out), err
	}
	if out, err := start(string(whole)); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	const take = " take: Rule.toyTake,"
	if !strings.Contains(string(whole), take) {
		t.Fatal("toy.go has no take")
	}
	if out, err := start(strings.Replace(string(whole), take, "", 1)); err == nil || !strings.Contains(out, "panic: limiter: algorithm TOY lacks take") {
		t.Errorf("%v: %s", err, out)
	}
}
