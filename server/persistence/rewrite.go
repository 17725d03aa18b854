package persistence

// Rewriting: a new base for the append-only file, made of the present keys.

import (
	"errors"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/server/command"
)

// ScheduleRewrite begins a rewrite as soon as nothing else runs in the background.
func (f *Files) ScheduleRewrite() {
	f.mu.Lock()
	f.again = true
	f.mu.Unlock()
	f.status.rewriteFailures.Store(0) // so that putOff does not delay it
}

// Rewrite begins a new append-only file in the background. The caller holds all locks.
func (f *Files) Rewrite(c *command.Ctx) error {
	f.mu.Lock()
	defer f.mu.Unlock() // so that nobody turns the log on or off meanwhile; Rotate does not wait for the disk
	f.starting = false
	if f.ending {
		return errEnding
	}
	files, on := f.aof, f.aof != nil
	f.status.lastRewriteTry.Store(engine.Monotonic())
	var cut *journal.Cut
	var err error
	if !on {
		files, err = f.open() // the log is off: write a base that nothing follows, as Redis does
	} else {
		cut, err = f.s.Keyspace.Journal.Kept().Rotate()
	}
	if err != nil {
		f.s.Logf('w', "Can't rewrite the append only file: %v", err)
		f.status.lastRewriteFailed.Store(true)
		return err
	}
	f.status.rewrites.Add(1)
	ended := make(chan struct{})
	began := engine.Monotonic()
	p := f.begin(c, true)
	f.status.begun.Add(1)
	f.status.beginMicros.Store(engine.Monotonic() - began)
	f.rewriting, f.again, f.rewriteEnd, f.current = true, false, ended, p
	f.background.Add(1)
	f.status.rewriteBegan.Store(c.Now)
	f.s.Logf('n', "Background append only file rewriting started")
	go func() {
		defer f.background.Done()
		defer close(ended)
		err := f.quietly(func() error {
			if cut == nil {
				return files.Rewrite(!p.words, func(to vfs.File) error { return p.write(to) })
			}
			base, err := cut.Create()
			if err != nil {
				return err
			}
			if err := p.write(base); err != nil {
				_ = base.Close()
				return err
			}
			if err := cut.Commit(base, !p.words); err != nil {
				return err
			}
			// From now on replies wait for the log. What was acknowledged before must be on disk before the log counts as on.
			// If the sync fails, OnFailure reports it.
			_ = files.Sync()
			return nil
		})
		if err != nil {
			p.ended(err)
			if cut != nil {
				cut.Abort()
			}
		}
		if cut == nil {
			_ = files.Close() // only releases the directory
		}
		_, _, early := p.progress()
		f.status.rewriteEarly.Store(int64(early))
		f.rewritten(err, began, files)
	}()
	return nil
}

// rewritten notes the result of a rewrite.
func (f *Files) rewritten(err error, began int64, files *journal.Files) {
	st := &f.status
	st.lastRewriteSeconds.Store(int64(seconds(began)))
	st.rewriteBegan.Store(0)
	switch {
	case errors.Is(err, errKilled):
		f.s.Logf('w', "Background AOF rewrite terminated by signal 10")
	case err != nil:
		st.lastRewriteFailed.Store(true)
		st.rewriteFailures.Add(1)
		f.s.Logf('w', "Background AOF rewrite terminated with error: %v", err)
	default:
		st.lastRewriteFailed.Store(false)
		st.rewriteFailures.Store(0)
		f.noteBase(files)
		f.s.Logf('n', "Background AOF rewrite finished successfully")
	}
	f.mu.Lock()
	f.rewriting, f.current = false, nil
	f.mu.Unlock()
	f.refuse()
}

// After rewriteFailuresMax failures in a row, an automatic rewrite waits a minute, then two, and so on up to pauseMinutesMax,
// as in Redis.
const (
	rewriteFailuresMax = 3
	pauseMinutesMax    = 60
)

// putOff tells whether an automatic rewrite has to wait. Only tick calls it.
func (f *Files) putOff() bool {
	p, now := &f.wait, engine.Monotonic()
	switch {
	case f.status.rewriteFailures.Load() < rewriteFailuresMax:
		*p = putOff{}
		return false
	case p.until != 0 && now < p.until:
		return true
	case p.until != 0: // one more try
		p.until = 0
		return false
	}
	p.minutes = min(max(2*p.minutes, 1), pauseMinutesMax)
	p.until = now + p.minutes*60e6
	f.s.Logf('w', "Background AOF rewrite has repeatedly failed and triggered the limit, will retry in %d minutes", p.minutes)
	return true
}

// putOff is how long rewrites wait, and until when by the monotonic clock; 0: they do not.
type putOff struct{ minutes, until int64 }

// noteBase notes the size of the append-only file, so that its growth is known.
func (f *Files) noteBase(files *journal.Files) {
	if size, err := files.Size(); err == nil {
		f.status.baseSize.Store(size)
	}
}
