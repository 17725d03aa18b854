package journal

// What the writer's goroutine does: writing, syncing, failing, recovering.

import (
	"errors"
	"io"
	"time"

	"github.com/limitkv/limitkv/engine/vfs"
)

// syncDone is the end of a sync that ran beside the goroutine.
type syncDone struct {
	size int64
	lsn  LSN
	err  error
}

// run is the writer's goroutine.
func (w *Writer) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		wait := w.step()
		if w.State() == Closed {
			return
		}
		if wait == 0 {
			continue
		}
		var due <-chan time.Time
		if wait >= 0 {
			timer.Reset(time.Duration(wait) * time.Microsecond)
			due = timer.C
		}
		select {
		case <-w.kick:
		case <-due:
		case done := <-w.synced:
			w.mu.Lock()
			w.endSync(done)
			w.mu.Unlock()
		}
	}
}

// step does what is due, and returns in how many microseconds something is due again, or -1 for nothing but a kick.
func (w *Writer) step() (wait int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case done := <-w.synced:
		w.endSync(done)
	default:
	}
	now := w.files.Monotonic()
	if w.closing {
		w.end()
		return -1
	}
	if w.State() == Blocked {
		if now < w.retryAt {
			return w.retryAt - now
		}
		w.retry(now)
		if w.State() == Blocked {
			return retryMicros
		}
	}
	always := w.Policy() == Always && !w.suspended.Load()
	if !always && w.Durable() >= w.force && now < w.lastWrite+gatherMicros {
		return w.lastWrite + gatherMicros - now
	}
	if w.take(now) && w.write(now) && always {
		w.syncNow()
	}
	return w.after(w.files.Monotonic())
}

// after syncs where it is time to, and says when the next step is due.
func (w *Writer) after(now int64) (wait int64) {
	switch {
	case w.State() == Blocked:
		return max(w.retryAt-now, 0)
	case w.file == nil:
		return -1
	}
	policy := w.Policy()
	if w.safe < w.size || w.safeLSN < LSN(w.written.Load()) {
		switch {
		case w.force > w.safeLSN, policy == Always && !w.suspended.Load():
			w.syncNow()
		case policy == EverySecond && !w.suspended.Load() && !w.syncing:
			if now-w.lastSync < syncMicros {
				wait = syncMicros - (now - w.lastSync)
				return min(wait, w.untilWrite(now, wait))
			}
			w.syncBeside(now)
		}
	}
	return w.untilWrite(now, -1)
}

// untilWrite is the time until more may be written where more is there, otherwise what it is told.
func (w *Writer) untilWrite(now, otherwise int64) int64 {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	if w.front.empty() {
		w.idle = true // The next Append kicks.
		return otherwise
	}
	if w.Policy() == Always && !w.suspended.Load() {
		return 0
	}
	return max(w.lastWrite+gatherMicros-now, 0)
}

// take takes what gathered, where what was taken before is written.
func (w *Writer) take(now int64) bool {
	if !w.back.empty() {
		return true
	}
	w.log.mu.Lock()
	w.front, w.back = w.back, w.front
	w.log.mu.Unlock()
	w.done = 0
	if w.back.empty() {
		return false
	}
	if len(w.back.text) > 0 {
		w.since.CompareAndSwap(0, max(now, 1))
		if w.sinceNext == 0 {
			w.sinceNext = max(now, 1)
		}
	}
	return true
}

// write writes what was taken, up to where a new file begins and then behind that.
func (w *Writer) write(now int64) bool {
	w.lastWrite = now
	b := w.back
	if b.cut != nil {
		if w.file != nil && !w.piece(b.cutAt, now) {
			return false
		}
		cut := b.cut
		b.cut = nil
		w.done = b.cutAt
		w.rotate(cut)
	}
	if w.file == nil {
		b.reset()
		w.done = 0
		return false
	}
	if !w.piece(len(b.text), now) {
		return false
	}
	w.written.Store(max(w.written.Load(), uint64(b.end)))
	b.reset()
	w.done = 0
	return true
}

// piece writes what was taken up to a place.
func (w *Writer) piece(to int, now int64) bool {
	if w.done == to {
		return true
	}
	if d := w.delay.Load(); d > 0 {
		time.Sleep(time.Duration(d))
	}
	text := w.back.text[w.done:to]
	w.putMarks(w.back, w.done, to, w.size)
	n, err := w.file.Write(text)
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	if err == nil {
		w.grow(n)
		w.done = to
		for _, g := range w.back.groups {
			if g.end <= to {
				w.written.Store(max(w.written.Load(), uint64(g.lsn)))
			}
		}
		return true
	}
	w.logFailure(now, err, n, len(text))
	if n > 0 {
		if e := w.file.Truncate(w.size); e != nil {
			w.files.logf(Warning, "Could not remove short write from the append-only file. ftruncate: %s", strerror(e))
			w.breakDown(err)
			return false
		}
	}
	w.block(err, now)
	return false
}

// putMarks writes the marks of the groups in a part of a buffer, which goes to the place at of the file.
func (w *Writer) putMarks(b *buffer, from, to int, at int64) {
	for _, g := range b.groups {
		if !g.marked || g.mark < from || g.end > to {
			continue
		}
		body := b.text[g.mark+markSize : g.end]
		m := mark{kind: markGroup, length: int64(len(body)), lsn: g.lsn, micros: g.micros, synced: w.safe, crc: crcOf(body)}
		m.put(b.text[g.mark:g.mark+markSize], at+int64(g.mark-from))
	}
}

// syncNow syncs what was written, and waits for it. It says whether that went well.
func (w *Writer) syncNow() bool {
	w.awaitSync()
	if w.file == nil {
		return false
	}
	done := syncDone{size: w.size, lsn: LSN(w.written.Load())}
	if done.size == w.safe && done.lsn <= w.safeLSN {
		return true
	}
	w.beginSync(w.files.Monotonic())
	done.err = w.file.Sync()
	w.endSync(done)
	return done.err == nil
}

// syncBeside syncs what was written while the goroutine goes on writing.
func (w *Writer) syncBeside(now int64) {
	if w.inline {
		w.syncNow()
		return
	}
	w.beginSync(now)
	file, done := w.file, syncDone{size: w.size, lsn: LSN(w.written.Load())}
	go func() {
		done.err = file.Sync()
		w.synced <- done
	}()
}

func (w *Writer) beginSync(now int64) {
	w.syncing = true
	w.lastSync = now
	w.sinceNext = 0
}

// awaitSync waits for a sync that runs beside.
func (w *Writer) awaitSync() {
	if w.syncing {
		w.endSync(<-w.synced)
	}
}

// endSync takes over what a sync came to.
func (w *Writer) endSync(done syncDone) {
	w.syncing = false
	if done.err != nil {
		w.files.logf(Warning, "Fail to fsync the AOF file: %s", strerror(done.err))
		w.breakDown(done.err)
		return
	}
	w.safe = max(w.safe, done.size)
	w.safeLSN = max(w.safeLSN, done.lsn)
	w.since.Store(w.sinceNext) // What was taken since the sync began.
	w.publish()
}

// publish says what is durable: nothing of a file that the manifest does not name.
func (w *Writer) publish() {
	if w.outside == nil && w.safeLSN > w.Durable() {
		w.durable.Store(uint64(w.safeLSN))
	}
	w.tell()
}

// tell wakes who waits for the writer.
func (w *Writer) tell() {
	w.changed.Broadcast()
	if w.o.OnDurable != nil {
		w.o.OnDurable(w.Durable())
	}
}

// logFailure logs a write that failed, not too often.
func (w *Writer) logFailure(now int64, err error, n, of int) {
	if w.loggedAt != 0 && now-w.loggedAt < logMicros {
		return
	}
	w.loggedAt = max(now, 1)
	w.files.logf(Warning, "Error writing to the AOF file: %s", strerror(err))
	if n > 0 {
		w.files.logf(Warning, "Short write while writing to the AOF file: (nwritten=%d, expected=%d)", n, of)
	}
}

// fail takes a failure over and tells the server.
func (w *Writer) fail(state State, err error) {
	w.failed.Store(&Failure{Err: err, NeedsBase: state == Broken})
	w.state.Store(int32(state))
	w.tell()
	if w.o.OnFailure != nil {
		w.o.OnFailure(w.Failure())
	}
}

// healthy ends a failure.
func (w *Writer) healthy() {
	w.failed.Store(nil)
	w.loggedAt = 0
	w.state.Store(int32(Running))
	w.publish()
	if w.o.OnHealthy != nil {
		w.o.OnHealthy()
	}
}

// block keeps what could not be written, until it can be.
func (w *Writer) block(err error, now int64) {
	if w.outside != nil {
		w.breakDown(err) // The file has no place in the manifest yet: a new try begins with a new cut.
		return
	}
	w.abandon(err)
	w.retryAt = now + retryMicros
	if w.State() != Blocked {
		w.fail(Blocked, err)
	}
}

// abandon fails a rotation that has not come to its new file.
func (w *Writer) abandon(err error) {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	w.back.cut, w.front.cut = nil, nil
	if w.cut != nil {
		w.cut.fail(err)
	}
}

// breakDown gives up the file: nobody knows what of it is safe beyond what was synced.
func (w *Writer) breakDown(err error) {
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
		return // The log is not on; whoever turned it on learns of it from the cut.
	}
	w.fail(Broken, err)
}

func (w *Writer) closeFile() {
	w.awaitSyncQuietly()
	if w.file != nil {
		_ = w.file.Close() // It is synced or given up.
	}
	w.file, w.name, w.size, w.safe = nil, "", 0, 0
	w.fileSize.Store(0)
}

// awaitSyncQuietly waits for a sync whose outcome does not matter any more.
func (w *Writer) awaitSyncQuietly() {
	if w.syncing {
		<-w.synced
		w.syncing = false
	}
}

// retry writes what a full disk refused to a new file. The one before is whole: it is synced first.
func (w *Writer) retry(now int64) {
	if !w.syncNow() {
		return
	}
	w.retryAt = now + retryMicros
	w.log.mu.Lock()
	f := w.front
	b := w.back
	// What gathered since goes with it, in one buffer, so that the new file is whole from its beginning.
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
	// The new file begins where no database is selected.
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
		w.safe = w.size // As it was: the file before is synced.
		return
	}
	w.written.Store(max(w.written.Load(), uint64(b.end)))
	w.safeLSN = LSN(w.written.Load())
	b.reset()
	w.done = 0
	w.since.Store(0)
	w.files.logf(Notice, "AOF write error looks solved, the server can write again.")
	w.healthy()
}

// appendGroup appends a group of its own to a buffer.
func (w *Writer) appendGroup(b *buffer, body []byte, lsn LSN, micros int64) {
	g := group{mark: len(b.text), marked: w.o.Checksums, lsn: lsn, micros: micros}
	if g.marked {
		b.text = append(b.text, blankMark[:]...)
	}
	b.text = append(b.text, body...)
	g.end = len(b.text)
	b.groups = append(b.groups, g)
}

// end ends the writer, as well as it can.
func (w *Writer) end() {
	err := w.Failure().Err
	if w.State() == Blocked {
		w.retry(w.files.Monotonic())
		err = w.Failure().Err
	}
	for err == nil && w.take(0) {
		if !w.write(w.files.Monotonic()) {
			err = w.Failure().Err
			break
		}
	}
	if err == nil && w.file != nil && w.outside == nil && w.syncNow() && w.o.Checksums && w.state.Load() == int32(Running) {
		err = w.putMark(markClosed)
		if err == nil {
			err = w.file.Sync()
		}
	}
	if err == nil {
		err = w.Failure().Err
	}
	w.abandon(ErrClosed)
	if w.file != nil && w.outside == nil && err == nil {
		w.files.endAt(w.name, w.safeLSN)
	}
	w.closeFile()
	w.log.Detach(w)
	if err != nil {
		w.failed.Store(&Failure{Err: err})
	}
	w.state.Store(int32(Closed))
	w.tell()
}

// putMark writes a mark that covers nothing.
func (w *Writer) putMark(kind byte) error {
	m := mark{kind: kind, lsn: max(w.safeLSN, LSN(w.written.Load())), synced: w.safe}
	line := make([]byte, markSize)
	m.put(line, w.size)
	n, err := w.file.Write(line)
	w.grow(n)
	return err
}

// grow says that bytes were written to the file.
func (w *Writer) grow(n int) {
	w.size += int64(n)
	w.fileSize.Store(w.size)
}

// errUnsure says that a new manifest is there, but that it is not known whether that is safe.
var errUnsure = errors.New("the manifest may not be safe")

// newIncr begins a new INCR file with what a buffer holds, synced, puts it into the manifest, and goes on with it. Where
// it fails everything is as before, unless the error is errUnsure.
func (w *Writer) newIncr(b *buffer, at LSN) error {
	file, size, err := w.newFile(w.files.tempIncr(), b, at)
	if err == nil {
		err = file.Sync()
	}
	if err == nil {
		var name string
		if name, err = w.files.extend(at); err == nil {
			w.closeFile()
			w.file, w.name, w.size, w.safe = file, name, 0, size
			w.grow(int(size))
			return nil
		}
	}
	if file != nil {
		_ = file.Close()
	}
	return err
}

// newFile makes a file that holds a mark, where marks are written, and then what a buffer holds.
func (w *Writer) newFile(name string, b *buffer, at LSN) (vfs.File, int64, error) {
	file, err := w.files.FS.Create(w.files.path(name))
	if err != nil {
		return nil, 0, err
	}
	var text []byte
	if w.o.Checksums {
		m := mark{kind: markClosed, lsn: at}
		text = make([]byte, markSize)
		m.put(text, 0)
	}
	if b != nil {
		start := len(text)
		text = append(text, b.text...)
		moved := buffer{text: text}
		for _, g := range b.groups {
			g.mark, g.end = g.mark+start, g.end+start
			moved.groups = append(moved.groups, g)
		}
		w.putMarks(&moved, 0, len(text), 0)
	}
	if len(text) > 0 {
		n, err := file.Write(text)
		if err == nil && n < len(text) {
			err = io.ErrShortWrite
		}
		if err != nil {
			_ = file.Close()
			return nil, 0, err
		}
	}
	return file, int64(len(text)), nil
}
