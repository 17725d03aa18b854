// Package persistence, internal to the server, is what is kept on disk: the append-only file,
// which has the journal's effects, and snapshots, in Redis's formats and by Redis's
// words. engine/journal writes the one, engine/rdb the other; here is when, and
// what INFO tells of it.
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

	mu  sync.Mutex     // guards what follows; nothing on disk is waited for under it
	aof *journal.Files // that is written; nil: the log is off
	// saving and rewriting are under way in the background; again: a rewrite was asked
	// for meanwhile.
	saving, rewriting, again bool
	ending                   bool          // the last files are being written: nothing begins in the background
	starting                 bool          // a log was turned on whose first rewrite is about to begin
	rewriteEnd               chan struct{} // closed when the rewrite that began last has ended
	background               sync.WaitGroup
	current                  *snapshotWriter // what is being written in the background
	place                    sync.Mutex      // held while a snapshot takes the place of the one before

	delay   atomic.Int64          // of every write of the log, in nanoseconds
	failing atomic.Bool           // the log cannot be written
	unread  atomic.Pointer[error] // why the log could not be read again: it is not written

	final atomic.Int64 // Keyspace.Dirty and one when the last snapshot at the end was made, 0 for none

	status status
	wait   putOff     // of tick
	beside vfs.Beside // has syncs run beside event loops; nil, none were asked for or none can
	asked  sync.Once
	stop   chan struct{}
	loads  atomic.Bool   // loading has begun
	loaded chan struct{} // closed when loading has ended
}

// status is what INFO tells.
type status struct {
	lastSave, lastTry                   atomic.Int64 // Unix seconds
	lastSaveSeconds, lastRewriteSeconds atomic.Int64 // of those in the background; -1: none has ended
	lastSaveFailed, lastRewriteFailed   atomic.Bool
	saveBegan, rewriteBegan             atomic.Int64 // Unix microseconds, 0: none is under way
	saves, rewrites, rewriteFailures    atomic.Int64
	saveEarly, rewriteEarly             atomic.Int64 // bytes that the last ones took early
	lastRewriteTry                      atomic.Int64 // of the monotonic clock
	saveScheduled                       atomic.Bool
	dirtyAtSave                         atomic.Int64 // Keyspace.Dirty when the last snapshot began
	baseSize                            atomic.Int64 // of the append-only file after its last rewrite
	begun, beginMicros                  atomic.Int64 // how many began in the background, and how long the last one held all keys for that
}

// New declares the parameters about files. Nothing is read or written before Load. A snapshot says of which position it is, and
// Load begins there.
func New(s *command.Server, position *replication.Position) *Files {
	f := &Files{s: s, position: position, dumps: s.Config.Dumps(), stop: make(chan struct{}), loaded: make(chan struct{})}
	f.declare()
	s.AddInfo(command.InfoSection{Name: "persistence", Default: true, Write: f.info})
	f.status.lastSave.Store(s.StartedAt / 1e6)
	f.status.lastSaveSeconds.Store(-1)
	f.status.lastRewriteSeconds.Store(-1)
	return f
}

// ResetStats sets to zero what CONFIG RESETSTAT does.
func (f *Files) ResetStats() {
	f.status.saves.Store(0)
	f.status.rewrites.Store(0)
}

// UnderWay tells whether a snapshot, and whether a rewrite, is being written in the background.
func (f *Files) UnderWay() (saving, rewriting bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.saving, f.rewriting
}

// LastSave is when the last snapshot was written, in Unix seconds.
func (f *Files) LastSave() int64 { return f.status.lastSave.Load() }
