package alarm

// The timer descriptor of Linux: exact to microseconds, and not subject to the slack of 50 µs that sleeps have.

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type descriptor struct{ fd int }

func (t *descriptor) open() {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	if err != nil { // out of descriptors: the runtime's timers must do
		fd = -1
	}
	t.fd = fd
}

func (t *descriptor) ok() bool { return t.fd >= 0 }

// set has the next wait, or the present one, end after d. What had already
// ended it is forgotten.
func (t *descriptor) set(d time.Duration) {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	_ = unix.TimerfdSettime(t.fd, 0, &spec, nil)
}

func (t *descriptor) wait() {
	var expirations [8]byte
	for {
		if _, err := syscall.Read(t.fd, expirations[:]); err != syscall.EINTR {
			return
		}
	}
}

func (t *descriptor) close() {
	if t.fd >= 0 {
		_ = unix.Close(t.fd)
		t.fd = -1
	}
}
