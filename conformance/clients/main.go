// Command clients runs the real clients of Java, Go, Node and Python against limitkv, each program starting the server as
// its user would, and writes docs/clients.md's table of what passed.
//
// A folder for each language has an executable run, which gets the server's binary in LIMITKV, fetches its libraries at
// the versions that its lock file names, and prints a line for each check, its parts separated by tabs:
//
//	pass client version area check
//	fail client version area check reason
//
// The programs run twice: with PART=usual side by side, since most of those checks is waiting; then with PART=large, for
// the checks with large arguments, one language after the other, since those take the processor that time limits need.
//
// With -redis the same programs run against a real Redis, with -prove against servers that prove their journal.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
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
	switch binary := os.Getenv(redisBinary); {
	case binary == ":herald":
		quit(heraldRedis(os.Args[1], os.Args[2] == "true"))
		return
	case binary != "":
		quit(becomeRedis(binary, os.Args[1:]))
		return
	}
	switch {
	case os.Getenv(proverOf) != "":
		quit(runProven(os.Args[1:]))
		return
	case os.Getenv(provenBinary) != "":
		quit(becomeProven(os.Args[1:]))
		return
	}
	server := flag.String("server", "bin/limitkv", "the server's binary")
	only := flag.String("only", "", "languages to run, separated by commas; by default all")
	document := flag.String("document", "docs/clients.md", "where the table goes, empty for nowhere")
	redis := flag.String("redis", "", "a redis-server to run the checks against instead, which writes no table")
	proven := flag.Bool("prove", false, "have each server prove meanwhile that its effects make the same keys, and write no table")
	flag.Parse()
	ok, err := run(*server, *only, *document, *redis, *proven)
	quit(err)
	if !ok {
		os.Exit(1)
	}
}

// quit ends the program if there is an error.
func quit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance/clients:", err)
		os.Exit(1)
	}
}

func run(server, only, document, redis string, proven bool) (ok bool, err error) {
	tls := true
	if redis != "" {
		if redis, err = exec.LookPath(redis); err != nil {
			return false, err
		}
		if redis, err = filepath.Abs(redis); err != nil {
			return false, err
		}
		document, tls = "", hasTLS(redis)
		os.Setenv(redisBinary, redis)
		server = os.Args[0]
	}
	if server, err = filepath.Abs(server); err != nil {
		return false, err
	}
	var proved string
	if proven {
		if proved, err = os.MkdirTemp("", "limitkv-proofs-"); err != nil {
			return false, err
		}
		defer os.RemoveAll(proved)
		os.Setenv(provenBinary, server)
		os.Setenv(proofFolder, proved)
		document, server = "", os.Args[0]
		if server, err = filepath.Abs(server); err != nil {
			return false, err
		}
	}
	ok = true
	complete := true
	var ran []*outcome
	var all sync.WaitGroup
	var large []func()
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
		part := func(name string) func() {
			o := &outcome{}
			ran = append(ran, o)
			return func() {
				began := time.Now()
				o.checks, o.err = l.run(filepath.Join("conformance/clients", l.folder), server, name)
				fmt.Printf("%s: %d %s checks in %.0f s\n", l.name, len(o.checks), name, time.Since(began).Seconds())
				if o.err != nil {
					fmt.Printf("%s: %v\n", l.name, o.err)
				}
			}
		}
		all.Go(part("usual"))
		large = append(large, part("large"))
	}
	all.Wait()
	for _, run := range large {
		run()
	}
	var checks []check
	passed, failed := 0, 0
	for _, o := range ran {
		ok = ok && o.err == nil
		checks = append(checks, o.checks...)
	}
	for _, c := range checks {
		switch {
		case c.passed:
			passed++
		case redis != "" && notRedis(c, tls):
		default:
			failed++
			fmt.Printf("FAIL %s %s: %s: %s: %s\n", c.client, c.version, c.area, c.name, c.reason)
		}
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	ok = ok && (failed == 0 || proven) // proofs take time that some checks do not have
	if proven {
		enough, err := proofs(proved)
		if err != nil {
			return false, err
		}
		ok = ok && enough
	}
	if document != "" && complete && ok {
		err = writeTable(document, checks)
	}
	return ok, err
}

// outcome is what a language's programs printed.
type outcome struct {
	checks []check
	err    error
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

// run runs a part of the language's programs.
func (l language) run(dir, server, part string) ([]check, error) {
	cmd := exec.Command("./run")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LIMITKV="+server, "PART="+part)
	cmd.Stderr = os.Stderr
	kill := peer.Group(cmd)
	out, err := cmd.Output()
	kill() // A program that gave up has left its servers.
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
