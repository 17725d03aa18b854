package simfs

// Tests of the accidents of the simulated file system.

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/limitkv/limitkv/engine/vfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill writes n bytes of value c to a file.
func fill(t *testing.T, f vfs.File, c byte, n int) {
	t.Helper()
	_, err := f.Write(bytes.Repeat([]byte{c}, n))
	must(t, err)
}

// TestPowerLoss checks that every kind of outcome that the package promises occurs, and none that it excludes.
func TestPowerLoss(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(400) {
		f := New(seed)
		must(t, f.Mkdir("/d"))
		must(t, f.SyncDir("/"))
		a, err := f.Create("/d/a")
		must(t, err)
		fill(t, a, 'a', 700)
		must(t, a.Sync())
		must(t, f.SyncDir("/d"))
		fill(t, a, 'b', 2000)
		b, err := f.Create("/d/b")
		must(t, err)
		fill(t, b, 'x', 100)
		must(t, b.Sync())
		must(t, f.Rename("/d/b", "/d/c"))
		f.Crash()
		if _, err := f.Stat("/d/a"); err != ErrCrashed {
			t.Fatalf("a machine that is down answers %v", err)
		}
		f.Restart(true)
		if _, err := a.Write([]byte("x")); err != ErrCrashed {
			t.Fatalf("a file of the time before: %v", err)
		}
		text, err := vfs.ReadFile(f, "/d/a", 1<<20)
		must(t, err)
		if len(text) < 700 || !bytes.Equal(text[:700], bytes.Repeat([]byte{'a'}, 700)) {
			t.Fatalf("seed %d: what was synced is %d bytes, %q", seed, len(text), text)
		}
		switch zeros := bytes.Count(text, []byte{0}); {
		case len(text) == 700:
			seen["lost"]++
		case len(text) == 2700 && zeros == 0:
			seen["kept"]++
		case zeros == 0:
			seen["short"]++
		default:
			seen["holes"]++
		}
		isB, err := vfs.Exists(f, "/d/b")
		must(t, err)
		isC, err := vfs.Exists(f, "/d/c")
		must(t, err)
		seen[fmt.Sprintf("b %v c %v", isB, isC)]++
		if isB && isC {
			t.Fatalf("seed %d: a renamed file has both names", seed)
		}
	}
	for _, what := range []string{"lost", "kept", "short", "holes", "b false c false", "b true c false", "b false c true"} {
		if seen[what] < 10 {
			t.Errorf("%s was seen %d times: %v", what, seen[what], seen)
		}
	}
}

func TestProcessEnds(t *testing.T) {
	f := New(1)
	a, err := f.Create("/a")
	must(t, err)
	fill(t, a, 'a', 10)
	held, err := f.Lock("/")
	must(t, err)
	f.Crash()
	f.Restart(false)
	text, err := vfs.ReadFile(f, "/a", 100)
	must(t, err)
	if len(text) != 10 {
		t.Errorf("%d bytes are left", len(text))
	}
	again, err := f.Lock("/")
	must(t, err)
	must(t, held.Close()) // It is a lock of an earlier life, and unlocks nothing.
	if _, err := f.Lock("/"); err != vfs.ErrLocked {
		t.Errorf("locked twice: %v", err)
	}
	must(t, again.Close())
}

// TestSyncFails checks that a successful sync after a failed one does not bring back what the failed one lost.
func TestSyncFails(t *testing.T) {
	lost, kept := 0, 0
	for seed := range uint64(100) {
		f := New(seed)
		a, err := f.Create("/a")
		must(t, err)
		must(t, f.SyncDir("/"))
		fill(t, a, 'a', Sector)
		f.Plan(func(c Call) Accident {
			if c.Kind == Sync {
				return Accident{Err: syscall.EIO}
			}
			return Accident{}
		})
		if err := a.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		f.Plan(nil)
		fill(t, a, 'b', Sector)
		must(t, a.Sync())
		f.Crash()
		f.Restart(true)
		text, err := vfs.ReadFile(f, "/a", 1<<20)
		must(t, err)
		if len(text) != 2*Sector || text[Sector] != 'b' {
			t.Fatalf("seed %d: %d bytes", seed, len(text))
		}
		if text[0] == 0 {
			lost++
		} else {
			kept++
		}
	}
	if lost < 20 || kept < 20 {
		t.Errorf("lost %d, kept %d", lost, kept)
	}
}

func TestShortWrite(t *testing.T) {
	f := New(1)
	a, err := f.Create("/a")
	must(t, err)
	f.Plan(func(c Call) Accident { return Accident{Err: syscall.ENOSPC, Bytes: 3} })
	if n, err := a.Write([]byte("hello")); n != 3 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%d, %v", n, err)
	}
	f.Plan(func(c Call) Accident { return Accident{Crash: c.N == 4} })
	if _, err := f.Stat("/a"); err != nil {
		t.Error(err)
	}
	if _, err := a.Write([]byte("hello")); err != ErrCrashed || !f.Down() || f.Calls() != 4 {
		t.Errorf("%v after %d calls", err, f.Calls())
	}
}
