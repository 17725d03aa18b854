package journal

// The writer's goroutine: writing and syncing.

import (
	"errors"
	"io"
	"math"
	"time"

	"github.com/limitkv/limitkv/engine/vfs"
)

// syncDone is the result of a sync.
type syncDone struct {
	size int64
	lsn  LSN
	err  error
}

// run is the writer's goroutine.
func (w *writer) run() {
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
		}
	}
}

// step does the work that is due. It returns in how many microseconds more is due, or -1 if only a kick can bring more.
func (w *writer) step() (wait int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case done := <-w.synced:
		w.endSync(done)
	default:
	}
	w.land()
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
	if w.plain() {
		return w.round(now)
	}
	always := w.Policy() == Always && !w.suspended.Load()
	if w.Durable() >= w.force {
		if !always && now < w.lastWrite+gatherMicros {
			return w.lastWrite + gatherMicros - now
		}
		if always && now < w.gatherTo && w.alone() {
			return w.gatherTo - now
		}
	}
	if w.take(now) {
		batches := w.back.batches
		if w.write(now) && always && w.syncNow() {
			w.expect(batches, w.syncTime/2)
		}
	}
	return w.after(w.files.Monotonic())
}

// expect sets how many batches the next sync waits for, and how long. Usually the clients whose replies were just
// released send again, and the batches that arrived meanwhile are there already. Without that, clients that wait for
// their replies split into two halves: each half is served while the other one is synced, so that each sync serves only
// half of the clients. Then 50 clients reach 20,000 appends a second; with it 36,000 to 54,000 on the same disk.
func (w *writer) expect(batches int, patience int64) {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	w.company = batches + w.front.batches
	w.gatherTo = w.files.Monotonic() + min(patience, companyMicros)
}

// alone reports whether fewer batches gathered than are expected. If so, the batch that completes them will wake the
// goroutine.
func (w *writer) alone() bool {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	if w.front.batches >= w.company || w.front.cut != nil {
		return false
	}
	w.wakeAt = w.company
	return true
}

// after syncs if that is due, and returns when the next step is due.
func (w *writer) after(now int64) (wait int64) {
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

// untilWrite is the time until the next write is allowed if something gathered, otherwise the given value.
func (w *writer) untilWrite(now, otherwise int64) int64 {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	if w.front.empty() {
		w.wakeAt = 1
		return otherwise
	}
	if w.Policy() == Always && !w.suspended.Load() {
		return 0
	}
	w.wakeAt = math.MaxInt
	return max(w.lastWrite+gatherMicros-now, 0)
}

// take swaps the buffers front and back, if everything in back was written. It reports whether there is something to
// write.
func (w *writer) take(now int64) bool {
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

// write writes the buffer back. If it contains a cut, it writes the part before the cut, begins the new file, and writes
// the rest to it.
func (w *writer) write(now int64) bool {
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

// piece writes the buffer back up to an offset.
func (w *writer) piece(to int, now int64) bool {
	if w.done == to {
		return true
	}
	if d := w.delay.Load(); d > 0 {
		time.Sleep(time.Duration(d))
	}
	if w.opening != nil && !w.openingMark(to, now) {
		return false
	}
	w.putMarks(w.back, w.done, to, w.size)
	if !w.put(w.back.text[w.done:to], now) {
		return false
	}
	w.done = to
	for _, g := range w.back.groups {
		if g.end <= to {
			w.written.Store(max(w.written.Load(), uint64(g.lsn)))
		}
	}
	return true
}

// put writes to the file. If that fails, it truncates what the write left there.
func (w *writer) put(text []byte, now int64) bool {
	if size, err := w.file.Size(); err != nil || size != w.size { // the next start would refuse data after a hole
		w.files.logf(Warning, "The append-only file has %d bytes in place of %d: somebody else writes to it", size, w.size)
		w.breakDown(errReplaced)
		return false
	}
	n, err := w.file.Write(text)
	if err == nil && n < len(text) {
		err = io.ErrShortWrite
	}
	if err == nil {
		w.grow(n)
		return true
	}
	w.logFailure(now, err, n, len(text))
	if n > 0 {
		if e := w.file.Truncate(w.size); e != nil {
			w.files.logf(Warning, "Could not remove short write from the append-only file. ftruncate: %s", strerror(e))
			w.breakDown(err)
			return false
		}
		w.shortened = true
	}
	w.block(err, now)
	return false
}

// putMarks fills in the marks of the groups in a part of a buffer, which goes to the offset at of the file.
func (w *writer) putMarks(b *buffer, from, to int, at int64) {
	for _, g := range b.groups {
		if !g.marked || g.mark < from || g.end > to {
			continue
		}
		body := b.text[g.mark+markSize : g.end]
		m := mark{kind: markGroup, length: int64(len(body)), lsn: g.lsn, micros: g.micros, synced: w.safe, crc: crcOf(body)}
		m.put(b.text[g.mark:g.mark+markSize], at+int64(g.mark-from))
	}
}

// syncNow syncs what was written and waits for that. It reports whether it succeeded.
func (w *writer) syncNow() bool {
	w.awaitSync()
	if w.file == nil {
		return false
	}
	done := syncDone{size: w.size, lsn: LSN(w.written.Load())}
	if done.size == w.safe && done.lsn <= w.safeLSN && !w.shortened {
		return true
	}
	start := w.files.Monotonic()
	w.beginSync(start)
	done.err = w.sync(w.file, w.name, done.size)
	w.syncTime += (w.files.Monotonic() - start - w.syncTime) / 8
	w.shortened = w.shortened && done.err != nil
	w.endSync(done)
	return done.err == nil
}

// sync syncs a file, and checks that it still exists: if somebody removed it, perhaps with its directory, its bytes
// vanish when the process ends.
func (w *writer) sync(file vfs.File, name string, size int64) error {
	if err := file.Sync(); err != nil {
		return err
	}
	return w.seen(file, name, size)
}

// seen returns an error if a file does not exist any more under its name, or became shorter.
func (w *writer) seen(file vfs.File, name string, size int64) error {
	is, err := file.Is(w.files.path(name))
	if err != nil {
		return err
	}
	there, err := file.Size()
	if err == nil && (!is || there < size) {
		err = errReplaced
	}
	return err
}

// errReplaced says that another file has the name of the current one, or that somebody truncated it.
var errReplaced = errors.New("the file was replaced")

// syncBeside syncs what was written while the goroutine continues to write.
func (w *writer) syncBeside(now int64) {
	if w.inline {
		w.syncNow()
		return
	}
	w.beginSync(now)
	file, name, done := w.file, w.name, syncDone{size: w.size, lsn: LSN(w.written.Load())}
	go func() {
		done.err = w.sync(file, name, done.size)
		// Only a holder of w.mu receives from this channel. A goroutine that received first and then waited for w.mu
		// would deadlock with a holder that waits for the sync.
		w.synced <- done
		w.wake()
	}()
}

func (w *writer) beginSync(now int64) {
	w.syncing = true
	w.lastSync = now
	w.sinceNext = 0
}

// awaitSync waits for a background sync.
func (w *writer) awaitSync() {
	if w.syncing {
		w.endSync(w.outcome())
	}
}

// outcome waits for a background sync and returns its result.
func (w *writer) outcome() syncDone {
	if !w.inFlight {
		return <-w.synced
	}
	return w.landed(w.o.Beside.Wait())
}

// endSync takes over the result of a sync.
func (w *writer) endSync(done syncDone) {
	w.syncing = false
	if done.err != nil {
		w.files.logf(Warning, "Fail to fsync the AOF file: %s", strerror(done.err))
		w.breakDown(done.err)
		return
	}
	w.safe = max(w.safe, done.size)
	w.safeLSN = max(w.safeLSN, done.lsn)
	w.since.Store(w.sinceNext) // When the first data since the sync began was taken.
	if w.late.Load() || w.stuck.Load() {
		w.Look()
	}
	w.publish()
}

// publish updates what is durable. A file that the manifest does not name makes nothing durable.
func (w *writer) publish() {
	if w.outside == nil && w.safeLSN > w.Durable() {
		w.durable.Store(uint64(w.safeLSN))
	}
	w.tell()
}

// tell wakes everything that waits for the writer.
func (w *writer) tell() {
	w.changed.Broadcast()
	w.log.Release()
}

// end ends the writer, and writes as much as it can.
func (w *writer) end() {
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
	if err == nil && w.file != nil && w.outside == nil && w.syncNow() && w.o.Checksums && w.opening == nil && w.state.Load() == int32(Running) {
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
func (w *writer) putMark(kind byte) error {
	m := mark{kind: kind, lsn: max(w.safeLSN, LSN(w.written.Load())), synced: w.safe}
	line := make([]byte, markSize)
	m.put(line, w.size)
	n, err := w.file.Write(line)
	w.grow(n)
	return err
}

// grow counts bytes that were written to the file.
func (w *writer) grow(n int) {
	w.size += int64(n)
	w.fileSize.Store(w.size)
}
