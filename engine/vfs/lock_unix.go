//go:build unix

package vfs

// Locking a directory by flock, which ends with the process however it ends.

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockName is the file that stands for a directory where directories themselves cannot be locked.
const lockName = ".limitkv.lock"

func lock(dir string) (io.Closer, error) {
	held, err := flock(dir, os.O_RDONLY)
	if errors.Is(err, unix.EBADF) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) {
		// Network file systems lock byte ranges of files that are open for writing, and those alone.
		return flock(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE)
	}
	return held, err
}

func flock(path string, flags int) (io.Closer, error) {
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		switch err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil:
			return f, nil
		case unix.EINTR:
			continue
		case unix.EWOULDBLOCK:
			err = ErrLocked
		default:
			err = &os.PathError{Op: "flock", Path: path, Err: err}
		}
		_ = f.Close()
		return nil, err
	}
}
