package persistence

// How background writing shares the processors with event loops.
//
// A busy thread in Linux finishes its slice before a loop that has been woken gets the processor. That is up to 4 ms on
// machines with a slow tick. So the thread that encodes asks for the shortest possible slice, and yields the processor between
// two steps, when it holds no lock.
//
// Rejected: a low priority (nice 19, SCHED_IDLE). On a busy machine the thread then does not run for tens of milliseconds
// while it holds the lock of a shard.

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// sliceNanos is the shortest slice that Linux accepts, from 6.12 on. Older versions ignore it.
const sliceNanos = 100_000

// inShortSlices locks the goroutine to its thread and gives the thread short slices until restore is called.
func inShortSlices() (restore func()) {
	runtime.LockOSThread()
	if !setSlice(sliceNanos) {
		return runtime.UnlockOSThread
	}
	return func() {
		setSlice(0)
		runtime.UnlockOSThread()
	}
}

// setSlice sets the length of the thread's slices, 0 for the default, and keeps all else that the operator has set.
func setSlice(nanos uint64) bool {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL && attr.Policy != unix.SCHED_BATCH {
		return false
	}
	attr.Runtime = nanos
	return unix.SchedSetAttr(0, attr, 0) == nil
}

// offer yields the processor to other threads.
func offer() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
