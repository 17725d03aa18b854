package journal

// Rewriting makes a cut of the log, writes a BASE of everything before the cut, and changes the manifest so that both
// replace the files before. A crash at any point leaves either manifest, with all files that it names.

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/limitkv/limitkv/engine/vfs"
)

// ErrBusy is returned by Rotate while another cut is open.
var ErrBusy = errors.New("the log is being rewritten already")

// Cut is a place in the log at which a file ends and the next one begins.
type Cut struct {
	// LSN is the place: the BASE contains exactly the effects before it.
	LSN LSN

	w     *writer
	fresh bool // the new file is not in the manifest until Commit
	ready chan struct{}
	done  bool // ready is closed
	err   error
	seq   int64 // of the first INCR file after the cut, if not fresh
}

// fail and succeed record the result of making the new file. The log's lock is held.
func (c *Cut) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.succeed()
}

func (c *Cut) succeed() {
	if !c.done {
		c.done = true
		close(c.ready)
	}
}

// Rotate makes a cut at the end of the log. It does no I/O: it may be called under the locks of all shards, so that a
// snapshot begins at exactly this place. The writer makes the new file soon afterwards (Cut.Wait).
//
// If the writer has no file (Starting, Broken), the log after the cut goes to a file that is not in the manifest until
// Commit, which turns the log on or repairs it.
func (w *writer) Rotate() (*Cut, error) {
	l := w.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.State() == Closed {
		return nil, ErrClosed
	}
	if w.State() == Blocked {
		return nil, errors.New("the log waits for its disk")
	}
	if w.cut != nil {
		return nil, ErrBusy
	}
	c := &Cut{w: w, ready: make(chan struct{}), fresh: w.discard}
	if l.kept.sink != w {
		l.attach(w)
	}
	c.LSN = l.kept.end
	l.kept.db, w.db = noDB, noDB
	w.second = 0
	w.discard = false
	w.front.cut, w.front.cutAt = c, len(w.front.text)
	w.front.end = max(w.front.end, c.LSN)
	w.cut = c
	w.wakeAt = math.MaxInt
	w.wake()
	return c, nil
}

// rotate begins the file that follows a cut.
func (w *writer) rotate(c *Cut) {
	var err error
	if c.fresh {
		err = w.rotateFresh(c)
	} else {
		err = w.rotateOn(c)
	}
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	if err != nil {
		c.fail(err)
	} else {
		c.succeed()
	}
}

// rotateFresh begins a file that is not in the manifest.
func (w *writer) rotateFresh(c *Cut) error {
	err := w.files.makeDir()
	var file vfs.File
	var size int64
	if err == nil {
		file, size, err = w.newFile(w.files.tempIncr(), nil, c.LSN)
	}
	if err == nil {
		// An earlier file may have had this name: that the file is empty now has to be on the disk, too.
		if err = file.Sync(); err != nil {
			_ = file.Close()
		}
	}
	if err != nil {
		w.files.logf(Warning, "Can't open the append-only file %s: %s", w.files.tempIncr(), strerror(err))
		w.log.mu.Lock()
		w.discard = true
		w.front.reset()
		w.log.mu.Unlock()
		return err
	}
	w.begin(file, w.files.tempIncr(), size, c.LSN)
	w.written.Store(max(w.written.Load(), uint64(c.LSN)))
	w.outside = c
	return nil
}

// rotateOn syncs the current file and then begins the next one, so that only the last file can be torn. If the next one
// cannot be made, the writer continues with the current one.
func (w *writer) rotateOn(c *Cut) error {
	if !w.syncNow() {
		return w.Failure().Err
	}
	err := w.newIncr(nil, c.LSN)
	if errors.Is(err, errUnsure) {
		w.breakDown(err)
	} else if err != nil {
		w.files.logf(Warning, "Can't begin a new append-only file: %s", strerror(err))
	} else {
		m := w.files.Manifest()
		c.seq = m.IncrSeq
		w.files.logf(Notice, "Creating AOF incr file %s on background rewrite", w.name)
	}
	return err
}

// Wait waits for the file that follows the cut.
func (c *Cut) Wait() error {
	<-c.ready
	c.w.log.mu.Lock()
	defer c.w.log.mu.Unlock()
	return c.err
}

// Create makes the file for the BASE.
func (c *Cut) Create() (vfs.File, error) {
	if err := c.Wait(); err != nil {
		return nil, err
	}
	return c.w.files.FS.Create(c.w.files.path(c.w.files.tempBase()))
}

// Commit replaces everything before the cut by a BASE, which the caller has written to the file from Create. It syncs
// and closes that file. rdb says whether the BASE is in RDB form. After an error, the state of the log is as if there
// had been no cut.
func (c *Cut) Commit(base vfs.File, rdb bool) error {
	f := c.w.files
	err := c.Wait()
	if err == nil {
		err = base.Sync()
	}
	if e := base.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = c.commit(rdb)
	} else {
		_ = f.FS.Remove(f.path(f.tempBase()))
	}
	if err != nil {
		c.Abort()
		return fmt.Errorf("rewriting the log: %w", err)
	}
	c.w.log.mu.Lock()
	c.w.cut = nil
	c.w.log.mu.Unlock()
	f.removeHistory()
	return nil
}

func (c *Cut) commit(rdb bool) error {
	w, f := c.w, c.w.files
	if !c.fresh {
		_, err := f.replace(c, rdb)
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// The file's first mark has to be synced whatever the policy: it distinguishes a torn file from a rotten one.
	if w.outside != c || !w.syncNow() {
		_ = f.FS.Remove(f.path(f.tempBase()))
		w.log.mu.Lock()
		defer w.log.mu.Unlock()
		return cmp.Or(c.err, ErrClosed)
	}
	name, err := f.replace(c, rdb)
	if err != nil {
		return err
	}
	w.name = name
	w.outside = nil
	w.healthy()
	return nil
}

// Abort gives up a cut. The files stay as they are. If the log was off, it is off again.
func (c *Cut) Abort() {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.log
	l.mu.Lock()
	if w.cut != c {
		l.mu.Unlock()
		return
	}
	w.cut = nil
	if w.front.cut == c {
		w.front.cut = nil
	}
	if w.back.cut == c {
		w.back.cut = nil
	}
	c.fail(errors.New("the rewriting was given up"))
	if c.fresh {
		w.discard = true
		w.front.reset()
	}
	l.mu.Unlock()
	if !c.fresh {
		return
	}
	w.back.reset()
	w.done = 0
	w.closeFile()
	w.outside = nil
	w.files.logf(Notice, "Removing the temp incr aof file %s", w.files.tempIncr())
	_ = w.files.FS.Remove(w.files.path(w.files.tempIncr())) // If this fails, it is overwritten the next time.
	if w.State() == Starting {
		l.Detach(w)
	}
}

// extend adds the file at tempIncr to the manifest as the next INCR file.
func (f *Files) extend(at LSN) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.Manifest()
	m.IncrSeq++
	name := f.incrName(m.IncrSeq)
	m.Incr = append(m.Incr, Entry{Name: name, Seq: m.IncrSeq, Type: Incr, Start: int64(at), End: -1})
	err := f.announce()
	if err == nil {
		err = f.FS.Rename(f.path(f.tempIncr()), f.path(name))
	}
	if err != nil {
		return "", err
	}
	if err = f.FS.SyncDir(f.dir); err == nil {
		err = f.write(m)
	}
	if err == nil {
		return name, nil
	}
	if f.manifest.Load() == m {
		return "", fmt.Errorf("%w: %w", errUnsure, err)
	}
	_ = f.FS.Remove(f.path(name)) // If this fails, it is overwritten the next time.
	return "", err
}

// replace makes the file at tempBase the BASE, and turns the files that it replaces into history.
func (f *Files) replace(c *Cut, rdb bool) (incr string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.manifest.Load()
	m := old.clone()
	m.BaseSeq++
	base := f.baseName(m.BaseSeq, rdb)
	m.History, m.Incr = nil, nil
	for _, e := range old.Incr {
		if !c.fresh && e.Seq >= c.seq {
			m.Incr = append(m.Incr, e)
			continue
		}
		e.Type = History
		m.History = append(m.History, e)
	}
	if m.Base != nil {
		was := *m.Base
		was.Type = History
		m.History = append(m.History, was)
	}
	m.History = append(m.History, old.History...)
	m.Base = &Entry{Name: base, Seq: m.BaseSeq, Type: Base, Start: -1, End: -1}
	if c.fresh {
		m.IncrSeq++
		incr = f.incrName(m.IncrSeq)
		m.Incr = []Entry{{Name: incr, Seq: m.IncrSeq, Type: Incr, Start: int64(c.LSN), End: -1}}
	}
	if err = f.announce(); err == nil {
		err = f.FS.Rename(f.path(f.tempBase()), f.path(base))
	}
	if err != nil {
		_ = f.FS.Remove(f.path(f.tempBase()))
		return "", err
	}
	if c.fresh {
		err = f.FS.Rename(f.path(f.tempIncr()), f.path(incr))
	}
	if err == nil {
		err = f.FS.SyncDir(f.dir)
	}
	if err == nil {
		err = f.write(m)
	}
	switch {
	case err == nil:
		return incr, nil
	case f.manifest.Load() == m:
		return incr, fmt.Errorf("%w: %w", errUnsure, err)
	}
	_ = f.FS.Remove(f.path(base))
	if c.fresh {
		_ = f.FS.Remove(f.path(incr))
	}
	return "", err
}

// endAt records in the manifest where an INCR file was closed, for Redis. It may fail, since limitkv finds the end
// without it.
func (f *Files) endAt(name string, at LSN) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.Manifest()
	if n := len(m.Incr); n > 0 && m.Incr[n-1].Name == name && m.Incr[n-1].Start != -1 {
		m.Incr[n-1].End = int64(at)
		_ = f.write(m)
	}
}
