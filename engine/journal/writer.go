package journal

// The writer: the sink that puts the log on disk. One goroutine writes and syncs; while it does, the next batches
// gather in memory, so that one sync serves all that came during the one before.
//
// A sync that failed is never repeated on the same file, since the system may have forgotten what it could not write.
// What happens instead depends on what is known of the file:
//
//   - A write failed, and what it left was truncated away (a full disk, mostly): the file is whole. It is synced, and
//     what could not be written goes to a new INCR file, again and again until that works. Nothing is lost; the writer is
//     blocked meanwhile.
//   - A sync failed, or a torn write could not be taken back: the writer is broken. Memory has the truth: the server
//     makes a cut (Rotate) and commits a new BASE, and the files of before are history.

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

// WriterOptions say how to write. The functions may be nil. They are called while the writer works, most of them from
// its goroutine: they must not wait for it, nor call any of its methods but those that read (Durable, Confirmed, State
// and so on).
type WriterOptions struct {
	Policy Policy
	// Timestamps writes a #TS line at each new second (aof-timestamp-enabled).
	Timestamps bool
	// Checksums writes marks. Files without are as Redis writes them, and damage in them is found as Redis finds it. A
	// writer does not change it, since a file is read by the marks that it has.
	Checksums bool
	// Delay is how long every write waits first, for tests of the server.
	Delay time.Duration
	// OnFailure is called when the state turns bad, OnHealthy when it is good again. Refusal is the error with which replies
	// fail then; where it is "" they wait.
	OnFailure func(Failure)
	OnHealthy func()
	Refusal   func(error) string
	// Beside runs syncs with Always while the rounds of event loops go on, nil for none (round.go says how). InRound says
	// whether a loop is in a round at whose end it calls Round. It is called under the log's lock.
	Beside  vfs.Beside
	InRound func() bool
}

// Failure is why the log is not written.
type Failure struct {
	Err error
	// NeedsBase means that the writer does not recover by itself: a new BASE has to be committed (Rotate).
	NeedsBase bool
}

// State is what a writer does.
type State int32

// The states.
const (
	// Starting: there is no file yet; the first Commit turns the log on.
	Starting State = iota
	// Running: the log is written.
	Running
	// Blocked: a write failed; the writer tries again by itself.
	Blocked
	// Broken: the files' end is lost; a new BASE is needed.
	Broken
	// Closed: the end.
	Closed
)

const (
	// groupMax is the size behind which a group ends: what is verified at once, and read into memory at once.
	groupMax = 256 << 10
	// keepMax is the capacity that a buffer keeps at most when it has been written. It keeps keepMin, and up to keepTimes
	// what it held lately; keepWrites is how many writes that is, about.
	keepMax    = 4 << 20
	keepMin    = 64 << 10
	keepTimes  = 4
	keepWrites = 16
	// blockedMax is how much may wait for a disk that is full, before the writer gives up and needs a BASE.
	blockedMax = 256 << 20
	// gatherMicros is the shortest time between two writes, unless each is to be synced. To wake the goroutine takes some
	// 50 µs of the processors that work on something else: with 1 ms, SET in pipelines of 16 took 0.88 µs in place of 0.80.
	gatherMicros = 4000
	// companyMicros is the longest that a sync waits for those who are expected to take part in it.
	companyMicros = 2000
	// syncMicros is the time between two syncs of EverySecond.
	syncMicros = 1_000_000
	// lateMicros is how old what is not synced may be with EverySecond: then replies wait for the sync, so that a power
	// failure takes at most two seconds of what was acknowledged, however slow the disk is. The rest is for who looks.
	lateMicros = 1_900_000
	// stuckMicros is for how long nothing may come to be written, unless with Always: then replies wait for that, so that
	// the end of the process takes no more. A new file begins when the one before is synced, and a disk may take its time.
	stuckMicros = 400_000
	// retryMicros is the time between two tries to write to a full disk, logMicros that between two lines about it.
	retryMicros = 250_000
	logMicros   = 30_000_000
)

// MaxLSN is behind everything.
const MaxLSN LSN = math.MaxUint64

// ErrClosed is returned by what is asked of a writer that was closed.
var ErrClosed = errors.New("the log is closed")

// group is a part of a buffer that one mark covers.
type group struct {
	mark   int // where the mark is to be put
	marked bool
	end    int
	db     int // selected in front of it, noDB where its first batch selects one
	lsn    LSN
	micros int64
}

// buffer is what waits to be written.
type buffer struct {
	text   []byte
	groups []group
	cut    *Cut // at cutAt a new file begins
	cutAt  int
	end    LSN
	// batches is the number of them.
	batches int
	high    int // the most that it held lately
}

// reset empties the buffer. It keeps the room that the last ones needed: what a disk that stood still had it grow by
// goes with the next writes.
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

	// Of the log's lock.
	front   *buffer
	discard bool // nothing is kept: there is no file to come
	db      int  // that the log has selected where front ends
	wakeAt  int  // so many batches in front wake the goroutine
	second  int64
	cut     *Cut // the rotation that is neither committed nor aborted

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
	late       atomic.Bool  // a sync of EverySecond takes too long
	stuck      atomic.Bool  // what was appended is not written for too long
	lookedAt   atomic.Int64 // when looking found that more was written, or all
	looked     atomic.Uint64
	delayed    atomic.Int64 // how often one did
	since      atomic.Int64 // of the clock: when the oldest of what is not durable was taken; 0, there is none

	// mu guards what follows. The goroutine holds it while it works, writes and syncs included: who may not wait for the
	// disk reads the fields above.
	mu      sync.Mutex
	changed *sync.Cond
	force   LSN // sync up to here as soon as possible
	closing bool
	back    *buffer // what is being written
	done    int     // bytes of it that are
	file    vfs.File
	name    string
	size    int64 // of the file: all of it is whole
	safe    int64 // of the file: synced
	// shortened: bytes were taken back from the file, which a power failure may bring back until it is synced.
	shortened bool
	safeLSN   LSN
	opening   *mark // is written before the next group
	outside   *Cut  // the file is not in the manifest before this is committed
	syncing   bool
	lastSync  int64
	lastWrite int64
	retryAt   int64
	loggedAt  int64
	sinceNext int64
	syncTime  int64 // how long syncs take, in the mean of some
	company   int   // so many batches are expected to gather until gatherTo
	gatherTo  int64
	inline    bool // tests: syncs run inside of step
	flight    syncDone
	inFlight  bool // a sync runs whose end is known by WriterOptions.Beside: flight
	taking    int  // batches that it makes durable
	grounded  bool // Beside could not: syncs are waited for
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

// Append implements Sink: it copies the batch behind what waits, and wakes the goroutine if that waits.
func (w *writer) Append(lsn LSN, nowMicros int64, framed []byte) {
	if w.discard {
		return
	}
	b := w.front
	stamp := w.timestamps.Load() && nowMicros/1e6 > w.second
	n := len(b.groups) - 1
	if n < 0 || len(b.text)-b.groups[n].mark >= groupMax || b.cut != nil && b.groups[n].end <= b.cutAt {
		if stamp {
			// In front of the mark, so that a file's first line can be a time stamp.
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

// Written is the place up to which the log was given to the system: it outlives the process, not the machine.
func (w *writer) Written() LSN { return LSN(w.written.Load()) }

// Confirmed is the place up to which replies may leave: with the policy Always that which is durable, as well as with
// EverySecond while a sync takes too long; otherwise MaxLSN. While the log is turned on (Starting), and while syncs are
// suspended, nothing waits either.
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

// Holds says whether replies have to wait for Confirmed.
func (w *writer) Holds() bool {
	if w.Policy() == Always {
		return !w.suspended.Load()
	}
	return w.stuck.Load() || w.late.Load()
}

// Look finds out whether a sync of EverySecond, or a write, takes too long. Somebody else than the writer's goroutine
// calls it now and then, since that may wait for the disk.
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

// Refusal is the error for replies while the log is not written.
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

// Failure is why the log is not written; without an error where it is.
func (w *writer) Failure() Failure {
	if f := w.failed.Load(); f != nil {
		return *f
	}
	return Failure{}
}

// Since is the time of Options.Monotonic at which the oldest of what is not durable came to the writer; 0, everything
// is durable.
func (w *writer) Since() int64 { return w.since.Load() }

// Backlog is how many bytes were appended since the last write began.
func (w *writer) Backlog() int {
	w.log.mu.Lock()
	defer w.log.mu.Unlock()
	return len(w.front.text)
}

// FileSize is the size of the file that is written.
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

// Suspend stops syncing, for no-appendfsync-on-rewrite, until it is called with false.
func (w *writer) Suspend(on bool) {
	w.suspended.Store(on)
	w.poke()
}

// Delay makes every write wait so long first, as WriterOptions.Delay.
func (w *writer) Delay(d time.Duration) { w.delay.Store(int64(d)) }

// poke makes the goroutine look at what changed, and tells who waits for Confirmed.
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

// close writes and syncs what there is, says so in the file and in the manifest, and ends the writer.
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
