package journal

// Rewriting: a cut of the log, a BASE that holds everything in front of it, and the change of the manifest that puts
// both in the place of what was before. A crash at any point leaves one manifest or the other, and the files of both.

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/limitkv/limitkv/engine/vfs"
)

// ErrBusy is returned where a cut is made while another one is open.
var ErrBusy = errors.New("the log is being rewritten already")

// Cut is a place in the log at which a file ends and the next one begins.
type Cut struct {
	// LSN is the place: a BASE that is committed holds the effects in front of it and none behind.
	LSN LSN

	w     *writer
	fresh bool // the new file is not in the manifest before Commit
	ready chan struct{}
	done  bool // ready is closed
	err   error
	seq   int64 // of the first INCR file behind the cut, where it is not fresh
}

// fail and succeed say what became of the new file. The log's lock is held.
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

// Rotate cuts the log at its end. It does no I/O: it may be called under the locks of all shards, so that a snapshot
// begins at exactly this place. The new file follows soon (Cut.Wait).
//
// Where the writer has no file (Starting, Broken), what follows the cut goes to a file outside of the manifest until
// Commit, which turns the log on or heals it.
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

// rotateFresh begins a file outside of the manifest.
func (w *writer) rotateFresh(c *Cut) error {
	err := w.files.makeDir()
	var file vfs.File
	var size int64
	if err == nil {
		file, size, err = w.newFile(w.files.tempIncr(), nil, c.LSN)
	}
	if err == nil {
		// One of before may have had this name: that it is empty now has to be safe, too.
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

// rotateOn ends the file safely, and then begins the next one, so that no file but the last one is ever torn. Where the
// next one cannot be made, the writer stays with the one that it has.
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

// Create makes the file that the BASE is written to.
func (c *Cut) Create() (vfs.File, error) {
	if err := c.Wait(); err != nil {
		return nil, err
	}
	return c.w.files.FS.Create(c.w.files.path(c.w.files.tempBase()))
}

// Commit puts a BASE, written to the file of Create, in the place of everything in front of the cut. It syncs and closes
// the file. rdb says in which form it is. After an error the
// log goes on, or does not, as if there had been no cut.
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
	// Its first mark has to be safe whatever the policy, since by that a file that was torn is told from one that rotted.
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

// Abort gives a cut up. The files stay as they are; where the log was not on, it is off again.
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
	_ = w.files.FS.Remove(w.files.path(w.files.tempIncr())) // It is made anew the next time.
	if w.State() == Starting {
		l.Detach(w)
	}
}

// extend takes the file at tempIncr into the manifest as the next INCR file.
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
	_ = f.FS.Remove(f.path(name)) // It is overwritten the next time.
	return "", err
}

// replace makes the file at tempBase the BASE, and history of what it replaces.
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

// endAt notes in the manifest where an INCR file was closed. It helps nobody but Redis, and may fail.
func (f *Files) endAt(name string, at LSN) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.Manifest()
	if n := len(m.Incr); n > 0 && m.Incr[n-1].Name == name && m.Incr[n-1].Start != -1 {
		m.Incr[n-1].End = int64(at)
		_ = f.write(m)
	}
}
