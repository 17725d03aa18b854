package persistence

// Loading at the start, turning the append-only file on and off, and the timer that begins snapshots and rewrites.

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/dumpfile"
	"github.com/limitkv/limitkv/server/params"
)

// Load reads the files from disk before any client is served, and starts the log. Timers that have expired meanwhile run after
// it has ended, since their changes must be logged.
func (f *Files) Load() error {
	f.loads.Store(true)
	defer close(f.loaded)
	ks := f.s.Keyspace
	ks.Follow(true)
	defer func() {
		ks.Follow(false)
		f.cameBack()
	}()
	logs := f.p.appendOnly.Load()
	var err error
	switch {
	case logs:
		err = f.loadLog(true)
	case !f.s.TestMode || len(*f.p.points.Load()) > 0:
		if err = f.loadSnapshot(); err != nil && !errors.Is(err, errStopped) {
			f.s.Logf('w', "%v", err)
		}
	}
	if err != nil {
		return err
	}
	f.status.dirtyAtSave.Store(ks.Dirty.Load())
	go f.tick()
	if on := f.p.appendOnly.Load(); on != logs { // CONFIG SET, meanwhile
		return f.switchLog(on)
	}
	return nil
}

// errStopped ends loading because the server ends.
var errStopped = errors.New("the server ends")

// stopped returns errStopped if the server ends.
func (f *Files) stopped() error {
	select {
	case <-f.stop:
		return errStopped
	default:
		return nil
	}
}

// open opens the append-only files.
func (f *Files) open() (*journal.Files, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	levels := []byte{journal.Debug: 'd', journal.Verbose: 'v', journal.Notice: 'n', journal.Warning: 'w'}
	o := journal.Options{
		FS: f.s.FS, Dir: dir, Dirname: *f.p.dirname.Load(), Filename: *f.p.filename.Load(),
		Log:       func(level journal.Level, text string) { f.s.Logf(levels[level], "%s", text) },
		Monotonic: engine.Monotonic,
	}
	for until := engine.Monotonic() + lockMicros; ; {
		files, err := journal.Open(o)
		if err == nil && f.p.keepHistory.Load() {
			files.KeepHistory(true)
		}
		if !errors.Is(err, vfs.ErrLocked) || engine.Monotonic() > until {
			return files, err
		}
		time.Sleep(lockRetry) // a killed server may still hold the lock for a moment
	}
}

// lockMicros is for how long open tries to lock the directory, lockRetry how often.
const (
	lockMicros = 1_000_000
	lockRetry  = 10 * time.Millisecond
)

// exits tells whether a failed write of the log ends the server.
func (f *Files) exits() bool {
	return *f.p.diskError.Load() == "exit" && f.p.policy() == journal.Always
}

func (f *Files) writerOptions() journal.WriterOptions {
	f.asked.Do(f.syncBeside)
	return journal.WriterOptions{
		Beside: f.beside, InRound: f.s.Host.InRound,
		Delay: time.Duration(f.delay.Load()), Policy: f.p.policy(), Timestamps: f.p.timestamps.Load(), Checksums: true,
		OnFailure: func(x journal.Failure) {
			f.s.Logf('w', "The append only file cannot be written: %v", x.Err)
			if f.exits() {
				f.s.Logf('w', "Can't recover from AOF write error when the AOF fsync policy is 'always'. Exiting...")
				f.s.Host.Fatal("the append only file cannot be written: " + x.Err.Error())
			}
			f.failing.Store(true)
			f.refuse()
		},
		OnHealthy: func() {
			f.refuse()                 // before any client gets a reply
			if f.failing.Swap(false) { // OnHealthy is also called when the log is turned on
				f.s.Logf('w', "AOF write error looks solved. The server can write again.")
			}
		},
		Refusal: func(err error) string {
			if f.exits() { // the server ends, so no client gets a reply
				return ""
			}
			return misconf(err) + ". What this command did or saw is in memory, but may not be on the disk"
		},
	}
}

// syncBeside lets event loops write the log, if there are loops and the system can sync beside them. There is one writer at a
// time, since the log's directory is locked.
func (f *Files) syncBeside() {
	b := f.s.FS.Beside()
	if b == nil {
		return
	}
	ended := func() {
		if files := f.log(); files != nil {
			files.Synced()
		}
	}
	if !f.s.Host.Watch(b.Descriptor(), ended) {
		_ = b.Close()
		return
	}
	f.beside = b
}

// read loads the keys and functions of a file, and returns where it ends. With resume the replication stream continues behind
// it.
func (f *Files) read(file vfs.File, size, nowMillis int64, resume bool) (end int64, err error) {
	told := dumpfile.Told{Entering: func(keys int) { f.slower(f.p.loadDelay, keys, nil) }}
	if resume {
		told.Place, told.Expired = f.resume, f.expired
	}
	return dumpfile.Start(f.s, f.s.Loading.Reader(io.NewSectionReader(file, 0, size), f.stopped), size, nowMillis, told)
}

// loadLog loads the append-only file and, if on is set, continues it.
func (f *Files) loadLog(on bool) error {
	files, err := f.open()
	if err != nil {
		return f.unusable(err)
	}
	ks := f.s.Keyspace
	began := engine.Monotonic()
	if size, err := files.Size(); err == nil { // Load reports missing files
		f.s.Loading.Expect(size)
	}
	loaded, err := f.readLog(files, f.p.truncated.Load(), f.p.corruptTailMax.Load())
	if err != nil {
		err = f.unusable(err)
	}
	if err == nil && on && files.NeedsBase() {
		err = files.CreateBase(f.p.preamble.Load(), func(to vfs.File) error {
			return f.held(func(c *command.Ctx) error { return f.writeBase(c, to) })
		})
	}
	if err == nil {
		ks.Journal.Skip(loaded.End)
		ks.Clock.Passed(loaded.Micros + dumpfile.BeyondMicros)
		if loaded.LastMicros != 0 {
			f.s.Loading.Until(loaded.LastMicros)
		}
		if on {
			err = files.Start(ks.Journal, f.writerOptions())
		}
	}
	if err == nil && !loaded.None {
		f.s.Logf('n', "DB loaded from append only file: %.3f seconds", seconds(began))
	}
	if err != nil || !on {
		_ = files.Close() // only releases the directory
		return err
	}
	f.mu.Lock()
	f.aof = files
	f.mu.Unlock()
	f.noteBase(files)
	return nil
}

// unusable logs and returns advice for a log that cannot be loaded. The journal has logged the reason in Redis's words, which
// name neither the directory nor a remedy. Errors about a manifest are not logged twice, since tools that watch the log count
// them.
func (f *Files) unusable(err error) error {
	var none *journal.NoManifestError // its text already has the advice
	if errors.Is(err, errStopped) || errors.As(err, &none) {
		return err
	}
	why := ": " + err.Error()
	if bad := (*journal.ManifestError)(nil); errors.As(err, &bad) {
		why = ""
	}
	if dir, e := os.Getwd(); e == nil && !errors.Is(err, vfs.ErrLocked) {
		help := fmt.Sprintf(". Restore the append only files from a backup; limitkv check %s tells more", filepath.Join(dir, *f.p.dirname.Load()))
		why, err = why+help, fmt.Errorf("%w%s", err, help)
	}
	f.s.Logf('w', "Fatal error loading the append only files%s", why)
	return err
}

// readLog loads an append-only file's snapshot and commands.
func (f *Files) readLog(files *journal.Files, truncated bool, corruptTailMax int64) (*journal.Loaded, error) {
	sess := &command.Session{Authenticated: true}
	return files.Load(journal.LoadOptions{
		Truncated:      truncated,
		CorruptTailMax: corruptTailMax,
		RDB: func(file vfs.File, size int64) (end int64, err error) {
			return f.read(file, size, 0, false)
		},
		Progress:  func(read, _ int64) { f.s.Loading.Progress(read) },
		Databases: f.s.Keyspace.Databases(),
		Apply: func(u *journal.Unit) error {
			if err := f.stopped(); err != nil {
				return err
			}
			f.slower(f.p.loadDelay, len(u.Commands), nil)
			for _, cmd := range u.Commands {
				sess.SetDB(cmd.DB)
				if err := f.apply(sess, cmd.Args, u.Marked); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// ReloadLog waits until the log is written to the append-only file, removes all keys with flush, and loads the file again. The
// caller holds no key.
func (f *Files) ReloadLog(flush func(c *command.Ctx)) error {
	f.s.Loading.Begin(f.s.Keyspace.Clock.Now(), false)
	defer f.s.Loading.End()
	// A rewrite is aborted. A snapshot continues, since it has the keys of before.
	f.mu.Lock()
	var rewritten chan struct{}
	if f.rewriting {
		f.current.kill()
		rewritten = f.rewriteEnd
	}
	f.mu.Unlock()
	if rewritten != nil {
		<-rewritten
	}
	files := f.log()
	on := files != nil
	begins := on && files.State() == journal.Starting // it was just turned on and its first rewrite is due
	if !on || begins {
		there := files
		if !on {
			var err error
			if there, err = f.open(); err != nil {
				return err
			}
		}
		none := there.NeedsBase()
		if !on {
			_ = there.Close() // only releases the directory
		}
		if none && !on { // as in Redis, which looks for the files only after it has removed the keys
			if err := f.empty(flush); err != nil {
				return err
			}
		}
		if none {
			return errors.New("there is no append only file")
		}
	}
	if on {
		if !begins {
			if err := files.Sync(); err != nil {
				return err
			}
		}
		f.mu.Lock()
		f.aof = nil
		f.mu.Unlock()
		if err := files.Close(); err != nil {
			return err
		}
	}
	ks := f.s.Keyspace
	err := f.empty(flush)
	ks.Follow(true)
	defer ks.Follow(false)
	if err == nil {
		err = f.loadLog(on)
	}
	if err == nil {
		f.status.dirtyAtSave.Store(ks.Dirty.Load()) // as in Redis
		f.mu.Lock()
		f.again = f.again || begins
		f.mu.Unlock()
	} else if on {
		f.unread.Store(&err)
		f.refuse()
	}
	return err
}

// empty removes all keys, with flush, and all libraries.
func (f *Files) empty(flush func(c *command.Ctx)) error {
	return f.held(func(c *command.Ctx) error {
		flush(c)
		c.Worker = f.s.Workers.Get(f.s)
		defer f.s.Workers.Put(c.Worker)
		_ = f.s.Functions.LoadCode(c, nil, true, true)
		return nil
	})
}

// loadSnapshot loads the snapshot, if there is one.
func (f *Files) loadSnapshot() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	name := *f.p.dbfilename.Load()
	if name == "" {
		return nil // as in Redis, which finds no file of that name
	}
	file, err := f.s.FS.Open(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("Fatal error: can't open the RDB file %s for reading: %w", name, err)
	}
	defer file.Close()
	size, err := file.Size()
	if err != nil {
		return err
	}
	began := engine.Monotonic()
	f.s.Loading.Expect(size)
	_, err = f.read(file, size, f.s.Keyspace.Clock.Now()/1000, true)
	if errors.Is(err, errStopped) {
		return err
	}
	if err != nil {
		f.s.Logf('w', "Internal error in RDB reading: %v", err)
		f.s.Logf('w', "Terminating server after rdb file reading failure.")
		return fmt.Errorf("Fatal error loading the DB %s: %w. limitkv check %s tells more", name, err, filepath.Join(dir, name))
	}
	f.s.Logf('n', "Done loading RDB, keys loaded: %d, keys expired: %d.", f.s.LoadedKeys.Load(), f.s.ExpiredKeys.Load())
	f.s.Logf('n', "DB loaded from disk: %.3f seconds", seconds(began))
	return nil
}

// setAppendOnly turns the append-only file on or off. When it is turned on, the present keys are written to a new one in the
// background.
func (f *Files) setAppendOnly(value string) error {
	var on bool
	switch command.Lower([]byte(value)) {
	case "yes":
		on = true
	case "no":
	default:
		return params.ErrNotYesNo
	}
	f.mu.Lock()
	was := f.p.appendOnly.Load()
	f.mu.Unlock()
	if !f.s.Running.Load() || on == was {
		f.p.appendOnly.Store(on) // Load reads it
		return nil
	}
	return f.switchLog(on)
}

// switchLog turns the append-only file on or off.
func (f *Files) switchLog(on bool) error {
	if !on {
		f.p.appendOnly.Store(false)
		f.turnOff()
		return nil
	}
	f.mu.Lock()
	p, ended := f.current, f.rewriteEnd
	f.mu.Unlock()
	if p != nil && p.base { // a rewrite while the log is off lacks the changes from now on
		f.s.Logf('n', "AOF was enabled but there is already an AOF rewriting in background. Stopping background AOF and starting a rewrite now.")
		p.kill()
		<-ended
	}
	files, err := f.open()
	if err != nil {
		f.s.Logf('w', "Unable to turn on AOF: %v", err)
		return errors.New("Unable to turn on AOF. Check server logs.")
	}
	files.Prepare(f.s.Keyspace.Journal, f.writerOptions())
	f.mu.Lock()
	f.aof = files
	f.starting = !f.saving
	f.mu.Unlock()
	f.p.appendOnly.Store(true)
	go func() {
		defer f.s.Caught("turning on the append only file")
		_ = f.held(func(c *command.Ctx) error { // on failure or refusal, look tries again
			switch saving, rewriting := f.UnderWay(); {
			case saving:
				f.ScheduleRewrite()
			case !rewriting && !f.s.Loading.On():
				return f.Rewrite(c)
			}
			return nil
		})
		f.mu.Lock()
		f.starting = false
		f.mu.Unlock()
	}()
	return nil
}

// Suspend turns the log off, since all keys are about to be replaced by data that is in no log. resume begins a new log with
// the keys of that time.
func (f *Files) Suspend() (resume func()) {
	f.mu.Lock()
	p, base := f.current, f.current != nil && f.current.base
	f.mu.Unlock()
	if p != nil && !base { // a snapshot of the keys that are being replaced
		p.kill()
	}
	f.turnOff()
	return func() {
		if !f.p.appendOnly.Load() {
			return
		}
		if err := f.switchLog(true); err != nil {
			f.s.Logf('w', "the append only file is not written: %v", err)
		}
	}
}

// turnOff closes the append-only file after a sync.
func (f *Files) turnOff() {
	f.mu.Lock()
	files := f.aof
	f.aof, f.again, f.starting = nil, false, false
	var rewritten chan struct{} // nil: none is running
	if f.rewriting {
		rewritten = f.rewriteEnd
		f.current.kill()
	}
	f.mu.Unlock()
	if files == nil {
		return
	}
	f.failing.Store(false)
	f.refuse() // a log that is off cannot fail
	end := func() {
		if err := files.Close(); err != nil {
			f.s.Logf('w', "closing the append only file: %v", err)
		}
	}
	if rewritten == nil {
		end() // blocks, as in Redis, which syncs here too
		return
	}
	go func() {
		<-rewritten // the rewrite may be about to write the manifest
		end()
	}()
}

// refuse makes the server refuse writes while they cannot be written to disk, with Redis's errors.
func (f *Files) refuse() {
	files := f.log()
	switch unread := f.unread.Load(); {
	case unread != nil:
		f.s.RefuseWrites(misconf(*unread))
	case files != nil && files.Failure().Err != nil:
		f.s.RefuseWrites(misconf(files.Failure().Err))
	case f.refusesForSnapshot():
		f.s.RefuseWrites("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that may modify the data set are disabled, because this instance is configured to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB error.")
	default:
		f.s.RefuseWrites("")
	}
}

// refusesForSnapshot tells whether writes are refused until a snapshot succeeds.
func (f *Files) refusesForSnapshot() bool {
	return f.status.lastSaveFailed.Load() && f.p.stopWrites.Load() && len(*f.p.points.Load()) > 0
}

// tickEvery is how often the timer checks whether a file is due.
const tickEvery = 100 * time.Millisecond

// wholeTicks is how often, in ticks, the timer checks that the log's files still exist.
const wholeTicks = 10

// saveRetrySeconds is the delay after a failed snapshot, as in Redis.
const saveRetrySeconds = 5

// rewriteRetryMicros is the delay after a failed rewrite that the log cannot do without.
const rewriteRetryMicros = 1_000_000

func (f *Files) tick() {
	defer f.s.Caught("the timer of persistence")
	t := time.NewTicker(tickEvery)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-f.stop:
			return
		case <-t.C:
			if files := f.log(); files != nil {
				files.Look()
				if n%wholeTicks == 0 {
					files.GiveUp()
				}
			}
			f.look()
		}
	}
}

// look begins what is due. It does not wait for a slow script, so that tick can look after the log meanwhile.
func (f *Files) look() {
	f.mu.Lock()
	files := f.aof
	busy, again := f.saving || f.rewriting || f.ending || f.s.Loading.On() || f.s.Long.Slow() != nil, f.again
	f.mu.Unlock()
	if busy {
		return
	}
	st := &f.status
	switch {
	case again, files != nil && (files.Failure().NeedsBase || files.State() == journal.Starting):
		if st.rewriteFailures.Load() == 0 || engine.Monotonic()-st.lastRewriteTry.Load() > rewriteRetryMicros {
			f.unlessBusy(f.Rewrite)
		}
		return
	case st.saveScheduled.CompareAndSwap(true, false):
		f.unlessBusy(f.SaveInBackground)
		return
	}
	if files != nil && f.p.growPercent.Load() > 0 && files.FileSize() > 0 {
		base := max(st.baseSize.Load(), 1)
		if size, err := files.Size(); err == nil && size > f.p.growMin.Load() && (size-base)*100/base >= f.p.growPercent.Load() && !f.putOff() {
			f.s.Logf('n', "Starting automatic rewriting of AOF on %d%% growth", (size-base)*100/base)
			f.unlessBusy(f.Rewrite)
			return
		}
	}
	now := f.s.Keyspace.Clock.Now() / 1e6
	changes := f.s.Keyspace.Dirty.Load() - st.dirtyAtSave.Load()
	if f.refusesForSnapshot() && now-st.lastTry.Load() > saveRetrySeconds {
		// Redis would refuse writes until a client asks for a snapshot, as no write comes that a save point could count.
		f.s.Logf('n', "Writes are refused since the last snapshot failed. Saving...")
		f.unlessBusy(f.SaveInBackground)
		return
	}
	for _, x := range *f.p.points.Load() {
		if changes >= x.changes && changes > 0 && now-st.lastSave.Load() > x.seconds &&
			(!st.lastSaveFailed.Load() || now-st.lastTry.Load() > saveRetrySeconds) {
			f.s.Logf('n', "%d changes in %d seconds. Saving...", x.changes, x.seconds)
			f.unlessBusy(f.SaveInBackground)
			return
		}
	}
}

// unlessBusy begins background work, unless other work has begun meanwhile. An error is logged, and tick tries again.
func (f *Files) unlessBusy(begin func(c *command.Ctx) error) {
	_ = f.held(func(c *command.Ctx) error {
		if saving, rewriting := f.UnderWay(); saving || rewriting || f.s.Loading.On() {
			return nil
		}
		return begin(c)
	})
}
