package persistence

// Snapshots: SAVE, BGSAVE, BGREWRITEAOF. One that is made in the background is a cut
// of the engine: clients go on meanwhile.

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

const (
	errSaving    = "ERR Background save already in progress"
	errRewriting = "ERR Background append only file rewriting already in progress"
)

const snapshotFlags = command.NoAsyncLoading | command.Admin | command.NoScript | command.WholeKeyspace

func (f *family) saveRow() *command.Command {
	return &command.Command{
		Name: "save", Arity: 1, Group: command.GroupServer, Since: "1.0.0", Flags: snapshotFlags | command.NoMulti,
		Summary:    "Writes a snapshot of all databases, while all wait.",
		Complexity: "O(N) in the number of keys",
		Run:        f.save,
	}
}

func (f *family) bgsaveRow() *command.Command {
	return &command.Command{
		Name: "bgsave", Arity: -1, Group: command.GroupServer, Since: "1.0.0", Flags: snapshotFlags,
		Summary:    "Writes a snapshot of all databases in the background.",
		Complexity: "O(1)",
		Syntax:     "[SCHEDULE]",
		History:    [][2]string{{"3.2.2", "SCHEDULE."}},
		Run:        f.bgsave,
	}
}

func (f *family) bgrewriteaofRow() *command.Command {
	return &command.Command{
		Name: "bgrewriteaof", Arity: 1, Group: command.GroupServer, Since: "1.0.0", Flags: snapshotFlags,
		Summary:    "Rewrites the append-only file in the background, so that it is as short as can be.",
		Complexity: "O(1)",
		Run:        f.bgrewriteaof,
	}
}

func (f *family) lastsaveRow() *command.Command {
	return &command.Command{
		Name: "lastsave", Arity: 1, Group: command.GroupServer, Since: "1.0.0",
		Flags:      command.Loading | command.Stale | command.Fast,
		ACL:        []string{"admin", "dangerous"},
		Summary:    "Returns the Unix time of the last snapshot that was written, in seconds.",
		Complexity: "O(1)",
		Tips:       []string{"nondeterministic_output"},
		Run:        func(c *command.Ctx) { c.Int(f.status.lastSave.Load()) },
	}
}

// replaceFile writes a file beside another one and then takes its place, unless dead, if
// not nil, says why nobody wants it any more. Whoever calls kill and then replaces the
// file itself is last. beside is part of the name that the file has until then.
func (f *family) replaceFile(name, beside string, write func(to io.Writer) error, dead func() error) (err error) {
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
func (f *family) saved(err error, dirty int64) {
	st := &f.status
	st.lastSaveFailed.Store(err != nil)
	if f.logSaved(err) == nil {
		st.lastSave.Store(f.s.Keyspace.Clock.Now() / 1e6)
		st.dirtyAtSave.Store(dirty)
	}
	f.refuse()
}

// logSaved writes in the log how a snapshot ended.
func (f *family) logSaved(err error) error {
	if err != nil {
		f.s.Logf('w', "Error saving the dataset to disk: %v", err)
	} else {
		f.s.Logf('n', "DB saved on disk")
	}
	return err
}

func (f *family) save(c *command.Ctx) {
	f.mu.Lock()
	saving := f.saving
	f.mu.Unlock()
	if saving {
		c.Error(errSaving)
		return
	}
	f.status.saves.Add(1)
	if err := f.SaveFile(c); err != nil {
		c.Error("ERR")
		return
	}
	c.OK()
}

// SaveFile writes a snapshot. All keys are held.
func (f *family) SaveFile(c *command.Ctx) error {
	dirty := c.KS.Dirty.Load() + c.Changes() // of FLUSHALL, which are counted when it has ended
	if c.Worker != nil {
		dirty += c.Worker.Changes // of a transaction or a script so far
	}
	err := f.replaceFile(*f.p.dbfilename.Load(), "", func(to io.Writer) error { return dumpfile.Write(c, to, dumpfile.What{Facts: f.s.Replication.Facts(c)}) }, nil)
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
func (f *family) Flushed(c *command.Ctx) {
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

func (f *family) bgsave(c *command.Ctx) {
	schedule := len(c.Args) == 2 && command.EqualFold(c.Args[1], "SCHEDULE")
	if len(c.Args) > 1 && !schedule {
		c.Error(command.ErrSyntax)
		return
	}
	f.mu.Lock()
	saving, rewriting := f.saving, f.rewriting
	f.mu.Unlock()
	switch {
	case saving:
		c.Error(errSaving)
	case (rewriting || c.Exec) && (schedule || c.Exec):
		f.status.saveScheduled.Store(true)
		c.Status("Background saving scheduled")
	case rewriting:
		c.Error("ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible.")
	default:
		if !f.saveInBackground(c) {
			c.Error("ERR " + errEnding.Error())
			return
		}
		c.Status("Background saving started")
	}
}

// saveInBackground begins a snapshot. All keys are held, and nothing else is written. It reports false where the server ends.
func (f *family) saveInBackground(c *command.Ctx) bool {
	f.mu.Lock()
	ending := f.ending
	if !ending {
		f.background.Add(1) // before who ends the server waits
	}
	f.mu.Unlock()
	if ending {
		return false
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
	return true
}

// StopSaving has the snapshot or rewrite fail that is under way, and tells whether one is.
func (f *family) StopSaving() bool {
	f.mu.Lock()
	p := f.current
	f.mu.Unlock()
	if p != nil {
		p.stop(errAborted)
	}
	return p != nil
}

// quietly runs what writes much, with no syncs beside it if the user asked for that.
func (f *family) quietly(run func() error) error {
	if w := f.log(); w != nil && f.p.suspend.Load() {
		w.Suspend(true)
		defer w.Suspend(false)
	}
	return run()
}
