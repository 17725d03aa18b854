package journal

// How the writer reacts to a failing disk: it keeps what could not be written, or gives the file up.

import (
	"errors"
)

// logFailure logs a failed write, at most once in logMicros.
func (w *writer) logFailure(now int64, err error, n, of int) {
	if w.loggedAt != 0 && now-w.loggedAt < logMicros {
		return
	}
	w.loggedAt = max(now, 1)
	w.files.logf(Warning, "Error writing to the AOF file: %s", strerror(err))
	if n > 0 {
		w.files.logf(Warning, "Short write while writing to the AOF file: (nwritten=%d, expected=%d)", n, of)
	}
}

// fail records a failure and tells the server. The server must refuse writes before replies fail, since a client whose
// write failed may send the next one at once.
func (w *writer) fail(state State, err error) {
	w.failed.Store(&Failure{Err: err, NeedsBase: state == Broken})
	w.state.Store(int32(state))
	if w.o.OnFailure != nil {
		w.o.OnFailure(w.Failure())
	}
	w.tell()
}

// healthy ends a failure.
func (w *writer) healthy() {
	w.failed.Store(nil)
	w.loggedAt = 0
	w.state.Store(int32(Running))
	w.publish()
	if w.o.OnHealthy != nil {
		w.o.OnHealthy()
	}
}

// block keeps what could not be written until a retry succeeds.
func (w *writer) block(err error, now int64) {
	if w.outside != nil {
		w.breakDown(err) // The file is not in the manifest yet: a retry begins with a new cut.
		return
	}
	w.abandon(err)
	w.retryAt = now + retryMicros
	if w.State() != Blocked {
		w.fail(Blocked, err)
	}
}

// abandon fails a cut whose new file has not begun.
func (w *writer) abandon(err error) {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	w.back.cut, w.front.cut = nil, nil
	if w.cut != nil {
		w.cut.fail(err)
	}
}

// breakDown gives up the file: only its synced part is known to be safe.
func (w *writer) breakDown(err error) {
	if w.State() == Broken && w.file == nil {
		return
	}
	w.abandon(err)
	w.log.mu.Lock()
	w.discard = true
	w.front.reset()
	w.log.mu.Unlock()
	w.back.reset()
	w.done = 0
	w.closeFile()
	w.outside = nil
	if w.State() == Starting {
		w.tell()
		return // The log is not on. The caller that turns it on gets the error from the cut.
	}
	w.fail(Broken, err)
}

// GiveUp gives up the files if one is missing (Files.Whole), so that a new BASE replaces them. It may wait for the disk.
func (w *writer) GiveUp() {
	if w.State() != Running || w.files.Whole() == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.State() != Running {
		return
	}
	if err := w.files.Whole(); err != nil {
		w.files.logf(Warning, "Files of the log are missing: %s", strerror(err))
		w.breakDown(err)
	}
}

func (w *writer) closeFile() {
	w.awaitSyncQuietly()
	if w.file != nil {
		_ = w.file.Close() // The file is synced or given up.
	}
	w.file, w.name, w.size, w.safe, w.opening, w.shortened = nil, "", 0, 0, nil, false
	w.fileSize.Store(0)
}

// awaitSyncQuietly waits for a sync whose outcome does not matter any more.
func (w *writer) awaitSyncQuietly() {
	if w.syncing {
		w.outcome()
		w.syncing = false
	}
}

// retry writes what a full disk refused to a new file. The file before is whole, and is synced first.
func (w *writer) retry(now int64) {
	if !w.syncNow() {
		return
	}
	w.retryAt = now + retryMicros
	w.log.mu.Lock()
	f := w.front
	b := w.back
	// Batches that gathered meanwhile join them in one buffer, so that the new file is whole from its beginning.
	shift := len(b.text)
	b.text = append(b.text, f.text...)
	for _, g := range f.groups {
		g.mark, g.end = g.mark+shift, g.end+shift
		b.groups = append(b.groups, g)
	}
	if !f.empty() {
		b.end = f.end
	}
	f.reset()
	w.log.mu.Unlock()
	if len(b.text)-w.done > blockedMax {
		w.breakDown(errors.New("too much waits for the disk: " + w.Failure().Err.Error()))
		return
	}
	for len(b.groups) > 0 && b.groups[0].end <= w.done {
		b.groups = b.groups[1:]
	}
	if len(b.groups) == 0 {
		b.reset()
		w.done = 0
		w.healthy()
		return
	}
	// No database is selected at the beginning of a file.
	first := &buffer{}
	if db := b.groups[0].db; db != noDB {
		w.appendGroup(first, appendSelect(nil, db), LSN(w.written.Load()), b.groups[0].micros)
	}
	w.safe, first.end = 0, b.end
	shift = len(first.text) - w.done
	first.text = append(first.text, b.text[w.done:]...)
	for _, g := range b.groups {
		g.mark, g.end = g.mark+shift, g.end+shift
		first.groups = append(first.groups, g)
	}
	if err := w.newIncr(first, LSN(w.written.Load())); err != nil {
		if errors.Is(err, errUnsure) {
			w.breakDown(err)
			return
		}
		w.logFailure(now, err, 0, 0)
		w.failed.Store(&Failure{Err: err})
		w.safe = w.size // As before: the old file is synced.
		return
	}
	w.written.Store(max(w.written.Load(), uint64(b.end)))
	w.safeLSN = LSN(w.written.Load())
	b.reset()
	w.done = 0
	w.since.Store(0)
	w.healthy()
}

// appendGroup appends body to a buffer as a separate group.
func (w *writer) appendGroup(b *buffer, body []byte, lsn LSN, micros int64) {
	g := group{mark: len(b.text), marked: w.o.Checksums, lsn: lsn, micros: micros}
	if g.marked {
		b.text = append(b.text, blankMark[:]...)
	}
	b.text = append(b.text, body...)
	g.end = len(b.text)
	b.groups = append(b.groups, g)
}
