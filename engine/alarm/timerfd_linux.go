package alarm

// Linux's timer descriptor is exact to microseconds, and not subject to the timer slack of 50 µs that sleeps have.

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type descriptor struct{ fd int }

func (t *descriptor) open() {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC)
	if err != nil { // out of descriptors: Wait then uses the runtime's timers
		fd = -1
	}
	t.fd = fd
}

func (t *descriptor) ok() bool { return t.fd >= 0 }

// set makes the present or the next wait end after d. It cancels an earlier expiration.
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
