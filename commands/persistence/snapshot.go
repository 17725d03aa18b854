package persistence

// Snapshots: SAVE, BGSAVE, BGREWRITEAOF. One that is made in the background is a cut
// of the engine: clients go on meanwhile.

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/limitkv/limitkv/commands/command"
	"github.com/limitkv/limitkv/commands/dumpfile"
	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/rdb"
	"github.com/limitkv/limitkv/engine/vfs"
)

const (
	errSaving    = "ERR Background save already in progress"
	errRewriting = "ERR Background append only file rewriting already in progress"
)

var errOff = errors.New("appendonly is no")

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

// picture is what a snapshot is made of. It begins under all locks and is written
// without.
type picture struct {
	f         *family
	cut       *engine.Cut
	libraries []string
	now       int64
	base      bool

	mu    sync.Mutex
	block *rdb.Block
	full  []*rdb.Block
}

// blockBytes is how much gathers before it is written.
const blockBytes = 256 << 10

// begin makes a picture of now. All keys are held.
func (f *family) begin(c *command.Ctx, base bool) *picture {
	p := &picture{f: f, libraries: f.s.Functions.Libraries(c.KS), now: c.Now, base: base, block: rdb.NewBlock(f.format())}
	p.cut = c.BeginCut(p.take)
	return p
}

func (f *family) format() rdb.Format { return f.dumps.FileFormat() }

// take gathers an entry, under its lock.
func (p *picture) take(v *engine.View, e engine.Entry) {
	p.mu.Lock()
	p.block.Entry(v, e)
	if p.block.Len() >= blockBytes {
		p.full = append(p.full, p.block)
		p.block = rdb.NewBlock(p.f.format())
	}
	p.mu.Unlock()
}

// drain returns what is to be written; all of it at the end.
func (p *picture) drain(all bool) []*rdb.Block {
	p.mu.Lock()
	defer p.mu.Unlock()
	blocks := p.full
	p.full = nil
	if all {
		blocks = append(blocks, p.block)
	}
	return blocks
}

// errReplaced is for a keyspace that a test's snapshot took the place of.
var errReplaced = errors.New("the keyspace was replaced meanwhile")

// write walks the keys and writes the file. No lock is held.
func (p *picture) write(to io.Writer) error {
	w := dumpfile.Begin(p.f.s, to, p.now, p.base, p.libraries)
	var failed error
	flush := func(all bool) {
		for _, b := range p.drain(all) {
			if failed == nil {
				failed = w.Block(b)
			}
		}
	}
	whole := p.cut.Walk(func() { flush(false) })
	flush(true)
	switch {
	case failed != nil:
		return failed
	case !whole:
		return errReplaced
	}
	return w.End()
}

// replaceFile writes a file beside another one and then takes its place.
func replaceFile(name string, write func(to io.Writer) error) (err error) {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, fmt.Sprintf("temp-%d.rdb", os.Getpid()))
	file, err := vfs.OS.Create(temp)
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
		err = vfs.OS.Rename(temp, filepath.Join(dir, name))
	}
	if err == nil {
		return vfs.OS.SyncDir(dir)
	}
	_ = vfs.OS.Remove(temp) // it may not have been made
	return err
}

// saved notes how a snapshot ended.
func (f *family) saved(err error, began int64, dirty int64) {
	st := &f.status
	st.lastSaveFailed.Store(err != nil)
	st.lastSaveSeconds.Store(int64(seconds(began)))
	if err != nil {
		f.s.Logf('w', "Error saving the dataset to disk: %v", err)
	} else {
		st.lastSave.Store(f.s.Keyspace.Clock.Now() / 1e6)
		st.dirtyAtSave.Store(dirty)
		st.saves.Add(1)
		f.s.Logf('n', "DB saved on disk")
	}
	f.refuse()
}

func (f *family) save(c *command.Ctx) {
	f.mu.Lock()
	busy := f.saving || f.rewriting
	saving := f.saving
	f.mu.Unlock()
	switch {
	case saving:
		c.Error(errSaving)
		return
	case busy:
		c.Error("ERR Can't SAVE while an AOF rewrite runs")
		return
	}
	began, dirty := engine.Monotonic(), c.KS.Dirty.Load()
	err := replaceFile(*f.p.dbfilename.Load(), func(to io.Writer) error { return dumpfile.Write(c, to, dumpfile.What{}) })
	f.saved(err, began, dirty)
	if err != nil {
		c.Error("ERR")
		return
	}
	c.OK()
}

func (f *family) bgsave(c *command.Ctx) {
	a := c.Cursor(1)
	schedule := a.Is("SCHEDULE")
	if a.More() {
		a.Syntax()
	}
	if a.Failed(c) {
		return
	}
	f.mu.Lock()
	saving, rewriting := f.saving, f.rewriting
	if !saving && !rewriting {
		f.saving = true
		f.background.Add(1)
	}
	f.mu.Unlock()
	switch {
	case saving:
		c.Error(errSaving)
		return
	case rewriting && schedule:
		f.status.saveScheduled.Store(true)
		c.Status("Background saving scheduled")
		return
	case rewriting:
		c.Error("ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE SCHEDULE in order to schedule a BGSAVE whenever possible.")
		return
	}
	began, dirty := engine.Monotonic(), c.KS.Dirty.Load()
	f.status.saveBegan.Store(c.Now)
	f.status.lastTry.Store(c.Now / 1e6)
	p := f.begin(c, false)
	name := *f.p.dbfilename.Load()
	f.s.Logf('n', "Background saving started")
	go func() {
		defer f.background.Done()
		err := f.quietly(func() error { return replaceFile(name, p.write) })
		p.done(err)
		f.saved(err, began, dirty)
		f.status.saveBegan.Store(0)
		f.mu.Lock()
		f.saving = false
		f.mu.Unlock()
		if err == nil {
			f.s.Logf('n', "Background saving terminated with success")
		} else {
			f.s.Logf('w', "Background saving error")
		}
	}()
	c.Status("Background saving started")
}

// done ends a picture that could not be written.
func (p *picture) done(err error) {
	if err != nil {
		p.cut.Abort()
	}
}

// quietly runs what writes much, with no syncs beside it if the user asked for that.
func (f *family) quietly(run func() error) error {
	f.mu.Lock()
	w := f.writer
	f.mu.Unlock()
	if w != nil && f.p.suspend.Load() {
		w.Suspend(true)
		defer w.Suspend(false)
	}
	return run()
}

func (f *family) bgrewriteaof(c *command.Ctx) {
	f.mu.Lock()
	w, saving, rewriting := f.writer, f.saving, f.rewriting
	f.mu.Unlock()
	switch {
	case rewriting:
		c.Error(errRewriting)
	case w == nil:
		c.Error("ERR Can't execute an AOF background rewriting: appendonly is no")
	case saving:
		f.mu.Lock()
		f.again = true
		f.mu.Unlock()
		c.Status("Background append only file rewriting scheduled")
	default:
		if err := f.rewrite(c); err != nil {
			c.Error("ERR Can't execute an AOF background rewriting. Please check the server logs for more information.")
			return
		}
		c.Status("Background append only file rewriting started")
	}
}

// rewrite begins a new append-only file in the background. All keys are held.
func (f *family) rewrite(c *command.Ctx) error {
	f.mu.Lock()
	defer f.mu.Unlock() // so that it is not turned off meanwhile; Rotate does not wait for the disk
	w, files := f.writer, f.files
	if w == nil {
		return errOff
	}
	f.status.lastRewriteTry.Store(engine.Monotonic())
	cut, err := w.Rotate()
	if err != nil {
		f.s.Logf('w', "Can't rewrite the append only file: %v", err)
		return err
	}
	ended := make(chan struct{})
	f.rewriting, f.again, f.rewriteEnd = true, false, ended
	f.background.Add(1)
	f.status.rewriteBegan.Store(c.Now)
	p := f.begin(c, true)
	began := engine.Monotonic()
	f.s.Logf('n', "Background append only file rewriting started")
	go func() {
		defer f.background.Done()
		defer close(ended)
		err := f.quietly(func() error {
			base, err := cut.Create()
			if err != nil {
				return err
			}
			if err := p.write(base); err != nil {
				_ = base.Close()
				return err
			}
			return cut.Commit(base, true)
		})
		st := &f.status
		st.lastRewriteFailed.Store(err != nil)
		st.lastRewriteSeconds.Store(int64(seconds(began)))
		st.rewriteBegan.Store(0)
		if err != nil {
			st.rewriteFailures.Add(1)
			p.done(err)
			cut.Abort()
			f.s.Logf('w', "Background AOF rewrite terminated with error: %v", err)
		} else {
			st.rewrites.Add(1)
			st.rewriteFailures.Store(0)
			f.noteBase(files)
			f.s.Logf('n', "Background AOF rewrite finished successfully")
		}
		f.mu.Lock()
		f.rewriting = false
		f.mu.Unlock()
		f.refuse()
	}()
	return nil
}

// noteBase notes how large the append-only file is, to know when it has grown.
func (f *family) noteBase(files *journal.Files) {
	if size, err := files.Size(); err == nil {
		f.status.baseSize.Store(size)
	}
}

// seconds is how long ago a time of the monotonic clock was.
func seconds(began int64) float64 { return float64(engine.Monotonic()-began) / 1e6 }
