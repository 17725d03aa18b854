package journal

// The writer is the sink that puts the log on disk. One goroutine writes and syncs. Meanwhile the next batches gather in
// memory, so that one sync serves all batches that arrived during the sync before.
//
// A sync that failed is never repeated on the same file, since the kernel may have dropped the pages that it could not
// write. What happens instead depends on the state of the file:
//
//   - - A write failed (usually the disk is full), and truncating removed the partial write: the file is whole. The
//     writer syncs it and writes the remaining bytes to a new INCR file, retrying until that works. Nothing is lost;
//     the writer is Blocked meanwhile.
//   - - A sync failed, or a torn write could not be truncated: the writer is Broken. Memory has all the data: the
//     server makes a cut (Rotate) and commits a new BASE, which replaces the old files.

import (
	"errors"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitkv/limitkv/engine/vfs"
)

// Policy is when the log is synced (appendfsync).
type Policy int32

// The policies.
const (
	EverySecond Policy = iota
	Always
	Never
)

// WriterOptions configure a writer. The functions may be nil. They are called while the writer works, mostly from its
// goroutine. They must not wait for the writer, and may call only its methods that read (Durable, Confirmed, State and
// so on).
type WriterOptions struct {
	Policy Policy
	// Timestamps writes a #TS line at each new second (aof-timestamp-enabled).
	Timestamps bool
	// Checksums writes marks. Files without marks are as Redis writes them, and damage in them is found as Redis finds
	// it. A writer cannot change this setting, since a file must not mix commands with and without marks.
	Checksums bool
	// Delay is how long the writer waits before each write, for tests of the server.
	Delay time.Duration
	// OnFailure is called when the state becomes Blocked or Broken, OnHealthy when it is Running again. Refusal returns
	// the error that replies fail with meanwhile; if it returns "", they wait.
	OnFailure func(Failure)
	OnHealthy func()
	Refusal   func(error) string
	// Beside runs syncs in the background of event loops if the policy is Always (see round.go); nil disables that.
	// InRound reports whether the calling loop is in a round that ends with a call of Round. It is called under the
	// log's lock.
	Beside  vfs.Beside
	InRound func() bool
}

// Failure is why the log is not written.
type Failure struct {
	Err error
	// NeedsBase means that the writer does not recover by itself: the server has to commit a new BASE (Rotate).
	NeedsBase bool
}

// State is what a writer does.
type State int32

// The states.
const (
	// Starting: there is no file yet. The first Commit turns the log on.
	Starting State = iota
	// Running: the log is written.
	Running
	// Blocked: a write failed. The writer retries by itself.
	Blocked
	// Broken: the end of the files is lost. A new BASE is needed.
	Broken
	// Closed: the writer has ended.
	Closed
)

const (
	// groupMax is the size in bytes from which a group ends. A reader loads a whole group into memory and verifies it at
	// once.
	groupMax = 256 << 10
	// keepMax is the largest capacity that a buffer keeps after it was written. It keeps at least keepMin, and up to
	// keepTimes times the most that it stored in about the last keepWrites writes.
	keepMax    = 4 << 20
	keepMin    = 64 << 10
	keepTimes  = 4
	keepWrites = 16
	// blockedMax is how many bytes may wait for a full disk. With more, the writer becomes Broken and needs a BASE.
	blockedMax = 256 << 20
	// gatherMicros is the shortest time between two writes, except with Always. Waking the goroutine costs about 50 µs
	// of processor time. With 1 ms, SET in pipelines of 16 took 0.88 µs instead of 0.80.
	gatherMicros = 4000
	// companyMicros is the longest time that a sync waits for the batches that are expected to join it.
	companyMicros = 2000
	// syncMicros is the time between two syncs of EverySecond.
	syncMicros = 1_000_000
	// lateMicros is the greatest age of unsynced data with EverySecond. Beyond it, replies wait for the sync, so that a
	// power failure loses at most two seconds of acknowledged writes, however slow the disk is. The difference to two
	// seconds allows for the interval between two calls of Look.
	lateMicros = 1_900_000
	// stuckMicros is how long appended data may stay unwritten with EverySecond or Never. Beyond it, replies wait for
	// the write, so that a crash of the process loses no more than that. It happens when the writer changes files: it
	// syncs the old file first, and a disk may be slow.
	stuckMicros = 400_000
	// retryMicros is the time between two attempts to write to a full disk, logMicros the time between two log lines
	// about it.
	retryMicros = 250_000
	logMicros   = 30_000_000
)

// MaxLSN is greater than every place in the log.
const MaxLSN LSN = math.MaxUint64

// ErrClosed is returned by methods of a writer that is closed.
var ErrClosed = errors.New("the log is closed")

// group is a part of a buffer that one mark covers.
type group struct {
	mark   int // offset of the mark
	marked bool
	end    int
	db     int // the database selected before the group, noDB if its first batch selects one
	lsn    LSN
	micros int64
}

// buffer stores batches until they are written.
type buffer struct {
	text   []byte
	groups []group
	cut    *Cut // a new file begins at cutAt
	cutAt  int
	end    LSN
	// batches is the number of batches.
	batches int
	high    int // the greatest length in recent writes
}

// reset empties the buffer. It keeps the capacity that recent writes needed. Capacity that grew while a disk was stalled
// is freed over the next writes.
func (b *buffer) reset() {
	high := max(len(b.text), b.high-b.high/keepWrites)
	if most := min(keepMax, max(keepMin, keepTimes*high)); cap(b.text) > most {
		b.text = nil
	}
	if cap(b.groups) > keepMax/groupMax {
		b.groups = nil
	}
	*b = buffer{text: b.text[:0], groups: b.groups[:0], high: high}
}

func (b *buffer) empty() bool { return len(b.text) == 0 && b.cut == nil }

// writer writes the log to its files.
type writer struct {
	files *Files
	log   *Log
	o     WriterOptions

	// The log's lock guards these.
	front   *buffer
	discard bool // appended batches are dropped, since no file will be written
	db      int  // the database that is selected at the end of front
	wakeAt  int  // the number of batches in front that wakes the goroutine
	second  int64
	cut     *Cut // the open cut: neither committed nor aborted

	kick   chan struct{}
	synced chan syncDone

	policy     atomic.Int32
	suspended  atomic.Bool
	timestamps atomic.Bool
	state      atomic.Int32
	delay      atomic.Int64 // before each write
	written    atomic.Uint64
	durable    atomic.Uint64
	failed     atomic.Pointer[Failure]
	fileSize   atomic.Int64
	late       atomic.Bool  // a sync takes too long with EverySecond
	stuck      atomic.Bool  // appended data stays unwritten for too long
	lookedAt   atomic.Int64 // when Look last found progress, or nothing left to write
	looked     atomic.Uint64
	delayed    atomic.Int64 // how often late became true
	since      atomic.Int64 // when, by Monotonic, the writer took its oldest data that is not durable; 0: none

	// mu guards the fields below. The goroutine holds it while it works, also during writes and syncs. Callers that must
	// not wait for the disk read the atomic fields above.
	mu      sync.Mutex
	changed *sync.Cond
	force   LSN // sync up to here as soon as possible
	closing bool
	back    *buffer // the buffer that is being written
	done    int     // how many bytes of back are written
	file    vfs.File
	name    string
	size    int64 // of the file; everything in it is whole
	safe    int64 // how many bytes of the file are synced
	// shortened: the file was truncated. A power failure may bring those bytes back until the file is synced.
	shortened bool
	safeLSN   LSN
	opening   *mark // a mark to write before the next group
	outside   *Cut  // the file is not in the manifest until this cut is committed
	syncing   bool
	lastSync  int64
	lastWrite int64
	retryAt   int64
	loggedAt  int64
	sinceNext int64
	syncTime  int64 // moving average of how long a sync takes
	company   int   // how many batches are expected by gatherTo
	gatherTo  int64
	inline    bool // for tests: syncs run inside step
	flight    syncDone
	inFlight  bool // WriterOptions.Beside runs a sync: flight
	taking    int  // how many batches that sync makes durable
	grounded  bool // Beside failed once: from then on the goroutine waits for syncs itself
	slowTo    int64
}

func newWriter(f *Files, l *Log, o WriterOptions) *writer {
	w := &writer{files: f, log: l, o: o, front: &buffer{}, back: &buffer{}, discard: true, wakeAt: 1, db: noDB,
		kick: make(chan struct{}, 1), synced: make(chan syncDone, 1)}
	w.changed = sync.NewCond(&w.mu)
	w.lastWrite = f.Monotonic() - gatherMicros
	w.lookedAt.Store(f.Monotonic())
	w.lastSync = f.Monotonic() - syncMicros
	w.policy.Store(int32(o.Policy))
	w.timestamps.Store(o.Timestamps)
	w.delay.Store(int64(o.Delay))
	return w
}

// Append implements Sink. It copies the batch to the end of the front buffer and wakes the goroutine if necessary.
func (w *writer) Append(lsn LSN, nowMicros int64, framed []byte) {
	if w.discard {
		return
	}
	b := w.front
	stamp := w.timestamps.Load() && nowMicros/1e6 > w.second
	n := len(b.groups) - 1
	if n < 0 || len(b.text)-b.groups[n].mark >= groupMax || b.cut != nil && b.groups[n].end <= b.cutAt {
		if stamp {
			// The time stamp goes before the mark, so that it can be a file's first line.
			b.text = appendStamp(b.text, nowMicros)
			w.second, stamp = nowMicros/1e6, false
		}
		n++
		b.groups = append(b.groups, group{mark: len(b.text), marked: w.o.Checksums, db: w.db})
		if b.groups[n].marked {
			b.text = append(b.text, blankMark[:]...)
		}
	}
	if stamp {
		b.text = appendStamp(b.text, nowMicros)
		w.second = nowMicros / 1e6
	}
	b.text = append(b.text, framed...)
	g := &b.groups[n]
	g.end, g.lsn, g.micros = len(b.text), lsn, nowMicros
	w.db = w.log.kept.db
	b.end = lsn
	b.batches++
	if b.batches >= w.wakeAt && !w.comesRound() {
		w.wakeAt = math.MaxInt
		w.wake()
	}
}

var blankMark [markSize]byte

func appendStamp(to []byte, micros int64) []byte {
	to = append(to, "#TS:"...)
	to = strconv.AppendInt(to, micros/1e6, 10)
	return append(to, '\r', '\n')
}

func (w *writer) wake() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// Durable is the place up to which the log is on the disk.
func (w *writer) Durable() LSN { return LSN(w.durable.Load()) }

// Written is the place up to which the log was passed to the kernel: that data survives the process, but not the
// machine.
func (w *writer) Written() LSN { return LSN(w.written.Load()) }

// Confirmed is the place up to which replies may leave. With the policy Always, and with EverySecond while a sync takes
// too long, it is Durable. With EverySecond and Never while a write takes too long, it is Written. Otherwise it is
// MaxLSN, also while the log is being turned on (Starting) and while syncs are suspended with Always.
func (w *writer) Confirmed() LSN {
	switch State(w.state.Load()) {
	case Starting:
		return MaxLSN
	case Closed:
		if w.Failure().Err == nil {
			return MaxLSN
		}
	}
	switch {
	case !w.Holds():
		return MaxLSN
	case w.Policy() != Always && !w.late.Load():
		return w.Written()
	}
	return w.Durable()
}

// Holds reports whether replies have to wait for Confirmed.
func (w *writer) Holds() bool {
	if w.Policy() == Always {
		return !w.suspended.Load()
	}
	return w.stuck.Load() || w.late.Load()
}

// Look checks whether a sync with EverySecond, or a write, takes too long. The server calls it regularly from outside
// the writer's goroutine, which may be waiting for the disk.
func (w *writer) Look() {
	since, now, running := w.Since(), w.files.Monotonic(), w.State() == Running
	late := w.Policy() == EverySecond && since != 0 && now-since > lateMicros && running && !w.suspended.Load()
	if written := uint64(w.Written()); written >= uint64(w.log.End()) || w.looked.Swap(written) != written {
		w.lookedAt.Store(now)
	}
	stuck := w.Policy() != Always && now-w.lookedAt.Load() > stuckMicros && running
	same := w.stuck.Swap(stuck) == stuck
	was := w.late.Swap(late)
	if was == late && same {
		return
	}
	if late && !was {
		w.delayed.Add(1)
		w.files.logf(Notice, "Asynchronous AOF fsync is taking too long (disk is busy?). Writes wait for it.")
	}
	w.log.Release()
}

// Refusal is the error for replies while the log cannot be written.
func (w *writer) Refusal() string {
	if err := w.Failure().Err; err != nil && w.o.Refusal != nil {
		return w.o.Refusal(err)
	}
	return ""
}

// Delayed is how often a sync of EverySecond took so long that replies waited for it.
func (w *writer) Delayed() int64 { return w.delayed.Load() }

// State is what the writer does.
func (w *writer) State() State { return State(w.state.Load()) }

// Failure is why the log is not written. Its Err is nil if the log is written.
func (w *writer) Failure() Failure {
	if f := w.failed.Load(); f != nil {
		return *f
	}
	return Failure{}
}

// Since is the time, by Options.Monotonic, at which the writer took the oldest data that is not durable; 0 means that
// everything is durable.
func (w *writer) Since() int64 { return w.since.Load() }

// Backlog is how many bytes were appended since the last write began.
func (w *writer) Backlog() int {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return len(w.front.text)
}

// FileSize is the size of the current file.
func (w *writer) FileSize() int64 { return w.fileSize.Load() }

// SetPolicy changes when the log is synced.
func (w *writer) SetPolicy(p Policy) {
	w.policy.Store(int32(p))
	w.poke()
}

// Policy is when the log is synced.
func (w *writer) Policy() Policy { return Policy(w.policy.Load()) }

// SetTimestamps turns time stamps on or off.
func (w *writer) SetTimestamps(on bool) { w.timestamps.Store(on) }

// Suspend(true) stops syncing, for no-appendfsync-on-rewrite. Suspend(false) resumes it.
func (w *writer) Suspend(on bool) {
	w.suspended.Store(on)
	w.poke()
}

// Delay makes the writer wait for d before each write, as WriterOptions.Delay does.
func (w *writer) Delay(d time.Duration) { w.delay.Store(int64(d)) }

// poke makes the goroutine look at a changed setting, and releases replies that it confirms.
func (w *writer) poke() {
	w.wake()
	w.log.Release()
}

// Sync waits until everything that was appended so far is durable, or cannot become so.
func (w *writer) Sync() error {
	target := w.log.End()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.force = max(w.force, target)
	w.wake()
	for w.Durable() < target {
		switch {
		case w.Failure().Err != nil:
			return w.Failure().Err
		case w.State() == Closed || w.State() == Starting:
			return ErrClosed
		}
		w.changed.Wait()
	}
	return nil
}

// close writes and syncs all remaining data, records the clean end in the file and in the manifest, and ends the writer.
func (w *writer) close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closing = true
	w.wake()
	for w.State() != Closed {
		w.changed.Wait()
	}
	return w.Failure().Err
}
