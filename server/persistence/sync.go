package persistence

// Waiting for the disk, and the errors for clients while it fails.

import (
	"time"

	"github.com/limitkv/limitkv/engine/journal"
)

// misconf is the error for writes while the log cannot be written.
func misconf(err error) string {
	return "MISCONF Errors writing to the AOF file: " + journal.Reason(err)
}

// syncRetry is how often SyncLog tries again while the log cannot be written.
const syncRetry = 100 * time.Millisecond

// SyncLog waits until everything logged is on this server's disk, as long as wanted reports true. With appendfsync no it waits
// until the log is turned off, as the system decides when to write and reports nothing.
func (f *Files) SyncLog(wanted func() bool) {
	for wanted() {
		files := f.log()
		if files == nil {
			return
		}
		begins := files.State() == journal.Starting
		if f.p.policy() != journal.Never && files.Sync() == nil {
			if begins { // so that INFO does not report that rewrite as running
				f.rewriteOver()
			}
			return
		}
		select {
		case <-f.stop:
			return
		case <-time.After(syncRetry):
		}
	}
}

// rewriteOver waits until no rewrite runs, or the server ends.
func (f *Files) rewriteOver() {
	f.mu.Lock()
	ended := f.rewriteEnd
	rewriting := f.rewriting
	f.mu.Unlock()
	if rewriting {
		select {
		case <-ended:
		case <-f.stop:
		}
	}
}

// log returns the append-only file, nil if it is off.
func (f *Files) log() *journal.Files {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.aof
}
