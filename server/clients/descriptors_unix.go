//go:build unix

package clients

// How many file descriptors the process may have.

import (
	"math"
	"syscall"
)

// descriptors raises the limit of open files to need, or as far towards that as the system lets it, and returns what it was,
// what it is, and why it is not more. The runtime has raised it to the hard limit, so this one is raised, too, by a process
// that may; it is never lowered.
func descriptors(need int64) (before, now int64, err error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return descriptorsUnknown, descriptorsUnknown, err
	}
	now = int64(min(uint64(limit.Cur), math.MaxInt64))
	before = now
	for least, most := now+1, need; least <= most; {
		n := most // first all, then what is between
		if most < need {
			n = least + (most-least)/2
		}
		raised := limit
		raise(&raised.Cur, n)
		raise(&raised.Max, n)
		if failed := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised); failed != nil {
			err, most = failed, n-1
		} else {
			now, least = n, n+1
		}
	}
	return before, now, err
}

// descriptorsUnknown is what Redis assumes where the system does not tell.
const descriptorsUnknown = 1024

// raise is for limits of any type: systems differ in that.
func raise[T int64 | uint64](limit *T, n int64) {
	if uint64(*limit) < uint64(n) {
		*limit = T(n)
	}
}
