package persistence

// Waiting for the disk, and what clients are told while it fails.

import (
	"time"

	"github.com/limitkv/limitkv/engine/journal"
)

// misconf is the error for writes while the log cannot be written.
func misconf(err error) string {
	return "MISCONF Errors writing to the AOF file: " + journal.Reason(err)
}

// syncRetry is how often it is tried to sync a log that cannot be written.
const syncRetry = 100 * time.Millisecond

// SyncLog waits until all there is is on this server's disk, for as long as that is wanted. With appendfsync no the system decides
// when that is, and nobody is told.
func (f *Files) SyncLog(wanted func() bool) {
	for wanted() {
		files := f.log()
		if files == nil {
			return
		}
		begins := files.State() == journal.Starting
		if f.p.policy() != journal.Never && files.Sync() == nil {
			if begins { // INFO does not call that rewrite one under way any more
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

// rewriteOver waits until no rewrite is under way, or the server ends.
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

// log is the append-only file that is written, nil if there is none.
func (f *Files) log() *journal.Files {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.aof
}
