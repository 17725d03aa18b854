//go:build unix

package vfs

// Locking a directory by flock. The lock ends with the process, however that ends.

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockName is the file that is locked if directories themselves cannot be locked.
const lockName = ".limitkv.lock"

// held is a locked directory, or the locked file in it.
type held struct {
	*os.File
	name string // in the directory
}

// Holds implements Lock.
func (h held) Holds(dir string) (bool, error) {
	is, err := same(h.File, filepath.Join(dir, h.name))
	if h.name != "" && errors.Is(err, fs.ErrNotExist) {
		return false, nil // a new directory, without the file
	}
	return is, err
}

func lock(dir string) (Lock, error) {
	lock, err := flock(dir, "", os.O_RDONLY)
	if errors.Is(err, unix.EBADF) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) {
		// Network file systems can only lock byte ranges of files that are open for writing.
		return flock(dir, lockName, os.O_RDWR|os.O_CREATE)
	}
	return lock, err
}

func flock(dir, name string, flags int) (Lock, error) {
	path := filepath.Join(dir, name)
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		switch err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil:
			return held{f, name}, nil
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
