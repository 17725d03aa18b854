package persistence

// Snapshots. Those in the background are written from a cut of the engine, while clients continue.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/dumpfile"
)

// replaceFile writes a temporary file, whose name has beside in it, and renames it to name. If dead is not nil and returns an
// error just before the rename, it gives up. So whoever calls kill first and then replaces the file has the last word.
func (f *Files) replaceFile(name, beside string, write func(to io.Writer) error, dead func() error) (err error) {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, fmt.Sprintf("temp-%s%d.rdb", beside, os.Getpid()))
	file, err := f.s.FS.Create(temp)
	if err != nil {
		return err
	}
	err = write(file)
	if err == nil {
		err = file.Sync()
	}
	if e := file.Close(); err == nil {
		err = e
	}
	if err == nil {
		f.place.Lock()
		if dead != nil {
			err = dead()
		}
		if err == nil {
			err = f.s.FS.Rename(temp, filepath.Join(dir, name))
		}
		f.place.Unlock()
	}
	if err == nil {
		return f.s.FS.SyncDir(dir)
	}
	_ = f.s.FS.Remove(temp) // it may not exist
	return err
}

// saved notes the result of a snapshot.
func (f *Files) saved(err error, dirty int64) {
	st := &f.status
	st.lastSaveFailed.Store(err != nil)
	if f.logSaved(err) == nil {
		st.lastSave.Store(f.s.Keyspace.Clock.Now() / 1e6)
		st.dirtyAtSave.Store(dirty)
	}
	f.refuse()
}

// logSaved logs the result of a snapshot.
func (f *Files) logSaved(err error) error {
	if err != nil {
		f.s.Logf('w', "Error saving the dataset to disk: %v", err)
	} else {
		f.s.Logf('n', "DB saved on disk")
	}
	return err
}

// Save is SaveFile for the command SAVE, which INFO counts.
func (f *Files) Save(c *command.Ctx) error {
	f.status.saves.Add(1)
	return f.SaveFile(c)
}

// SaveFile writes a snapshot. The caller holds all locks.
func (f *Files) SaveFile(c *command.Ctx) error {
	dirty := c.KS.Dirty.Load() + c.Changes() // of FLUSHALL, whose changes are counted when it has ended
	if c.Worker != nil {
		dirty += c.Worker.Changes // of the running transaction or script
	}
	err := f.replaceFile(*f.p.dbfilename.Load(), "", func(to io.Writer) error { return dumpfile.Write(c, to, dumpfile.What{Facts: f.facts()}) }, nil)
	if err != nil {
		return f.logSaved(err)
	}
	f.saved(nil, dirty)
	return nil
}

// Flushed writes an empty snapshot after FLUSHALL if there are save points, since the old file would bring the keys back. It
// aborts a snapshot that still contains these keys; replicas that wait for that one ask for another. The caller holds all
// locks.
func (f *Files) Flushed(c *command.Ctx) {
	if c.KS != f.s.Keyspace || f.s.Loading.On() {
		return
	}
	f.mu.Lock()
	current := f.current
	f.mu.Unlock()
	if current != nil && !current.base {
		current.kill()
	}
	if len(*f.p.points.Load()) != 0 {
		_ = f.SaveFile(c) // the log says why
	}
}

// ScheduleSave begins a snapshot as soon as nothing else runs in the background.
func (f *Files) ScheduleSave() { f.status.saveScheduled.Store(true) }

// SaveInBackground begins a snapshot. The caller holds all locks and has checked that nothing else is being written. It fails
// if the server is ending.
func (f *Files) SaveInBackground(c *command.Ctx) error {
	f.mu.Lock()
	ending := f.ending
	if !ending {
		f.background.Add(1) // before the end of the server waits for it
	}
	f.mu.Unlock()
	if ending {
		return errEnding
	}
	began, dirty := engine.Monotonic(), c.KS.Dirty.Load()
	st := &f.status
	st.saves.Add(1)
	st.begun.Add(1)
	st.saveBegan.Store(c.Now)
	st.lastTry.Store(c.Now / 1e6)
	p := f.begin(c, false)
	f.mu.Lock()
	f.saving, f.current = true, p
	f.mu.Unlock()
	name := *f.p.dbfilename.Load()
	st.beginMicros.Store(engine.Monotonic() - began)
	f.s.Logf('n', "Background saving started")
	go func() {
		defer f.background.Done()
		err := f.quietly(func() error { return f.replaceFile(name, "bg-", p.write, p.dead) })
		p.ended(err)
		_, _, early := p.progress()
		st.saveEarly.Store(int64(early))
		if !errors.Is(err, errKilled) {
			f.saved(err, dirty)
		}
		st.lastSaveSeconds.Store(int64(seconds(began)))
		st.saveBegan.Store(0)
		f.mu.Lock()
		f.saving, f.current = false, nil
		f.mu.Unlock()
		switch {
		case err == nil:
			f.s.Logf('n', "Background saving terminated with success")
		case errors.Is(err, errKilled):
			f.s.Logf('w', "Background saving terminated by signal 10")
		default:
			f.s.Logf('w', "Background saving error")
		}
	}()
	return nil
}

// StopSaving aborts the snapshot or rewrite in the background, also one for replicas, and tells whether there was one.
func (f *Files) StopSaving() bool {
	f.mu.Lock()
	p := f.current
	f.mu.Unlock()
	if p != nil {
		p.stop(errAborted)
	}
	return p != nil
}

// quietly runs a large write; syncs of the log are suspended meanwhile if the user asked for that (no-appendfsync-on-rewrite).
func (f *Files) quietly(run func() error) error {
	if w := f.log(); w != nil && f.p.suspend.Load() {
		w.Suspend(true)
		defer w.Suspend(false)
	}
	return run()
}
