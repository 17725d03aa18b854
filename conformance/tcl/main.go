// Command tcl runs Redis's own test suite, which is written in Tcl, against limitkv as an external server, and against
// Redis in the same way, and reports, file by file, how many of the tests that Redis passes limitkv passes too.
//
// The suite is not part of this project: REDIS_SRC names a source tree of Redis 8.0 that has been built. What is known
// not to pass is listed in failing.txt with its reason; the command fails if anything else does not pass.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	var o options
	only := ""
	flag.StringVar(&o.source, "src", os.Getenv("REDIS_SRC"), "Redis's source tree, built")
	flag.StringVar(&o.tested, "server", "bin/limitkv", "the server to test")
	flag.StringVar(&o.oracle, "oracle", "", "the server that says what passes; by default src/redis-server of the tree")
	flag.StringVar(&only, "only", "", "files to run, separated by commas, such as unit/type/zset; by default all")
	flag.StringVar(&o.failing, "failing", "conformance/tcl/failing.txt", "what is known to fail, empty for nothing")
	flag.StringVar(&o.tags, "tags", "-slow", "the suite's --tags: which tests to run, such as \"-slow -needs:repl\"")
	flag.BoolVar(&o.record, "record", false, "write the list of what is known to fail anew, with the reasons it has")
	flag.DurationVar(&o.timeout, "timeout", 2*time.Minute, "the longest a file may run")
	flag.BoolVar(&o.verbose, "v", false, "print what failed with the suite's words")
	flag.Parse()
	if o.source == "" {
		if os.Getenv("CI") != "" {
			fmt.Fprintln(os.Stderr, "conformance/tcl: REDIS_SRC is not set")
			os.Exit(1)
		}
		fmt.Println("skipped: REDIS_SRC names no source tree of Redis")
		return
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	ok, err := o.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance/tcl:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

type options struct {
	source, tested, oracle, failing, tags string

	only    []string
	timeout time.Duration
	verbose bool
	record  bool
}

// suiteFolders are where the suite's files are.
var suiteFolders = []string{"unit", "unit/type", "unit/cluster", "integration"}

func (o *options) files() (list []string, err error) {
	for _, folder := range suiteFolders {
		paths, err := filepath.Glob(filepath.Join(o.source, "tests", folder, "*.tcl"))
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			name := folder + "/" + strings.TrimSuffix(filepath.Base(p), ".tcl")
			if o.only == nil || slices.Contains(o.only, name) {
				list = append(list, name)
			}
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no tests in %s", o.source)
	}
	return list, nil
}

// run runs all files on both servers and reports whether all passed that should.
func (o *options) run() (ok bool, err error) {
	if o.oracle == "" {
		o.oracle = filepath.Join(o.source, "src", "redis-server")
	}
	if o.tested, err = filepath.Abs(o.tested); err != nil {
		return false, err
	}
	known, err := readFailing(o.failing)
	if err != nil {
		return false, err
	}
	files, err := o.files()
	if err != nil {
		return false, err
	}
	if o.oracle, err = filepath.Abs(o.oracle); err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "limitkv-tcl-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	if err := patched(o.source, dir); err != nil {
		return false, err
	}
	o.source = dir
	total := tally{}
	now := map[string][]string{}
	ok = true
	var fixed []string
	fmt.Printf("%-32s %6s %8s\n", "file", "redis", "limitkv")
	for _, file := range files {
		want, got, err := o.both(file)
		if err != nil {
			return false, err
		}
		if len(want.passed) == 0 {
			continue // nothing for external servers
		}
		c := compare(want, got)
		if c.unexpected(known, file) && !o.record {
			// It may have been the time that something took, with two servers at work: what passes in one of two runs passes.
			again, err := o.play(o.tested, file)
			if err != nil {
				return false, err
			}
			got = got.better(again)
			c = compare(want, got)
		}
		now[file] = c.missing
		fmt.Printf("%-32s %6d %8d%s\n", file, c.want, c.got, got.ending())
		total.want += c.want
		total.got += c.got
		for _, name := range c.missing {
			reason := known.reason(file, name)
			if reason == "" {
				ok = false
			}
			if reason == "" || o.verbose {
				fmt.Printf("    %s: %s\n", name, firstOf(reason, got.problem(name)))
			}
		}
		for _, name := range known.names(file) {
			if !slices.Contains(c.missing, name) && want.passed[name] > 0 {
				fixed = append(fixed, file+"\t"+name)
			}
		}
	}
	fmt.Printf("%-32s %6d %8d  %.1f %%\n", "all", total.want, total.got, 100*float64(total.got)/float64(max(1, total.want)))
	for _, line := range fixed {
		fmt.Println("passes though it is listed:", line)
	}
	fmt.Printf("%d passed, %d failed\n", total.got, total.want-total.got)
	if o.record {
		return true, known.write(o.failing, files, now)
	}
	return ok, nil
}

// both runs a file on both servers, which mostly wait: together they take half the time.
func (o *options) both(file string) (want, got *outcome, err error) {
	var oracleErr error
	var wg sync.WaitGroup
	wg.Go(func() { want, oracleErr = o.play(o.oracle, file) })
	got, err = o.play(o.tested, file)
	wg.Wait()
	if oracleErr == nil && !want.ended { // two of the suite may have got in each other's way
		if want, oracleErr = o.play(o.oracle, file); oracleErr == nil && !want.ended {
			oracleErr = fmt.Errorf("%s does not end on Redis%s", file, want.ending())
		}
	}
	return want, got, cmp.Or(oracleErr, err)
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
