// Package vfs, internal to the server, is the file system for durable files: a few calls, each of which a test can make
// fail or crash. OS is the real file system; package simfs is a simulated one.
//
// It guarantees only what POSIX guarantees. A file's bytes survive a crash after its Sync. A name that was made, renamed
// or removed survives it after the SyncDir of its directory. A rename replaces its target atomically.
package vfs

import (
	"errors"
	"io"
	"io/fs"
)

// FS is a file system.
type FS interface {
	// Open opens an existing file for reading.
	Open(path string) (File, error)
	// Create opens an empty file for reading and writing. It truncates an existing one.
	Create(path string) (File, error)
	// Append opens a file for reading, and for writing at its end. It creates a missing one.
	Append(path string) (File, error)
	Rename(from, to string) error
	// Remove removes a file or an empty directory.
	Remove(path string) error
	// Mkdir makes a directory. It is no error if the directory exists.
	Mkdir(path string) error
	// SyncDir syncs the names in a directory.
	SyncDir(path string) error
	Stat(path string) (Info, error)
	// ReadDir lists the names in a directory, sorted.
	ReadDir(path string) ([]string, error)
	// Lock locks a directory for this process until the lock is closed or the process ends. It returns ErrLocked if
	// another process has locked it.
	Lock(dir string) (Lock, error)
	// Beside returns a Beside for files of this file system, nil if there is none.
	Beside() Beside
}

// Lock is a locked directory.
type Lock interface {
	io.Closer
	// Holds reports whether a path leads to the locked directory. A directory that was removed or moved stays locked;
	// another one that now has its name is not locked.
	Holds(dir string) (bool, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	// Write writes at the end. If it fails, it returns how many bytes it wrote. A file has one writer at a time.
	io.Writer
	// WriteAt overwrites existing bytes.
	io.WriterAt
	io.Closer
	Size() (int64, error)
	// Is reports whether a path leads to this file.
	Is(path string) (bool, error)
	Truncate(size int64) error
	// Sync writes the bytes and the size to the disk. After a failure it is unknown which unsynced bytes are on the
	// disk, and a later success does not cover them.
	Sync() error
}

// Beside syncs files in the background, one at a time. One goroutine at a time may call it.
type Beside interface {
	// Begin begins to sync what was written to a file so far, as File.Sync does. If it returns false, nothing has
	// happened.
	Begin(f File) bool
	// Ended reports whether the sync has ended, and its error; Wait waits for the end. Only one of them returns each
	// end.
	Ended() (ended bool, err error)
	Wait() error
	// Descriptor is a file descriptor that becomes readable for epoll when a sync has ended.
	Descriptor() int
	io.Closer
}

// Info describes what is at a path.
type Info struct {
	Size int64
	Dir  bool
}

// ErrLocked says that another process uses a directory.
var ErrLocked = errors.New("the directory is in use by another process")

// Exists reports whether a path exists. It returns every error except that it does not.
func Exists(f FS, path string) (bool, error) {
	switch _, err := f.Stat(path); {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	default:
		return false, err
	}
}

// ReadFile returns the content of a file, at most its first limit bytes.
func ReadFile(f FS, path string, limit int64) ([]byte, error) {
	file, err := f.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	text := make([]byte, min(size, limit))
	n, err := file.ReadAt(text, 0)
	if err == io.EOF {
		err = nil
	}
	return text[:n], err
}

// WriteFile replaces the content of a path, so that after a crash either the old or the new content is there. It writes
// temp, syncs it, renames it to path and syncs their directory dir. renamed reports whether the rename succeeded: after
// a later error, a crash may leave either content.
func WriteFile(f FS, dir, temp, path string, text []byte) (renamed bool, err error) {
	file, err := f.Create(temp)
	if err != nil {
		return false, err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if e := file.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = f.Rename(temp, path)
	}
	if err != nil {
		_ = f.Remove(temp) // If this fails too, the next call overwrites it.
		return false, err
	}
	return true, f.SyncDir(dir)
}
