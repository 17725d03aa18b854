package journal

// Starting the writer, on the files that were loaded, or later, when the log is turned on.

import (
	"hash/crc32"
	"io"
	"math"

	"github.com/limitkv/limitkv/engine/vfs"
)

// NeedsBase reports whether there is no log yet. A caller that starts one with existing data, or wants to do as Redis
// does, calls CreateBase before Start.
func (f *Files) NeedsBase() bool { return f.Manifest().Empty() }

// CreateBase makes the first BASE.
func (f *Files) CreateBase(rdb bool, write func(vfs.File) error) error {
	err := f.Rewrite(rdb, write)
	if err == nil {
		f.logf(Notice, "Creating AOF base file %s on server start", f.Manifest().Base.Name)
	}
	return err
}

// Rewrite replaces all files by a BASE while there is no writer. write writes it to a file, which Rewrite syncs and
// closes.
func (f *Files) Rewrite(rdb bool, write func(vfs.File) error) error {
	if err := f.makeDir(); err != nil {
		return err
	}
	file, err := f.FS.Create(f.path(f.tempBase()))
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
		_, err = f.replace(&Cut{seq: math.MaxInt64}, rdb)
	}
	if err != nil {
		_ = f.FS.Remove(f.path(f.tempBase())) // If this fails, it is overwritten the next time.
		return err
	}
	f.removeHistory()
	return nil
}

// Start continues the last INCR file, or makes the first one. From now on, appended batches are written to it, and the
// files are the log's store. The caller has moved the log to Loaded.End, at least (Log.Skip).
func (f *Files) Start(l *Log, o WriterOptions) error {
	w := newWriter(f, l, o)
	if err := w.open(); err != nil {
		return err
	}
	f.begin(w)
	return nil
}

// Prepare is Start without a file: Rotate and Commit turn the log on.
func (f *Files) Prepare(l *Log, o WriterOptions) { f.begin(newWriter(f, l, o)) }

func (f *Files) begin(w *writer) {
	f.writer = w
	go w.run()
	w.log.Keep(w)
}

// open opens the file to continue with.
func (w *writer) open() error {
	f := w.files
	if err := f.makeDir(); err != nil {
		return err
	}
	// The loaded data is about to be served, so the files' names are synced. Only when the manifest's name is synced may
	// the file of announce be removed, which replaces it.
	if err := f.FS.SyncDir(f.dir); err != nil {
		return err
	}
	f.removeTemps()
	l := w.log
	m := f.Manifest()
	if n := len(m.Incr); n > 0 && m.Incr[n-1].Name == f.tail.name {
		if err := w.reopen(m); err != nil {
			f.logf(Warning, "Can't open the append-only file %s: %s", f.tail.name, strerror(err))
			return err
		}
		f.logf(Notice, "Opening AOF incr file %s on server start", w.name)
	} else {
		if err := w.newIncr(nil, l.End()); err != nil {
			f.logf(Warning, "Can't open the append-only file %s: %s", f.incrName(m.IncrSeq+1), strerror(err))
			return err
		}
		f.logf(Notice, "Creating AOF incr file %s on server start", w.name)
	}
	f.removeHistory()
	l.mu.Lock()
	w.discard = false
	at := l.attach(w)
	l.mu.Unlock()
	w.safeLSN = at
	w.written.Store(uint64(at))
	w.durable.Store(uint64(at))
	w.state.Store(int32(Running))
	return nil
}

// reopen opens the last INCR file as it was loaded. It syncs the file before anything is served, and prepares a mark for
// the bytes that none covers.
func (w *writer) reopen(m *Manifest) error {
	f := w.files
	file, err := f.FS.Append(f.path(f.tail.name))
	if err != nil {
		return err
	}
	w.file, w.name = file, f.tail.name
	w.size, err = file.Size()
	w.grow(0)
	if err == nil && w.size != f.tail.size {
		err = io.ErrUnexpectedEOF // Somebody else writes to it.
	}
	if err == nil {
		err = rewriteEnd(file, f.tail.unsure, w.size)
	}
	if err == nil {
		err = file.Sync()
	}
	w.safe = w.size
	if err == nil && w.o.Checksums && (f.tail.covered < w.size || w.size == 0) {
		w.opening, err = w.adopt(f.tail.covered)
	}
	last := &m.Incr[len(m.Incr)-1]
	if err == nil && last.End != -1 {
		last.End = -1
		f.mu.Lock()
		err = f.write(m)
		f.mu.Unlock()
	}
	if err != nil {
		_ = file.Close()
	}
	return err
}

// rewriteEnd rewrites bytes of a file with themselves. If a sync failed before the process ended, they may exist only in
// the page cache, where they look valid and count as clean, so that a sync would not write them.
func rewriteEnd(file vfs.File, from, to int64) error {
	text := make([]byte, min(chunk, to-from))
	for at := from; at < to; {
		n, err := file.ReadAt(text[:min(chunk, to-at)], at)
		if err != nil && err != io.EOF || n == 0 {
			return err
		}
		if _, err := file.WriteAt(text[:n], at); err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// adopt returns a mark that covers the bytes of the file from a place on.
func (w *writer) adopt(from int64) (*mark, error) {
	m := &mark{kind: markAdopted, length: w.size - from, lsn: w.log.End(), synced: w.size}
	text := make([]byte, chunk)
	for at := from; at < w.size; {
		n, err := w.file.ReadAt(text[:min(chunk, w.size-at)], at)
		if err != nil && err != io.EOF || n == 0 {
			return nil, err
		}
		m.crc = crc32.Update(m.crc, castagnoli(), text[:n])
		at += int64(n)
	}
	return m, nil
}
