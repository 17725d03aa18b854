package persistence

// How what is written in the background shares the processors with event loops.
//
// Linux lets a thread that is busy finish its slice, which is up to 4 ms on machines whose clock ticks so often, before a
// loop that has been woken gets the processor. So the thread that encodes asks for the shortest slice there is, and
// offers the processor between two steps, when it holds no lock.
//
// Rejected: a low priority (nice 19, SCHED_IDLE). On a busy machine the thread is then not run for tens of milliseconds
// while it holds the lock of a shard.

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// sliceNanos is the shortest slice that can be asked for, from Linux 6.12 on. Others ignore it.
const sliceNanos = 100_000

// inShortSlices keeps the goroutine on its thread, which gets short slices until restore is called.
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

// setSlice sets the length of the thread's slices, 0 for the usual one, and leaves all else as the operator chose it.
func setSlice(nanos uint64) bool {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil || attr.Policy != unix.SCHED_NORMAL && attr.Policy != unix.SCHED_BATCH {
		return false
	}
	attr.Runtime = nanos
	return unix.SchedSetAttr(0, attr, 0) == nil
}

// offer lets other threads run that wait for this processor.
func offer() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
