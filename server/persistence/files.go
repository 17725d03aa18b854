// Package persistence, internal to the server, decides when the files on disk are written and loaded, and reports on them in
// INFO. The files are snapshots and the append-only file, which has the effects from the journal. Formats and messages are
// Redis's. engine/journal writes the append-only file, engine/rdb the snapshots.
package persistence

import (
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/engine/vfs"
	"github.com/limitkv/limitkv/replication"
	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

// Files are the append-only file and the snapshots of a server.
type Files struct {
	s        *command.Server
	position *replication.Position
	dumps    *params.Dumps
	p        settings

	mu  sync.Mutex     // guards what follows; nobody waits for the disk under it
	aof *journal.Files // the append-only file that is written; nil if it is off
	// saving and rewriting tell what runs in the background. again: a rewrite was requested meanwhile.
	saving, rewriting, again bool
	ending                   bool          // the last files are being written: no background work begins
	starting                 bool          // the append-only file was turned on and its first rewrite is about to begin
	rewriteEnd               chan struct{} // closed at the end of the last rewrite that began
	background               sync.WaitGroup
	current                  *snapshotWriter // what the background writes
	place                    sync.Mutex      // held while a snapshot replaces the one before

	delay   atomic.Int64          // of every write to the append-only file, in nanoseconds
	failing atomic.Bool           // the append-only file cannot be written
	unread  atomic.Pointer[error] // why the append-only file could not be loaded again; it is not written then

	final atomic.Int64 // Keyspace.Dirty plus one at the last final snapshot, 0 if there was none

	status status
	wait   putOff     // used by tick only
	beside vfs.Beside // runs syncs beside event loops; nil: not used yet, or not possible
	asked  sync.Once
	stop   chan struct{}
	loads  atomic.Bool   // loading has begun
	loaded chan struct{} // closed when loading has ended
}

// status holds the values for INFO.
type status struct {
	lastSave, lastTry                   atomic.Int64 // Unix seconds
	lastSaveSeconds, lastRewriteSeconds atomic.Int64 // of the last one in the background; -1: none has ended
	lastSaveFailed, lastRewriteFailed   atomic.Bool
	saveBegan, rewriteBegan             atomic.Int64 // Unix microseconds, 0: none is running
	saves, rewrites, rewriteFailures    atomic.Int64
	saveEarly, rewriteEarly             atomic.Int64 // bytes that the last one copied early
	lastRewriteTry                      atomic.Int64 // by the monotonic clock
	saveScheduled                       atomic.Bool
	dirtyAtSave                         atomic.Int64 // Keyspace.Dirty when the last snapshot began
	baseSize                            atomic.Int64 // size of the append-only file after its last rewrite
	begun, beginMicros                  atomic.Int64 // how many began in the background, and how long the last one held all keys to begin
}

// New declares the parameters about files. It reads and writes nothing; Load does. A snapshot records the position of the
// replication stream, and Load restores it there.
func New(s *command.Server, position *replication.Position) *Files {
	f := &Files{s: s, position: position, dumps: s.Config.Dumps(), stop: make(chan struct{}), loaded: make(chan struct{})}
	f.declare()
	s.AddInfo(command.InfoSection{Name: "persistence", Default: true, Write: f.info})
	f.status.lastSave.Store(s.StartedAt / 1e6)
	f.status.lastSaveSeconds.Store(-1)
	f.status.lastRewriteSeconds.Store(-1)
	return f
}

// ResetStats clears the counters that CONFIG RESETSTAT resets.
func (f *Files) ResetStats() {
	f.status.saves.Store(0)
	f.status.rewrites.Store(0)
}

// UnderWay tells whether a snapshot and whether a rewrite runs in the background.
func (f *Files) UnderWay() (saving, rewriting bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.saving, f.rewriting
}

// LastSave returns the time of the last snapshot, in Unix seconds.
func (f *Files) LastSave() int64 { return f.status.lastSave.Load() }
