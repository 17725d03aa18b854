package persistence

// Snapshots. One that is made in the background is a cut of the engine: clients go on meanwhile.

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

// replaceFile writes a file beside another one and then takes its place, unless dead, if
// not nil, says why nobody wants it any more. Whoever calls kill and then replaces the
// file itself is last. beside is part of the name that the file has until then.
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
	_ = f.s.FS.Remove(temp) // it may not have been made
	return err
}

// saved notes how a snapshot ended.
func (f *Files) saved(err error, dirty int64) {
	st := &f.status
	st.lastSaveFailed.Store(err != nil)
	if f.logSaved(err) == nil {
		st.lastSave.Store(f.s.Keyspace.Clock.Now() / 1e6)
		st.dirtyAtSave.Store(dirty)
	}
	f.refuse()
}

// logSaved writes in the log how a snapshot ended.
func (f *Files) logSaved(err error) error {
	if err != nil {
		f.s.Logf('w', "Error saving the dataset to disk: %v", err)
	} else {
		f.s.Logf('n', "DB saved on disk")
	}
	return err
}

// Save is SaveFile for SAVE, which INFO counts.
func (f *Files) Save(c *command.Ctx) error {
	f.status.saves.Add(1)
	return f.SaveFile(c)
}

// SaveFile writes a snapshot. All keys are held.
func (f *Files) SaveFile(c *command.Ctx) error {
	dirty := c.KS.Dirty.Load() + c.Changes() // of FLUSHALL, which are counted when it has ended
	if c.Worker != nil {
		dirty += c.Worker.Changes // of a transaction or a script so far
	}
	err := f.replaceFile(*f.p.dbfilename.Load(), "", func(to io.Writer) error { return dumpfile.Write(c, to, dumpfile.What{Facts: f.facts()}) }, nil)
	if err != nil {
		return f.logSaved(err)
	}
	f.saved(nil, dirty)
	return nil
}

// Flushed writes an empty snapshot after FLUSHALL if there are save points, so that the
// former one does not bring the keys back, and gives up one that is being made of them. Replicas that wait for that one come
// again, for one without these keys.
// All keys are held.
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

// ScheduleSave has a snapshot begin as soon as nothing else is written in the background.
func (f *Files) ScheduleSave() { f.status.saveScheduled.Store(true) }

// SaveInBackground begins a snapshot. All keys are held, and nothing else is written. The error is that the server ends.
func (f *Files) SaveInBackground(c *command.Ctx) error {
	f.mu.Lock()
	ending := f.ending
	if !ending {
		f.background.Add(1) // before who ends the server waits
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

// StopSaving has the snapshot or rewrite fail that is under way in the background, one for replicas too, and tells whether
// one is.
func (f *Files) StopSaving() bool {
	f.mu.Lock()
	p := f.current
	f.mu.Unlock()
	if p != nil {
		p.stop(errAborted)
	}
	return p != nil
}

// quietly runs what writes much, with no syncs beside it if the user asked for that.
func (f *Files) quietly(run func() error) error {
	if w := f.log(); w != nil && f.p.suspend.Load() {
		w.Suspend(true)
		defer w.Suspend(false)
	}
	return run()
}
