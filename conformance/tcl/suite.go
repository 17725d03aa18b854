package main

// Running a file of the suite against a server of its own, and reading what it prints.

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/limitkv/limitkv/conformance/peer"
)

// outcome is what a file's tests did, by name; a name may stand for several.
type outcome struct {
	passed   map[string]int
	failed   map[string][]string // with the suite's words
	ended    bool                // the file was run to its end
	timedOut bool
	crashed  string // why the suite itself ended
}

func (r *outcome) ending() string {
	switch {
	case r.timedOut:
		return "  (ran too long)"
	case r.crashed != "":
		return "  (ended early: " + r.crashed + ")"
	}
	return ""
}

// problem says why a test did not pass.
func (r *outcome) problem(name string) string {
	if words := r.failed[name]; len(words) > 0 {
		return words[0]
	}
	return "not run"
}

// better is the outcome of a second run with what passed in the first.
func (r *outcome) better(again *outcome) *outcome {
	for name, n := range r.passed {
		again.passed[name] = max(n, again.passed[name])
	}
	return again
}

// serverArgs are how Redis's own tests of external servers start it.
var serverArgs = []string{"--save", "", "--enable-protected-configs", "yes", "--enable-debug-command", "yes"}

// play runs a file on an external server.
func (o *options) play(tree, binary, file string) (*outcome, error) {
	dir, err := os.MkdirTemp("", "limitkv-tcl-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	server, err := peer.Start(filepath.Base(binary), binary, append([]string{"--dir", dir}, serverArgs...)...)
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	_, port, _ := strings.Cut(server.Addr, ":")
	ctx, cancel := context.WithTimeout(o.ctx, o.timeout)
	defer cancel()
	out, err := play(ctx, tree, "tests/test_helper.tcl", "--host", "127.0.0.1", "--port", port,
		"--single", file, "--tags", o.tags, "--durable", "--clients", "1", "--dont-pre-clean",
		"--dont-clean") // others run beside it in the same folder
	r := read(string(out))
	r.timedOut = ctx.Err() != nil
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) && !r.timedOut {
		return nil, err
	}
	return r, nil
}

var (
	line    = regexp.MustCompile(`^\[(ok|err|exception|TIMEOUT)\]: (.*)$`)
	seconds = regexp.MustCompile(` \(\d+ ms\)$`)
	inFile  = regexp.MustCompile(` in tests/\S+\.tcl$`)
	colours = regexp.MustCompile("\x1b\\[[0-9;]*m")
)

// notStarted is what the suite says of a server that it could not start.
const notStarted = "Can't start the Redis server"

// read finds the tests in what the suite prints.
func read(out string) *outcome {
	r := &outcome{passed: map[string]int{}, failed: map[string][]string{}}
	name := "" // of the failed test whose words follow
	unstarted := false
	scan := bufio.NewScanner(strings.NewReader(colours.ReplaceAllString(out, "")))
	scan.Buffer(nil, 64<<20)
	for scan.Scan() {
		m := line.FindStringSubmatch(scan.Text())
		r.ended = r.ended || strings.HasPrefix(scan.Text(), "[1/1 done]")
		switch {
		case m == nil && name != "":
			if words := r.failed[name]; words[len(words)-1] == "" {
				words[len(words)-1] = clip(scan.Text())
			}
			name = ""
		case m == nil:
		case m[1] == "ok" && unstarted:
			name, unstarted = "", false
			test := seconds.ReplaceAllString(m[2], "")
			r.failed[test] = append(r.failed[test], "its server did not start")
		case m[1] == "ok":
			r.passed[seconds.ReplaceAllString(m[2], "")]++
			name = ""
		case m[1] == "err" && strings.HasPrefix(m[2], notStarted):
			unstarted = true // the suite leaves out the block, and the test that has it passes
			name = ""
		case m[1] == "err":
			name = inFile.ReplaceAllString(m[2], "")
			r.failed[name] = append(r.failed[name], "")
		default:
			r.crashed = clip(m[2])
		}
	}
	return r
}

func clip(s string) string {
	const most = 160
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// tally counts tests: what Redis passes, and of that the tested server; missing names what it does not.
type tally struct {
	want, got int
	missing   []string
}

// relative keeps machine paths out of what is printed.
func relative(path string) string {
	if wd, err := os.Getwd(); err == nil {
		if r, err := filepath.Rel(wd, path); err == nil {
			return r
		}
	}
	return path
}
