package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/engine/vfs/simfs"
)

// TestFS runs the same calls on both file systems.
func TestFS(t *testing.T) {
	sim := simfs.New(1)
	if err := sim.Mkdir("/d"); err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]struct {
		fs  vfs.FS
		dir string
	}{"os": {vfs.OS, t.TempDir()}, "sim": {sim, "/d"}} {
		t.Run(name, func(t *testing.T) { calls(t, at.fs, at.dir) })
	}
}

func calls(t *testing.T, f vfs.FS, dir string) {
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	holds := func(name, want string) {
		t.Helper()
		got, err := vfs.ReadFile(f, path(name), 1<<20)
		ok(err)
		if info, err := f.Stat(path(name)); err != nil || info.Size != int64(len(want)) || info.Dir {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
		if string(got) != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	missing := func(err error) {
		t.Helper()
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("error %v", err)
		}
	}
	_, err := f.Open(path("a"))
	missing(err)
	_, err = f.Stat(path("a"))
	missing(err)
	missing(f.Remove(path("a")))
	missing(f.Rename(path("a"), path("b")))
	_, err = f.Create(path("no/a"))
	missing(err)
	missing(f.Mkdir(path("no/dir")))
	_, err = f.ReadDir(path("no"))
	missing(err)
	missing(f.SyncDir(path("no")))
	_, err = f.Lock(path("no"))
	missing(err)
	there, err := vfs.Exists(f, path("a"))
	ok(err)
	if there {
		t.Error("a is there")
	}

	file, err := f.Create(path("a"))
	ok(err)
	n, err := file.Write([]byte("hello world"))
	ok(err)
	ok(file.Truncate(5))
	_, err = file.Write([]byte("!"))
	ok(err)
	ok(file.Sync())
	size, err := file.Size()
	ok(err)
	if n != 11 || size != 6 {
		t.Errorf("wrote %d, size %d", n, size)
	}
	buf := make([]byte, 4)
	if n, err := file.ReadAt(buf, 4); n != 2 || err != io.EOF || string(buf[:n]) != "o!" {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	ok(file.Close())
	if file.Close() == nil || file.Sync() == nil {
		t.Error("a closed file was closed or synced")
	}
	holds("a", "hello!")

	file, err = f.Append(path("a"))
	ok(err)
	_, err = file.Write([]byte(" agaim"))
	ok(err)
	_, err = file.WriteAt([]byte("in"), 10)
	ok(err)
	ok(file.Close())
	holds("a", "hello! again")
	file, err = f.Open(path("a"))
	ok(err)
	if _, err := file.Write([]byte("x")); err == nil {
		t.Error("a file that is open for reading was written")
	}
	ok(file.Close())

	renamed, err := vfs.WriteFile(f, dir, path("temp-b"), path("b"), []byte("one"))
	ok(err)
	if !renamed {
		t.Error("not renamed")
	}
	_, err = vfs.WriteFile(f, dir, path("temp-b"), path("b"), []byte("two"))
	ok(err)
	holds("b", "two")
	ok(f.Rename(path("a"), path("b")))
	holds("b", "hello! again")

	ok(f.Mkdir(path("sub")))
	ok(f.Mkdir(path("sub")))
	if err := f.Mkdir(path("b")); err == nil {
		t.Error("a directory was made where a file is")
	}
	ok(f.Rename(path("b"), path("sub/b")))
	holds("sub/b", "hello! again")
	if err := f.Remove(path("sub")); err == nil {
		t.Error("a directory that is not empty was removed")
	}
	names, err := f.ReadDir(dir)
	ok(err)
	if !slices.Equal(names, []string{"sub"}) {
		t.Errorf("names %q", names)
	}
	ok(f.Remove(path("sub/b")))
	ok(f.Remove(path("sub")))
	ok(f.SyncDir(dir))

	first, err := f.Lock(dir)
	ok(err)
	if _, err := f.Lock(dir); err != vfs.ErrLocked {
		t.Errorf("locked twice: %v", err)
	}
	ok(first.Close())
	second, err := f.Lock(dir)
	ok(err)
	ok(second.Close())

	ok(f.Mkdir(path("sub")))
	of, err := f.Lock(path("sub"))
	ok(err)
	defer of.Close()
	if holds, err := of.Holds(path("sub")); err != nil || !holds {
		t.Errorf("the directory is not held: %v", err)
	}
	ok(f.Remove(path("sub")))
	_, err = of.Holds(path("sub"))
	missing(err)
	ok(f.Mkdir(path("sub")))
	if holds, err := of.Holds(path("sub")); err != nil || holds {
		t.Errorf("a new directory is held already: %v", err)
	}

	file, err = f.Create(path("a"))
	ok(err)
	defer file.Close()
	if is, err := file.Is(path("a")); err != nil || !is {
		t.Errorf("a file is not where it was made: %v", err)
	}
	ok(f.Rename(path("a"), path("b")))
	_, err = file.Is(path("a"))
	missing(err)
	if is, err := file.Is(path("b")); err != nil || !is {
		t.Errorf("a file is not where it was moved: %v", err)
	}
	other, err := f.Create(path("a"))
	ok(err)
	ok(other.Close())
	if is, err := file.Is(path("a")); err != nil || is {
		t.Errorf("another file is taken for it: %v", err)
	}
	ok(f.Remove(path("b")))
}
