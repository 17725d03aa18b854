package vfs

// Syncs in the background, on the real file system.

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestBeside(t *testing.T) {
	b := newBeside()
	if b == nil {
		t.Skip("this system has none")
	}
	defer b.Close()
	f, err := OS.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ready := func(wait int) bool {
		fds := []unix.PollFd{{Fd: int32(b.Descriptor()), Events: unix.POLLIN}}
		n, _ := unix.Poll(fds, wait)
		return n == 1
	}
	if ready(0) {
		t.Error("an end is told of before anything began")
	}
	drain := func() {
		var count [8]byte
		if _, err := unix.Read(b.Descriptor(), count[:]); err != nil || ready(0) {
			t.Errorf("the descriptor is readable for ever: %v", err)
		}
	}
	for i := range 20 {
		if _, err := f.Write([]byte("more")); err != nil {
			t.Fatal(err)
		}
		if !b.Begin(f) {
			t.Skip("this file system has none")
		}
		if i%2 == 0 {
			if err := b.Wait(); err != nil {
				t.Fatal(err)
			}
			if ended, _ := b.Ended(); ended {
				t.Error("one end is told of twice")
			}
			drain()
			continue
		}
		if !ready(10_000) {
			t.Fatal("nobody is told of the end")
		}
		if ended, err := b.Ended(); !ended || err != nil {
			t.Fatalf("ended: %v, %v", ended, err)
		}
		drain()
	}
	// A pipe cannot be synced.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if b.Begin(&osFile{File: w}) {
		var path *os.PathError
		if err := b.Wait(); !errors.As(err, &path) || !errors.Is(err, unix.EINVAL) {
			t.Errorf("syncing a pipe: %v", err)
		}
	}
}
