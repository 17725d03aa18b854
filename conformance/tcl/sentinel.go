package main

// The tests of Sentinel: five of Redis's sentinels watch five of the servers to test, which are killed and come back.

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// sentinelPatches give the instances ports of their own, from which the suite takes the next that is free.
func (o *options) sentinelPatches() [][2]string {
	return [][2]string{
		{"set ::sentinel_base_port 20000", fmt.Sprint("set ::sentinel_base_port ", o.port)},
		{"set ::redis_base_port 30000", fmt.Sprint("set ::redis_base_port ", o.port+sentinelPorts)},
		{"set ::redis_port_count 1024", fmt.Sprint("set ::redis_port_count ", sentinelPorts)},
	}
}

// sentinelPorts is how many ports the sentinels may use, and the servers.
const sentinelPorts = 64

var sentinelTest = regexp.MustCompile(`^\d\d:\d\d:\d\d> (.*?):(?: |$)`)

// runSentinel runs them on the tested server and reports whether all passed.
func (o *options) runSentinel() (ok bool, err error) {
	path := filepath.Join(o.testedTree, "tests", "instances.tcl")
	b, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	text := string(b)
	for _, p := range o.sentinelPatches() {
		if strings.Count(text, p[0]) != 1 {
			return false, fmt.Errorf("tests/instances.tcl is not that of Redis 8.0: it does not have %q", p[0])
		}
		text = strings.Replace(text, p[0], p[1], 1)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Join(o.testedTree, "tests", "sentinel", "tmp"), 0o755); err != nil {
		return false, err
	}
	out, err := play(o.ctx, o.testedTree, "tests/sentinel/run.tcl")
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		return false, err
	}
	passed, failed := sentinelOutcome(string(out))
	for _, name := range failed {
		fmt.Println("    " + name)
	}
	fmt.Printf("sentinel: %d passed, %d failed\n", passed, len(failed))
	return err == nil && passed > 0 && len(failed) == 0, nil
}

// sentinelOutcome counts what the suite prints: a test's time and name, perhaps what its servers print, and how it ended.
func sentinelOutcome(out string) (passed int, failed []string) {
	name := ""
	for l := range strings.Lines(colours.ReplaceAllString(out, "")) {
		l = strings.TrimSpace(l)
		if m := sentinelTest.FindStringSubmatch(l); m != nil {
			if name != "" {
				failed = append(failed, name+": it did not end")
			}
			name = m[1]
		}
		switch {
		case name == "":
		case strings.HasSuffix(l, "OK"):
			passed++
			name = ""
		case strings.Contains(l, "FAILED"):
			failed = append(failed, name+": "+clip(l))
			name = ""
		}
	}
	if name != "" {
		failed = append(failed, name+": it did not end")
	}
	return passed, failed
}
