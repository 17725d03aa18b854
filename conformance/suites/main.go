// Command suites runs the own test suites of Go clients and libraries, as their modules ship them, against limitkv and
// against Redis. What fails on Redis too, where the suite wants what a plain server does not have, is expected; what
// passes there has to pass here. The modules are those that conformance/clients/go uses, copied out of the module cache.
//
// "make conformance-suites" runs it. It takes minutes, since suites test time-outs by waiting for them.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/limitkv/limitkv/conformance/peer"
)

// suite is how a module's tests are run.
type suite struct {
	module   string
	packages []string
	// args are arguments of the tests; ADDR and BINARY stand for the server's.
	args []string
	// rewrite: the tests have the port of the server in their text.
	rewrite bool
}

var suites = []suite{
	{module: "github.com/go-redis/redis_rate/v10", packages: []string{"."}, rewrite: true},
	{module: "github.com/gomodule/redigo", packages: []string{"./redis"}, args: []string{"-redis-server", "BINARY"}},
	{module: "github.com/hibiken/asynq", packages: []string{".", "./internal/rdb"}, args: []string{"-redis_addr", "ADDR"}},
}

// modules is the folder whose go.mod says which versions are used.
const modules = "conformance/clients/go"

func main() {
	limitkv := flag.String("server", "bin/limitkv", "limitkv's binary")
	redis := flag.String("redis", os.Getenv("REDIS_SERVER"), "redis-server, to compare with")
	only := flag.String("only", "", "run the suites whose module has this in its name")
	flag.Parse()
	ok, err := run(*limitkv, *redis, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance/suites:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

func run(limitkv, redis, only string) (ok bool, err error) {
	if redis == "" {
		redis = "redis-server"
	}
	if redis, err = exec.LookPath(redis); err != nil {
		return false, err
	}
	ok = true
	for _, s := range suites {
		if !strings.Contains(s.module, only) {
			continue
		}
		want, err := s.run("redis", redis)
		if err != nil {
			return false, fmt.Errorf("%s on Redis: %w", s.module, err)
		}
		got, err := s.run("limitkv", limitkv)
		if err != nil {
			return false, fmt.Errorf("%s on limitkv: %w", s.module, err)
		}
		passed, expected := 0, 0
		for _, name := range slices.Sorted(maps.Keys(want)) {
			switch {
			case !want[name].passed:
				expected++
			case got[name].passed:
				passed++
			default:
				ok = false
				fmt.Printf("FAIL %s %s\n%s\n", s.module, name, got[name].output)
			}
		}
		fmt.Printf("%s: %d of the %d tests that pass on Redis pass on limitkv; %d fail on Redis\n", s.module, passed, len(want)-expected, expected)
		if passed == 0 {
			return false, fmt.Errorf("%s: no test passed", s.module)
		}
	}
	return ok, nil
}

// result is what became of one test.
type result struct {
	passed bool
	output string
}

// run runs the suite against a server and returns the results by test.
func (s suite) run(name, binary string) (map[string]result, error) {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "limitkv-suite-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	tests := filepath.Join(dir, "module")
	if err := s.copy(tests); err != nil {
		return nil, err
	}
	env := append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	server, err := peer.Start(name, binary)
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	words := strings.NewReplacer("BINARY", binary, "ADDR", server.Addr)
	if s.rewrite {
		_, port, _ := strings.Cut(server.Addr, ":")
		if err := replacePort(tests, port); err != nil {
			return nil, err
		}
	}
	results := map[string]result{}
	for _, pkg := range s.packages {
		args := []string{"test", "-count=1", "-p", "1", "-json", "-timeout", "10m", pkg, "-args"}
		for _, a := range s.args {
			args = append(args, words.Replace(a))
		}
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env, cmd.Stderr = tests, env, os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		if err := read(out, results); err != nil {
			return nil, err
		}
		var failed *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &failed) {
			return nil, err
		}
	}
	if len(results) == 0 {
		return nil, errors.New("no test ran")
	}
	return results, nil
}

// read collects the results of "go test -json".
func read(out io.Reader, results map[string]result) error {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e struct{ Action, Package, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Test == "" {
			continue
		}
		name := e.Package + "." + e.Test
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
	return lines.Err()
}

// copy copies the module's files, writable.
func (s suite) copy(to string) error {
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", s.module)
	cmd.Dir, cmd.Stderr = modules, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	from := strings.TrimSpace(string(out))
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

// replacePort puts a port in the place of Redis's own in the tests of a folder.
func replacePort(dir, port string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return err
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(b), ":6379", ":"+port)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
