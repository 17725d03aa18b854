package memory

// How much memory the machine has: Linux.

import "golang.org/x/sys/unix"

func systemMemory() uint64 {
	var i unix.Sysinfo_t
	if unix.Sysinfo(&i) != nil {
		return 0
	}
	return i.Totalram * uint64(i.Unit)
}
