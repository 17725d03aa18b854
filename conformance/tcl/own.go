package main

// The files about durability and replication: they start the servers that they test themselves, again and again, on files of
// their own making. For these the suite runs in its own mode, in a copy where src/redis-server is the server to test; the other
// programs of src stay Redis's.

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/limitkv/limitkv/conformance/peer"
)

// ownFiles are the files that run so. All tests of integration/aof-race are slow ones, which are left out, and without them
// the suite cannot always start its server.
var ownFiles = []string{
	"integration/aof", "integration/aof-multi-part", "integration/convert-ziplist-hash-on-load",
	"integration/convert-ziplist-zset-on-load", "integration/convert-zipmap-hash-on-load", "integration/corrupt-dump",
	"integration/corrupt-dump-fuzzer", "integration/logging", "integration/rdb", "integration/shutdown",
	"integration/block-repl", "integration/failover", "integration/psync2-master-restart", "integration/psync2-pingoff",
	"integration/replication-2", "integration/replication-3", "integration/replication-4", "unit/wait",
}

// longFiles are those that take many minutes each, most of which they wait, or whose tests have other names and numbers each
// time. They are run with -all, or by name.
var longFiles = []string{
	"integration/psync2", "integration/psync2-reg", "integration/replication", "integration/replication-buffer", "integration/replication-psync",
}

func isOwn(file string) bool {
	return slices.Contains(ownFiles, file) || slices.Contains(longFiles, file)
}

// programs are those of Redis that the suite calls.
var programs = []string{"redis-benchmark", "redis-check-aof", "redis-check-rdb", "redis-cli", "redis-sentinel"}

// ownPorts is how many ports the servers of a run may use. Below them the suite looks for one of its own, among suitePorts.
const (
	ownPorts   = 16
	suitePorts = 32
	jobPorts   = suitePorts + 2*ownPorts
)

// playOwn runs a file whose servers are those of the tree, from a port on, without some tests.
func (o *options) playOwn(tree, file string, port int, without []string) (*outcome, error) {
	ctx, cancel := context.WithTimeout(o.ctx, o.timeout)
	defer cancel()
	args := []string{"tests/test_helper.tcl", "--single", file, "--tags", o.tags, "--durable", "--clients", "1", "--dont-pre-clean", "--dont-clean",
		"--baseport", strconv.Itoa(port + suitePorts), "--portcount", strconv.Itoa(ownPorts)}
	for _, test := range without {
		args = append(args, "--skiptest", test)
	}
	out, err := play(ctx, tree, args...)
	if o.ctx.Err() != nil {
		return nil, o.ctx.Err()
	}
	r := read(string(out))
	r.timedOut = ctx.Err() != nil
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) && !r.timedOut {
		return nil, err
	}
	return r, nil
}

// play runs a part of the suite. Whatever that has started ends with it.
func play(ctx context.Context, tree string, args ...string) ([]byte, error) {
	suite := exec.CommandContext(ctx, "tclsh", args...)
	suite.Dir = tree
	kill := peer.Group(suite)
	suite.Cancel = func() error { kill(); return nil }
	suite.WaitDelay = time.Second
	out, err := suite.CombinedOutput()
	kill()
	if errors.Is(err, exec.ErrWaitDelay) { // it has ended well; a program that it started took longer
		err = nil
	}
	return out, err
}

// linked fills src of a copy of the suite with the server and Redis's other programs.
func linked(source, tree, server string) error {
	if err := os.Mkdir(filepath.Join(tree, "src"), 0o755); err != nil {
		return err
	}
	for _, name := range programs {
		target, err := filepath.Abs(filepath.Join(source, "src", name))
		if err != nil {
			return err
		}
		if err := os.Symlink(target, filepath.Join(tree, "src", name)); err != nil {
			return err
		}
	}
	return os.Symlink(server, filepath.Join(tree, "src", "redis-server"))
}
