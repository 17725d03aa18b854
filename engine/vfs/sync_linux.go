package vfs

// Syncing on Linux: fdatasync omits the file's times, which nothing needs.

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func dataSync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return wrapSync(f, err)
		}
	}
}

// syncDir syncs a directory. File systems that cannot (some network ones) return EINVAL; they store names durably by
// themselves.
func syncDir(f *os.File) error {
	if err := f.Sync(); !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}

func wrapSync(f *os.File, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
}
