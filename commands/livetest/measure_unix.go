//go:build unix

package livetest

import (
	"syscall"
	"time"
)

// CPU is the processor time of this process, server and clients.
func CPU() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// filesMax is how many files this process may have open.
func filesMax() int {
	var files syscall.Rlimit
	syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files)
	return int(files.Cur)
}
