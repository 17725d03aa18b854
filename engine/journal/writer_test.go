package journal

// Tests of the writer with its goroutine: on the real file system, and on the simulated one in simulated time.

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/engine/vfs/simfs"
)

// place is a directory for a log.
func place(f vfs.FS, dir string) Options {
	started := time.Now()
	return Options{FS: f, Dir: dir, Dirname: "appendonlydir", Filename: "appendonly.aof",
		Monotonic: func() int64 { return time.Since(started).Microseconds() }}
}

func simPlace(t *testing.T) (*simfs.FS, Options) {
	f := simfs.New(1)
	if err := errors.Join(f.Mkdir("/d"), f.SyncDir("/")); err != nil {
		t.Fatal(err)
	}
	return f, place(f, "/d")
}

// open opens and loads a log, and returns it with its content.
func open(t *testing.T, o Options) (*Files, *Loaded, []string) {
	t.Helper()
	f, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	var units []string
	loaded, err := f.Load(LoadOptions{Truncated: true, Apply: func(u *Unit) error {
		for _, c := range u.Commands {
			var line []string
			for _, a := range c.Args {
				line = append(line, string(a))
			}
			units = append(units, strings.Join(line, " "))
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return f, loaded, units
}

// start opens a log and starts its writer.
func start(t *testing.T, o Options, w WriterOptions) (*Files, *Log, *writer) {
	t.Helper()
	f, loaded, _ := open(t, o)
	l := NewAt(loaded.End)
	if err := f.Start(l, w); err != nil {
		t.Fatal(err)
	}
	return f, l, f.writer
}

func closeAll(t *testing.T, f *Files) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// fall cuts the power.
func fall(t *testing.T, disk *simfs.FS, w *writer) {
	t.Helper()
	disk.Crash()
	_ = w.close() // It cannot write, but it ends.
	if w.State() != Closed {
		t.Error("a writer without a disk did not end")
	}
	disk.Restart(true)
}

func one(args ...string) *Batch {
	resp := cmd(args...)
	return &Batch{NowMicros: 1_700_000_000_000_000, Effects: []Effect{{End: len(resp)}}, RESP: resp}
}

// holds closes a log and checks that it contains these commands.
func holds(t *testing.T, o Options, want []string) {
	t.Helper()
	f, _, got := open(t, o)
	if !slices.Equal(got, want) {
		t.Errorf("the log holds %.300q, want %.300q", got, want)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestAlways appends from several goroutines to real files, which are rewritten meanwhile. The durable log has
// everything that was appended, once and in order.
func TestAlways(t *testing.T) {
	o := place(vfs.OS, t.TempDir())
	var mu sync.Mutex
	changed := sync.NewCond(&mu)
	f, l, w := start(t, o, WriterOptions{Policy: Always, Checksums: true})
	l.OnConfirmed(func() {
		mu.Lock()
		changed.Broadcast()
		mu.Unlock()
	})
	if f.NeedsBase() {
		t.Error("no INCR file in the manifest")
	}
	const goroutines, each = 4, 60
	var order []string // in the order of the calls of Append
	var appending sync.Mutex
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				appending.Lock()
				lsn := l.Append(one("SET", fmt.Sprint(g), fmt.Sprint(i)))
				order = append(order, fmt.Sprintf("SET %d %d", g, i))
				appending.Unlock()
				mu.Lock()
				for w.Confirmed() < lsn {
					changed.Wait()
				}
				mu.Unlock()
			}
		})
	}
	for range 3 {
		appending.Lock()
		cut, err := w.Rotate()
		before := slices.Clone(order)
		appending.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Rotate(); err != ErrBusy {
			t.Errorf("a second cut: %v", err)
		}
		file, err := cut.Create()
		if err != nil {
			t.Fatal(err)
		}
		base, err := NewCommandWriter(file, cut.LSN, 0, true, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range before {
			if err := base.Append(cmd(strings.Fields(line)...)); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(base.Flush(), cut.Commit(file, false)); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	if w.Durable() != l.End() || w.Since() != 0 || w.Backlog() != 0 {
		t.Errorf("durable %d of %d, since %d, backlog %d", w.Durable(), l.End(), w.Since(), w.Backlog())
	}
	if _, err := Open(o); !errors.Is(err, vfs.ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	closeAll(t, f)
	if err := w.Sync(); err != nil {
		t.Errorf("everything is durable, and Sync says %v", err)
	}
	names, err := os.ReadDir(filepath.Join(o.Dir, o.Dirname))
	if err != nil || len(names) != 3 {
		t.Errorf("files %v, %v", names, err)
	}
	holds(t, o, order)
}

// TestEverySecond checks the times of syncs with everysec, and changes of the policy.
func TestEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, o := simPlace(t)
		f, l, w := start(t, o, WriterOptions{Checksums: true})
		time.Sleep(5 * time.Second)
		first := l.Append(one("SET", "a", "1"))
		if w.Confirmed() != MaxLSN {
			t.Error("something waits")
		}
		synctest.Wait()
		if w.Written() != first || w.Durable() != first {
			t.Errorf("the first after a pause: written %d, durable %d of %d", w.Written(), w.Durable(), first)
		}
		second := l.Append(one("SET", "a", "2"))
		time.Sleep(900 * time.Millisecond)
		synctest.Wait()
		if w.Written() != second || w.Durable() != first || w.Since() == 0 {
			t.Errorf("within the second: written %d, durable %d of %d, since %d", w.Written(), w.Durable(), second, w.Since())
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if w.Durable() != second || w.Since() != 0 {
			t.Errorf("behind the second: durable %d of %d, since %d", w.Durable(), second, w.Since())
		}
		w.SetPolicy(Never)
		third := l.Append(one("SET", "a", "3"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.Written() != third || w.Durable() != second {
			t.Errorf("never: written %d, durable %d of %d", w.Written(), w.Durable(), third)
		}
		if err := w.Sync(); err != nil || w.Durable() != third {
			t.Errorf("asked for: durable %d of %d, %v", w.Durable(), third, err)
		}
		fourth := l.Append(one("SET", "a", "4"))
		time.Sleep(time.Second)
		w.SetPolicy(Always)
		synctest.Wait()
		if w.Durable() != fourth || w.Confirmed() != fourth {
			t.Errorf("always: durable %d, confirmed %d of %d", w.Durable(), w.Confirmed(), fourth)
		}
		w.Suspend(true)
		fifth := l.Append(one("SET", "a", "5"))
		synctest.Wait()
		if w.Durable() != fourth || w.Confirmed() != MaxLSN {
			t.Errorf("suspended: durable %d, confirmed %d", w.Durable(), w.Confirmed())
		}
		w.Suspend(false)
		synctest.Wait()
		if w.Durable() != fifth {
			t.Errorf("not suspended any more: durable %d of %d", w.Durable(), fifth)
		}
		closeAll(t, f)
		holds(t, o, []string{"SET a 1", "SET a 2", "SET a 3", "SET a 4", "SET a 5"})
	})
}

// TestSlowSync checks that batches that come during a slow sync are written meanwhile (everysec), or gather for the next
// one (always).
func TestSlowSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, o := simPlace(t)
		f, l, w := start(t, o, WriterOptions{Checksums: true})
		var syncs atomic.Int64
		first := l.Append(one("SET", "a", "0"))
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
		disk.During(func(string) {
			syncs.Add(1)
			time.Sleep(5 * time.Second)
		})
		time.Sleep(time.Second)
		l.Append(one("SET", "a", "1"))
		time.Sleep(time.Millisecond)
		second := l.Append(one("SET", "a", "2"))
		time.Sleep(time.Second)
		synctest.Wait()
		if w.Written() != second || w.Durable() != first || syncs.Load() != 1 {
			t.Errorf("written %d of %d beside a sync, durable %d, %d syncs", w.Written(), second, w.Durable(), syncs.Load())
		}
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if w.Durable() != second || syncs.Load() != 2 {
			t.Errorf("durable %d of %d after %d syncs", w.Durable(), second, syncs.Load())
		}
		w.SetPolicy(Always)
		syncs.Store(0)
		for i := range 100 {
			l.Append(one("SET", "b", fmt.Sprint(i)))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if w.Durable() != l.End() || syncs.Load() != 2 {
			t.Errorf("durable %d of %d after %d syncs", w.Durable(), l.End(), syncs.Load())
		}
		disk.During(nil)
		closeAll(t, f)
	})
}

// TestCompany checks, with clients that wait for their replies, that a sync serves all of them, not one half.
func TestCompany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, o := simPlace(t)
		var mu sync.Mutex
		changed := sync.NewCond(&mu)
		f, l, w := start(t, o, WriterOptions{Policy: Always, Checksums: true})
		l.OnConfirmed(func() {
			mu.Lock()
			changed.Broadcast()
			mu.Unlock()
		})
		var syncs atomic.Int64
		disk.During(func(string) {
			syncs.Add(1)
			time.Sleep(time.Millisecond)
		})
		const clients, each = 50, 100
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				time.Sleep(time.Duration(c) * 37 * time.Microsecond)
				for i := range each {
					lsn := l.Append(one("SET", fmt.Sprint(c), fmt.Sprint(i)))
					mu.Lock()
					for w.Durable() < lsn {
						changed.Wait()
					}
					mu.Unlock()
					time.Sleep(time.Duration(c*5) * time.Microsecond) // until the next command arrives
				}
			})
		}
		wg.Wait()
		if n := syncs.Load(); n > each*5/4 {
			t.Errorf("%d syncs for %d clients with %d commands each", n, clients, each)
		}
		disk.During(nil)
		closeAll(t, f)
	})
}

// TestDiskFull fills the disk and makes space again: the log recovers by itself, and nothing is lost or repeated.
func TestDiskFull(t *testing.T) {
	for _, policy := range []Policy{Always, EverySecond, Never} {
		synctest.Test(t, func(t *testing.T) {
			disk, o := simPlace(t)
			var failures []Failure
			healed := 0
			f, l, w := start(t, o, WriterOptions{Policy: policy, Checksums: true, OnFailure: func(f Failure) { failures = append(failures, f) },
				OnHealthy: func() { healed++ }})
			time.Sleep(time.Second)
			l.Append(one("SET", "a", "1"))
			time.Sleep(2 * time.Second)
			disk.Plan(func(c simfs.Call) simfs.Accident {
				if c.Kind == simfs.Write {
					return simfs.Accident{Err: syscall.ENOSPC, Bytes: 30}
				}
				return simfs.Accident{}
			})
			l.Append(one("SET", "a", "2"))
			cut, err := w.Rotate()
			if err != nil {
				t.Fatal(err)
			}
			if err := cut.Wait(); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("a cut while the disk fills up: %v", err)
			}
			cut.Abort()
			time.Sleep(2 * time.Second)
			l.Append(one("SET", "a", "3"))
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if w.State() != Blocked || len(failures) != 1 || !errors.Is(failures[0].Err, syscall.ENOSPC) || failures[0].NeedsBase || healed != 0 {
				t.Errorf("state %d, failures %v, healed %d", w.State(), failures, healed)
			}
			if err := w.Sync(); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("Sync on a full disk: %v", err)
			}
			if _, err := w.Rotate(); err == nil {
				t.Error("a cut on a full disk")
			}
			disk.Plan(nil)
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if w.State() != Running || healed != 1 || w.Failure().Err != nil || w.Durable() != l.End() {
				t.Errorf("with room: state %d, healed %d, durable %d of %d", w.State(), healed, w.Durable(), l.End())
			}
			l.Append(one("SET", "a", "4"))
			if err := w.Sync(); err != nil {
				t.Error(err)
			}
			if n := len(f.Manifest().Incr); n != 2 {
				t.Errorf("%d INCR files", n)
			}
			fall(t, disk, w)
			holds(t, o, []string{"SET a 1", "SET a 2", "SET a 3", "SET a 4"})
		})
	}
}

// TestSyncFails fails a sync: the file is never written again, and a new BASE repairs the log.
func TestSyncFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, o := simPlace(t)
		var failures []Failure
		f, l, w := start(t, o, WriterOptions{Policy: Always, Checksums: true, OnFailure: func(f Failure) { failures = append(failures, f) }})
		l.Append(one("SET", "a", "1"))
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
		bad := f.path(f.Manifest().Incr[0].Name)
		var touched []simfs.Call
		disk.Plan(func(c simfs.Call) simfs.Accident {
			if c.Path != bad {
				return simfs.Accident{}
			}
			if c.Kind == simfs.Sync && len(touched) == 0 {
				touched = append(touched, c)
				return simfs.Accident{Err: syscall.EIO}
			}
			if len(touched) > 0 && c.Kind != simfs.Remove {
				touched = append(touched, c)
			}
			return simfs.Accident{}
		})
		safe := w.Durable()
		l.Append(one("SET", "a", "2"))
		if err := w.Sync(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Sync: %v", err)
		}
		l.Append(one("SET", "a", "3"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if w.State() != Broken || len(failures) != 1 || !failures[0].NeedsBase || w.Durable() != safe || w.Confirmed() != safe {
			t.Errorf("state %d, failures %v, durable %d", w.State(), failures, w.Durable())
		}
		cut, err := w.Rotate()
		if err != nil {
			t.Fatal(err)
		}
		l.Append(one("SET", "a", "4"))
		time.Sleep(time.Second)
		synctest.Wait()
		if w.Durable() != safe {
			t.Error("something is durable that no manifest names")
		}
		file, err := cut.Create()
		if err == nil {
			_, err = file.Write(join(cmd("SET", "a", "1"), cmd("SET", "a", "2"), cmd("SET", "a", "3")))
		}
		if err == nil {
			err = cut.Commit(file, false)
		}
		if err != nil {
			t.Fatal(err)
		}
		if w.State() != Running || w.Durable() != l.End() || len(touched) != 1 {
			t.Errorf("healed: state %d, durable %d of %d, calls %v", w.State(), w.Durable(), l.End(), touched)
		}
		l.Append(one("SET", "a", "5"))
		if err := w.Sync(); err != nil {
			t.Error(err)
		}
		fall(t, disk, w)
		holds(t, o, []string{"SET a 1", "SET a 2", "SET a 3", "SET a 4", "SET a 5"})
	})
}

// TestTurnOn turns the log on while the server runs, aborts that once, and turns the log off.
func TestTurnOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk, o := simPlace(t)
		f, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		l := New()
		f.Prepare(l, WriterOptions{Policy: Always, Checksums: true})
		w := f.writer
		if w.State() != Starting || l.Active() || w.Confirmed() != MaxLSN {
			t.Errorf("state %d, active %v", w.State(), l.Active())
		}
		cut, err := w.Rotate()
		if err != nil || cut.Wait() != nil || !l.Active() {
			t.Fatal(err, l.Active())
		}
		l.Append(one("SET", "a", "1"))
		synctest.Wait()
		if w.Confirmed() != MaxLSN || w.Durable() != 0 {
			t.Error("replies wait for a log that is not on yet")
		}
		cut.Abort()
		if l.Active() || w.State() != Starting {
			t.Error("the log is on, though that was given up")
		}
		disk.Plan(func(c simfs.Call) simfs.Accident {
			if c.Kind == simfs.Create {
				return simfs.Accident{Err: syscall.EACCES}
			}
			return simfs.Accident{}
		})
		if cut, err = w.Rotate(); err != nil {
			t.Fatal(err)
		}
		if _, err := cut.Create(); !errors.Is(err, syscall.EACCES) {
			t.Errorf("without permission: %v", err)
		}
		cut.Abort()
		disk.Plan(nil)
		if cut, err = w.Rotate(); err != nil {
			t.Fatal(err)
		}
		last := l.Append(one("SET", "a", "3"))
		file, err := cut.Create()
		if err == nil {
			_, err = file.Write(join(cmd("SET", "a", "1"), cmd("SET", "a", "2")))
		}
		if err == nil {
			err = cut.Commit(file, false)
		}
		synctest.Wait() // the last batches may not have been written yet
		if err != nil || w.State() != Running || w.Durable() != last {
			t.Fatalf("%v, state %d, durable %d of %d", err, w.State(), w.Durable(), last)
		}
		m := string(f.Manifest().Text())
		if want := "file appendonly.aof.1.base.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i startoffset "; !strings.HasPrefix(m, want) {
			t.Errorf("manifest\n%s", m)
		}
		closeAll(t, f)
		if w.Confirmed() != MaxLSN || l.Active() {
			t.Error("replies wait for a log that is off")
		}
		holds(t, o, []string{"SET a 1", "SET a 2", "SET a 3"})
		// A log that is off can still be rewritten: then there is only a BASE.
		if f, err = Open(o); err != nil {
			t.Fatal(err)
		}
		if err := f.Rewrite(false, func(file vfs.File) error { _, err := file.Write(cmd("SET", "a", "4")); return err }); err != nil {
			t.Fatal(err)
		}
		if m := string(f.Manifest().Text()); m != "file appendonly.aof.2.base.aof seq 2 type b\n" {
			t.Errorf("manifest\n%s", m)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		holds(t, o, []string{"SET a 4"})
	})
}

// TestForms checks the bytes of a file: without checksums as Redis writes it, and with a time stamp first if they are
// on.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		marks, stamps bool
		pattern       string
	}{
		{false, false, "*2$6SELECT$10*3$3SET$1a$11*3$3SET$1a$12"},
		{false, true, "#TS:1700000000*2$6SELECT$10*3$3SET$1a$11#TS:1700000001*3$3SET$1a$12"},
		{true, false, "#LKV1c#LKV1g*2$6SELECT$10*3$3SET$1a$11#LKV1g*3$3SET$1a$12#LKV1c"},
		{true, true, "#TS:1700000000#LKV1c#LKV1g*2$6SELECT$10*3$3SET$1a$11#TS:1700000001#LKV1g*3$3SET$1a$12#LKV1c"},
	} {
		synctest.Test(t, func(t *testing.T) {
			disk, o := simPlace(t)
			f, l, w := start(t, o, WriterOptions{Policy: Always, Checksums: c.marks, Timestamps: c.stamps})
			l.Append(one("SET", "a", "1"))
			if err := w.Sync(); err != nil {
				t.Fatal(err)
			}
			later := one("SET", "a", "2")
			later.NowMicros += 1_000_000
			l.Append(later)
			closeAll(t, f)
			text, err := vfs.ReadFile(disk, f.path("appendonly.aof.1.incr.aof"), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, line := range strings.Split(string(text), "\r\n") {
				if strings.HasPrefix(line, markStem) {
					line = strings.ReplaceAll(line[:7], " ", "")
				}
				got.WriteString(line)
			}
			if got.String() != c.pattern {
				t.Errorf("marks %v, stamps %v: %q", c.marks, c.stamps, got.String())
			}
			holds(t, o, []string{"SET a 1", "SET a 2"})
		})
	}
}
