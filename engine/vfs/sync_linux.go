package vfs

// Syncing on Linux: fdatasync leaves out the times of the file, which nobody needs.

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

// syncDir syncs a directory. File systems that cannot (some network ones) say EINVAL, and keep names by themselves.
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
