// Command suites runs the own test suites of clients and libraries of Go and Python, as their packages ship them, against
// limitkv and against Redis. What fails on Redis too, where the suite wants what a plain server does not have, is
// expected; what passes there has to pass here, but for the few tests that exceptions.go gives the reasons of.
//
// The packages are those that conformance/clients uses, at its versions. They are kept in the user's cache. Suites have
// the ports of their servers in their text, so each run has a network of its own (space_linux.go), in which limitkv and
// Redis run side by side.
//
// "make conformance-clients SUITES=1" runs all. It takes minutes, since suites test time-outs by waiting for them.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == insideWord {
		quit(inside())
		return
	}
	limitkv := flag.String("server", "bin/limitkv", "limitkv's binary")
	redis := flag.String("redis", os.Getenv("REDIS_SERVER"), "redis-server, to compare with")
	only := flag.String("only", "", "run this suite alone")
	quick := flag.Bool("quick", false, "run what takes little time of the suites")
	prove := flag.Bool("prove", false, "instead of comparing with Redis, prove that limitkv's effects make the same keys")
	logs := flag.String("logs", "", "folder to keep what the suites print in")
	flag.Parse()
	ok, err := run(*limitkv, *redis, *only, *logs, *quick, *prove)
	quit(err)
	if !ok {
		os.Exit(1)
	}
}

// quit ends the program if there is an error.
func quit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance/suites:", err)
		os.Exit(1)
	}
}

func run(limitkv, redis, only, logs string, quick, prove bool) (ok bool, err error) {
	if redis == "" {
		redis = "redis-server"
	}
	if redis, err = exec.LookPath(redis); err != nil && !prove {
		return false, err
	}
	if redis, err = filepath.Abs(redis); err != nil {
		return false, err
	}
	if limitkv, err = filepath.Abs(limitkv); err != nil {
		return false, err
	}
	ok = true
	ran := 0
	for _, s := range suites {
		if quick {
			s.tests = s.quick
		}
		if len(s.tests) == 0 || prove && s.own || only != "" && s.name != only {
			continue
		}
		ran++
		began := time.Now()
		if prove {
			passed, err := s.prove(limitkv, logs)
			if err != nil {
				return false, fmt.Errorf("%s: %w", s.name, err)
			}
			ok = ok && passed
			continue
		}
		c, err := s.compare(limitkv, redis, logs)
		if err != nil {
			return false, fmt.Errorf("%s: %w", s.name, err)
		}
		for _, name := range c.failed {
			ok = false
			fmt.Printf("FAIL %s %s\n%s\n", s.name, name, c.got[name].output)
		}
		fmt.Printf("%s: %d of the %d tests that pass on Redis pass on limitkv%s; %d fail on Redis; %.0f s\n", s.name, c.passed,
			c.passed+c.excepted+len(c.failed), c.notes(), c.expected, time.Since(began).Seconds())
		if c.passed == 0 {
			return false, fmt.Errorf("%s: no test passed", s.name)
		}
	}
	if ran == 0 {
		return false, fmt.Errorf("no suite is called %q", only)
	}
	return ok, nil
}

// result is what became of one test.
type result struct {
	passed bool
	output string
}

// comparison is what became of a suite's tests on both servers.
type comparison struct {
	want, got map[string]result
	// expected is how many fail on Redis, excepted how many do not count, again how many passed the second time only.
	passed, expected, excepted, again int
	failed                            []string
}

func (c *comparison) notes() string {
	var b strings.Builder
	if c.excepted > 0 {
		fmt.Fprintf(&b, ", %d are excepted", c.excepted)
	}
	if c.again > 0 {
		fmt.Fprintf(&b, ", %d when run again", c.again)
	}
	return b.String()
}

// compare runs the suite on both servers, and once more what failed on limitkv alone: suites have tests that fail now and
// then on any server, mostly for a machine that is busy with others.
func (s suite) compare(limitkv, redis, logs string) (*comparison, error) {
	place, err := s.kind.fetch(s)
	if err != nil {
		return nil, err
	}
	c := &comparison{}
	var errs [2]error
	done := make(chan struct{})
	go func() {
		c.want, _, errs[0] = s.run(place, "redis", redis, logs, nil)
		close(done)
	}()
	c.got, _, errs[1] = s.run(place, "limitkv", limitkv, logs, nil)
	<-done
	for i, name := range []string{"Redis", "limitkv"} {
		if errs[i] != nil {
			return nil, fmt.Errorf("on %s: %w", name, errs[i])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.want)) {
		switch {
		case !c.want[name].passed:
			c.expected++
		case c.got[name].passed:
			c.passed++
		case excepted(s.name, name):
			c.excepted++
		default:
			c.failed = append(c.failed, name)
		}
	}
	if n := len(c.failed); n == 0 || n > againMax {
		return c, nil
	}
	second, _, err := s.run(place, "limitkv", limitkv, logs, c.failed)
	if err != nil {
		return nil, fmt.Errorf("on limitkv again: %w", err)
	}
	c.failed = slices.DeleteFunc(c.failed, func(name string) bool {
		if !second[name].passed {
			return false
		}
		c.passed++
		c.again++
		return true
	})
	return c, nil
}

// proofFile is where a run that proves puts what came of it.
const proofFile = "proof"

// prove runs the suite on limitkv and has it prove meanwhile that its effects are enough. What the tests come to is not of
// interest: they see the one who looks.
func (s suite) prove(limitkv, logs string) (ok bool, err error) {
	place, err := s.kind.fetch(s)
	if err != nil {
		return false, err
	}
	began := time.Now()
	results, proof, err := s.run(place, "proof", limitkv, logs, nil)
	if err != nil {
		return false, err
	}
	fmt.Printf("%s: %d tests in %.0f s: %s", s.name, len(results), time.Since(began).Seconds(), proof)
	effects := 0
	for line := range strings.Lines(proof) {
		n := 0
		_, _ = fmt.Sscanf(line, "%d effects", &n) // none where the line says what is not so
		effects += n
	}
	if effects == 0 {
		return false, errors.New("no effect was logged")
	}
	return !strings.Contains(proof, "FAIL"), nil
}

// againMax is how many failed tests are worth a second run: where more fail, it is the server.
const againMax = 20

// run runs the suite, or of it the tests named in only, against a server, "redis", "limitkv" or "proof", and returns the
// results by test.
func (s suite) run(place, server, binary, logs string, only []string) (results map[string]result, proof string, err error) {
	dir, err := os.MkdirTemp("", "limitkv-suite-")
	if err != nil {
		return nil, "", err
	}
	defer os.RemoveAll(dir)
	cmd, err := s.kind.command(s, place, dir, only)
	if err != nil {
		return nil, "", err
	}
	log := filepath.Join(dir, "log")
	if logs != "" {
		log = filepath.Join(logs, strings.ReplaceAll(s.name, "/", "-")+"."+server)
	}
	if err := s.inSpace(cmd, binary, dir, log, server == "proof"); err != nil {
		return nil, "", err
	}
	if server == "proof" {
		b, err := os.ReadFile(filepath.Join(dir, proofFile))
		if err != nil {
			return nil, "", err
		}
		proof = string(b)
	}
	results, err = s.kind.results(dir, log)
	if err == nil && len(results) == 0 {
		err = fmt.Errorf("no test ran: %s", tail(log))
	}
	return results, proof, err
}

// tail is the end of what a suite printed.
func tail(log string) []byte {
	b, _ := os.ReadFile(log)
	return b[max(0, len(b)-2000):]
}
