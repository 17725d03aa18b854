package vfs

// The file system of the operating system.

import (
	"errors"
	"io/fs"
	"os"
)

// OS is the operating system's file system. Files are made with mode 0644 and directories with 0755, less the umask.
var OS FS = osFS{}

type osFS struct{}

// osFile remembers the end of the file instead of using O_APPEND: with that, Linux would write at the end whatever
// offset WriteAt gets.
type osFile struct {
	*os.File
	end int64
}

func open(path string, flags int) (File, error) {
	file, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return nil, err
	}
	f := &osFile{File: file}
	if f.end, err = f.Size(); err != nil {
		_ = file.Close()
		return nil, err
	}
	return f, nil
}

func (osFS) Open(path string) (File, error) { return open(path, os.O_RDONLY) }

func (osFS) Create(path string) (File, error) {
	return open(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
}

func (osFS) Append(path string) (File, error) {
	return open(path, os.O_RDWR|os.O_CREATE)
}

func (osFS) Rename(from, to string) error { return os.Rename(from, to) }
func (osFS) Remove(path string) error     { return os.Remove(path) }

func (osFS) Mkdir(path string) error {
	err := os.Mkdir(path, 0o755)
	if errors.Is(err, fs.ErrExist) {
		if info, e := os.Stat(path); e == nil && info.IsDir() {
			return nil
		}
	}
	return err
}

func (osFS) SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	err = syncDir(dir)
	if e := dir.Close(); err == nil {
		err = e
	}
	return err
}

func (osFS) Stat(path string) (Info, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Info{}, err
	}
	return Info{Size: info.Size(), Dir: info.IsDir()}, nil
}

func (osFS) ReadDir(path string) ([]string, error) {
	entries, err := os.ReadDir(path)
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

func (osFS) Lock(dir string) (Lock, error) { return lock(dir) }
func (osFS) Beside() Beside                { return newBeside() }

func (f *osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (f *osFile) Is(path string) (bool, error) { return same(f.File, path) }

// same reports whether a path leads to an open file or directory.
func same(f *os.File, path string) (bool, error) {
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(info, there), err
}

func (f *osFile) Write(p []byte) (int, error) {
	n, err := f.File.WriteAt(p, f.end)
	if err != nil {
		// os.File does not count a partial write of its last system call before the disk was full.
		if size, e := f.Size(); e == nil {
			n = int(min(max(size-f.end, int64(n)), int64(len(p))))
		}
	}
	f.end += int64(n)
	return n, err
}

func (f *osFile) Truncate(size int64) error {
	err := f.File.Truncate(size)
	if err == nil {
		f.end = size
	}
	return err
}

func (f *osFile) Sync() error { return dataSync(f.File) }
