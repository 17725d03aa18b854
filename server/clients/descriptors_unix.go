//go:build unix

package clients

// How many file descriptors the process may have.

import (
	"math"
	"syscall"
)

// descriptors raises the limit of open files to need, or as far as the system allows, and returns the old limit, the new one,
// and why it is not higher. The Go runtime has already raised the soft limit to the hard one, so both are raised, if the
// process may. It never lowers a limit.
func descriptors(need int64) (before, now int64, err error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return descriptorsUnknown, descriptorsUnknown, err
	}
	now = int64(min(uint64(limit.Cur), math.MaxInt64))
	before = now
	for least, most := now+1, need; least <= most; {
		n := most // first try need itself, then search between
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

// descriptorsUnknown is what Redis assumes if the system returns an error.
const descriptorsUnknown = 1024

// raise is generic since the type of limits differs between systems.
func raise[T int64 | uint64](limit *T, n int64) {
	if uint64(*limit) < uint64(n) {
		*limit = T(n)
	}
}
