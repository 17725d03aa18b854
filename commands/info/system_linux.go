package info

// The system's name and the process's processor time, on Linux.

import (
	"golang.org/x/sys/unix"
)

const multiplexing = "epoll"

// systemName is INFO's os: name, release and machine.
func systemName() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "Linux"
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
}

// processorSeconds is the time spent in the kernel and in the program.
func processorSeconds() (system, user float64) {
	var r unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &r) != nil {
		return 0, 0
	}
	return float64(r.Stime.Nano()) / 1e9, float64(r.Utime.Nano()) / 1e9
}
