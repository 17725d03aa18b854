// Command tcl runs Redis's own test suite, which is written in Tcl, against limitkv and against Redis, and reports, file by
// file, how many of the tests that Redis passes limitkv passes too. Most files test an external server; those about
// durability start limitkv themselves, as if it were redis-server.
//
// The suite is not part of this project: REDIS_SRC names a source tree of Redis 8.0 that has been built. What is known
// not to pass is listed in failing.txt with its reason. The command fails if anything else does not pass.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
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
	flag.IntVar(&o.port, "port", 22100, "the first of the ports (64 for each of -jobs) that the files use which start their servers themselves")
	flag.IntVar(&o.jobs, "jobs", 2, "how many of those run at once, beside the others")
	flag.BoolVar(&o.all, "all", false, "run the tests that are known to fail in the files that start their servers themselves, and the files that take many minutes")
	flag.BoolVar(&o.sentinel, "sentinel", false, "run the tests of Sentinel instead: Redis's sentinels watch the server (many minutes)")
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
	var stop func()
	o.ctx, stop = signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := o.run()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance/tcl:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

type options struct {
	ctx context.Context // ends when the command is told to

	source, tested, oracle, failing, tags string

	// trees are copies of the suite for the two servers.
	testedTree, oracleTree string

	only    []string
	port    int // of the first job
	jobs    int
	known   failing // that are left out
	timeout time.Duration
	verbose bool
	all     bool

	sentinel bool
	record   bool
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
			if o.only == nil && (o.all || !slices.Contains(longFiles, name)) || slices.Contains(o.only, name) {
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
	if !o.all && !o.record {
		o.known = known
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
	o.testedTree, o.oracleTree = filepath.Join(dir, "tested"), filepath.Join(dir, "oracle")
	for tree, server := range map[string]string{o.testedTree: o.tested, o.oracleTree: o.oracle} {
		if err := patched(o.source, tree, server); err != nil {
			return false, err
		}
	}
	if o.sentinel {
		return o.runSentinel()
	}
	total := tally{}
	now := map[string][]string{}
	ok = true
	var fixed []string
	fmt.Printf("%-32s %6s %8s\n", "file", "redis", "limitkv")
	var stop func()
	o.ctx, stop = context.WithCancel(o.ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	begun := o.begin(files, &running)
	for _, file := range files {
		want, got, err := begun[file]()
		if err != nil {
			return false, err
		}
		if len(want.passed) == 0 && !isOwn(file) {
			continue // nothing for external servers
		}
		c := compare(want, got)
		if c.unexpected(known, file) && !o.record {
			// It may have been the time that something took, with two servers at work: what passes in one of two runs passes.
			again, err := o.ours(file, o.port)
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
		if o.verbose {
			for name := range want.failed {
				fmt.Printf("    on Redis: %s: %s\n", name, want.problem(name))
			}
		}
		if isOwn(file) && !got.ended { // a file may have no tests, and only be meant to end
			ok = false
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

// both is what a file's tests did on the oracle and on the tested server.
type both func() (want, got *outcome, err error)

// begin returns how to run each file. Those that start their servers themselves, which mostly wait, are begun, some at a
// time; the others are run when they are asked for.
func (o *options) begin(files []string, running *sync.WaitGroup) map[string]both {
	runs := map[string]both{}
	ports := make(chan int, o.jobs)
	for i := range o.jobs {
		ports <- o.port + i*jobPorts
	}
	for _, file := range files {
		if !isOwn(file) {
			runs[file] = func() (want, got *outcome, err error) { return o.both(file, 0) }
			continue
		}
		var want, got *outcome
		var err error
		ended := make(chan struct{})
		running.Go(func() {
			defer close(ended)
			port := <-ports
			defer func() { ports <- port }()
			want, got, err = o.both(file, port)
		})
		runs[file] = func() (*outcome, *outcome, error) {
			<-ended
			return want, got, err
		}
	}
	return runs
}

// ours runs a file on the tested server, theirs on the oracle. Of the files that start their servers themselves what is
// listed is left out, unless -all: it waits, for minutes in all, for what does not come.
func (o *options) ours(file string, port int) (*outcome, error) {
	if isOwn(file) {
		if o.known.reason(file, "") != "" { // of all of the file
			return &outcome{ended: true}, nil
		}
		return o.playOwn(o.testedTree, file, port, o.known.names(file))
	}
	return o.play(o.testedTree, o.tested, file)
}

func (o *options) theirs(file string, port int) (*outcome, error) {
	if isOwn(file) {
		return o.playOwn(o.oracleTree, file, port+ownPorts, nil)
	}
	return o.play(o.oracleTree, o.oracle, file)
}

// both runs a file on both servers, which mostly wait: together they take half the time.
func (o *options) both(file string, port int) (want, got *outcome, err error) {
	var oracleErr error
	var wg sync.WaitGroup
	wg.Go(func() { want, oracleErr = o.theirs(file, port) })
	got, err = o.ours(file, port)
	wg.Wait()
	if oracleErr == nil && !want.ended { // two of the suite may have got in each other's way
		if want, oracleErr = o.theirs(file, port); oracleErr == nil && !want.ended {
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
