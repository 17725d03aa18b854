package main

// Suites of Go modules: the module's text is copied out of the module cache and tested by the go command.

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// modules is the folder whose go.mod says which versions are used.
const modules = "conformance/clients/go"

type golang struct{}

// environment has go.mod written as it pleases the tests, which need more modules than the program.
func (golang) environment(more ...string) []string {
	return append(append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off"), more...)
}

// fetch implements kind. It compiles the tests, for which all that they need has to be there.
func (g golang) fetch(s suite) (place string, err error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}} {{.Version}}", s.pkg)
	list.Dir, list.Stderr = modules, os.Stderr
	out, err := list.Output()
	if err != nil {
		return "", err
	}
	from, version, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	cache, err := cached("go", s.pkg+"@"+version)
	if err != nil {
		return "", err
	}
	place = filepath.Join(cache, "module")
	if exists(filepath.Join(cache, "done")) {
		return place, nil
	}
	if err := copyModule(from, place); err != nil {
		return "", err
	}
	build := exec.Command("go", append([]string{"test", "-exec", "true", "-vet=off"}, s.tests...)...)
	build.Dir, build.Env, build.Stderr = place, g.environment(), os.Stderr
	if err := build.Run(); err != nil {
		return "", err
	}
	return place, os.WriteFile(filepath.Join(cache, "done"), nil, 0o644)
}

// command implements kind.
func (g golang) command(s suite, place, dir string, only []string) (*exec.Cmd, error) {
	args := []string{"test", "-count=1", "-p", "1", "-json", "-vet=off", "-timeout", "10m"}
	var more []string
	if s.ginkgo {
		more = []string{"-ginkgo.junit-report", filepath.Join(dir, reportFile)}
	}
	switch {
	case s.ginkgo && only != nil:
		var names []string
		for _, name := range only {
			names = append(names, regexp.QuoteMeta(name))
		}
		more = append(more, "-ginkgo.focus", strings.Join(names, "|"))
		fallthrough
	case only == nil && s.pattern != "":
		args = append(args, "-run", s.pattern)
	case only != nil:
		var names []string
		for _, name := range only {
			_, test, _ := strings.Cut(name, " ")
			top, _, _ := strings.Cut(test, "/")
			names = append(names, regexp.QuoteMeta(top))
		}
		args = append(args, "-run", "^("+strings.Join(names, "|")+")$")
	}
	args = slices.Concat(args, s.tests, []string{"-args"}, s.args, more)
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Env = place, g.environment(append(s.env, "GOPROXY=off")...)
	return cmd, nil
}

// results implements kind: it reads what "go test -json" prints. A test's name is that of its package and its own.
func (golang) results(dir, log string) (map[string]result, error) {
	if report := filepath.Join(dir, reportFile); exists(report) {
		return readReport(report)
	}
	out, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	results := map[string]result{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct{ Action, Package, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" {
			continue
		}
		name := e.Package + " " + e.Test
		r := results[name]
		switch e.Action {
		case "output":
			r.output += e.Output
		case "pass":
			r.passed = true
		case "skip":
			delete(results, name)
			continue
		}
		results[name] = r
	}
	return results, lines.Err()
}

// copyModule copies a module's files, writable.
func copyModule(from, to string) error {
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, 0o644)
	})
}
