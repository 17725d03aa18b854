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
	{ // who waits for a server that has ended waits for two minutes; its log is looked at once more
		"support/server.tcl",
		"        after $checkperiod\n        incr maxiter -1\n",
		"        after $checkperiod\n        if {[info exists ended]} {set maxiter 1}\n        if {![is_alive $pid]} {set ended 1}\n        incr maxiter -1\n",
	},
	{ // and who waits for it to be ready waits for ever
		"support/server.tcl",
		"                    break\n                }\n                after 10\n            }\n\n            # connect",
		"                    break\n                }\n                after 10\n                if {![is_alive $pid]} {break}\n            }\n\n            # connect",
	},
	{ // what kills the child process that makes a snapshot has the snapshot fail where there is no child, and kills another process
		"support/util.tcl",
		"proc get_child_pid {idx} {\n    set pid [srv $idx pid]\n",
		"proc get_child_pid {idx} {\n    if {![catch {[srv $idx client] debug stop-saving}]} {return [exec sleep 60 >/dev/null 2>/dev/null &]}\n    set pid [srv $idx pid]\n",
	},
	{ // comment lines, such as redis-server writes with aof-timestamp-enabled, and limitkv always, are not for this reader
		"support/util.tcl",
		"    if {[gets $fp count] == -1} return \"\"\n",
		"    set count #\n    while {[string match {#*} $count]} {if {[gets $fp count] == -1} {return \"\"}}\n",
	},
	{ // a test that fails inside MULTI, in another database or with expiry off leaves that to all that follow, which then fail or
		// wait for ever
		"support/test.tcl",
		"    if {$::dump_logs && $failed} {\n",
		"    if {$failed} {\n        catch {r discard}\n        if {[string match {*r select*} $code]} {catch {r select 9}}\n        catch {r debug set-active-expire 1}\n    }\n    if {$::dump_logs && $failed} {\n",
	},
}

// patched makes a copy of the suite in dir, with the server and Redis's other programs where the suite looks for them.
func patched(source, dir, server string) error {
	if err := os.CopyFS(filepath.Join(dir, "tests"), os.DirFS(filepath.Join(source, "tests"))); err != nil {
		return err
	}
	if err := linked(source, dir, server); err != nil {
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
