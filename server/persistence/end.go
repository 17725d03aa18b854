package persistence

// The end of the server: the last files are written, or the server continues.

import (
	"errors"
	"io"
	"math"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/dumpfile"
	"github.com/limitkv/limitkv/server/pause"
)

// The reasons why a server does not end.
var (
	errInitial = errors.New("Writing initial AOF, can't exit.")
	errEnding  = errors.New("the server ends")
	errFinal   = errors.New("Error trying to save the DB, can't exit.")
)

// BeforeStop writes the last files while the server can still continue. If that fails, it returns an error, unless force is
// set, and the server must continue. It pauses all clients; the caller ends the pause.
func (f *Files) BeforeStop(how command.Ending, force bool) error {
	if f.s.Loading.On() {
		return nil // nothing to write yet
	}
	ks := f.s.Keyspace
	f.s.Pause.Begin(ks, pause.ForShutdown, math.MaxInt64, false)
	if f.s.Long.Scripts() {
		return nil // Stop writes the files, once the scripts have ended
	}
	err := f.lastFiles(how, force)
	if err != nil {
		f.mu.Lock()
		f.ending = false
		f.mu.Unlock()
		f.s.Logf('w', "%v", err)
	}
	return err
}

func (f *Files) lastFiles(how command.Ending, force bool) error {
	f.mu.Lock()
	f.ending = true // otherwise a scheduled save would begin once the current one is killed
	files, current, initial := f.aof, f.current, f.rewriting && f.aof != nil && f.aof.State() == journal.Starting
	f.mu.Unlock()
	if initial && how != command.EndDiscarding {
		if !force {
			return errInitial
		}
		f.s.Logf('w', "Writing initial AOF. Exit anyway.")
	}
	if current != nil {
		if current.base {
			f.s.Logf('w', "There is a child rewriting the AOF. Killing it!")
		} else {
			f.s.Logf('w', "There is a child saving an .rdb. Killing it!")
		}
		current.kill()
	}
	f.background.Wait()
	if files != nil && files.State() != journal.Starting {
		f.s.Logf('n', "Calling fsync() on the AOF file.")
		if err := files.Sync(); err != nil { // a full or missing disk does not stop the shutdown, as in Redis
			f.s.Logf('w', "Fail to fsync the AOF file: %v.", err)
		}
	}
	if !f.saves(how) {
		return nil
	}
	f.s.Logf('n', "Saving the final RDB snapshot before exiting.")
	if err := f.finalSnapshot(); err != nil {
		if !force {
			return errFinal
		}
		f.s.Logf('w', "Error trying to save the DB. Exit anyway.")
		f.final.Store(f.s.Keyspace.Dirty.Load() + 1) // so that Stop does not try again
	}
	return nil
}

// saves tells whether the server writes a snapshot at its end.
func (f *Files) saves(how command.Ending) bool {
	return how == command.EndSaving || how == command.EndAsConfigured && len(*f.p.points.Load()) > 0
}

// finalSnapshot writes the last snapshot and notes the number of changes in it. It takes all locks first, since a SAVE, which
// holds them, writes to the same file.
func (f *Files) finalSnapshot() error {
	err := f.held(func(c *command.Ctx) error {
		f.s.Host.Writing()
		f.final.Store(c.KS.Dirty.Load() + 1)
		return f.replaceFile(*f.p.dbfilename.Load(), "", func(to io.Writer) error {
			return dumpfile.Write(c, to, dumpfile.What{Facts: f.facts()})
		}, nil)
	})
	if err != nil {
		f.final.Store(0)
	}
	return f.logSaved(err)
}

// held runs fn under all locks.
func (f *Files) held(fn func(c *command.Ctx) error) error { return f.s.Hold(fn) }

// Stop closes the files once no client is served any more. It writes what BeforeStop did not write and what has changed since.
// An append-only file that cannot be written is logged and is no failure, as in Redis.
func (f *Files) Stop(how command.Ending) error {
	close(f.stop)
	if f.loads.Load() {
		<-f.loaded
	}
	if f.s.Loading.On() { // nothing to write yet
		return nil
	}
	f.mu.Lock()
	f.ending = true
	f.mu.Unlock()
	f.background.Wait()
	var failed error
	if f.saves(how) && f.final.Load() != f.s.Keyspace.Dirty.Load()+1 {
		f.s.Logf('n', "Saving the final RDB snapshot before exiting.")
		failed = f.finalSnapshot()
	}
	f.mu.Lock()
	files := f.aof
	f.aof = nil
	f.mu.Unlock()
	if files != nil {
		if err := files.Close(); err != nil {
			f.s.Logf('w', "The end of the AOF was not written: %v", err)
		}
	}
	if f.beside != nil { // no loop watches it any more
		_ = f.beside.Close()
	}
	return failed
}

// seconds returns the seconds since a time of the monotonic clock.
func seconds(began int64) float64 { return float64(engine.Monotonic()-began) / 1e6 }
