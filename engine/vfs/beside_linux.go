package vfs

// Syncs in the background, by Linux's asynchronous I/O (io_submit; fdatasync since 4.18). The kernel signals the end on
// a descriptor that epoll watches, so that no goroutine waits for it. A goroutine that returns from a sync has usually
// lost its processor, and is scheduled twice before an event loop learns of the end.

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// aio is a kernel context for one sync at a time.
type aio struct {
	context uintptr
	event   int // eventfd
	file    *osFile
}

// control is Linux's struct iocb.
type control struct {
	_             uint64 // data
	_, _          uint32 // key, rw_flags
	op            uint16
	_             int16 // reqprio
	file          uint32
	_             [4]uint64 // buf, nbytes, offset, reserved
	notify, event uint32
}

// ended is Linux's struct io_event.
type ended struct {
	_, _   uint64 // data, obj
	result int64
	_      int64 // res2
}

// Constants from linux/aio_abi.h.
const (
	opDataSync   = 3
	notifyEvent  = 1
	inFlightMost = 1
)

// newBeside returns nil if the kernel does not support or forbids asynchronous I/O.
func newBeside() Beside {
	event, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil
	}
	a := &aio{event: event}
	if _, _, errno := unix.Syscall(unix.SYS_IO_SETUP, inFlightMost, uintptr(unsafe.Pointer(&a.context)), 0); errno != 0 {
		unix.Close(event)
		return nil
	}
	return a
}

func (a *aio) Descriptor() int { return a.event }

func (a *aio) Begin(f File) bool {
	file, ok := f.(*osFile)
	if !ok {
		return false
	}
	c := &control{op: opDataSync, file: uint32(file.Fd()), notify: notifyEvent, event: uint32(a.event)}
	list := [1]*control{c}
	n, _, _ := unix.RawSyscall(unix.SYS_IO_SUBMIT, a.context, 1, uintptr(unsafe.Pointer(&list)))
	if n != 1 {
		return false
	}
	a.file = file
	return true
}

func (a *aio) Ended() (ended bool, err error) { return a.take(0, &unix.Timespec{}) }

func (a *aio) Wait() error {
	for {
		if ended, err := a.take(1, nil); ended {
			return err
		}
	}
}

// take returns the end of a sync, if there is one. It waits for so many ends, at most as long as limit.
func (a *aio) take(wait uintptr, limit *unix.Timespec) (bool, error) {
	var e ended
	n, _, errno := unix.Syscall6(unix.SYS_IO_GETEVENTS, a.context, wait, 1, uintptr(unsafe.Pointer(&e)), uintptr(unsafe.Pointer(limit)), 0)
	switch {
	case errno == unix.EINTR || errno == 0 && n == 0:
		return false, nil
	case errno != 0:
		return true, wrapSync(a.file.File, errno)
	case e.result < 0:
		return true, wrapSync(a.file.File, unix.Errno(-e.result))
	}
	return true, nil
}

func (a *aio) Close() error {
	_, _, _ = unix.Syscall(unix.SYS_IO_DESTROY, a.context, 0, 0) // This waits for a running sync.
	return unix.Close(a.event)
}
