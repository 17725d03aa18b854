// The drivers of docs/testing.md for the test frameworks of other languages: the files that it shows are written down as
// they stand there, and the framework runs them. It finds limitkv in the PATH, as a reader would arrange it.
package documents

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/limitkv/limitkv/conformance/peer"
)

// The frameworks, at the versions that run here.
const (
	pytest = "pytest==8.4.2"
	vitest = "vitest@3.2.4"
)

// driver is a framework, the languages of its files, and how it is run in a folder that has them.
type driver struct {
	name      string
	languages []string
	files     int            // how many the document shows
	passed    *regexp.Regexp // in what it prints when the tests really ran
	run       func(t *testing.T, files map[string]string, env []string) []byte
}

var drivers = []driver{
	{"JUnit", []string{"xml", "java"}, 3, regexp.MustCompile(`Tests run: 1, Failures: 0, Errors: 0, Skipped: 0`), runJUnit},
	{"pytest", []string{"python"}, 2, regexp.MustCompile(`1 passed`), runPytest},
	{"Vitest", []string{"js"}, 3, regexp.MustCompile(`1 passed`), runVitest},
}

// namesFile is the first line of a file that a document shows: a comment that is the file's name.
var namesFile = regexp.MustCompile(`^(?:# |// |<!-- )([\w./-]+\.\w+)(?: -->)?$`)

// Every driver starts the server, runs its tests and leaves no server behind.
func TestDrivers(t *testing.T) {
	if os.Getenv("CI") == "" && !*programs {
		t.Skip("drivers are run in CI, and with -programs")
	}
	bin, err := peer.Build()
	if err != nil {
		t.Fatal(err)
	}
	d := load(t, "docs/testing.md")
	for _, dr := range drivers {
		t.Run(dr.name, func(t *testing.T) {
			files := map[string]string{}
			for _, b := range d.blocks {
				m := namesFile.FindStringSubmatch(d.lines[b.from])
				if m != nil && strings.Contains(" "+strings.Join(dr.languages, " ")+" ", " "+b.language+" ") {
					files[m[1]] = strings.Join(d.lines[b.from:b.to], "\n") + "\n"
				}
			}
			if len(files) != dr.files {
				t.Fatalf("testing.md shows %d files for %s, not %d", len(files), dr.name, dr.files)
			}
			path, pids := inPath(t, bin)
			out := dr.run(t, files, []string{path})
			if !dr.passed.Match(out) {
				t.Errorf("no test passed:\n%s", out)
			}
			ended(t, pids)
		})
	}
}

// inPath returns a PATH in which limitkv is found, and the file in which it leaves the ids of its processes.
func inPath(t *testing.T, bin string) (path, pids string) {
	dir := t.TempDir()
	pids = filepath.Join(dir, "pids")
	script := fmt.Sprintf("#!/bin/sh\necho $$ >> '%s'\nexec '%s' \"$@\"\n", pids, bin)
	if err := os.WriteFile(filepath.Join(dir, "limitkv"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return "PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH"), pids
}

// ended makes sure that one server was started, and that it is gone.
func ended(t *testing.T, pids string) {
	t.Helper()
	text, err := os.ReadFile(pids)
	started := strings.Fields(string(text))
	if err != nil || len(started) != 1 {
		t.Fatalf("servers were started: %v, not one (%v)", started, err)
	}
	pid, err := strconv.Atoi(started[0])
	if err != nil {
		t.Fatal(err)
	}
	if p, err := os.FindProcess(pid); err == nil && p.Signal(syscall.Signal(0)) == nil {
		t.Errorf("the server with pid %d was not stopped", pid)
		_ = p.Kill()
	}
}

// writeAll writes files into a folder.
func writeAll(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, path, text)
	}
}

// runJUnit has Maven fetch what is missing in its own repository at the first run.
func runJUnit(t *testing.T, files map[string]string, env []string) []byte {
	need(t, "java")
	need(t, "mvn")
	dir := t.TempDir()
	writeAll(t, dir, files)
	if out, ok := output(t, dir, env, runTimeout, "mvn", "-B", "-o", "test"); ok {
		return out
	}
	if out, ok := output(t, dir, nil, fetchTimeout, "mvn", "-B", "-q", "test-compile"); !ok {
		missing(t, fmt.Sprintf("JUnit is not at hand: %s", out))
	}
	return mustRun(t, dir, env, "mvn", "-B", "test")
}

func runPytest(t *testing.T, files map[string]string, env []string) []byte {
	need(t, "python3")
	libraries := cache(t, pytest+"+"+pythonRESP2, func(dir string) bool {
		_, ok := output(t, dir, nil, fetchTimeout, "python3", "-m", "pip", "install", "--quiet", "--target", dir, pytest, pythonRESP2)
		return ok
	})
	dir := t.TempDir()
	writeAll(t, dir, files)
	return mustRun(t, dir, append(env, "PYTHONPATH="+libraries), "python3", "-m", "pytest", "-p", "no:cacheprovider")
}

// runVitest runs beside the libraries: what is imported is looked for in the folders above.
func runVitest(t *testing.T, files map[string]string, env []string) []byte {
	need(t, "node")
	need(t, "npm")
	libraries := cache(t, vitest+"+"+nodeRedis, func(dir string) bool {
		_, ok := output(t, dir, nil, fetchTimeout, "npm", "install", "--silent", "--prefix", dir, vitest, nodeRedis)
		return ok
	})
	dir, err := os.MkdirTemp(libraries, "run-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	writeAll(t, dir, files)
	return mustRun(t, dir, append(env, "NO_COLOR=1"), filepath.Join(libraries, "node_modules", ".bin", "vitest"), "run")
}
