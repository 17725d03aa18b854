package main

// A copy of the suite that goes on where the original ends: after a failed test the rest of a file is to be counted, not
// lost.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// patches are the places of the suite's own code that are changed.
var patches = []struct{ file, old, new string }{
	{ // a parameter that the server refuses ends a file
		"support/server.tcl",
		"        r config set $param $val\n\n",
		"        if {[catch {r config set $param $val} refused]} {\n" +
			"            send_data_packet $::test_server_fd err \"CONFIG SET $param $val: $refused\"\n            continue\n        }\n\n",
	},
	{ // a test that fails inside MULTI, in another database or with expiry off leaves that to all that follow, which then fail or
		// wait for ever
		"support/test.tcl",
		"    if {$::dump_logs && $failed} {\n",
		"    if {$failed} {\n        catch {r discard}\n        if {[string match {*r select*} $code]} {catch {r select 9}}\n        catch {r debug set-active-expire 1}\n    }\n    if {$::dump_logs && $failed} {\n",
	},
}

// patched makes a copy of the suite in dir, with Redis's programs where the suite looks for them.
func patched(source, dir string) error {
	if err := os.CopyFS(filepath.Join(dir, "tests"), os.DirFS(filepath.Join(source, "tests"))); err != nil {
		return err
	}
	src, err := filepath.Abs(filepath.Join(source, "src"))
	if err != nil {
		return err
	}
	if err := os.Symlink(src, filepath.Join(dir, "src")); err != nil {
		return err
	}
	for _, p := range patches {
		path := filepath.Join(dir, "tests", p.file)
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := strings.Count(string(b), p.old); n != 1 {
			return fmt.Errorf("tests/%s is not that of Redis 8.0: %q is there %d times", p.file, p.old, n)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(b), p.old, p.new, 1)), 0o644); err != nil {
			return err
		}
	}
	return nil
}
