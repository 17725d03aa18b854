package main

// The resources of a server on this machine: its process is found by its port, its processor time and memory are read from
// /proc.

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// listener returns the process that listens on a port of this machine. It is 0 if the address is on another machine, or if no
// process is found (it may be another user's).
func listener(addr string) (pid int) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return 0
	}
	n, _ := strconv.Atoi(port)
	inodes := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.SplitSeq(string(text), "\n") {
			f := strings.Fields(line)
			const listening = "0A"
			if len(f) > 9 && f[3] == listening && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", n)) {
				inodes["socket:["+f[9]+"]"] = true
			}
		}
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && inodes[to] {
			pid, _ = strconv.Atoi(strings.Split(fd, "/")[2])
			return pid
		}
	}
	return 0
}

// processorNanos returns the processor time of a process and all its threads.
func processorNanos(pid int) (nanos int64) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if err != nil {
			continue
		}
		on, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseInt(on, 10, 64)
		nanos += n
	}
	return nanos
}

// residentBytes returns the resident memory of a process.
func residentBytes(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(text))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// ownNanos returns the processor time of this process.
func ownNanos() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
