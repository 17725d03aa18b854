// Package vfs, internal to the server, is the file system as durable files need it: few calls, each
// of which a test can make fail or crash. OS is the real one, package simfs a simulated one.
//
// What is promised is what POSIX promises and no more: the bytes of a file are safe after its Sync, a name (made,
// renamed, removed) is safe after the SyncDir of its directory, and a rename replaces its target at once.
package vfs

import (
	"errors"
	"io"
	"io/fs"
)

// FS is a file system.
type FS interface {
	// Open opens a file that is there for reading.
	Open(path string) (File, error)
	// Create opens a new, empty file for reading and writing; one that is there loses what it held.
	Create(path string) (File, error)
	// Append opens a file for reading, and for writing at its end; one that is not there is made.
	Append(path string) (File, error)
	Rename(from, to string) error
	// Remove removes a file, or a directory that is empty.
	Remove(path string) error
	// Mkdir makes a directory. One that is there already is no error.
	Mkdir(path string) error
	// SyncDir makes the names in a directory safe.
	SyncDir(path string) error
	Stat(path string) (Info, error)
	// ReadDir lists the names in a directory, sorted.
	ReadDir(path string) ([]string, error)
	// Lock takes a directory for this process until the lock is closed or the process ends. It fails with ErrLocked
	// where another one holds it.
	Lock(dir string) (Lock, error)
	// Beside returns what syncs files of this file system beside who asks for it, nil where nothing does.
	Beside() Beside
}

// Lock is a directory that was taken.
type Lock interface {
	io.Closer
	// Holds says whether a path leads to the directory that is held: one that was removed or moved away is held still, and
	// another one that has its name now is not.
	Holds(dir string) (bool, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	// Write writes at the end. Where it fails, it says how many bytes it wrote. A file has one writer at a time.
	io.Writer
	// WriteAt writes over bytes that are there.
	io.WriterAt
	io.Closer
	Size() (int64, error)
	// Is says whether a path leads to this file.
	Is(path string) (bool, error)
	Truncate(size int64) error
	// Sync makes the bytes and the size safe. After it failed nobody knows what of the file is safe, and a Sync that
	// succeeds later says nothing of what was written before.
	Sync() error
}

// Beside syncs files while its caller goes on: one at a time, and one goroutine at a time calls it.
type Beside interface {
	// Begin begins to sync what was written to a file so far, as File.Sync does. Where it cannot, nothing has happened.
	Begin(f File) bool
	// Ended says whether that has ended, and then with which error; Wait waits for it. One of them is told of each end.
	Ended() (ended bool, err error)
	Wait() error
	// Descriptor is one that epoll finds readable when one has ended.
	Descriptor() int
	io.Closer
}

// Info is what is known of a path.
type Info struct {
	Size int64
	Dir  bool
}

// ErrLocked says that another process uses a directory.
var ErrLocked = errors.New("the directory is in use by another process")

// Exists says whether there is something at a path. An error other than that there is nothing is reported.
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

// ReadFile returns what a file holds, of which it takes at most limit bytes.
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

// WriteFile replaces what a path holds, so that after a crash there is the old content or the new one: it writes temp,
// syncs it, renames it and syncs their directory dir. renamed says whether it came as far as the rename: after an error
// behind that, which of both is there after a crash is open.
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
		_ = f.Remove(temp) // It is written anew the next time, should this fail too.
		return false, err
	}
	return true, f.SyncDir(dir)
}
