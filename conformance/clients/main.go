// Command clients runs the real clients of Java, Go, Node and Python against limitkv, each program starting the server as
// its user would, and writes the README's table of what passed.
//
// A folder for each language has an executable run, which gets the server's binary in LIMITKV, fetches its libraries at
// the versions that its lock file names, and prints a line for each check, its parts separated by tabs:
//
//	pass client version area check
//	fail client version area check reason
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// language is a folder with what it needs on the machine.
type language struct {
	folder, name string
	needs        []string
}

var languages = []language{
	{"java", "Java", []string{"java", "mvn"}},
	{"go", "Go", []string{"go"}},
	{"node", "Node", []string{"node", "npm"}},
	{"python", "Python", []string{"python3"}},
}

func main() {
	server := flag.String("server", "bin/limitkv", "the server's binary")
	only := flag.String("only", "", "languages to run, separated by commas; by default all")
	readme := flag.String("readme", "README.md", "where the table goes, empty for nowhere")
	flag.Parse()
	ok, err := run(*server, *only, *readme)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance/clients:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(server, only, readme string) (ok bool, err error) {
	if server, err = filepath.Abs(server); err != nil {
		return false, err
	}
	here := "conformance/clients"
	ok = true
	var all []check
	complete := true
	for _, l := range languages {
		if only != "" && !strings.Contains(","+only+",", ","+l.folder+",") {
			complete = false
			continue
		}
		if missing := l.missing(); missing != "" {
			fmt.Printf("%s: skipped, there is no %s\n", l.name, missing)
			complete = false
			ok = ok && os.Getenv("CI") == ""
			continue
		}
		checks, err := l.run(filepath.Join(here, l.folder), server)
		all = append(all, checks...)
		if err != nil {
			fmt.Printf("%s: %v\n", l.name, err)
			ok = false
		}
	}
	passed, failed := 0, 0
	for _, c := range all {
		if c.passed {
			passed++
			continue
		}
		failed++
		fmt.Printf("FAIL %s %s: %s: %s: %s\n", c.client, c.version, c.area, c.name, c.reason)
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	ok = ok && failed == 0
	if readme != "" && complete && ok {
		err = writeTable(readme, all)
	}
	return ok, err
}

// missing names what the language needs and the machine lacks.
func (l language) missing() string {
	for _, program := range l.needs {
		if _, err := exec.LookPath(program); err != nil {
			return program
		}
	}
	return ""
}

// run runs the language's programs.
func (l language) run(dir, server string) ([]check, error) {
	cmd := exec.Command("./run")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LIMITKV="+server)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	checks, bad := parse(l.name, string(out))
	for _, line := range bad {
		fmt.Printf("%s: %s\n", l.name, line)
	}
	switch {
	case err != nil:
		return checks, err
	case len(bad) > 0:
		return checks, fmt.Errorf("%d lines that are no checks", len(bad))
	case len(checks) == 0:
		return nil, fmt.Errorf("no check was run")
	}
	return checks, nil
}
